//! Neighbours are told where an address is now, so that they do not send to the machine that had it.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddrV6};
use std::os::fd::AsRawFd;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, sendto, socket};
use socket2::{Domain, Protocol, Socket, Type};

use crate::interface::{Ethernet, Interface};

/// How often an address is announced at first, and how far apart. RFC 5227 1.1: ANNOUNCE_INTERVAL is 2 s, and ANNOUNCE_NUM at least 2. RFC 4861
/// 7.2.6: "up to MAX_NEIGHBOR_ADVERTISEMENT" (3), "separated by at least RetransTimer seconds" (1).
const TIMES: u64 = 3;
const INTERVAL: Duration = Duration::from_secs(2);

/// How often an address is announced after that, as long as it is here: a machine that had it, and is back on the network, may have told
/// neighbours otherwise. RFC 5227 2.4 has no host defend its address more often (DEFEND_INTERVAL).
const REFRESH: Duration = Duration::from_secs(10);

/// All nodes of a link (RFC 4291 2.7.1).
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
/// RFC 4861 4.4: "Hop Limit 255".
const HOPS: u32 = 255;

/// Announces addresses again and again until it is dropped, or they are not here any more.
#[derive(Debug)]
pub(crate) struct Announcer {
    _end: Option<Sender<()>>,
}

impl Announcer {
    /// Announces the addresses now, and again. Each time it asks first whether they are here still: a process that was stopped may go on
    /// when another machine has them.
    pub(crate) fn start(
        addresses: Vec<(IpAddr, Interface)>,
        are_here: impl Fn() -> bool + Send + 'static,
    ) -> Self {
        for (address, interface) in &addresses {
            match &interface.ethernet {
                Some(_) => tracing::info!("{address} is on {}: told the neighbours", interface.name),
                None => tracing::info!("{address} is on {}, which has no neighbours to tell", interface.name),
            }
        }
        let mut failed = if are_here() { announce(&addresses, &[]) } else { Vec::new() };
        let (end, ended) = channel::<()>();
        let run = move || {
            for times in 1_u64.. {
                let wait = if times < TIMES { INTERVAL } else { REFRESH };
                if ended.recv_timeout(wait) != Err(RecvTimeoutError::Timeout) || !are_here() {
                    return;
                }
                failed = announce(&addresses, &failed);
            }
        };
        // Without a thread, they were announced once.
        let begun = std::thread::Builder::new().name("announce".to_owned()).spawn(run);
        Self { _end: begun.is_ok().then_some(end) }
    }
}

/// Those that could not be announced. It is logged for those that could before.
fn announce(addresses: &[(IpAddr, Interface)], failed_before: &[IpAddr]) -> Vec<IpAddr> {
    let mut failed = Vec::new();
    for (address, interface) in addresses {
        let Some(ethernet) = &interface.ethernet else { continue };
        let told = match address {
            IpAddr::V4(address) => send_arp(*address, ethernet),
            IpAddr::V6(address) => send_advertisement(*address, interface.index, ethernet),
        };
        let Err(e) = told else { continue };
        if !failed_before.contains(address) {
            tracing::warn!("cannot tell the neighbours on {} that {address} is here: {e}", interface.name);
        }
        failed.push(*address);
    }
    failed
}

fn send_arp(address: Ipv4Addr, ethernet: &Ethernet) -> io::Result<()> {
    // Protocol 0: it receives nothing.
    let socket = socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_CLOEXEC, None)?;
    sendto(
        socket.as_raw_fd(),
        &arp_announcement(address, ethernet.address),
        &ethernet.link,
        MsgFlags::empty(),
    )?;
    Ok(())
}

fn send_advertisement(address: Ipv6Addr, index: u32, ethernet: &Ethernet) -> io::Result<()> {
    let socket = Socket::new(Domain::IPV6, Type::RAW, Some(Protocol::ICMPV6))?;
    socket.set_multicast_hops_v6(HOPS)?;
    socket.set_multicast_if_v6(index)?;
    socket.bind(&SocketAddrV6::new(address, 0, 0, index).into())?;
    let to = SocketAddrV6::new(ALL_NODES, 0, 0, index);
    socket.send_to(&neighbour_advertisement(address, ethernet.address), &to.into())?;
    Ok(())
}

/// A frame with an ARP announcement. RFC 5227 1.1: a broadcast ARP request in which "both the sender and target IP address fields contain
/// the IP address being announced". The fields are those of RFC 826.
fn arp_announcement(address: Ipv4Addr, ethernet: [u8; 6]) -> Vec<u8> {
    let broadcast = [0xff; 6];
    let ether_type = [0x08, 0x06];
    let hardware_and_protocol = [0, 1, 0x08, 0];
    let lengths = [6, 4];
    let request = [0, 1];
    // RFC 5227 2.1.1: the target hardware address "SHOULD be set to all zeroes".
    let nobody = [0; 6];
    [
        &broadcast[..],
        &ethernet,
        &ether_type,
        &hardware_and_protocol,
        &lengths,
        &request,
        &ethernet,
        &address.octets(),
        &nobody,
        &address.octets(),
    ]
    .concat()
}

/// An unsolicited neighbour advertisement. RFC 4861 4.4: type 136, code 0, a checksum (the kernel's), flags, the target address; 4.6.1: the
/// target's link-layer address, type 2, in units of 8 bytes. 7.2.6: "the Solicited flag MUST be set to zero"; the override flag has
/// neighbours replace what they know.
fn neighbour_advertisement(address: Ipv6Addr, ethernet: [u8; 6]) -> Vec<u8> {
    let r#override = 0x20;
    [&[136, 0, 0, 0, r#override, 0, 0, 0][..], &address.octets(), &[2, 1], &ethernet].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ETHERNET: [u8; 6] = [0x02, 0, 0, 0, 0, 0x0a];

    fn bytes(hexadecimal: &str) -> Vec<u8> {
        hexadecimal.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
    }

    /// Compared with what the kernel (6.18) sends when an interface goes up, with `arp_notify`, as tcpdump shows it.
    #[test]
    fn an_arp_announcement_is_that_of_the_kernel() {
        let expected = "ff ff ff ff ff ff 02 00 00 00 00 0a 08 06 00 01 08 00 06 04 00 01 \
                        02 00 00 00 00 0a c0 00 02 0a 00 00 00 00 00 00 c0 00 02 0a";
        assert_eq!(arp_announcement("192.0.2.10".parse().unwrap(), ETHERNET), bytes(expected));
    }

    /// The same with `ndisc_notify`; the checksum (f9 03) is added on the way.
    #[test]
    fn an_advertisement_is_that_of_the_kernel() {
        let expected = "88 00 00 00 20 00 00 00 20 01 0d b8 00 00 00 00 00 00 00 00 00 00 00 10 \
                        02 01 02 00 00 00 00 0a";
        assert_eq!(neighbour_advertisement("2001:db8::10".parse().unwrap(), ETHERNET), bytes(expected));
    }
}
