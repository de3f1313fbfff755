//! SETATTR, RFC 8881 18.30: change attributes of the current filehandle's object.

use crate::v4::attr::{AttributeSet, Attributes};
use crate::v4::status::Status;
use crate::v4::types::Stateid;
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "SETATTR4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args<'a> {
    /// The open, the locks or the delegation used to set a size.
    pub stateid: Stateid,
    /// The attributes.
    pub attributes: Attributes<'a>,
}

xdr_struct!(Args<'a> { stateid, attributes });

/// Result, with the same body for success and failure.
#[doc(alias = "SETATTR4res")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Res {
    /// Success if all attributes were set.
    pub status: Result<(), Status>,
    /// The attributes that were set.
    pub attributes_set: AttributeSet,
}

xdr_struct!(Res { status, attributes_set });

impl From<Status> for Res {
    fn from(status: Status) -> Self {
        Self { status: Err(status), attributes_set: AttributeSet::EMPTY }
    }
}
