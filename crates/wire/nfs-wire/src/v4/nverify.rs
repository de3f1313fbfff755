//! NVERIFY, RFC 8881 18.15: continue only if attributes differ.

use crate::v4::attr::Attributes;
use crate::v4::status::Status;
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "NVERIFY4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args<'a> {
    /// The attributes to compare with.
    pub attributes: Attributes<'a>,
}

xdr_struct!(Args<'a> { attributes });

/// Result.
#[doc(alias = "NVERIFY4res")]
pub type Res = Result<(), Status>;
