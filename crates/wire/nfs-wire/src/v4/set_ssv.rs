//! SET_SSV, RFC 8881 18.47: change the secret state verifier.

use crate::v4::status::Status;
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "SET_SSV4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args<'a> {
    /// The value that is combined with the verifier.
    pub ssv: &'a [u8],
    /// A hash for verification.
    pub digest: &'a [u8],
}

xdr_struct!(Args<'a> { ssv, digest });

/// Success.
#[doc(alias = "SET_SSV4resok")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResOk<'a> {
    /// A hash for verification.
    pub digest: &'a [u8],
}

xdr_struct!(ResOk<'a> { digest });

/// Result.
#[doc(alias = "SET_SSV4res")]
pub type Res<'a> = Result<ResOk<'a>, Status>;
