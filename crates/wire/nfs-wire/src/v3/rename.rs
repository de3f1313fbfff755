//! RENAME, RFC 1813 3.3.14: give an object another name, possibly in another directory.

use crate::v3::attr::WccData;
use crate::v3::status::Status;
use crate::v3::types::DirOpArgs;
use crate::xdr::{Failure, xdr_struct};

/// Arguments.
#[doc(alias = "RENAME3args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args<'a> {
    /// The old directory and name.
    pub from: DirOpArgs<'a>,
    /// The new directory and name.
    pub to: DirOpArgs<'a>,
}

xdr_struct!(Args<'a> { from, to });

/// Both directories, which both arms of the result contain.
#[doc(alias = "RENAME3resok")]
#[doc(alias = "RENAME3resfail")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DirsWcc {
    /// The old directory before and after the operation.
    pub from_dir_wcc: WccData,
    /// The new directory before and after the operation.
    pub to_dir_wcc: WccData,
}

xdr_struct!(DirsWcc { from_dir_wcc, to_dir_wcc });

/// Result.
#[doc(alias = "RENAME3res")]
pub type Res = Result<DirsWcc, Failure<Status, DirsWcc>>;
