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
    /// Offset of the first byte.
    pub offset: u64,
    /// The number of bytes; 0 means up to the end of the file.
    pub count: u32,
}

xdr_struct!(Args { file, offset, count });

/// Success.
#[doc(alias = "COMMIT3resok")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResOk {
    /// The file before and after the operation.
    pub file_wcc: WccData,
    /// Identifies the run of the server.
    pub verifier: WriteVerifier,
}

xdr_struct!(ResOk { file_wcc, verifier });

/// Result; also on failure with the file before and after.
#[doc(alias = "COMMIT3res")]
pub type Res = ResWithWcc<ResOk>;
