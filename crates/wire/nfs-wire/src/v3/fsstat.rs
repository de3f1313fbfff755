//! FSSTAT, RFC 1813 3.3.18: space and number of files in the file system.

use crate::v3::attr::Attributes;
use crate::v3::types::{FileHandle, ResWithAttributes};
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "FSSTAT3args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args {
    /// An object of the file system.
    pub root: FileHandle,
}

xdr_struct!(Args { root });

/// Success.
#[doc(alias = "FSSTAT3resok")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResOk {
    /// The object's attributes.
    pub object_attributes: Option<Attributes>,
    /// Bytes in total.
    pub total_bytes: u64,
    /// Free bytes.
    pub free_bytes: u64,
    /// Free bytes available to this caller.
    pub available_bytes: u64,
    /// Files in total.
    pub total_files: u64,
    /// Files that can still be created.
    pub free_files: u64,
    /// Files that this caller can still create.
    pub available_files: u64,
    /// Seconds for which these numbers will not change; 0 if they may at any time.
    pub invariant_seconds: u32,
}

xdr_struct!(ResOk {
    object_attributes,
    total_bytes,
    free_bytes,
    available_bytes,
    total_files,
    free_files,
    available_files,
    invariant_seconds
});

/// Result; on failure with the object's attributes.
#[doc(alias = "FSSTAT3res")]
pub type Res = ResWithAttributes<ResOk>;
