//! PATHCONF, RFC 1813 3.3.20: rules for names and links.

use crate::v3::attr::Attributes;
use crate::v3::types::{FileHandle, ResWithAttributes};
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "PATHCONF3args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args {
    /// The object.
    pub object: FileHandle,
}

xdr_struct!(Args { object });

/// Success.
#[doc(alias = "PATHCONF3resok")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResOk {
    /// The object's attributes.
    pub object_attributes: Option<Attributes>,
    /// The most hard links to an object.
    #[doc(alias = "linkmax")]
    pub links_max: u32,
    /// The longest name in bytes.
    #[doc(alias = "name_max")]
    pub name_bytes_max: u32,
    /// Whether a longer name is an error instead of being cut off.
    pub no_trunc: bool,
    /// Whether only a privileged user may change an owner.
    pub chown_restricted: bool,
    /// Whether names that differ only in case are the same.
    pub case_insensitive: bool,
    /// Whether the case of a name is kept.
    pub case_preserving: bool,
}

xdr_struct!(ResOk {
    object_attributes,
    links_max,
    name_bytes_max,
    no_trunc,
    chown_restricted,
    case_insensitive,
    case_preserving
});

/// Result; on failure with the object's attributes.
#[doc(alias = "PATHCONF3res")]
pub type Res = ResWithAttributes<ResOk>;
