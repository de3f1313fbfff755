//! CLONE, RFC 7862 15.13: share data of the saved filehandle's file with the current one's.

use crate::v4::status::Status;
use crate::v4::types::Stateid;
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "CLONE4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args {
    /// The open that the source is read with.
    pub source_stateid: Stateid,
    /// The open that the destination is written with.
    pub destination_stateid: Stateid,
    /// First byte of the source.
    pub source_offset: u64,
    /// First byte of the destination.
    pub destination_offset: u64,
    /// How many bytes; 0 means up to the source's end.
    pub count: u64,
}

xdr_struct!(Args { source_stateid, destination_stateid, source_offset, destination_offset, count });

/// Result.
#[doc(alias = "CLONE4res")]
pub type Res = Result<(), Status>;
