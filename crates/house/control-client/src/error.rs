//! Why a call to the control address has come to nothing.

use std::io;
use std::net::SocketAddr;

use control::ApiError;

/// Why a call has come to nothing.
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
        /// What the system or the TLS library says.
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
        /// What is wrong with the JSON; it may quote the server.
        error: serde_json::Error,
    },
    /// The server does not accept the token: it is another server.
    #[error("the server at {address} does not accept the token")]
    WrongToken {
        /// The address.
        address: SocketAddr,
    },
    /// The server refuses the call, and says why. The words may be those of a client.
    #[error("{}", .0.message)]
    Refused(ApiError),
    /// The server refuses the call, and does not say why.
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
