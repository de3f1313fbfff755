//! OFFLOAD_CANCEL, RFC 7862 15.8: cancel an asynchronous copy.

use crate::v4::status::Status;
use crate::v4::types::Stateid;
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "OFFLOAD_CANCEL4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args {
    /// The stateid that COPY returned.
    pub stateid: Stateid,
}

xdr_struct!(Args { stateid });

/// Result.
#[doc(alias = "OFFLOAD_CANCEL4res")]
pub type Res = Result<(), Status>;
