//! FREE_STATEID, RFC 8881 18.38: forget state that was revoked, or that no longer holds anything.

use crate::v4::status::Status;
use crate::v4::types::Stateid;
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "FREE_STATEID4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args {
    /// The state.
    pub stateid: Stateid,
}

xdr_struct!(Args { stateid });

/// Result.
#[doc(alias = "FREE_STATEID4res")]
pub type Res = Result<(), Status>;
