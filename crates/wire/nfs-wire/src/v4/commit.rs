//! COMMIT, RFC 8881 18.3: put written data on stable storage.

use crate::v4::status::Status;
use crate::v4::types::Verifier;
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "COMMIT4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args {
    /// Offset of the first byte.
    pub offset: u64,
    /// The number of bytes; 0 means up to the end of the file.
    pub count: u32,
}

xdr_struct!(Args { offset, count });

/// Success.
#[doc(alias = "COMMIT4resok")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResOk {
    /// Identifies the run of the server.
    pub verifier: Verifier,
}

xdr_struct!(ResOk { verifier });

/// Result.
#[doc(alias = "COMMIT4res")]
pub type Res = Result<ResOk, Status>;
