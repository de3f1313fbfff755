//! DESTROY_CLIENTID, RFC 8881 18.50.

use crate::v4::status::Status;
use crate::v4::types::ClientId;
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "DESTROY_CLIENTID4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args {
    /// The client, which must have no sessions and no state left.
    pub client_id: ClientId,
}

xdr_struct!(Args { client_id });

/// Result.
#[doc(alias = "DESTROY_CLIENTID4res")]
pub type Res = Result<(), Status>;
