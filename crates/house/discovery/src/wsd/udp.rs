//! The multicast group, at one interface. SOAP over UDP (September 2004); WS-Discovery, section 2.4.

use std::cell::RefCell;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::rc::Rc;
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use tokio::net::UdpSocket;

use super::http::PORT as METADATA_PORT;
use super::message::{Asked, Endpoint, MESSAGE_BYTES_MAX, Remembered};
use crate::interfaces::Interface;

/// "IPv4 multicast address: 239.255.255.250", "PORT: 3702"
const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 255, 250);
const PORT: u16 = 3702;
/// `APP_MAX_DELAY`: a reply to a multicast message waits for up to this long, so that not all hosts reply at once.
const DELAY_MAX: Duration = Duration::from_millis(500);
/// How often a message is sent: `MULTICAST_UDP_REPEAT` and `UNICAST_UDP_REPEAT` in all, and the time between.
const MULTICASTS: u32 = 4;
const UNICASTS: u32 = 2;
const BETWEEN: Duration = Duration::from_millis(100);
/// Datagrams that are looked at in each second.
const LOOKS_MAX: u32 = 100;
/// Replies under way.
const REPLIES_MAX: usize = 16;

/// The group, as far as one interface reaches.
#[derive(Debug)]
pub(super) struct Group {
    interface: Interface,
    endpoint: Rc<Endpoint>,
    received: UdpSocket,
    sending: Rc<UdpSocket>,
    /// Where the metadata is.
    at: String,
}

/// What was done in the present second.
#[derive(Debug)]
struct Budget {
    begun: Instant,
    looks: u32,
}

impl Budget {
    fn may_look(&mut self, now: Instant) -> bool {
        if now.saturating_duration_since(self.begun) >= Duration::from_secs(1) {
            *self = Self { begun: now, looks: 0 };
        }
        self.looks += 1;
        self.looks <= LOOKS_MAX
    }
}

/// Random bytes; not secret ones.
pub(super) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    let _ = getrandom::fill(&mut bytes); // without them, identifiers repeat
    bytes
}

impl Group {
    /// # Errors
    /// Another program uses the port for itself, or the interface has no multicast.
    pub(super) fn join(interface: &Interface, endpoint: &Rc<Endpoint>) -> io::Result<Self> {
        let own = interface.v4().ok_or(io::ErrorKind::AddrNotAvailable)?;
        let received = socket()?;
        // Other responders on this machine, as that of Samba's packages, have their share of the group.
        received.set_reuse_address(true)?;
        received.bind(&SockAddr::from(SocketAddrV4::new(GROUP, PORT)))?;
        // Only what comes in at this interface.
        received.set_multicast_all_v4(false)?;
        received.join_multicast_v4(&GROUP, &own)?;
        let sending = socket()?;
        sending.bind(&SockAddr::from(SocketAddrV4::new(own, 0)))?;
        sending.set_multicast_if_v4(&own)?;
        sending.set_multicast_ttl_v4(1)?;
        sending.set_ttl_v4(1)?;
        Ok(Self {
            interface: interface.clone(),
            endpoint: Rc::clone(endpoint),
            received: UdpSocket::from_std(received.into())?,
            sending: Rc::new(UdpSocket::from_std(sending.into())?),
            at: format!("http://{own}:{METADATA_PORT}{}", endpoint.path()),
        })
    }

    pub(super) async fn tell_hello(&self) {
        let hello = self.endpoint.hello(random(), &self.at);
        send(&self.sending, &hello, everybody(), MULTICASTS).await;
    }

    pub(super) async fn tell_bye(&self) {
        let bye = self.endpoint.bye(random());
        send(&self.sending, &bye, everybody(), UNICASTS).await;
    }

    /// Answers who asks, for ever.
    pub(super) async fn answer(&self) {
        let (mut remembered, mut budget) =
            (Remembered::default(), Budget { begun: Instant::now(), looks: 0 });
        let under_way = Rc::new(RefCell::new(0));
        let mut buffer = [0; MESSAGE_BYTES_MAX + 1];
        loop {
            let Ok((length, from)) = self.received.recv_from(&mut buffer).await else {
                tokio::time::sleep(BETWEEN).await; // the network is down; its end is noticed elsewhere
                continue;
            };
            if !self.interface.is_local(from.ip()) || !budget.may_look(Instant::now()) {
                continue;
            }
            let message = buffer.get(..length).filter(|message| message.len() <= MESSAGE_BYTES_MAX);
            let Some(asked) = message.and_then(|message| self.endpoint.asked(message)) else { continue };
            if remembered.is_new(&asked) {
                self.reply(&asked, from, &under_way);
            }
        }
    }

    /// Sends a reply, some time from now.
    fn reply(&self, asked: &Asked, to: SocketAddr, under_way: &Rc<RefCell<usize>>) {
        let Some(reply) = self.endpoint.reply(asked, random(), &self.at) else { return };
        if *under_way.borrow() >= REPLIES_MAX {
            return;
        }
        *under_way.borrow_mut() += 1;
        let (sending, under_way) = (Rc::clone(&self.sending), Rc::clone(under_way));
        let delay = DELAY_MAX.mul_f64(f64::from(u16::from_le_bytes(random())) / f64::from(u16::MAX));
        tokio::task::spawn_local(async move {
            tokio::time::sleep(delay).await;
            send(&sending, &reply, to, UNICASTS).await;
            *under_way.borrow_mut() -= 1;
        });
    }
}

fn socket() -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM.nonblocking(), Some(Protocol::UDP))?;
    Ok(socket)
}

fn everybody() -> SocketAddr {
    SocketAddr::from((GROUP, PORT))
}

/// Sends a message several times, since datagrams get lost.
async fn send(socket: &UdpSocket, message: &str, to: SocketAddr, times: u32) {
    for time in 0..times {
        if time > 0 {
            tokio::time::sleep(BETWEEN).await;
        }
        if let Err(error) = socket.send_to(message.as_bytes(), to).await {
            tracing::debug!(%to, "WS-Discovery: {error}");
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_has_only_so_many_looks() {
        let now = Instant::now();
        let mut budget = Budget { begun: now, looks: 0 };
        assert_eq!((0..1000).filter(|_| budget.may_look(now)).count(), usize::try_from(LOOKS_MAX).unwrap());
        assert!(budget.may_look(now + Duration::from_secs(1)));
    }
}
