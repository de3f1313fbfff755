//! CREATE_SESSION, RFC 8881 18.36: a session for a client, and the confirmation of its client ID.

use crate::v4::status::Status;
use crate::v4::types::{ClientId, SecurityParameters, SessionId};
use crate::xdr::{xdr_bitflags, xdr_struct};

/// Arguments.
#[doc(alias = "CREATE_SESSION4args")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Args<'a> {
    /// The client.
    pub client_id: ClientId,
    /// The value that EXCHANGE_ID returned, and one more after each new session.
    pub sequence_id: u32,
    /// What the client asks for.
    pub flags: Flags,
    /// The attributes that the client asks for on the fore channel.
    pub fore_channel: ChannelAttributes,
    /// The attributes that the client offers on the back channel.
    pub back_channel: ChannelAttributes,
    /// The program number of the client's callback service.
    pub callback_program: u32,
    /// The credentials that the server may use for callbacks. The server uses the first that it supports.
    pub callback_security: Vec<SecurityParameters<'a>>,
}

xdr_struct!(Args<'a> {
    client_id,
    sequence_id,
    flags,
    fore_channel,
    back_channel,
    callback_program,
    callback_security
});

/// Success.
#[doc(alias = "CREATE_SESSION4resok")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResOk {
    /// The identifier of the session.
    pub session_id: SessionId,
    /// As in the arguments.
    pub sequence_id: u32,
    /// The client's flags that are in effect.
    pub flags: Flags,
    /// The attributes of the fore channel.
    pub fore_channel: ChannelAttributes,
    /// The attributes of the back channel.
    pub back_channel: ChannelAttributes,
}

xdr_struct!(ResOk { session_id, sequence_id, flags, fore_channel, back_channel });

/// Result.
#[doc(alias = "CREATE_SESSION4res")]
pub type Res = Result<ResOk, Status>;

xdr_bitflags! {
    /// RFC 8881 18.36.3.
    pub struct Flags {
        /// The reply cache survives a restart of the server.
        #[doc(alias = "CREATE_SESSION4_FLAG_PERSIST")]
        const PERSIST = 0x1;
        /// The connection is also the back channel.
        #[doc(alias = "CREATE_SESSION4_FLAG_CONN_BACK_CHAN")]
        const CONN_BACK_CHAN = 0x2;
        /// The connection switches to RDMA.
        #[doc(alias = "CREATE_SESSION4_FLAG_CONN_RDMA")]
        const CONN_RDMA = 0x4;
    }
}

impl Flags {
    /// Whether all bits are defined.
    #[must_use]
    pub fn is_defined(self) -> bool {
        Self::PERSIST.union(Self::CONN_BACK_CHAN).union(Self::CONN_RDMA).contains(self)
    }
}

/// The limits of a channel.
#[doc(alias = "channel_attrs4")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChannelAttributes {
    /// Padding before bulk data, in bytes.
    pub header_pad_bytes: u32,
    /// The largest request, including the RPC header.
    pub request_bytes_max: u32,
    /// The largest reply, including the RPC header.
    pub response_bytes_max: u32,
    /// The largest reply that is cached for a retry.
    pub response_cached_bytes_max: u32,
    /// The most operations of a COMPOUND.
    pub operations_max: u32,
    /// Number of slots.
    pub requests_max: u32,
    /// Read queue depth of RDMA. On the wire an array of at most one element, which is encoded like an optional value.
    pub rdma_ird: Option<u32>,
}

xdr_struct!(ChannelAttributes {
    header_pad_bytes,
    request_bytes_max,
    response_bytes_max,
    response_cached_bytes_max,
    operations_max,
    requests_max,
    rdma_ird
});
