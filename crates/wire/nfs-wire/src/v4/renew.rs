//! RENEW, RFC 7530 16.28: renew the lease of an NFSv4.0 client.

use crate::v4::status::Status;
use crate::v4::types::ClientId;
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "RENEW4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args {
    /// The client.
    pub client_id: ClientId,
}

xdr_struct!(Args { client_id });

/// Result.
#[doc(alias = "RENEW4res")]
pub type Res = Result<(), Status>;
