//! PUTFH, RFC 8881 18.19: set the current filehandle.

use crate::v4::status::Status;
use crate::v4::types::FileHandle;
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "PUTFH4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args<'a> {
    /// The filehandle.
    pub object: FileHandle<'a>,
}

xdr_struct!(Args<'a> { object });

/// Result.
#[doc(alias = "PUTFH4res")]
pub type Res = Result<(), Status>;
