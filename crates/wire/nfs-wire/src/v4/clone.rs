//! CLONE, RFC 7862 15.13: share data of the saved filehandle's file with the current filehandle's file.

use crate::v4::status::Status;
use crate::v4::types::Stateid;
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "CLONE4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args {
    /// The open used to read the source.
    pub source_stateid: Stateid,
    /// The open used to write the destination.
    pub destination_stateid: Stateid,
    /// Offset of the first byte in the source.
    pub source_offset: u64,
    /// Offset of the first byte in the destination.
    pub destination_offset: u64,
    /// The number of bytes; 0 means up to the end of the source.
    pub count: u64,
}

xdr_struct!(Args { source_stateid, destination_stateid, source_offset, destination_offset, count });

/// Result.
#[doc(alias = "CLONE4res")]
pub type Res = Result<(), Status>;
