//! RECLAIM_COMPLETE, RFC 8881 18.51: the client has completed its reclaims.

use crate::v4::status::Status;
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "RECLAIM_COMPLETE4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args {
    /// Whether this applies only to the current filehandle's file system, which has moved; if not, to all file systems.
    pub one_fs: bool,
}

xdr_struct!(Args { one_fs });

/// Result.
#[doc(alias = "RECLAIM_COMPLETE4res")]
pub type Res = Result<(), Status>;
