//! DESTROY_SESSION, RFC 8881 18.37.

use crate::v4::status::Status;
use crate::v4::types::SessionId;
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "DESTROY_SESSION4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args {
    /// The session.
    pub session_id: SessionId,
}

xdr_struct!(Args { session_id });

/// Result.
#[doc(alias = "DESTROY_SESSION4res")]
pub type Res = Result<(), Status>;
