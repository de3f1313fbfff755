//! What plain TCP connections carry through the links of a model: a sender and a receiver of our own.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_socket_linger;

use crate::calibration::{Calibration, Finding};
use crate::ceiling::{Ceiling, Direction, Shape};
use crate::network::Network;

/// How long a connection may take to be made.
const CONNECT_TIME: Duration = Duration::from_secs(10);
/// What is sent before anything is counted, at least: until TCP has found the limit.
const RAMP: Duration = Duration::from_millis(400);
/// The longest time in which bytes are counted.
const WINDOW_MAX: Duration = Duration::from_secs(10);
/// Bytes that are counted at least, so that one segment more or less is nothing.
const COUNTED: u64 = 500 * SEGMENT;
/// How often this is tried: other work may disturb once. The best try counts.
const TRIES: usize = 3;

/// A full segment of TCP with time stamps over an MTU of 1,500: its data, and what it is on the wire with the headers of TCP
/// (20 and 12 bytes; RFC 9293 3.1, RFC 7323 appendix A), IPv4 (20; RFC 791 3.1) and Ethernet (14).
const DATA: u64 = 1448;
const SEGMENT: u64 = DATA + 32 + 20 + 14;

/// What is sent or received by one call.
const BLOCK: usize = 64 << 10;

impl Network {
    /// What this machine carries of what a model's links let through: without delays and losses, which are no limits. Ends early, with nothing, when it is to stop.
    ///
    /// # Errors
    /// Connections cannot be made.
    pub(crate) fn calibrate(
        &self,
        (shape, direction, ceiling): (Shape, Direction, Ceiling),
        window: Duration,
        stop: &AtomicBool,
    ) -> io::Result<Option<Calibration>> {
        let least = COUNTED.saturating_mul(1_000_000) / ceiling.rate.max(1);
        let window = window.max(Duration::from_micros(least)).min(WINDOW_MAX);
        let mut best: Option<Calibration> = None;
        for _ in 0..TRIES {
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let carried = self.carry(shape, direction, window)?;
            let found = Calibration::new(shape, direction, ceiling, carried);
            let distance = |of: &Calibration| of.limit.abs_diff(of.wire);
            if best.as_ref().is_none_or(|best| distance(&found) < distance(best)) {
                best = Some(found);
            }
            if best.as_ref().is_some_and(|best| best.finding == Finding::Usable) {
                break;
            }
        }
        Ok(best)
    }

    /// The bytes on the wire that arrive in a window, and its microseconds. Data is counted where it is received; each segment
    /// is taken for a full one, as those of a stream are.
    fn carry(&self, shape: Shape, direction: Direction, window: Duration) -> io::Result<(u64, u64)> {
        let pairs = self.connect(shape)?;
        let received = AtomicU64::new(0);
        thread::scope(|scope| {
            for (client, server) in &pairs {
                let (from, to) = match direction {
                    Direction::ToServer => (client, server),
                    Direction::ToClients => (server, client),
                };
                scope.spawn(|| send(from));
                scope.spawn(|| receive(to, &received));
            }
            thread::sleep(RAMP);
            let (began, before) = (Instant::now(), received.load(Ordering::Relaxed));
            thread::sleep(window);
            let (after, lasted) = (received.load(Ordering::Relaxed), began.elapsed());
            for stream in pairs.iter().flat_map(|(client, server)| [client, server]) {
                // What one end has ended already is ended.
                let _ = stream.shutdown(Shutdown::Both);
            }
            let bytes = (after - before) * SEGMENT / DATA;
            Ok((bytes, u64::try_from(lasted.as_micros()).unwrap_or(u64::MAX)))
        })
    }

    /// Connections of the first clients to the server: both ends of each.
    fn connect(&self, shape: Shape) -> io::Result<Vec<(TcpStream, TcpStream)>> {
        let server = self.server().ok_or(io::ErrorKind::NotFound)?;
        let address = SocketAddr::new(IpAddr::V4(self.server_address()), 0);
        let listener = server.within(|| TcpListener::bind(address))?;
        let address = listener.local_addr()?;
        let mut pairs = Vec::new();
        for (_, machine) in self.clients().take(shape.clients.try_into().unwrap_or(usize::MAX)) {
            for _ in 0..shape.connections {
                let client = machine.within(|| TcpStream::connect_timeout(&address, CONNECT_TIME))?;
                let (server, _) = listener.accept()?;
                // What waits at the end is not sent: it would pass the links when others are measured.
                set_socket_linger(&client, Some(Duration::ZERO))?;
                set_socket_linger(&server, Some(Duration::ZERO))?;
                pairs.push((client, server));
            }
        }
        Ok(pairs)
    }
}

