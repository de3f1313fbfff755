//! The machine's network interfaces, as the kernel reports them.

use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::Path;

use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::net::if_::{InterfaceFlags, if_nametoindex};

/// The directory in which the kernel describes interfaces.
const SYS_CLASS_NET: &str = "/sys/class/net";
/// ETHTOOL's SPEED is in megabits per second.
const MEGABIT: u64 = 1_000_000;

/// An address of a network interface that is up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterfaceAddr {
    /// The number of the interface; never 0.
    pub index: u32,
    /// The name of the interface.
    pub name: String,
    /// One of its addresses.
    pub address: IpAddr,
    /// The link speed in bits per second; `None` where the kernel does not know it (mostly virtual interfaces).
    pub link_speed: Option<u64>,
    /// The number of receive queues. With more than one, received packets are spread over the processors.
    pub receive_queues: usize,
    /// Whether this is a loopback interface.
    pub is_loopback: bool,
}

impl InterfaceAddr {
    /// Whether clients can use this address to reach a server that listens at these addresses. Link-local addresses are
    /// never advertised, the loopback interface only if the server listens there and nowhere else.
    #[must_use]
    pub fn is_listened_on(&self, listen: &[IpAddr]) -> bool {
        let is_loopback_for_all = || listen.iter().all(|listen| listen.to_canonical().is_loopback());
        let is_advertised =
            if self.is_loopback { is_loopback_for_all() } else { !is_link_local(self.address) };
        is_advertised && listen.iter().any(|listen| self.accepts(*listen))
    }

    /// Whether a socket that listens at `listen` accepts connections to this address.
    fn accepts(&self, listen: IpAddr) -> bool {
        match listen {
            IpAddr::V4(v4) if v4.is_unspecified() => self.address.is_ipv4(),
            // Such a socket also accepts connections to IPv4 addresses, unless another socket has them.
            IpAddr::V6(v6) if v6.is_unspecified() => true,
            _ => listen.to_canonical() == self.address,
        }
    }
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    }
}

/// The addresses of all interfaces that are up and have a carrier. This reads files of the kernel; some of them make
/// the driver query its device, which may take milliseconds.
///
/// # Errors
/// The system does not list its addresses.
pub fn interface_addrs() -> io::Result<Vec<InterfaceAddr>> {
    let mut found = Vec::new();
    for entry in getifaddrs()? {
        if let Some(address) = ip_of(&entry)
            && let Some(interface) = describe(&entry, address)
            && !found.contains(&interface)
        {
            found.push(interface);
        }
    }
    Ok(found)
}

fn ip_of(entry: &InterfaceAddress) -> Option<IpAddr> {
    let address = entry.address.as_ref()?;
    let v4 = address.as_sockaddr_in().map(|v4| v4.ip().into());
    v4.or_else(|| address.as_sockaddr_in6().map(|v6| v6.ip().into()))
}

fn describe(entry: &InterfaceAddress, address: IpAddr) -> Option<InterfaceAddr> {
    if !entry.flags.contains(InterfaceFlags::IFF_UP | InterfaceFlags::IFF_RUNNING) {
        return None;
    }
    let name = entry.interface_name.as_str();
    // Addresses with their own label (eth0:1) belong to the interface.
    let device = name.split(':').next().unwrap_or(name);
    let directory = Path::new(SYS_CLASS_NET).join(device);
    Some(InterfaceAddr {
        index: if_nametoindex(device).ok().filter(|index| *index != 0)?,
        name: device.to_owned(),
        address,
        link_speed: fs::read_to_string(directory.join("speed")).ok().and_then(|speed| parse_speed(&speed)),
        receive_queues: receive_queues(&directory.join("queues")),
        is_loopback: entry.flags.contains(InterfaceFlags::IFF_LOOPBACK),
    })
}

/// The content of /sys/class/net/*/speed in bits per second; -1 (and its unsigned form) is an unknown speed.
fn parse_speed(text: &str) -> Option<u64> {
    let megabits: u64 = text.trim().parse().ok()?;
    if megabits == 0 || megabits >= u64::from(u32::MAX) { None } else { megabits.checked_mul(MEGABIT) }
}

fn receive_queues(directory: &Path) -> usize {
    let Ok(queues) = fs::read_dir(directory) else { return 0 };
    queues.flatten().filter(|queue| queue.file_name().to_string_lossy().starts_with("rx-")).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_are_megabits_and_may_be_unknown() {
        assert_eq!(parse_speed("10000\n"), Some(10_000_000_000));
        for unknown in ["-1\n", "4294967295\n", "0\n", "", "fast"] {
            assert_eq!(parse_speed(unknown), None, "{unknown:?}");
        }
    }

    #[test]
    fn the_loopback_interface_is_found() {
        let found = interface_addrs().unwrap();
        let loopback = found.iter().find(|found| found.is_loopback && found.address.is_ipv4()).unwrap();
        assert_eq!((loopback.name.as_str(), loopback.address.is_loopback()), ("lo", true));
        assert!(loopback.index > 0);
    }
}
