//! COPY, RFC 7862 15.2: copy data of the saved filehandle's file to the current filehandle's file, on the server.

use crate::v4::status::Status;
use crate::v4::types::{NetAddr, StableHow, Stateid, Text, Verifier};
use crate::xdr::{Decode, Encode, Reader, Writer, XdrError, xdr_struct};

/// Arguments.
#[doc(alias = "COPY4args")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Args<'a> {
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
    /// Whether the bytes must be copied in order.
    pub consecutive: bool,
    /// Whether the reply must wait until the copy has ended.
    pub synchronous: bool,
    /// The server of the source, if it is another one.
    pub source_servers: Vec<NetLoc<'a>>,
}

xdr_struct!(Args<'a> {
    source_stateid,
    destination_stateid,
    source_offset,
    destination_offset,
    count,
    consecutive,
    synchronous,
    source_servers
});

/// Success.
#[doc(alias = "COPY4resok")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResOk {
    /// What was copied, or the copy that is under way.
    pub response: WriteResponse,
    /// How the copy is carried out.
    pub requirements: Requirements,
}

xdr_struct!(ResOk { response, requirements });

/// What was written, or will be.
#[doc(alias = "write_response4")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteResponse {
    /// The asynchronous copy. On the wire an array of at most one element, which is encoded like an optional value.
    pub callback_id: Option<Stateid>,
    /// The number of bytes.
    pub count: u64,
    /// How durable the written bytes are.
    pub committed: StableHow,
    /// Identifies the run of the server.
    pub verifier: Verifier,
}

xdr_struct!(WriteResponse { callback_id, count, committed, verifier });

/// How a copy is or can be carried out.
#[doc(alias = "copy_requirements4")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Requirements {
    /// The bytes are copied in order.
    pub consecutive: bool,
    /// The reply waits until the copy has ended.
    pub synchronous: bool,
}

xdr_struct!(Requirements { consecutive, synchronous });

/// Result.
#[doc(alias = "COPY4res")]
pub type Res = Result<ResOk, Failure>;

/// Why a copy was not started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// NFS4ERR_OFFLOAD_NO_REQS: how the server can copy instead.
    Requirements(Requirements),
    /// Any other status.
    Status(Status),
}

impl Failure {
    /// The status.
    #[must_use]
    pub fn status(&self) -> Status {
        match self {
            Self::Requirements(_) => Status::OffloadNoReqs,
            Self::Status(status) => *status,
        }
    }
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        Self::Status(status)
    }
}

impl Encode for Res {
    fn encode(&self, writer: &mut Writer<'_>) {
        match self {
            Ok(value) => {
                writer.u32(0);
                value.encode(writer);
            }
            Err(Failure::Requirements(requirements)) => {
                Status::OffloadNoReqs.encode(writer);
                requirements.encode(writer);
            }
            Err(Failure::Status(status)) => status.encode(writer),
        }
    }
}

impl Decode<'_> for Res {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, XdrError> {
        Ok(match reader.u32()? {
            0 => Ok(ResOk::decode(reader)?),
            status => Err(match Status::try_from(status)? {
                Status::OffloadNoReqs => Failure::Requirements(Decode::decode(reader)?),
                status => Failure::Status(status),
            }),
        })
    }
}

/// The location of a server.
#[doc(alias = "netloc4")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetLoc<'a> {
    /// By name.
    #[doc(alias = "NL4_NAME")]
    Name(Text<'a>),
    /// By URL.
    #[doc(alias = "NL4_URL")]
    Url(Text<'a>),
    /// By address.
    #[doc(alias = "NL4_NETADDR")]
    NetAddr(NetAddr<'a>),
}

impl Encode for NetLoc<'_> {
    fn encode(&self, writer: &mut Writer<'_>) {
        match self {
            Self::Name(name) => {
                writer.u32(1);
                name.encode(writer);
            }
            Self::Url(url) => {
                writer.u32(2);
                url.encode(writer);
            }
            Self::NetAddr(address) => {
                writer.u32(3);
                address.encode(writer);
            }
        }
    }
}

impl<'a> Decode<'a> for NetLoc<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, XdrError> {
        match reader.u32()? {
            1 => Decode::decode(reader).map(Self::Name),
            2 => Decode::decode(reader).map(Self::Url),
            3 => Decode::decode(reader).map(Self::NetAddr),
            value => Err(XdrError::UndefinedValue { kind: "netloc_type4", value }),
        }
    }
}
