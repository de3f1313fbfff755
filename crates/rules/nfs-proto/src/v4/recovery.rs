//! What must survive a restart, so that clients can reclaim what they held (RFC 8881 8.4.2.1).

/// A client that has, or had, state on this server. The record is stored before the client's first open is answered. It
/// is removed when the client's state ends, or when the grace period ends and the client has not returned.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClientRecord {
    /// co_ownerid: stays the same when the client asks for a new client ID.
    pub owner: Vec<u8>,
}
