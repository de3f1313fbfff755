//! OPEN_DOWNGRADE, RFC 8881 18.18: reduce an open's access and denial.

use crate::v4::open::{ShareAccess, ShareDeny};
use crate::v4::status::Status;
use crate::v4::types::Stateid;
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "OPEN_DOWNGRADE4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args {
    /// The open.
    pub open_stateid: Stateid,
    /// The sequence number of the open-owner; ignored since NFSv4.1.
    pub seqid: u32,
    /// The access that remains.
    pub share_access: ShareAccess,
    /// The denial that remains.
    pub share_deny: ShareDeny,
}

xdr_struct!(Args { open_stateid, seqid, share_access, share_deny });

/// Success.
#[doc(alias = "OPEN_DOWNGRADE4resok")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResOk {
    /// The open.
    pub open_stateid: Stateid,
}

xdr_struct!(ResOk { open_stateid });

/// Result.
#[doc(alias = "OPEN_DOWNGRADE4res")]
pub type Res = Result<ResOk, Status>;
