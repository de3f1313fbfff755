//! The round trip time to a peer, as the kernel measures it.

use std::mem::offset_of;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use nix::sys::socket::{getsockopt, sockopt::GetStruct};

/// The offset of tcpi_rtt in `struct tcp_info` (linux/tcp.h), in microseconds. The kernel cuts the structure to the
/// requested length, and has returned at least this much since TCP_INFO was introduced.
const RTT_AT: usize = offset_of!(libc::tcp_info, tcpi_rtt);
const RTT_END: usize = RTT_AT + size_of::<u32>();

/// TCP_INFO (tcp(7)), up to and including tcpi_rtt.
#[derive(Debug, Clone, Copy)]
struct TcpInfo;

nix::getsockopt_impl!(TcpInfo, libc::IPPROTO_TCP, libc::TCP_INFO, [u8; RTT_END], GetStruct<[u8; RTT_END]>);

/// The round trip time of a connection, from sending to acknowledgment, smoothed by the kernel. The connection's own
/// shard reads it now and then while requests come; any thread may use it.
#[derive(Debug, Clone, Default)]
pub struct RoundTrip {
    /// 0 before it is known.
    micros: Arc<AtomicU32>,
}

impl RoundTrip {
    /// The last value read; `None` if the kernel has not reported one.
    #[must_use]
    pub fn time(&self) -> Option<Duration> {
        let micros = self.micros.load(Ordering::Relaxed);
        (micros > 0).then(|| Duration::from_micros(micros.into()))
    }

    /// Keeps the value that the socket reports. If the socket reports none, the old value stays.
    pub(crate) fn note(&self, told: Option<Duration>) {
        if let Some(time) = told {
            self.micros.store(u32::try_from(time.as_micros()).unwrap_or(u32::MAX), Ordering::Relaxed);
        }
    }
}

/// The round trip time that the kernel reports for a TCP socket. It reports none for other sockets, or for one that is
/// gone.
pub(crate) fn round_trip(socket: &impl AsFd) -> Option<Duration> {
    let rtt = getsockopt(socket, TcpInfo).ok().and_then(|info| info.last_chunk().copied())?;
    Some(Duration::from_micros(u32::from_ne_bytes(rtt).into()))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn the_kernel_tells_it_of_a_connection_and_of_nothing_else() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let round_trip = RoundTrip::default();
        assert_eq!(round_trip.time(), None);
        for _ in 0..10 {
            server.write_all(b"x").unwrap();
            client.read_exact(&mut [0]).unwrap();
        }
        round_trip.note(super::round_trip(&server));
        let time = round_trip.time().unwrap();
        round_trip.note(super::round_trip(&std::fs::File::open("/dev/null").unwrap()));
        assert_eq!(round_trip.clone().time(), Some(time));
    }
}
