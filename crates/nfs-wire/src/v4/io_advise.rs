//! IO_ADVISE, RFC 7862 15.5: how a client will use a part of a file.

use crate::v4::status::Status;
use crate::v4::types::{Bitmap, Stateid};
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "IO_ADVISE4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args {
    /// The open, the locks or the delegation that it is done with.
    pub stateid: Stateid,
    /// First byte.
    pub offset: u64,
    /// How many bytes; 0 means up to the end.
    pub count: u64,
    /// [`hint`]s.
    pub hints: Bitmap,
}

xdr_struct!(Args { stateid, offset, count, hints });

/// Success.
#[doc(alias = "IO_ADVISE4resok")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResOk {
    /// Those that the server follows.
    pub hints: Bitmap,
}

xdr_struct!(ResOk { hints });

/// What a client can say, RFC 7862 15.5.1.
#[doc(alias = "IO_ADVISE_type4")]
pub mod hint {
    /// Nothing special.
    pub const NORMAL: u32 = 0;
    /// Forwards.
    pub const SEQUENTIAL: u32 = 1;
    /// Backwards.
    pub const SEQUENTIAL_BACKWARDS: u32 = 2;
    /// In no order.
    pub const RANDOM: u32 = 3;
    /// Soon.
    pub const WILL_NEED: u32 = 4;
    /// Maybe soon.
    pub const WILL_NEED_OPPORTUNISTIC: u32 = 5;
    /// Not soon.
    pub const DONT_NEED: u32 = 6;
    /// Once.
    pub const NO_REUSE: u32 = 7;
    /// By reading.
    pub const READ: u32 = 8;
    /// By writing.
    pub const WRITE: u32 = 9;
    /// Near to what came with the same hint before.
    pub const INIT_PROXIMITY: u32 = 10;
}

/// Result.
#[doc(alias = "IO_ADVISE4res")]
pub type Res = Result<ResOk, Status>;
