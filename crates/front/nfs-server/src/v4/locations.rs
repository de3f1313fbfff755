//! Other places where a share can be reached: the server's other addresses, to which clients may open further
//! connections of a session (RFC 8881 5.8.2.12, 11.5.5), and the addresses of the server that has a share that was here (11.16).

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use nfs_wire::v4::attr::Value;
use nfs_wire::v4::fs_locations::{FsLocation, FsLocations};
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::Text;
use share::{Gone, NFS_PORT};

/// The most addresses that a client gets.
const ADDRESSES_MAX: usize = 64;

/// The value of `fs_locations` for a share, or for the root of the pseudo file system.
#[derive(Debug)]
pub(super) struct Locations {
    /// The share's name; `None` for the root.
    pub(super) share: Option<Box<str>>,
    /// The addresses of its server, as text.
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

    /// Where a share has gone, for a client with this address.
    pub(super) fn elsewhere(gone: &Gone, client: IpAddr) -> Self {
        let addresses = gone.addresses_for(client).take(ADDRESSES_MAX).map(universal).collect();
        Self { share: Some(gone.name.as_str().into()), addresses }
    }

    pub(super) fn value(&self) -> Value<'_> {
        let root: Vec<_> = self.share.iter().map(|name| Text(name.as_bytes())).collect();
        let servers: Vec<_> = self.addresses.iter().map(|address| Text(address.as_bytes())).collect();
        let locations =
            if servers.is_empty() { Vec::new() } else { vec![FsLocation { servers, root: root.clone() }] };
        Value::FsLocations(FsLocations { root, locations })
    }
}

/// A universal address without its netid (RFC 5665 5.2.3.3 and 5.2.3.4). RFC 8881 11.16: "If the suffix is omitted, then the
/// default port, 2049, SHOULD be assumed."
fn universal(address: SocketAddr) -> String {
    let [high, low] = address.port().to_be_bytes();
    let host = address.ip();
    if address.port() == NFS_PORT { host.to_string() } else { format!("{host}.{high}.{low}") }
}

fn current(listen: &[IpAddr]) -> Vec<String> {
    let known = net::interface_addrs().unwrap_or_else(|e| {
        tracing::warn!("the system does not tell its addresses: {e}");
        Vec::new()
    });
    let usable = known.iter().filter(|known| known.is_listened_on(listen));
    usable.take(ADDRESSES_MAX).map(|known| known.address.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 5665 5.2.3.3: h1.h2.h3.h4.p1.p2, and 5.2.3.4 the same with an IPv6 address.
    #[test]
    fn a_port_is_told_if_it_is_not_the_usual_one() {
        for (address, told) in [
            ("192.0.2.1:2049", "192.0.2.1"),
            ("192.0.2.1:20490", "192.0.2.1.80.10"),
            ("[2001:db8::1]:2049", "2001:db8::1"),
            ("[2001:db8::1]:111", "2001:db8::1.0.111"),
        ] {
            assert_eq!(universal(address.parse().unwrap()), told);
        }
    }
}
