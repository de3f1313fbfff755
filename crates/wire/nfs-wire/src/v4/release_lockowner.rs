//! RELEASE_LOCKOWNER, RFC 7530 16.37: an NFSv4.0 client no longer uses a lock-owner.

use crate::v4::status::Status;
use crate::v4::types::StateOwner;
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "RELEASE_LOCKOWNER4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args<'a> {
    /// The lock-owner, which must hold no locks.
    pub lock_owner: StateOwner<'a>,
}

xdr_struct!(Args<'a> { lock_owner });

/// Result.
#[doc(alias = "RELEASE_LOCKOWNER4res")]
pub type Res = Result<(), Status>;
