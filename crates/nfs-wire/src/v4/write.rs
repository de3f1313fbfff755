//! WRITE, RFC 8881 18.32: data into a file.

use crate::v4::status::Status;
use crate::v4::types::{StableHow, Stateid, Verifier};
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "WRITE4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args<'a> {
    /// The open, the locks or the delegation that it is done with.
    pub stateid: Stateid,
    /// Where the first byte goes.
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
    /// How many bytes were written, which may be fewer than asked.
    pub count: u32,
    /// How durable they are.
    pub committed: StableHow,
    /// The server's run.
    pub verifier: Verifier,
}

xdr_struct!(ResOk { count, committed, verifier });

/// Result.
#[doc(alias = "WRITE4res")]
pub type Res = Result<ResOk, Status>;
