//! SETXATTR, RFC 8276 8.4.2: create or change an extended attribute.

use crate::v4::status::Status;
use crate::v4::types::{ChangeInfo, Name};
use crate::xdr::{xdr_enum, xdr_struct};

/// Arguments.
#[doc(alias = "SETXATTR4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args<'a> {
    /// Whether the attribute may or must already exist.
    pub option: SetOption,
    /// The name of the attribute, without the prefix `user.`.
    pub name: Name<'a>,
    /// The value of the attribute.
    pub value: &'a [u8],
}

xdr_struct!(Args<'a> { option, name, value });

/// Success.
#[doc(alias = "SETXATTR4resok")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResOk {
    /// The file.
    pub change: ChangeInfo,
}

xdr_struct!(ResOk { change });

xdr_enum! {
    /// What to do if the attribute exists, and if it does not.
    #[doc(alias = "setxattr_option4")]
    SetOption {
        /// Create or replace it.
        Either = 0,
        /// Create it, or fail with NFS4ERR_EXIST.
        Create = 1,
        /// Replace it, or fail with NFS4ERR_NOXATTR.
        Replace = 2,
    }
}

/// Result.
#[doc(alias = "SETXATTR4res")]
pub type Res = Result<ResOk, Status>;
