//! LOOKUP, RFC 1813 3.3.3: from a directory and a name to a filehandle.

use crate::v3::attr::Attributes;
use crate::v3::types::{DirOpArgs, FileHandle, ResWithAttributes};
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "LOOKUP3args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args<'a> {
    /// Directory and name.
    pub what: DirOpArgs<'a>,
}

xdr_struct!(Args<'a> { what });

/// Success.
#[doc(alias = "LOOKUP3resok")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResOk {
    /// The object of that name.
    pub object: FileHandle,
    /// The attributes of the object.
    pub object_attributes: Option<Attributes>,
    /// The directory's attributes.
    pub dir_attributes: Option<Attributes>,
}

xdr_struct!(ResOk { object, object_attributes, dir_attributes });

/// Result; on failure with the directory's attributes.
#[doc(alias = "LOOKUP3res")]
pub type Res = ResWithAttributes<ResOk>;
