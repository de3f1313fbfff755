//! BACKCHANNEL_CTL, RFC 8881 18.33: a new program number or new credentials for the back channel.

use crate::v4::status::Status;
use crate::v4::types::SecurityParameters;
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "BACKCHANNEL_CTL4args")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Args<'a> {
    /// The program number of the client's callback service.
    pub callback_program: u32,
    /// The credentials that the server may use there.
    pub callback_security: Vec<SecurityParameters<'a>>,
}

xdr_struct!(Args<'a> { callback_program, callback_security });

/// Result.
#[doc(alias = "BACKCHANNEL_CTL4res")]
pub type Res = Result<(), Status>;
