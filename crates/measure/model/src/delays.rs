//! How long round trips through links with a delay take: an echo of our own, while nothing else passes.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use load::result::Key;
use serde::Serialize;

use crate::machine::Machine;
use crate::network::Network;

/// Round trips of which the median counts; there is one more before, which finds out where the machines are.
const TRIPS: usize = 11;
/// How often this is tried: other work may disturb once. The best try counts.
const TRIES: usize = 3;
/// How late an echo may be.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long an echo waits before it looks whether it is to end.
const LOOK: Duration = Duration::from_millis(50);
/// How much longer than declared a delay may be: so many microseconds, or so many hundredths of it if that is more.
const LATE_MICROS: u64 = 100;
const LATE_PERCENT: u64 = 5;

/// Round trips between a client and the server, in microseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct RoundTrip {
    /// The number of the client, from 1.
    pub client: usize,
    /// Its machine.
    pub machine: String,
    /// The delay of its link, in one direction.
    pub delay_micros: u64,
    /// The median without the delay: what the machine and the forwarder cost.
    pub without_micros: u64,
    /// The median with the delay.
    pub micros: u64,
    /// The delay is what was declared.
    pub is_usable: bool,
}

impl RoundTrip {
    fn new(client: usize, machine: &str, delay: Duration, [without, with]: [Duration; 2]) -> Self {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let (delay_micros, found) = (micros(delay), micros(with));
        Self {
            client,
            machine: machine.to_owned(),
            delay_micros,
            without_micros: micros(without),
            micros: found,
            is_usable: is_declared(delay_micros, found),
        }
    }

    /// Says that a row cannot be used: the client takes part in it.
    #[must_use]
    pub fn excludes(&self, key: &Key) -> bool {
        !self.is_usable && usize::try_from(key.clients).is_ok_and(|clients| clients >= self.client)
    }
}

/// A round trip has the delay twice, and is not much longer.
fn is_declared(delay: u64, round_trip: u64) -> bool {
    round_trip >= 2 * delay && !is_late(delay, round_trip.div_ceil(2))
}

/// Whether something took much longer than its delay.
pub(crate) fn is_late(delay_micros: u64, found_micros: u64) -> bool {
    found_micros > delay_micros + LATE_MICROS.max(delay_micros * LATE_PERCENT / 100)
}

impl Network {
    /// Measures round trips of each client whose link has a forwarder: with nothing lost, first without the delay. Ends early when
    /// it is to stop.
    ///
    /// # Errors
    /// Sockets cannot be had, or an echo does not come.
    pub(crate) fn round_trips(&self, stop: &AtomicBool) -> io::Result<Vec<RoundTrip>> {
        let server = self.server().ok_or(io::ErrorKind::NotFound)?;
        let address = SocketAddr::new(IpAddr::V4(self.server_address()), 0);
        let echoing = server.within(|| UdpSocket::bind(address))?;
        echoing.set_read_timeout(Some(LOOK))?;
        let ended = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| echo(&echoing, &ended));
            let found = self.wires().take_while(|_| !stop.load(Ordering::Relaxed)).map(|wired| {
                let delay = wired.wire.conditions.delay;
                let of = |is_held| {
                    self.behave(is_held, false);
                    median(wired.machine, echoing.local_addr()?)
                };
                let mut best = RoundTrip::new(wired.client, wired.name, delay, [of(false)?, of(true)?]);
                for _ in 1..TRIES {
                    if best.is_usable || stop.load(Ordering::Relaxed) {
                        break;
                    }
                    let again = RoundTrip::new(wired.client, wired.name, delay, [of(false)?, of(true)?]);
                    best = if again.micros < best.micros { again } else { best };
                }
                Ok(best)
            });
            let found = found.collect();
            ended.store(true, Ordering::Relaxed);
            found
        })
    }
}

/// Sends back what comes.
fn echo(socket: &UdpSocket, ended: &AtomicBool) {
    let mut datagram = [0; 64];
    while !ended.load(Ordering::Relaxed) {
        if let Ok((bytes, from)) = socket.recv_from(&mut datagram) {
            let _ = socket.send_to(datagram.get(..bytes).unwrap_or_default(), from);
        }
    }
}

