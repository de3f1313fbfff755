//! LOCKT, RFC 8881 18.11: test whether a byte range could be locked.

use crate::v4::lock::{Failure, LockType};
use crate::v4::types::StateOwner;
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "LOCKT4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args<'a> {
    /// Shared or exclusive.
    pub lock_type: LockType,
    /// Offset of the first byte.
    pub offset: u64,
    /// The number of bytes; all ones means up to the largest offset.
    pub length: u64,
    /// The owner.
    pub owner: StateOwner<'a>,
}

xdr_struct!(Args<'a> { lock_type, offset, length, owner });

/// Result: [`Failure::Denied`] with the conflicting lock.
#[doc(alias = "LOCKT4res")]
pub type Res<'a> = Result<(), Failure<'a>>;
