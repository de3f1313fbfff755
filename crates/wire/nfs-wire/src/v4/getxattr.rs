//! GETXATTR, RFC 8276 8.4.1: an extended attribute.

use crate::v4::status::Status;
use crate::v4::types::Name;
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "GETXATTR4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args<'a> {
    /// The name of the attribute, without the prefix `user.`.
    pub name: Name<'a>,
}

xdr_struct!(Args<'a> { name });

/// Success.
#[doc(alias = "GETXATTR4resok")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResOk<'a> {
    /// The value of the attribute.
    pub value: &'a [u8],
}

xdr_struct!(ResOk<'a> { value });

/// Result.
#[doc(alias = "GETXATTR4res")]
pub type Res<'a> = Result<ResOk<'a>, Status>;
