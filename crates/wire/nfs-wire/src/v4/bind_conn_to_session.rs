//! BIND_CONN_TO_SESSION, RFC 8881 18.34: another connection for a session.

use crate::v4::status::Status;
use crate::v4::types::SessionId;
use crate::xdr::{xdr_enum, xdr_struct};

/// Arguments.
#[doc(alias = "BIND_CONN_TO_SESSION4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args {
    /// The session.
    pub session_id: SessionId,
    /// The channels that the client asks for.
    pub direction: ClientDirection,
    /// Whether the connection switches to RDMA.
    pub use_rdma: bool,
}

xdr_struct!(Args { session_id, direction, use_rdma });

/// Success.
#[doc(alias = "BIND_CONN_TO_SESSION4resok")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResOk {
    /// As in the arguments.
    pub session_id: SessionId,
    /// The channels that the connection has now.
    pub direction: ServerDirection,
    /// Whether the connection switches to RDMA.
    pub use_rdma: bool,
}

xdr_struct!(ResOk { session_id, direction, use_rdma });

/// Result.
#[doc(alias = "BIND_CONN_TO_SESSION4res")]
pub type Res = Result<ResOk, Status>;

xdr_enum! {
    /// The channels that a client asks for.
    #[doc(alias = "channel_dir_from_client4")]
    ClientDirection {
        /// The fore channel.
        Fore = 1,
        /// The back channel.
        Back = 2,
        /// The fore channel, or both.
        ForeOrBoth = 3,
        /// The back channel, or both.
        BackOrBoth = 7,
    }
}

xdr_enum! {
    /// The channels that a client gets.
    #[doc(alias = "channel_dir_from_server4")]
    ServerDirection {
        /// The fore channel.
        Fore = 1,
        /// The back channel.
        Back = 2,
        /// Both.
        Both = 3,
    }
}
