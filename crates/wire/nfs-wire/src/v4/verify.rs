//! VERIFY, RFC 8881 18.31: continue only if attributes are the same.

use crate::v4::attr::Attributes;
use crate::v4::status::Status;
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "VERIFY4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args<'a> {
    /// The attributes to compare with.
    pub attributes: Attributes<'a>,
}

xdr_struct!(Args<'a> { attributes });

/// Result.
#[doc(alias = "VERIFY4res")]
pub type Res = Result<(), Status>;
