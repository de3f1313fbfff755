//! OFFLOAD_STATUS, RFC 7862 15.9: the progress of an asynchronous copy.

use crate::v4::status::Status;
use crate::v4::types::Stateid;
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "OFFLOAD_STATUS4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args {
    /// The stateid that COPY returned.
    pub stateid: Stateid,
}

xdr_struct!(Args { stateid });

/// Success.
#[doc(alias = "OFFLOAD_STATUS4resok")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResOk {
    /// Bytes copied.
    pub copied_bytes: u64,
    /// The outcome, once the copy has ended. On the wire an array of at most one element, which is encoded like an
    /// optional value.
    pub complete: Option<Result<(), Status>>,
}

xdr_struct!(ResOk { copied_bytes, complete });

/// Result.
#[doc(alias = "OFFLOAD_STATUS4res")]
pub type Res = Result<ResOk, Status>;
