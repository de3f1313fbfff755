//! REMOVE, RFC 8881 18.25: remove a name from the current directory, whatever its type.

use crate::v4::status::Status;
use crate::v4::types::{ChangeInfo, Name};
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "REMOVE4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args<'a> {
    /// The name.
    pub target: Name<'a>,
}

xdr_struct!(Args<'a> { target });

/// Success.
#[doc(alias = "REMOVE4resok")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResOk {
    /// The directory.
    pub change: ChangeInfo,
}

xdr_struct!(ResOk { change });

/// Result.
#[doc(alias = "REMOVE4res")]
pub type Res = Result<ResOk, Status>;
