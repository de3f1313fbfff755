//! REMOVEXATTR, RFC 8276 8.4.4: remove an extended attribute.

use crate::v4::status::Status;
use crate::v4::types::{ChangeInfo, Name};
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "REMOVEXATTR4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args<'a> {
    /// The name of the attribute, without the prefix `user.`.
    pub name: Name<'a>,
}

xdr_struct!(Args<'a> { name });

/// Success.
#[doc(alias = "REMOVEXATTR4resok")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResOk {
    /// The file.
    pub change: ChangeInfo,
}

xdr_struct!(ResOk { change });

/// Result.
#[doc(alias = "REMOVEXATTR4res")]
pub type Res = Result<ResOk, Status>;
