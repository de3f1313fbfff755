//! COMMIT, RFC 8881 18.3: put written data on stable storage.

use crate::v4::status::Status;
use crate::v4::types::Verifier;
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "COMMIT4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args {
    /// First byte.
    pub offset: u64,
    /// How many bytes; 0 means all up to the end.
    pub count: u32,
}

xdr_struct!(Args { offset, count });

/// Success.
#[doc(alias = "COMMIT4resok")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResOk {
    /// The server's run.
    pub verifier: Verifier,
}

xdr_struct!(ResOk { verifier });

/// Result.
#[doc(alias = "COMMIT4res")]
pub type Res = Result<ResOk, Status>;