/// The median of round trips from a machine.
fn median(machine: &Machine, to: SocketAddr) -> io::Result<Duration> {
    let socket = machine.within(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)))?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.connect(to)?;
    let mut times = Vec::new();
    for _ in 0..=TRIPS {
        let began = Instant::now();
        socket.send(b"echo")?;
        socket.recv(&mut [0; 64])?;
        times.push(began.elapsed());
    }
    times.remove(0);
    times.sort_unstable();
    times.get(TRIPS / 2).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use load::plan::key;

    use super::*;
    use crate::forwarder::Counted;
    use crate::read;
    use crate::wire::lost_of_first;

    /// A network with one client; none where the tests do not run as root.
    fn network(test: &str, client: &str) -> Option<Network> {
        if !rustix::process::geteuid().is_root() {
            eprintln!("not tested: {test}: this needs root");
            return None;
        }
        let text = format!(
            "name = \"x\"\nabout = \"y\"\nscale = 1\nseed = 7\n[[client]]\nname = \"vm\"\n{client}\n"
        );
        Some(Network::build(&read(&text).unwrap()).unwrap())
    }

    /// Sends datagrams to the server, a few at a time; returns how many arrive.
    fn arrived(network: &Network, datagrams: u64) -> u64 {
        let server = network.server().unwrap();
        let receiving = server.within(|| UdpSocket::bind((network.server_address(), 0))).unwrap();
        receiving.set_read_timeout(Some(LOOK)).unwrap();
        let wired = network.wires().next().unwrap();
        let sending = wired.machine.within(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))).unwrap();
        sending.connect(receiving.local_addr().unwrap()).unwrap();
        let (mut arrived, before) = (0, wired.forwarder.counted()[0].lost);
        let deadline = Instant::now() + Duration::from_secs(120);
        for sent in 1..=datagrams {
            sending.send(&sent.to_le_bytes()).unwrap();
            // Each has arrived, or is lost; what is lost besides are frames that the kernel sends by itself.
            let is_complete = |arrived| arrived + wired.forwarder.counted()[0].lost - before >= sent;
            while sent % 20 == 0 && !is_complete(arrived) {
                arrived += u64::from(receiving.recv(&mut [0; 64]).is_ok());
                assert!(Instant::now() < deadline, "{arrived} of {sent}: {:?}", wired.forwarder.counted());
            }
        }
        while receiving.recv(&mut [0; 64]).is_ok() {
            arrived += 1;
        }
        arrived
    }

    #[test]
    fn a_delay_is_what_was_declared_within_five_percent_or_a_tenth_of_a_millisecond() {
        for (delay, round_trip, expected) in [
            (1000, 1999, false),
            (1000, 2000, true),
            (1000, 2200, true),
            (1000, 2201, false),
            (10_000, 21_000, true),
            (10_000, 21_001, false),
            (0, 200, true),
            (0, 201, false),
        ] {
            assert_eq!(is_declared(delay, round_trip), expected, "{delay} {round_trip}");
        }
        let ms = Duration::from_millis;
        let late = RoundTrip::new(2, "vm-2", ms(10), [ms(0), ms(30)]);
        let row = |clients| Key { clients, ..key(1, 4096, 100) };
        assert_eq!((late.excludes(&row(1)), late.excludes(&row(2))), (false, true));
        assert!(!RoundTrip::new(2, "vm-2", ms(10), [ms(0), ms(20)]).excludes(&row(2)));
    }

    /// Only a lower bound: a busy machine may be late.
    #[test]
    fn a_round_trip_has_the_delay_twice_and_nothing_is_lost() {
        let Some(network) = network("a_round_trip_has_the_delay_twice", "delay = \"5 ms\"") else { return };
        let trips = network.round_trips(&AtomicBool::new(false)).unwrap();
        println!("{trips:?}");
        assert_eq!((trips.len(), trips[0].client, trips[0].delay_micros), (1, 1, 5000));
        assert!(trips[0].micros >= 10_000 && trips[0].without_micros > 0, "{trips:?}");
        assert_eq!(arrived(&network, 400), 400);
        for counted in network.wires().next().unwrap().forwarder.counted() {
            assert!(counted.seen > 0 && (counted.lost, counted.dropped) == (0, 0), "{counted:?}");
        }
        let entering = network.clients().next().unwrap().1.entering();
        let address = network.server_address().to_string();
        let ping = ["ping", "-c", "3", "-i", "0.2", &address];
        if Command::new("ping").arg("-V").output().is_err() {
            eprintln!("not tested: the delay of a model by ping: it is not installed");
            return;
        }
        let said = Command::new(&entering[0]).args(&entering[1..]).args(ping).output().unwrap();
        let said = String::from_utf8(said.stdout).unwrap();
        println!("{said}");
        let least = said.split("mdev = ").nth(1).and_then(|rest| rest.split('/').next()).unwrap();
        assert!(said.contains(" 3 received") && least.parse::<f64>().unwrap() >= 10.0, "{said}");
    }

    #[test]
    fn losses_are_those_of_the_seed() {
        let Some(network) = network("losses_are_those_of_the_seed", "loss = 0.1") else { return };
        let arrived = arrived(&network, 1000);
        let wired = network.wires().next().unwrap();
        let Counted { seen, lost, dropped } = wired.forwarder.counted()[0];
        println!("{seen} frames, {lost} lost; {arrived} of 1000 datagrams have arrived");
        assert_eq!((lost, dropped), (lost_of_first(seen, wired.wire.seeds[0], 0.1), 0));
        // Those that are lost besides are not datagrams.
        assert!(arrived < 1000 && arrived + lost >= 1000, "{arrived} {lost}");
        // Seven standard deviations of a binomial distribution.
        assert!((33..=170).contains(&lost), "{lost}");
    }
}
