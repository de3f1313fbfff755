//! WRITE, RFC 8881 18.32: write data to a file.

use crate::v4::status::Status;
use crate::v4::types::{StableHow, Stateid, Verifier};
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "WRITE4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args<'a> {
    /// The open, the locks or the delegation used for the operation.
    pub stateid: Stateid,
    /// Offset at which to write.
    pub offset: u64,
    /// How durable the data must be before the reply.
    pub stable: StableHow,
    /// The data, borrowed from the call.
    pub data: &'a [u8],
}

xdr_struct!(Args<'a> { stateid, offset, stable, data });

/// Success.
#[doc(alias = "WRITE4resok")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResOk {
    /// The number of bytes written, which may be less than requested.
    pub count: u32,
    /// How durable the written bytes are.
    pub committed: StableHow,
    /// Identifies the run of the server.
    pub verifier: Verifier,
}

xdr_struct!(ResOk { count, committed, verifier });

/// Result.
#[doc(alias = "WRITE4res")]
pub type Res = Result<ResOk, Status>;
