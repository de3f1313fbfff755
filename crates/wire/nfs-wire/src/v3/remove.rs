//! REMOVE, RFC 1813 3.3.12: remove a name of an object that is not a directory.

use crate::v3::attr::WccData;
use crate::v3::types::{DirOpArgs, ResWithWcc};
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "REMOVE3args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args<'a> {
    /// Directory and name.
    pub object: DirOpArgs<'a>,
}

xdr_struct!(Args<'a> { object });

/// Success.
#[doc(alias = "REMOVE3resok")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResOk {
    /// The directory before and after the operation.
    pub dir_wcc: WccData,
}

xdr_struct!(ResOk { dir_wcc });

/// Result; also on failure with the directory before and after.
#[doc(alias = "REMOVE3res")]
pub type Res = ResWithWcc<ResOk>;
