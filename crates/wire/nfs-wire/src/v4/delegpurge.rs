//! DELEGPURGE, RFC 8881 18.5: give up the delegations of an earlier incarnation of the client.

use crate::v4::status::Status;
use crate::v4::types::ClientId;
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "DELEGPURGE4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args {
    /// Ignored: the session identifies the client.
    pub client_id: ClientId,
}

xdr_struct!(Args { client_id });

/// Result.
#[doc(alias = "DELEGPURGE4res")]
pub type Res = Result<(), Status>;
