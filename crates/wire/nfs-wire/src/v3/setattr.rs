//! SETATTR, RFC 1813 3.3.2: change the attributes of an object, including its size.

use crate::v3::attr::{SetAttributes, WccData};
use crate::v3::types::{FileHandle, ResWithWcc, Time};
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "SETATTR3args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args {
    /// The object.
    pub object: FileHandle,
    /// What to set.
    pub new_attributes: SetAttributes,
    /// Set the attributes only if the object has this ctime; otherwise NFS3ERR_NOT_SYNC.
    #[doc(alias = "sattrguard3")]
    pub guard: Option<Time>,
}

xdr_struct!(Args { object, new_attributes, guard });

/// Success.
#[doc(alias = "SETATTR3resok")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResOk {
    /// The object before and after the operation.
    pub object_wcc: WccData,
}

xdr_struct!(ResOk { object_wcc });

/// Result; also on failure with the object before and after.
#[doc(alias = "SETATTR3res")]
pub type Res = ResWithWcc<ResOk>;
