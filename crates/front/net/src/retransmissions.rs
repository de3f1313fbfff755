//! Whether the peer's system still acknowledges what is sent to it, according to the kernel's table of connections.

use std::fs;
use std::net::{IpAddr, SocketAddr};

/// How often the kernel has retransmitted the oldest unacknowledged bytes of this connection since the peer last
/// acknowledged any; `None` when the kernel does not list the connection. This reads the whole table, so it must not
/// run on a shard.
pub(crate) fn retransmissions(local: SocketAddr, peer: SocketAddr) -> Option<u32> {
    let table = if local.is_ipv4() { "/proc/self/net/tcp" } else { "/proc/self/net/tcp6" };
    find(&fs::read_to_string(table).ok()?, local, peer)
}

/// The columns are those of proc_net_tcp: number, local address, remote address, state, queues, timer, retransmissions.
fn find(table: &str, local: SocketAddr, peer: SocketAddr) -> Option<u32> {
    let (local, peer) = (listed(local), listed(peer));
    let of_line = |line: &str| {
        let mut words = line.split_whitespace().skip(1);
        let is_it = words.next()? == local && words.next()? == peer;
        let retransmissions = words.nth(3)?;
        is_it.then(|| u32::from_str_radix(retransmissions, 16).ok())?
    };
    table.lines().find_map(of_line)
}

/// An address in the kernel's notation: its words in the processor's byte order, in hexadecimal.
fn listed(address: SocketAddr) -> String {
    let word = |bytes: [u8; 4]| format!("{:08X}", u32::from_ne_bytes(bytes));
    let ip = match address.ip() {
        IpAddr::V4(v4) => word(v4.octets()),
        IpAddr::V6(v6) => v6.octets().as_chunks().0.iter().map(|bytes| word(*bytes)).collect(),
    };
    format!("{ip}:{:04X}", address.port())
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_connection_is_found_in_the_kernels_table() {
        for any in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(any) else { continue };
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (local, peer) = (client.local_addr().unwrap(), client.peer_addr().unwrap());
            assert_eq!(retransmissions(local, peer), Some(0), "{any}");
            drop((client, listener));
        }
        let nobody = "192.0.2.1:9".parse().unwrap();
        assert_eq!(retransmissions(nobody, nobody), None);
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn the_columns_are_those_of_the_kernel() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
   0: 0100007F:28CD 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0 100 0 0 10 0\n\
   1: 0202000A:01BD 0F02000A:D431 01 0000007C:00000000 01:00000192 0000000B     0        0 4712 3 0 400 4 31 2 2\n";
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        assert_eq!(find(table, address("10.0.2.2:445"), address("10.0.2.15:54321")), Some(11));
        assert_eq!(find(table, address("10.0.2.2:445"), address("10.0.2.15:54322")), None);
    }
}
