//! VERIFY, RFC 8881 18.31: go on only if attributes are the same.

use crate::v4::attr::Attributes;
use crate::v4::status::Status;
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "VERIFY4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args<'a> {
    /// What they are compared with.
    pub attributes: Attributes<'a>,
}

xdr_struct!(Args<'a> { attributes });

/// Result.
#[doc(alias = "VERIFY4res")]
pub type Res = Result<(), Status>;
