//! OPENATTR, RFC 8881 18.17: the directory of named attributes.

use crate::v4::status::Status;
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "OPENATTR4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args {
    /// Whether to create the directory.
    pub create: bool,
}

xdr_struct!(Args { create });

/// Result.
#[doc(alias = "OPENATTR4res")]
pub type Res = Result<(), Status>;
