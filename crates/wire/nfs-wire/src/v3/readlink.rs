//! READLINK, RFC 1813 3.3.5: the text of a symbolic link.

use crate::v3::attr::Attributes;
use crate::v3::types::{FileHandle, Path, ResWithAttributes};
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "READLINK3args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args {
    /// The symbolic link.
    pub symlink: FileHandle,
}

xdr_struct!(Args { symlink });

/// Success.
#[doc(alias = "READLINK3resok")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResOk<'a> {
    /// The link's attributes.
    pub symlink_attributes: Option<Attributes>,
    /// The text of the link.
    pub data: Path<'a>,
}

xdr_struct!(ResOk<'a> { symlink_attributes, data });

/// Result; on failure with the link's attributes.
#[doc(alias = "READLINK3res")]
pub type Res<'a> = ResWithAttributes<ResOk<'a>>;
