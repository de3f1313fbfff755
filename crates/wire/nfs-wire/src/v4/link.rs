//! LINK, RFC 8881 18.9: another name, in the current directory, for the saved filehandle's object.

use crate::v4::status::Status;
use crate::v4::types::{ChangeInfo, Name};
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "LINK4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args<'a> {
    /// The name.
    pub new_name: Name<'a>,
}

xdr_struct!(Args<'a> { new_name });

/// Success.
#[doc(alias = "LINK4resok")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResOk {
    /// The directory.
    pub change: ChangeInfo,
}

xdr_struct!(ResOk { change });

/// Result.
#[doc(alias = "LINK4res")]
pub type Res = Result<ResOk, Status>;
