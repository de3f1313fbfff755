//! Addresses of interfaces, by rtnetlink(7): list, add, remove. Three kinds of messages do not need a crate.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::libc;
use nix::sys::socket::sockopt::ReceiveTimeout;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, recv, sendto, setsockopt, socket,
};
use nix::sys::time::{TimeVal, TimeValLike};

/// `IFA_PROTO` (linux/if_addr.h, 5.18): "u8, address protocol", who has added the address. The kernel's own have 1 to 3.
const IFA_PROTO: u16 = 11;
/// The mark of the addresses that this crate adds: `ip address` shows `proto 0xab`.
const OURS: u8 = 0xab;

/// Bytes of `struct nlmsghdr`, `struct ifaddrmsg` and `struct rtattr`.
const HEADER_BYTES: usize = 16;
const ADDRESS_BYTES: usize = 8;
const ATTRIBUTE_BYTES: usize = 4;
/// Enough for what the kernel sends at a time (linux/netlink.h: NLMSG_GOODSIZE is at most 8 KiB; a dump has at most 32 KiB).
const BUFFER_BYTES: usize = 64 << 10;
/// Seconds that the kernel may take: it answers at once.
const PATIENCE: i64 = 5;

/// Where an address is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// The number of the interface.
    pub(crate) index: u32,
    pub(crate) prefix: u8,
}

/// An address of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Present {
    pub(crate) address: IpAddr,
    pub(crate) place: Place,
    /// Whether it has our mark.
    pub(crate) is_ours: bool,
}

/// A socket that asks the kernel.
#[derive(Debug)]
pub(crate) struct RouteSocket {
    socket: OwnedFd,
    sequence: u32,
}

/// A message that was received.
#[derive(Debug, Clone, Copy)]
struct Message<'a> {
    kind: u16,
    sequence: u32,
    body: &'a [u8],
}

impl RouteSocket {
    /// # Errors
    /// The process may have no such socket.
    pub(crate) fn open() -> io::Result<Self> {
        let (flags, protocol) = (SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkRoute);
        let socket = socket(AddressFamily::Netlink, SockType::Raw, flags, protocol)?;
        setsockopt(&socket, ReceiveTimeout, &TimeVal::seconds(PATIENCE))?;
        Ok(Self { socket, sequence: 0 })
    }

    /// Adds an address, with our mark.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(crate) fn add(&mut self, address: IpAddr, place: Place) -> io::Result<()> {
        let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL | libc::NLM_F_ACK;
        let mut body = named(address, place);
        push_attribute(&mut body, IFA_PROTO, &[OURS]);
        self.ask(libc::RTM_NEWADDR, flags, &body, |_| ())
    }

    /// Removes an address.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(crate) fn remove(&mut self, address: IpAddr, place: Place) -> io::Result<()> {
        self.ask(libc::RTM_DELADDR, libc::NLM_F_ACK, &named(address, place), |_| ())
    }

    /// All addresses of this machine.
    ///
    /// # Errors
    /// The kernel does not say.
    pub(crate) fn list(&mut self) -> io::Result<Vec<Present>> {
        let mut found = Vec::new();
        let all = [0; ADDRESS_BYTES];
        self.ask(libc::RTM_GETADDR, libc::NLM_F_DUMP, &all, |message| {
            if message.kind == libc::RTM_NEWADDR {
                found.extend(present(message.body));
            }
        })?;
        Ok(found)
    }

    /// Sends a request, and hands all messages of the answer to `each`.
    fn ask(
        &mut self,
        kind: u16,
        flags: i32,
        body: &[u8],
        mut each: impl FnMut(Message<'_>),
    ) -> io::Result<()> {
        self.sequence += 1;
        let request = request(kind, flags, self.sequence, body);
        sendto(self.socket.as_raw_fd(), &request, &NetlinkAddr::new(0, 0), MsgFlags::empty())?;
        let mut buffer = vec![0; BUFFER_BYTES];
        loop {
            let length = recv(self.socket.as_raw_fd(), &mut buffer, MsgFlags::empty())?;
            let received = buffer.get(..length).unwrap_or_default();
            let of_request = |message: &Message<'_>| message.sequence == self.sequence;
            for message in messages(received).filter(of_request) {
                match i32::from(message.kind) {
                    libc::NLMSG_ERROR => return outcome(message.body),
                    libc::NLMSG_DONE => return Ok(()),
                    _ => each(message),
                }
            }
        }
    }
}

