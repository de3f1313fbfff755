//! DEALLOCATE, RFC 7862 15.4: turn a part of a file into a hole.

use crate::v4::status::Status;
use crate::v4::types::Stateid;
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "DEALLOCATE4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args {
    /// The open, the locks or the delegation used for the operation.
    pub stateid: Stateid,
    /// Offset of the first byte.
    pub offset: u64,
    /// The number of bytes.
    pub length: u64,
}

xdr_struct!(Args { stateid, offset, length });

/// Result.
#[doc(alias = "DEALLOCATE4res")]
pub type Res = Result<(), Status>;
