//! LOCKU, RFC 8881 18.12: unlock a byte range.

use crate::v4::lock::LockType;
use crate::v4::status::Status;
use crate::v4::types::Stateid;
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "LOCKU4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args {
    /// Has no effect: both kinds are unlocked.
    pub lock_type: LockType,
    /// The sequence number of the lock-owner; ignored since NFSv4.1.
    pub seqid: u32,
    /// The owner's locks.
    pub lock_stateid: Stateid,
    /// Offset of the first byte.
    pub offset: u64,
    /// The number of bytes; all ones means up to the largest offset.
    pub length: u64,
}

xdr_struct!(Args { lock_type, seqid, lock_stateid, offset, length });

/// Success.
#[doc(alias = "LOCKU4resok")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResOk {
    /// The owner's locks.
    pub lock_stateid: Stateid,
}

xdr_struct!(ResOk { lock_stateid });

/// Result.
#[doc(alias = "LOCKU4res")]
pub type Res = Result<ResOk, Status>;
