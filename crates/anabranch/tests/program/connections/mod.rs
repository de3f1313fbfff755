//! What connections clients make to a server, as the kernel tells.

use std::collections::HashSet;
use std::time::{Duration, Instant};

/// Waits until clients have made so many connections to this address since now, one after the other or together.
pub(crate) fn wait_for(address: &str, count: usize) {
    let port = address.rsplit_once(':').unwrap().1.parse().unwrap();
    let deadline = Instant::now() + Duration::from_secs(120);
    let mut seen = HashSet::new();
    while seen.len() < count {
        seen.extend(ports_connected_to(port));
        assert!(Instant::now() < deadline, "{} connections of {count}", seen.len());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The clients' ports of the connections to a port of this machine that are established (proc(5), `/proc/net/tcp`: state 01).
fn ports_connected_to(port: u16) -> Vec<u16> {
    let connections = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let port_of = |address: &str| u16::from_str_radix(address.rsplit_once(':')?.1, 16).ok();
    let client = |line: &str| {
        let mut fields = line.split_whitespace().skip(1);
        let (local, remote, state) = (fields.next()?, fields.next()?, fields.next()?);
        (port_of(local)? == port && state == "01").then(|| port_of(remote))?
    };
    connections.lines().filter_map(client).collect()
}
