//! MKDIR, RFC 1813 3.3.9: create a directory.

use crate::v3::attr::SetAttributes;
use crate::v3::types::{CreatedOk, DirOpArgs, ResWithWcc};
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "MKDIR3args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args<'a> {
    /// Directory and name.
    pub place: DirOpArgs<'a>,
    /// The new directory's attributes.
    pub attributes: SetAttributes,
}

xdr_struct!(Args<'a> { place, attributes });

/// Result; on failure with the directory before and after.
#[doc(alias = "MKDIR3res")]
pub type Res = ResWithWcc<CreatedOk>;
