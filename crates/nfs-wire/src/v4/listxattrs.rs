//! LISTXATTRS, RFC 8276 8.4.3: names of extended attributes.

use crate::v4::status::Status;
use crate::v4::types::Name;
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "LISTXATTRS4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args {
    /// Go on after what came with this cookie; 0 starts.
    pub cookie: u64,
    /// Most bytes of the successful result.
    pub count: u32,
}

xdr_struct!(Args { cookie, count });

/// Success.
#[doc(alias = "LISTXATTRS4resok")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResOk<'a> {
    /// Where to go on.
    pub cookie: u64,
    /// Names, without the `user.` in front.
    pub names: Vec<Name<'a>>,
    /// Whether the last of them is the file's last.
    pub eof: bool,
}

xdr_struct!(ResOk<'a> { cookie, names, eof });

/// Result.
#[doc(alias = "LISTXATTRS4res")]
pub type Res<'a> = Result<ResOk<'a>, Status>;
