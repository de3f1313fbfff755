//! What must survive a restart, so that clients reclaim what they held (RFC 8881 8.4.2.1).

/// A client that has, or had, state on this server. Written down before its first open is answered; forgotten when its
/// state ends, or when the grace period ends without it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClientRecord {
    /// co_ownerid: the same after the client has asked for a client ID anew.
    pub owner: Vec<u8>,
}
