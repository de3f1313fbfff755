//! COMMIT, RFC 1813 3.3.21: put written data on stable storage.

use crate::v3::attr::WccData;
use crate::v3::types::{FileHandle, ResWithWcc, WriteVerifier};
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "COMMIT3args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args {
    /// The file.
    pub file: FileHandle,
    /// First byte.
    pub offset: u64,
    /// How many bytes; 0 means to the end of the file.
    pub count: u32,
}

xdr_struct!(Args { file, offset, count });

/// Success.
#[doc(alias = "COMMIT3resok")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResOk {
    /// The file, before and after.
    pub file_wcc: WccData,
    /// The server's run.
    pub verifier: WriteVerifier,
}

xdr_struct!(ResOk { file_wcc, verifier });

/// Result; its failing arm has the file before and after, too.
#[doc(alias = "COMMIT3res")]
pub type Res = ResWithWcc<ResOk>;
