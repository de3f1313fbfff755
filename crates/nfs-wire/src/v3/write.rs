//! WRITE, RFC 1813 3.3.7: data into a file.

use crate::v3::attr::WccData;
use crate::v3::types::{FileHandle, ResWithWcc, StableHow, WriteVerifier};
use crate::xdr::xdr_struct;

/// Arguments, with the data borrowed from the call.
#[doc(alias = "WRITE3args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args<'a> {
    /// The file.
    pub file: FileHandle,
    /// Where the first byte goes.
    pub offset: u64,
    /// How many bytes to write. The length of `data`, if the client makes no mistake.
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
    /// The file, before and after.
    pub file_wcc: WccData,
    /// How many bytes were written, which may be fewer than asked.
    pub count: u32,
    /// How durable they are.
    pub committed: StableHow,
    /// The server's run.
    pub verifier: WriteVerifier,
}

xdr_struct!(ResOk { file_wcc, count, committed, verifier });

/// Result; its failing arm has the file before and after, too.
#[doc(alias = "WRITE3res")]
pub type Res = ResWithWcc<ResOk>;
