//! OFFLOAD_STATUS, RFC 7862 15.9: how far an asynchronous copy is.

use crate::v4::status::Status;
use crate::v4::types::Stateid;
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "OFFLOAD_STATUS4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args {
    /// What COPY returned.
    pub stateid: Stateid,
}

xdr_struct!(Args { stateid });

/// Success.
#[doc(alias = "OFFLOAD_STATUS4resok")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResOk {
    /// Bytes copied.
    pub copied_bytes: u64,
    /// How it ended, once it has: an array of at most one, which has the bytes of an optional value.
    pub complete: Option<Result<(), Status>>,
}

xdr_struct!(ResOk { copied_bytes, complete });

/// Result.
#[doc(alias = "OFFLOAD_STATUS4res")]
pub type Res = Result<ResOk, Status>;
