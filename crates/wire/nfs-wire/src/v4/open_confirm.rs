//! OPEN_CONFIRM, RFC 7530 16.18: an NFSv4.0 client confirms the first use of an open-owner.

use crate::v4::status::Status;
use crate::v4::types::Stateid;
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "OPEN_CONFIRM4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args {
    /// The open.
    pub open_stateid: Stateid,
    /// The sequence number of the open-owner.
    pub seqid: u32,
}

xdr_struct!(Args { open_stateid, seqid });

/// Success.
#[doc(alias = "OPEN_CONFIRM4resok")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResOk {
    /// The open.
    pub open_stateid: Stateid,
}

xdr_struct!(ResOk { open_stateid });

/// Result.
#[doc(alias = "OPEN_CONFIRM4res")]
pub type Res = Result<ResOk, Status>;
