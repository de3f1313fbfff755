//! ALLOCATE, RFC 7862 15.1: reserve space for a part of a file.

use crate::v4::status::Status;
use crate::v4::types::Stateid;
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "ALLOCATE4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args {
    /// The open, the locks or the delegation that it is done with.
    pub stateid: Stateid,
    /// First byte.
    pub offset: u64,
    /// How many bytes.
    pub length: u64,
}

xdr_struct!(Args { stateid, offset, length });

/// Result.
#[doc(alias = "ALLOCATE4res")]
pub type Res = Result<(), Status>;
