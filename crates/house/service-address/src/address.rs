//! How a service address is written.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// The longest name of an interface (netdevice(7): IFNAMSIZ, with a zero at the end).
const INTERFACE_BYTES_MAX: usize = 15;

/// An address of a service: where it is to be. Written as `ADDRESS%INTERFACE` or `ADDRESS%INTERFACE/PREFIX`, in the order of RFC 4007
/// 11.7: "place the zone index portion before the prefix length".
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServiceAddress {
    /// The address, by which one machine can be reached.
    pub address: IpAddr,
    /// The name of the interface that gets it.
    pub interface: String,
    /// The bits of its network; without it, the address is alone: 32, or 128.
    pub prefix: u8,
}

impl fmt::Display for ServiceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, interface, prefix } = self;
        write!(f, "{address}%{interface}")?;
        if *prefix == bits_of(*address) { Ok(()) } else { write!(f, "/{prefix}") }
    }
}

impl FromStr for ServiceAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (address, rest) = text.split_once('%').ok_or_else(|| {
            format!("{text:?} names no interface: expected ADDRESS%INTERFACE, such as 192.0.2.10%eth0, or 192.0.2.10%eth0/24")
        })?;
        let address: IpAddr = address.parse().map_err(|_| {
            format!("{address:?} is not an address: expected one such as 192.0.2.10, or 2001:db8::10")
        })?;
        check_address(address)?;
        let (interface, prefix) = match rest.split_once('/') {
            None => (rest, bits_of(address)),
            Some((interface, prefix)) => (interface, parse_prefix(prefix, address)?),
        };
        let is_name = |c: char| !c.is_whitespace() && !c.is_control() && c != ':' && c != '%';
        if interface.is_empty() || interface.len() > INTERFACE_BYTES_MAX || !interface.chars().all(is_name) {
            return Err(format!("{interface:?} is not the name of an interface, such as eth0"));
        }
        Ok(Self { address, interface: interface.to_owned(), prefix })
    }
}

/// The bits of an address.
fn bits_of(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn check_address(address: IpAddr) -> Result<(), String> {
    let is_link_local = matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
    let is_broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
    let is_mapped = matches!(address, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some());
    if address.is_unspecified() || address.is_multicast() || is_broadcast || is_mapped {
        return Err(format!("{address} is not the address of one machine"));
    }
    if address.is_loopback() {
        return Err(format!("{address} cannot be reached from other machines"));
    }
    if is_link_local {
        return Err(format!("{address} is valid on one link only: clients would have to name an interface"));
    }
    Ok(())
}

fn parse_prefix(text: &str, address: IpAddr) -> Result<u8, String> {
    let bits_max = bits_of(address);
    let prefix = text.parse().ok().filter(|bits| (1..=bits_max).contains(bits));
    prefix.ok_or_else(|| {
        format!("{text:?} is not the length of a prefix: expected a number from 1 to {bits_max}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_its_interface_and_may_have_a_prefix() {
        let read = |text: &str| {
            let one: ServiceAddress = text.parse().unwrap();
            assert_eq!(one.to_string(), text);
            (one.address.to_string(), one.interface, one.prefix)
        };
        assert_eq!(read("192.0.2.10%eth0"), ("192.0.2.10".to_owned(), "eth0".to_owned(), 32));
        assert_eq!(read("192.0.2.10%bond0.7/24"), ("192.0.2.10".to_owned(), "bond0.7".to_owned(), 24));
        assert_eq!(read("2001:db8::10%eth0"), ("2001:db8::10".to_owned(), "eth0".to_owned(), 128));
        assert_eq!(read("2001:db8::10%eth0/64"), ("2001:db8::10".to_owned(), "eth0".to_owned(), 64));
    }

    #[test]
    fn what_is_none_is_refused_with_the_reason() {
        for (text, why) in [
            ("", "names no interface"),
            ("192.0.2.10", "names no interface"),
            ("192.0.2.10/24", "names no interface"),
            ("eth0%192.0.2.10", "not an address"),
            ("192.0.2.10/24%eth0", "not an address"),
            ("192.0.2.10:445%eth0", "not an address"),
            ("192.0.2.10%", "not the name of an interface"),
            ("192.0.2.10%/24", "not the name of an interface"),
            ("192.0.2.10%eth0:1", "not the name of an interface"),
            ("192.0.2.10%sixteen-letters-", "not the name of an interface"),
            ("192.0.2.10%eth0/0", "a number from 1 to 32"),
            ("192.0.2.10%eth0/33", "a number from 1 to 32"),
            ("192.0.2.10%eth0/", "a number from 1 to 32"),
            ("2001:db8::1%eth0/129", "a number from 1 to 128"),
            ("0.0.0.0%eth0", "not the address of one machine"),
            ("224.0.0.1%eth0", "not the address of one machine"),
            ("255.255.255.255%eth0", "not the address of one machine"),
            ("::ffff:192.0.2.1%eth0", "not the address of one machine"),
            ("127.0.0.2%lo", "cannot be reached"),
            ("fe80::1%eth0", "one link only"),
        ] {
            let error = text.parse::<ServiceAddress>().unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
