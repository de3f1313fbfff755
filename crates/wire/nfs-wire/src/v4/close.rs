//! CLOSE, RFC 8881 18.2: end an open.

use crate::v4::status::Status;
use crate::v4::types::Stateid;
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "CLOSE4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args {
    /// The sequence number of the open-owner; ignored since NFSv4.1.
    pub seqid: u32,
    /// The open.
    pub open_stateid: Stateid,
}

xdr_struct!(Args { seqid, open_stateid });

/// Success.
#[doc(alias = "CLOSE4resok")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResOk {
    /// Without meaning since NFSv4.1: [`Stateid::INVALID`].
    pub open_stateid: Stateid,
}

xdr_struct!(ResOk { open_stateid });

/// Result.
#[doc(alias = "CLOSE4res")]
pub type Res = Result<ResOk, Status>;
