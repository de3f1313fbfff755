//! IO_ADVISE, RFC 7862 15.5: how a client will use a part of a file.

use crate::v4::status::Status;
use crate::v4::types::{Bitmap, Stateid};
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "IO_ADVISE4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args {
    /// The open, the locks or the delegation used for the operation.
    pub stateid: Stateid,
    /// Offset of the first byte.
    pub offset: u64,
    /// The number of bytes; 0 means up to the end of the file.
    pub count: u64,
    /// The [`hint`]s.
    pub hints: Bitmap,
}

xdr_struct!(Args { stateid, offset, count, hints });

/// Success.
#[doc(alias = "IO_ADVISE4resok")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResOk {
    /// The hints that the server follows.
    pub hints: Bitmap,
}

xdr_struct!(ResOk { hints });

/// The hints that a client can give, RFC 7862 15.5.1.
#[doc(alias = "IO_ADVISE_type4")]
pub mod hint {
    /// No special access pattern.
    pub const NORMAL: u32 = 0;
    /// Sequential access, forwards.
    pub const SEQUENTIAL: u32 = 1;
    /// Sequential access, backwards.
    pub const SEQUENTIAL_BACKWARDS: u32 = 2;
    /// Random access.
    pub const RANDOM: u32 = 3;
    /// Access will follow soon.
    pub const WILL_NEED: u32 = 4;
    /// Access may follow soon.
    pub const WILL_NEED_OPPORTUNISTIC: u32 = 5;
    /// No access will follow soon.
    pub const DONT_NEED: u32 = 6;
    /// Access only once.
    pub const NO_REUSE: u32 = 7;
    /// Access by reading.
    pub const READ: u32 = 8;
    /// Access by writing.
    pub const WRITE: u32 = 9;
    /// Access near the ranges that had this hint before.
    pub const INIT_PROXIMITY: u32 = 10;
}

/// Result.
#[doc(alias = "IO_ADVISE4res")]
pub type Res = Result<ResOk, Status>;
