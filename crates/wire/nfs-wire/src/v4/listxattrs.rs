//! LISTXATTRS, RFC 8276 8.4.3: names of extended attributes.

use crate::v4::status::Status;
use crate::v4::types::Name;
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "LISTXATTRS4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args {
    /// Continue after the name returned with this cookie; 0 starts.
    pub cookie: u64,
    /// The most bytes of the successful result.
    pub count: u32,
}

xdr_struct!(Args { cookie, count });

/// Success.
#[doc(alias = "LISTXATTRS4resok")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResOk<'a> {
    /// The cookie with which to continue.
    pub cookie: u64,
    /// The names, without the prefix `user.`.
    pub names: Vec<Name<'a>>,
    /// Whether the last name is the last one of the file.
    pub eof: bool,
}

xdr_struct!(ResOk<'a> { cookie, names, eof });

/// Result.
#[doc(alias = "LISTXATTRS4res")]
pub type Res<'a> = Result<ResOk<'a>, Status>;
