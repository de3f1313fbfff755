//! What a client has from whoever uses it: connections, names, randomness, the time of day.

use std::net::SocketAddr;
use std::time::Duration;

use crate::{Framing, NfsTls, Result};

/// A connection while a session is made: messages in and out, one after the other.
pub trait Wire {
    /// Sends bytes, prefix included.
    ///
    /// # Errors
    /// The connection is of no more use.
    fn send(&mut self, bytes: &[u8]) -> Result<()>;

    /// Waits for the next message: without its prefix, whole ([`crate::next_message`]).
    ///
    /// # Errors
    /// None has come in time, or the connection is of no more use.
    fn receive(&mut self) -> Result<Vec<u8>>;

    /// Begins TLS on the connection: what is sent and received from now on is encrypted, and the server has shown a
    /// certificate for this name. Returns the cipher suite.
    ///
    /// # Errors
    /// [`crate::FaultKind::WrongSignature`]; [`crate::FaultKind::ThisMachine`] if the certificates to trust cannot be read.
    fn start_tls(&mut self, host: &str, tls: &NfsTls) -> Result<String>;
}

/// Where clients are used.
pub trait World {
    /// Its connections.
    type Wire: Wire;

    /// The first address of a host.
    ///
    /// # Errors
    /// [`crate::FaultKind::Unreachable`]: the name has no address.
    fn resolve(&self, host: &str, port: u16) -> Result<SocketAddr>;

    /// Connects.
    ///
    /// # Errors
    /// [`crate::FaultKind::Unreachable`].
    fn connect(&self, address: SocketAddr, framing: Framing) -> Result<Self::Wire>;

    /// Whether somebody answers there soon: asked of addresses that a server has told of.
    fn is_reachable(&self, address: SocketAddr) -> bool;

    /// Fills a buffer with random bytes that nobody can guess.
    ///
    /// # Errors
    /// [`crate::FaultKind::ThisMachine`].
    fn random(&self, buffer: &mut [u8]) -> Result<()>;

    /// The bytes of the user's credential cache: the file with Kerberos tickets.
    ///
    /// # Errors
    /// [`crate::FaultKind::ThisMachine`]: there is none that can be read.
    fn credential_cache(&self) -> Result<Vec<u8>>;

    /// The time since the beginning of 1970 (UTC).
    fn now(&self) -> Duration;
}