/// netlink(7): the error of an answer, negative; 0: it was done.
fn outcome(body: &[u8]) -> io::Result<()> {
    match body.first_chunk().map(|bytes| i32::from_ne_bytes(*bytes)) {
        Some(0) => Ok(()),
        Some(error) => Err(io::Error::from_raw_os_error(error.saturating_neg())),
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// `struct nlmsghdr`, and what comes after it.
fn request(kind: u16, flags: i32, sequence: u32, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(HEADER_BYTES + body.len()).unwrap_or(u32::MAX);
    let flags = u16::try_from(libc::NLM_F_REQUEST | flags).unwrap_or_default();
    let mut message = length.to_ne_bytes().to_vec();
    message.extend(kind.to_ne_bytes());
    message.extend(flags.to_ne_bytes());
    message.extend(sequence.to_ne_bytes());
    message.extend([0; 4]);
    message.extend(body);
    message
}

/// `struct ifaddrmsg` (family, prefix, flags, scope, interface), and the address.
fn named(address: IpAddr, Place { index, prefix }: Place) -> Vec<u8> {
    // RFC 4862 5.4 looks for a duplicate before an address is used. The machine that had this one may be dead and still answer for it, and
    // the look takes a second: who has the state has the address.
    let (family, flags) = match address {
        IpAddr::V4(_) => (libc::AF_INET, 0),
        IpAddr::V6(_) => (libc::AF_INET6, libc::IFA_F_NODAD),
    };
    let of_byte = |flag| u8::try_from(flag).unwrap_or_default();
    let scope = libc::RT_SCOPE_UNIVERSE;
    let mut body = vec![u8::try_from(family).unwrap_or_default(), prefix, of_byte(flags), scope];
    body.extend(index.to_ne_bytes());
    for kind in [libc::IFA_LOCAL, libc::IFA_ADDRESS] {
        match address {
            IpAddr::V4(v4) => push_attribute(&mut body, kind, &v4.octets()),
            IpAddr::V6(v6) => push_attribute(&mut body, kind, &v6.octets()),
        }
    }
    body
}

/// `struct rtattr`, its value, and what fills it up to 4 bytes.
fn push_attribute(body: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let length = u16::try_from(ATTRIBUTE_BYTES + value.len()).unwrap_or(u16::MAX);
    body.extend(length.to_ne_bytes());
    body.extend(kind.to_ne_bytes());
    body.extend(value);
    body.resize(body.len().next_multiple_of(4), 0);
}

/// The messages of a datagram. What is cut off ends them.
fn messages(datagram: &[u8]) -> impl Iterator<Item = Message<'_>> {
    let mut left = datagram;
    std::iter::from_fn(move || {
        let length = usize::try_from(u32::from_ne_bytes(*left.first_chunk()?)).ok()?;
        let kind = u16::from_ne_bytes(*left.get(4..)?.first_chunk()?);
        let sequence = u32::from_ne_bytes(*left.get(8..)?.first_chunk()?);
        let body = left.get(HEADER_BYTES..length)?;
        left = left.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(Message { kind, sequence, body })
    })
}

/// The attributes of a message. What is cut off ends them.
fn attributes(list: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut left = list;
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(*left.first_chunk()?));
        let kind = u16::from_ne_bytes(*left.get(2..)?.first_chunk()?);
        let value = left.get(ATTRIBUTE_BYTES..length)?;
        left = left.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// The address that a message tells of.
fn present(body: &[u8]) -> Option<Present> {
    let prefix = *body.get(1)?;
    let index = u32::from_ne_bytes(*body.get(4..)?.first_chunk()?);
    let of = |wanted: u16| {
        attributes(body.get(ADDRESS_BYTES..)?).find(|(kind, _)| *kind == wanted).map(|(_, value)| value)
    };
    // rtnetlink(7): where both are there, IFA_LOCAL is the own address, and IFA_ADDRESS that of the other end. IPv6 has the latter alone.
    let address = of(libc::IFA_LOCAL).or_else(|| of(libc::IFA_ADDRESS))?;
    let address = match *address {
        [a, b, c, d] => IpAddr::from([a, b, c, d]),
        _ => IpAddr::from(<[u8; 16]>::try_from(address).ok()?),
    };
    let is_ours = of(IFA_PROTO) == Some(&[OURS]);
    Some(Present { address, place: Place { index, prefix }, is_ours })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_lists_the_loopback_address() {
        let found = RouteSocket::open().unwrap().list().unwrap();
        let loopback = Present {
            address: "127.0.0.1".parse().unwrap(),
            place: Place { index: 1, prefix: 8 },
            is_ours: false,
        };
        assert!(found.contains(&loopback), "{found:?}");
    }

    #[test]
    fn what_is_refused_has_the_error_of_the_kernel() {
        let mut socket = RouteSocket::open().unwrap();
        let nowhere = Place { index: 1 << 30, prefix: 24 };
        let refused = socket.remove("192.0.2.77".parse().unwrap(), nowhere).unwrap_err().raw_os_error();
        assert!(
            [Some(libc::ENODEV), Some(libc::EADDRNOTAVAIL), Some(libc::EPERM)].contains(&refused),
            "{refused:?}"
        );
        assert!(!socket.list().unwrap().is_empty(), "it can be used again");
    }

    #[test]
    fn what_is_written_is_read() {
        for (address, prefix) in [("192.0.2.10", 24), ("2001:db8::10", 128)] {
            let (address, place) = (address.parse().unwrap(), Place { index: 7, prefix });
            let mut body = named(address, place);
            assert_eq!(present(&body), Some(Present { address, place, is_ours: false }));
            push_attribute(&mut body, IFA_PROTO, &[OURS]);
            let datagram = [request(20, 0, 3, &body), request(3, 0, 4, &[])].concat();
            let read: Vec<_> = messages(&datagram).map(|message| (message.kind, message.sequence)).collect();
            assert_eq!(read, [(20, 3), (3, 4)]);
            let first = messages(&datagram).next().unwrap();
            assert_eq!(present(first.body), Some(Present { address, place, is_ours: true }));
        }
    }

    #[test]
    fn what_is_cut_off_is_no_message_and_no_attribute() {
        let whole = request(20, 0, 1, &named("192.0.2.10".parse().unwrap(), Place { index: 1, prefix: 32 }));
        for length in 0..whole.len() {
            assert_eq!(messages(&whole[..length]).count(), 0, "{length}");
        }
        let zero = [0; 64];
        assert_eq!((messages(&zero).count(), attributes(&zero).count(), present(&zero)), (0, 0, None));
    }
}
