//! LOCKT, RFC 8881 18.11: whether a byte range could be locked.

use crate::v4::lock::{Failure, LockType};
use crate::v4::types::StateOwner;
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "LOCKT4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args<'a> {
    /// Shared or exclusive.
    pub lock_type: LockType,
    /// First byte.
    pub offset: u64,
    /// How many bytes; all ones means up to the largest offset.
    pub length: u64,
    /// For whom.
    pub owner: StateOwner<'a>,
}

xdr_struct!(Args<'a> { lock_type, offset, length, owner });

/// Result: [`Failure::Denied`] with the lock that is in the way.
#[doc(alias = "LOCKT4res")]
pub type Res<'a> = Result<(), Failure<'a>>;
