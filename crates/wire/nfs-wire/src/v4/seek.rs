//! SEEK, RFC 7862 15.11: the next data or hole of a file.

use crate::v4::status::Status;
use crate::v4::types::Stateid;
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "SEEK4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args {
    /// The open, the locks or the delegation used for the operation.
    pub stateid: Stateid,
    /// Where to start.
    pub offset: u64,
    /// What to look for: [`content::DATA`], [`content::HOLE`], or another number, which is answered with
    /// NFS4ERR_UNION_NOTSUPP.
    pub what: u32,
}

xdr_struct!(Args { stateid, offset, what });

/// Success.
#[doc(alias = "SEEK4resok")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResOk {
    /// Whether nothing was found before the end of the file.
    pub eof: bool,
    /// Where the data or hole begins.
    pub offset: u64,
}

xdr_struct!(ResOk { eof, offset });

/// Kinds of content, RFC 7862 15.11.1.
#[doc(alias = "data_content4")]
pub mod content {
    /// Data.
    pub const DATA: u32 = 0;
    /// A hole.
    pub const HOLE: u32 = 1;
}

/// Result.
#[doc(alias = "SEEK4res")]
pub type Res = Result<ResOk, Status>;
