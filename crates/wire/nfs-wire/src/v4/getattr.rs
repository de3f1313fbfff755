//! GETATTR, RFC 8881 18.7: attributes of the current filehandle's object.

use crate::v4::attr::{AttributeSet, Attributes};
use crate::v4::status::Status;
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "GETATTR4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args {
    /// The attributes that the client asks for.
    pub request: AttributeSet,
}

xdr_struct!(Args { request });

/// Success.
#[doc(alias = "GETATTR4resok")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResOk<'a> {
    /// The requested attributes that the server supports.
    pub attributes: Attributes<'a>,
}

xdr_struct!(ResOk<'a> { attributes });

/// Result.
#[doc(alias = "GETATTR4res")]
pub type Res<'a> = Result<ResOk<'a>, Status>;
