//! COPY_NOTIFY, RFC 7862 15.3: tell the source that another server will read.

use crate::v4::copy::NetLoc;
use crate::v4::status::Status;
use crate::v4::types::{Stateid, Time};
use crate::xdr::xdr_struct;

/// Arguments.
#[doc(alias = "COPY_NOTIFY4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args<'a> {
    /// The open used for reading.
    pub stateid: Stateid,
    /// The other server.
    pub destination: NetLoc<'a>,
}

xdr_struct!(Args<'a> { stateid, destination });

/// Success.
#[doc(alias = "COPY_NOTIFY4resok")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResOk<'a> {
    /// How long the other server may take to begin.
    pub lease_time: Time,
    /// The stateid that the other server presents.
    pub stateid: Stateid,
    /// Where the other server finds the source.
    pub sources: Vec<NetLoc<'a>>,
}

xdr_struct!(ResOk<'a> { lease_time, stateid, sources });

/// Result.
#[doc(alias = "COPY_NOTIFY4res")]
pub type Res<'a> = Result<ResOk<'a>, Status>;
