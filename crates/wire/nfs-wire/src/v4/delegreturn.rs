//! DELEGRETURN, RFC 8881 18.6: return a delegation.

use crate::v4::status::Status;
use crate::v4::types::Stateid;
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "DELEGRETURN4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args {
    /// The delegation.
    pub stateid: Stateid,
}

xdr_struct!(Args { stateid });

/// Result.
#[doc(alias = "DELEGRETURN4res")]
pub type Res = Result<(), Status>;
