//! LINK, RFC 1813 3.3.15: another name for a file.

use crate::v3::attr::{Attributes, WccData};
use crate::v3::status::Status;
use crate::v3::types::{DirOpArgs, FileHandle};
use crate::xdr::{Failure, xdr_struct};

/// Arguments.
#[doc(alias = "LINK3args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args<'a> {
    /// The file.
    pub file: FileHandle,
    /// Directory and name of the link.
    pub link: DirOpArgs<'a>,
}

xdr_struct!(Args<'a> { file, link });

/// The file and the directory, which both arms of the result contain.
#[doc(alias = "LINK3resok")]
#[doc(alias = "LINK3resfail")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileAndDir {
    /// The file's attributes.
    pub file_attributes: Option<Attributes>,
    /// The directory before and after the operation.
    pub link_dir_wcc: WccData,
}

xdr_struct!(FileAndDir { file_attributes, link_dir_wcc });

/// Result.
#[doc(alias = "LINK3res")]
pub type Res = Result<FileAndDir, Failure<Status, FileAndDir>>;
