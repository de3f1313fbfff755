//! SYMLINK, RFC 1813 3.3.10: create a symbolic link.

use crate::v3::attr::SetAttributes;
use crate::v3::types::{CreatedOk, DirOpArgs, Path, ResWithWcc};
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "SYMLINK3args")]
#[doc(alias = "symlinkdata3")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args<'a> {
    /// Directory and name.
    pub place: DirOpArgs<'a>,
    /// The link's attributes.
    pub attributes: SetAttributes,
    /// The link's text.
    pub data: Path<'a>,
}

xdr_struct!(Args<'a> { place, attributes, data });

/// Result; on failure with the directory before and after.
#[doc(alias = "SYMLINK3res")]
pub type Res = ResWithWcc<CreatedOk>;