/// Sends until the connection is ended.
fn send(mut to: &TcpStream) {
    let block = vec![0; BLOCK];
    while to.write_all(&block).is_ok() {}
}

/// Receives until the connection is ended.
fn receive(mut from: &TcpStream, received: &AtomicU64) {
    let mut block = vec![0; BLOCK];
    while let Ok(bytes @ 1..) = from.read(&mut block) {
        received.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::machine::Machine;
    use crate::read;

    const RATE: u64 = 8_000_000;
    /// What the kernel may hand on at once, and what may wait for a link.
    const SLACK: u64 = RATE / 20 + 65536;

    /// A network with one client, which may send [`RATE`]; none where the tests do not run as root.
    fn network(test: &str) -> Option<Network> {
        if !rustix::process::geteuid().is_root() {
            eprintln!("not tested: {test}: this needs root");
            return None;
        }
        let text = "name = \"x\"\nabout = \"y\"\nscale = 1\n[[client]]\nname = \"vm\"\nout = \"8 MB/s\"\n";
        Some(Network::build(&read(text).unwrap()).unwrap())
    }

    fn is_installed(program: &str) -> bool {
        let is_there = Command::new(program).arg("-V").output().is_ok();
        if !is_there {
            eprintln!("not tested: the links of a model by {program}: it is not installed");
        }
        is_there
    }

    fn command(machine: &Machine, words: &[&str]) -> Command {
        let entering = machine.entering();
        let mut command = Command::new(&entering[0]);
        command.args(&entering[1..]).args(words);
        command
    }

    /// Facts, and no speed: what a link lets through is not exceeded, whatever this machine can do.
    #[test]
    fn what_a_link_carries_is_found() {
        let Some(network) = network("what_a_link_carries_is_found") else { return };
        let shape = Shape { clients: 1, connections: 2 };
        let ceiling = Ceiling { rate: RATE, bucket: 8000 };
        let window = Duration::from_millis(300);
        let go_on = AtomicBool::new(false);
        let found =
            network.calibrate((shape, Direction::ToServer, ceiling), window, &go_on).unwrap().unwrap();
        println!("{found:?}");
        assert!(found.wire > 0 && found.limit == RATE && found.shape == shape);
        let began = Instant::now();
        let (bytes, _) = network.carry(shape, Direction::ToServer, window).unwrap();
        // What was received late is what was sent in the time before, which a busy machine makes longer.
        let lasted = u64::try_from(began.elapsed().as_micros()).unwrap();
        assert!(bytes <= RATE * lasted / 1_000_000 + SLACK, "{bytes} in {lasted} us");
        // The other way has no limit, and is not the same.
        assert!(network.carry(shape, Direction::ToClients, window).unwrap().0 > 0);
        let stop = AtomicBool::new(true);
        assert_eq!(network.calibrate((shape, Direction::ToServer, ceiling), window, &stop).unwrap(), None);
    }

    #[test]
    fn iperf3_and_ping_pass_the_same_link() {
        let Some(network) = network("iperf3_and_ping_pass_the_same_link") else { return };
        let (server, client) = (network.server().unwrap(), network.clients().next().unwrap().1);
        let address = network.server_address().to_string();
        if is_installed("ping") {
            let said = command(client, &["ping", "-c", "3", "-i", "0.2", &address]).output().unwrap();
            let said = String::from_utf8(said.stdout).unwrap();
            println!("{said}");
            assert!(said.contains(" 3 received"), "{said}");
        }
        if !is_installed("iperf3") {
            return;
        }
        let mut serving = command(server, &["iperf3", "-s", "-1"]).spawn().unwrap();
        let began = Instant::now();
        let bytes = loop {
            let words = ["iperf3", "-J", "-t", "2", "-c", &address];
            let said = command(client, &words).output().unwrap();
            let said: serde_json::Value = serde_json::from_slice(&said.stdout).unwrap();
            if let Some(bytes) = said["end"]["sum_received"]["bytes"].as_u64() {
                break bytes;
            }
            // Its server may not listen yet.
            assert!(began.elapsed() < Duration::from_secs(60), "{said}");
            thread::sleep(Duration::from_millis(50));
        };
        let wire = bytes * SEGMENT / DATA;
        let lasted = u64::try_from(began.elapsed().as_micros()).unwrap();
        println!("iperf3: {wire} bytes on the wire in 2 s of {RATE} bytes/s");
        assert!(wire > 0 && wire <= RATE * lasted / 1_000_000 + SLACK, "{wire} in {lasted} us");
        serving.wait().unwrap();
    }
}
