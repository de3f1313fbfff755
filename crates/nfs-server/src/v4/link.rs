//! A way to a connection.

use net::Mailbox;
use nfs_proto::v4::session::ConnectionNumber;

/// A way to a connection, for those of its sessions that live on other shards.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    pub(crate) number: ConnectionNumber,
    pub(crate) mailbox: Mailbox,
}
