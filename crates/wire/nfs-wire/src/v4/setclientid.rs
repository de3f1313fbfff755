//! SETCLIENTID, RFC 7530 16.33: an NFSv4.0 client identifies itself.

use crate::v4::exchange_id::ClientOwner;
use crate::v4::status::Status;
use crate::v4::types::{ClientId, NetAddr, Verifier};
use crate::xdr::{Decode, Encode, Reader, Writer, XdrError, xdr_struct};

/// Arguments.
#[doc(alias = "SETCLIENTID4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args<'a> {
    /// The client, and its incarnation (`nfs_client_id4`, which has the form of `client_owner4`).
    pub client: ClientOwner<'a>,
    /// Where the client accepts callbacks.
    pub callback: CallbackClient<'a>,
    /// What the server sends in callbacks to this client.
    pub callback_ident: u32,
}

xdr_struct!(Args<'a> { client, callback, callback_ident });

/// Where a client accepts callbacks.
#[doc(alias = "cb_client4")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallbackClient<'a> {
    /// The RPC program.
    pub program: u32,
    /// The address.
    pub location: NetAddr<'a>,
}

xdr_struct!(CallbackClient<'a> { program, location });

/// Success.
#[doc(alias = "SETCLIENTID4resok")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResOk {
    /// The server's number for the client.
    pub client_id: ClientId,
    /// What the client sends with SETCLIENTID_CONFIRM.
    pub confirm: Verifier,
}

xdr_struct!(ResOk { client_id, confirm });

/// Result.
#[doc(alias = "SETCLIENTID4res")]
pub type Res<'a> = Result<ResOk, Failure<'a>>;

/// Why a client was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure<'a> {
    /// NFS4ERR_CLID_INUSE: the client of another principal has this name, with its address.
    InUse(NetAddr<'a>),
    /// Any other status.
    Status(Status),
}

impl Failure<'_> {
    /// The status.
    #[must_use]
    pub fn status(&self) -> Status {
        match self {
            Self::InUse(_) => Status::ClidInUse,
            Self::Status(status) => *status,
        }
    }
}

impl From<Status> for Failure<'_> {
    fn from(status: Status) -> Self {
        Self::Status(status)
    }
}

/// `union switch (nfsstat4)`, with the client's address after NFS4ERR_CLID_INUSE.
impl Encode for Res<'_> {
    fn encode(&self, writer: &mut Writer<'_>) {
        match self {
            Ok(value) => {
                writer.u32(0);
                value.encode(writer);
            }
            Err(Failure::InUse(client)) => {
                Status::ClidInUse.encode(writer);
                client.encode(writer);
            }
            Err(Failure::Status(status)) => status.encode(writer),
        }
    }
}

impl<'a> Decode<'a> for Res<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, XdrError> {
        Ok(match reader.u32()? {
            0 => Ok(ResOk::decode(reader)?),
            status => Err(match Status::try_from(status)? {
                Status::ClidInUse => Failure::InUse(NetAddr::decode(reader)?),
                status => Failure::Status(status),
            }),
        })
    }
}
