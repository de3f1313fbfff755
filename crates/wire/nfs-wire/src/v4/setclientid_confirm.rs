//! SETCLIENTID_CONFIRM, RFC 7530 16.34: an NFSv4.0 client has received its client ID.

use crate::v4::status::Status;
use crate::v4::types::{ClientId, Verifier};
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "SETCLIENTID_CONFIRM4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args {
    /// The result of SETCLIENTID.
    pub client_id: ClientId,
    /// The result of SETCLIENTID.
    pub confirm: Verifier,
}

xdr_struct!(Args { client_id, confirm });

/// Result.
#[doc(alias = "SETCLIENTID_CONFIRM4res")]
pub type Res = Result<(), Status>;
