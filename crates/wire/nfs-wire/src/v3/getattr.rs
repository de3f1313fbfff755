//! GETATTR, RFC 1813 3.3.1: the attributes of an object.

use crate::v3::attr::Attributes;
use crate::v3::status::Status;
use crate::v3::types::FileHandle;
use crate::xdr::{Failure, xdr_struct};

/// Arguments.
#[doc(alias = "GETATTR3args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args {
    /// The object.
    pub object: FileHandle,
}

xdr_struct!(Args { object });

/// Success.
#[doc(alias = "GETATTR3resok")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResOk {
    /// The attributes of the object.
    pub object_attributes: Attributes,
}

xdr_struct!(ResOk { object_attributes });

/// Result.
#[doc(alias = "GETATTR3res")]
pub type Res = Result<ResOk, Failure<Status, ()>>;
