//! WRITE, RFC 1813 3.3.7: write data to a file.

use crate::v3::attr::WccData;
use crate::v3::types::{FileHandle, ResWithWcc, StableHow, WriteVerifier};
use crate::xdr::xdr_struct;

/// Arguments, with the data borrowed from the call.
#[doc(alias = "WRITE3args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args<'a> {
    /// The file.
    pub file: FileHandle,
    /// Offset at which to write.
    pub offset: u64,
    /// The number of bytes to write: the length of `data`, unless the client is in error.
    pub count: u32,
    /// How durable the data must be before the reply.
    pub stable: StableHow,
    /// The data.
    pub data: &'a [u8],
}

xdr_struct!(Args<'a> { file, offset, count, stable, data });

/// Success.
#[doc(alias = "WRITE3resok")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResOk {
    /// The file before and after the operation.
    pub file_wcc: WccData,
    /// The number of bytes written, which may be less than requested.
    pub count: u32,
    /// How durable the written bytes are.
    pub committed: StableHow,
    /// Identifies the run of the server.
    pub verifier: WriteVerifier,
}

xdr_struct!(ResOk { file_wcc, count, committed, verifier });

/// Result; also on failure with the file before and after.
#[doc(alias = "WRITE3res")]
pub type Res = ResWithWcc<ResOk>;
