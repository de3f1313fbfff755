//! Errors of calls to the control address.

use std::io;
use std::net::SocketAddr;

use control::ApiError;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nobody listens at the address.
    #[error("no server answers at {address}")]
    NoServer {
        /// The address.
        address: SocketAddr,
    },
    /// The connection fails, or the server is silent for too long.
    #[error("cannot ask {address}: {error}")]
    Unreachable {
        /// The address.
        address: SocketAddr,
        /// The error of the system or the TLS library.
        error: io::Error,
    },
    /// The answer is not HTTP.
    #[error("{address} does not answer as HTTP")]
    NotHttp {
        /// The address.
        address: SocketAddr,
    },
    /// The answer is not the JSON that was expected.
    #[error("the answer of {address} is not understood: {error}")]
    NotUnderstood {
        /// The address.
        address: SocketAddr,
        /// The fault of the JSON. The text may quote the server.
        error: serde_json::Error,
    },
    /// The server does not accept the token, so it is another server.
    #[error("the server at {address} does not accept the token")]
    WrongToken {
        /// The address.
        address: SocketAddr,
    },
    /// The server refuses the call and gives a reason, which may quote a client.
    #[error("{}", .0.message)]
    Refused(ApiError),
    /// The server refuses the call without a reason.
    #[error("the server at {address} refuses (HTTP {status}), and does not say why")]
    RefusedSilently {
        /// The address.
        address: SocketAddr,
        /// The status of the answer.
        status: u16,
    },
    /// The body of the call cannot be written.
    #[error("cannot write JSON: {0}")]
    Body(serde_json::Error),
}

/// The outcome of a call.
pub type Result<T> = std::result::Result<T, Error>;
