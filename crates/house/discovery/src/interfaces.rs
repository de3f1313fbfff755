//! The interfaces of this machine, with their addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use nix::sys::socket::SockaddrStorage;

/// The most addresses at which the server is announced.
const INTERFACES_MAX: usize = 64;

/// An address of an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Interface {
    pub(crate) name: String,
    pub(crate) address: IpAddr,
    netmask: IpAddr,
}

/// The addresses of interfaces that are up and reach a local network: no loopback, no point-to-point links.
pub(crate) fn present() -> Vec<Interface> {
    let Ok(addresses) = getifaddrs() else { return Vec::new() };
    let wanted = InterfaceFlags::IFF_UP | InterfaceFlags::IFF_MULTICAST;
    let unwanted = InterfaceFlags::IFF_LOOPBACK | InterfaceFlags::IFF_POINTOPOINT;
    let interface = |found: nix::ifaddrs::InterfaceAddress| {
        let is_local = found.flags.contains(wanted) && !found.flags.intersects(unwanted);
        let (address, netmask) = (ip(found.address.as_ref()?)?, ip(found.netmask.as_ref()?)?);
        is_local.then_some(Interface { name: found.interface_name, address, netmask })
    };
    addresses.filter_map(interface).take(INTERFACES_MAX).collect()
}

fn ip(address: &SockaddrStorage) -> Option<IpAddr> {
    let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
    v4.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
}

impl Interface {
    /// The address, if it is one of IPv4.
    pub(crate) fn v4(&self) -> Option<Ipv4Addr> {
        if let IpAddr::V4(address) = self.address { Some(address) } else { None }
    }

    /// Whether a server that listens at these addresses listens at this one.
    pub(crate) fn is_listened_at(&self, addresses: &[IpAddr]) -> bool {
        addresses.iter().any(|listening| {
            *listening == self.address
                || listening.is_unspecified() && listening.is_ipv4() == self.address.is_ipv4()
        })
    }

    /// Whether an address is in the network of the interface.
    pub(crate) fn is_local(&self, other: IpAddr) -> bool {
        match (self.address, self.netmask, other.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(mask), IpAddr::V4(other)) => own & mask == other & mask,
            (IpAddr::V6(own), IpAddr::V6(mask), IpAddr::V6(other)) => {
                masked(own, mask) == masked(other, mask)
            }
            _ => false,
        }
    }
}

fn masked(address: Ipv6Addr, mask: Ipv6Addr) -> u128 {
    u128::from(address) & u128::from(mask)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(address: &str, netmask: &str) -> Interface {
        Interface {
            name: "eth0".to_owned(),
            address: address.parse().unwrap(),
            netmask: netmask.parse().unwrap(),
        }
    }

    #[test]
    fn only_neighbours_are_local() {
        let v4 = interface("192.0.2.1", "255.255.255.0");
        let is_local = |address: &str| v4.is_local(address.parse().unwrap());
        assert!(is_local("192.0.2.254") && is_local("::ffff:192.0.2.9"));
        assert!(!is_local("192.0.3.1") && !is_local("127.0.0.1") && !is_local("fe80::1"));
        let v6 = interface("fe80::1", "ffff:ffff:ffff:ffff::");
        assert!(v6.is_local("fe80::2:3".parse().unwrap()) && !v6.is_local("2001:db8::1".parse().unwrap()));
    }

    #[test]
    fn a_server_is_announced_where_it_listens() {
        let v4 = interface("192.0.2.1", "255.255.255.0");
        let at = |addresses: &[&str]| {
            let addresses: Vec<IpAddr> = addresses.iter().map(|address| address.parse().unwrap()).collect();
            v4.is_listened_at(&addresses)
        };
        assert!(at(&["0.0.0.0"]) && at(&["192.0.2.1", "10.0.0.1"]));
        assert!(!at(&["127.0.0.1"]) && !at(&["::"]) && !at(&[]));
    }
}
