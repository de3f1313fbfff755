//! TLS for the connections of a server (RFC 9289): whether they must use it, and its configuration.

use std::sync::Arc;

use parking_lot::RwLock;
use rustls::ServerConfig;

/// The protocol that both ends name in the handshake (RFC 9289, IANA considerations: "The 'sunrpc' string identifies SunRPC when used over
/// TLS"). A client that names none is served: tlshd names none.
pub const APPLICATION_PROTOCOL: &[u8] = b"sunrpc";

/// Whether clients must use TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Demand {
    /// Each client decides.
    Offered,
    /// Calls outside of TLS are refused, but for NULL.
    Required,
}

/// TLS for the connections of a server.
#[derive(Debug)]
pub struct Tls {
    demand: Demand,
    /// Guards the configuration, which is replaced as a whole. It is read once a connection.
    config: RwLock<Arc<ServerConfig>>,
}

impl Tls {
    /// TLS with this configuration, which must name [`APPLICATION_PROTOCOL`] and refuse versions before 1.3 (RFC 9289 5).
    #[must_use]
    pub fn new(demand: Demand, config: Arc<ServerConfig>) -> Arc<Self> {
        Arc::new(Self { demand, config: RwLock::new(config) })
    }

    /// Uses another configuration for handshakes that begin from now on.
    pub fn replace(&self, config: Arc<ServerConfig>) {
        *self.config.write() = config;
    }

    /// The configuration for a handshake that begins now.
    pub(crate) fn present(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.config.read())
    }

    /// Whether clients must use TLS.
    pub(crate) fn is_required(&self) -> bool {
        self.demand == Demand::Required
    }
}
