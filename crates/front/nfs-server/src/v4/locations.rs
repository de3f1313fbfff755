//! Other places where a share can be reached: the server's other addresses, to which clients may open further
//! connections of a session (RFC 8881 5.8.2.12, 11.5.5). No other server has these shares.

use std::net::IpAddr;
use std::sync::Arc;

use nfs_wire::v4::attr::Value;
use nfs_wire::v4::fs_locations::{FsLocation, FsLocations};
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::Text;

/// The most addresses that a client gets.
const ADDRESSES_MAX: usize = 64;

/// The value of `fs_locations` for a share, or for the root of the pseudo file system.
#[derive(Debug)]
pub(super) struct Locations {
    /// The share's name; `None` for the root.
    pub(super) share: Option<Box<str>>,
    /// The server's addresses, as text.
    pub(super) addresses: Vec<String>,
}

impl Locations {
    /// The current addresses, read on the pool, since reading them may wait.
    ///
    /// # Errors
    /// [`Status::ServerFault`] when the server is about to end.
    pub(super) async fn of(share: Option<&str>, listen: &Arc<[IpAddr]>) -> Result<Self, Status> {
        let addresses = if listen.is_empty() {
            Vec::new()
        } else {
            let listen = Arc::clone(listen);
            tokio::task::spawn_blocking(move || current(&listen)).await.map_err(|_| Status::ServerFault)?
        };
        Ok(Self { share: share.map(Into::into), addresses })
    }

    pub(super) fn value(&self) -> Value<'_> {
        let root: Vec<_> = self.share.iter().map(|name| Text(name.as_bytes())).collect();
        let servers: Vec<_> = self.addresses.iter().map(|address| Text(address.as_bytes())).collect();
        let locations =
            if servers.is_empty() { Vec::new() } else { vec![FsLocation { servers, root: root.clone() }] };
        Value::FsLocations(FsLocations { root, locations })
    }
}

fn current(listen: &[IpAddr]) -> Vec<String> {
    let known = net::interface_addrs().unwrap_or_else(|e| {
        tracing::warn!("the system does not tell its addresses: {e}");
        Vec::new()
    });
    let usable = known.iter().filter(|known| known.is_listened_on(listen));
    usable.take(ADDRESSES_MAX).map(|known| known.address.to_string()).collect()
}
