//! LOOKUP, RFC 8881 18.13: name to filehandle.

use crate::v4::status::Status;
use crate::v4::types::Name;
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "LOOKUP4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args<'a> {
    /// The name in the current directory.
    pub name: Name<'a>,
}

xdr_struct!(Args<'a> { name });

/// Result.
#[doc(alias = "LOOKUP4res")]
pub type Res = Result<(), Status>;
