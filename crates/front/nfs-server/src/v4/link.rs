//! Reaching a connection.

use net::Mailbox;
use nfs_proto::v4::session::ConnectionNumber;

/// Reaches a connection from sessions whose other connections live on other shards.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    pub(crate) number: ConnectionNumber,
    pub(crate) mailbox: Mailbox,
}
