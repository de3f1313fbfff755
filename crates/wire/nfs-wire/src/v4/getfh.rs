//! GETFH, RFC 8881 18.8: the current filehandle.

use crate::v4::status::Status;
use crate::v4::types::FileHandle;
use crate::xdr::xdr_struct;

/// Success.
#[doc(alias = "GETFH4resok")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResOk<'a> {
    /// The filehandle.
    pub object: FileHandle<'a>,
}

xdr_struct!(ResOk<'a> { object });

/// Result.
#[doc(alias = "GETFH4res")]
pub type Res<'a> = Result<ResOk<'a>, Status>;
