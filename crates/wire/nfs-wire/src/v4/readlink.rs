//! READLINK, RFC 8881 18.24: a symbolic link's text.

use crate::v4::status::Status;
use crate::v4::types::Text;
use crate::xdr::xdr_struct;

/// Success.
#[doc(alias = "READLINK4resok")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResOk<'a> {
    /// The text.
    pub link: Text<'a>,
}

xdr_struct!(ResOk<'a> { link });

/// Result.
#[doc(alias = "READLINK4res")]
pub type Res<'a> = Result<ResOk<'a>, Status>;
