//! RENAME, RFC 8881 18.26: move an object from the saved directory to the current one.

use crate::v4::status::Status;
use crate::v4::types::{ChangeInfo, Name};
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "RENAME4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args<'a> {
    /// The name in the saved directory.
    pub old_name: Name<'a>,
    /// The name in the current directory.
    pub new_name: Name<'a>,
}

xdr_struct!(Args<'a> { old_name, new_name });

/// Success.
#[doc(alias = "RENAME4resok")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResOk {
    /// The saved directory.
    pub source_change: ChangeInfo,
    /// The current directory.
    pub target_change: ChangeInfo,
}

xdr_struct!(ResOk { source_change, target_change });

/// Result.
#[doc(alias = "RENAME4res")]
pub type Res = Result<ResOk, Status>;
