//! Networks in a client list: addresses, prefixes and names of machines.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use thiserror::Error;

use crate::Names;

/// Longest name of a machine. RFC 1035 2.3.4
const HOST_NAME_MAX: usize = 253;

/// A set of addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Network {
    /// All addresses.
    Any,
    /// The addresses that begin with these bits.
    Prefix {
        /// An address of the network.
        address: IpAddr,
        /// The length of the prefix in bits.
        bits: u8,
    },
    /// Those of the machine of this name, in lower case, as [`Names`] knows them.
    Host(String),
}

impl Network {
    /// Whether an address belongs to the network. An IPv4 address may come as an IPv6 one (`::ffff:10.0.0.1`).
    #[must_use]
    pub fn contains(&self, names: &Names, client: IpAddr) -> bool {
        let client = client.to_canonical();
        match self {
            Self::Any => true,
            Self::Host(name) => names.hosts.get(name).is_some_and(|known| known.contains(&client)),
            Self::Prefix { address, bits } => is_in_prefix(*address, *bits, client),
        }
    }
}

fn is_in_prefix(network: IpAddr, bits: u8, client: IpAddr) -> bool {
    match (network, client) {
        (IpAddr::V4(network), IpAddr::V4(client)) => {
            let mask = u32::MAX.checked_shl(32_u32.saturating_sub(u32::from(bits))).unwrap_or(0);
            network.to_bits() & mask == client.to_bits() & mask
        }
        (IpAddr::V6(network), IpAddr::V6(client)) => {
            let mask = u128::MAX.checked_shl(128_u32.saturating_sub(u32::from(bits))).unwrap_or(0);
            network.to_bits() & mask == client.to_bits() & mask
        }
        _ => false,
    }
}

/// The text is not a network.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "{0:?} is no network: expected an address (192.0.2.7), a network (192.0.2.0/24, 2001:db8::/32), the name of a machine, \
     or * for everybody"
)]
pub struct NotANetwork(String);

impl FromStr for Network {
    type Err = NotANetwork;

    fn from_str(text: &str) -> Result<Self, NotANetwork> {
        if text == "*" {
            return Ok(Self::Any);
        }
        let wrong = || NotANetwork(text.to_owned());
        let (address, bits) = text.split_once('/').map_or((text, None), |(a, b)| (a, Some(b)));
        let Ok(address) = address.parse::<IpAddr>() else {
            return if is_host_name(text) { Ok(Self::Host(text.to_ascii_lowercase())) } else { Err(wrong()) };
        };
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits: u8 = bits.map_or(Ok(most), |bits| bits.parse().map_err(|_| wrong()))?;
        if bits > most {
            return Err(wrong());
        }
        // A network of IPv4 addresses in the form of IPv6 ones.
        let canonical = address.to_canonical();
        Ok(match bits.checked_sub(96).filter(|_| canonical.is_ipv4() && address.is_ipv6()) {
            Some(bits) => Self::Prefix { address: canonical, bits },
            None => Self::Prefix { address, bits },
        })
    }
}

/// Whether this can be the name of a machine. RFC 1123 2.1: the last label is not numeric, so that no mistyped address is
/// taken for a name.
fn is_host_name(text: &str) -> bool {
    let of_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let labels: Vec<&str> = text.split('.').collect();
    let numeric = labels.last().is_none_or(|last| last.bytes().all(|byte| byte.is_ascii_digit()));
    let well_formed = labels.iter().all(|label| !label.is_empty() && label.bytes().all(of_name));
    text.len() <= HOST_NAME_MAX && well_formed && !numeric
}

impl fmt::Display for Network {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => formatter.write_str("*"),
            Self::Prefix { address: IpAddr::V4(address), bits: 32 } => address.fmt(formatter),
            Self::Prefix { address: IpAddr::V6(address), bits: 128 } => address.fmt(formatter),
            Self::Prefix { address, bits } => write!(formatter, "{address}/{bits}"),
            Self::Host(name) => formatter.write_str(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_hold_their_addresses() {
        for (network, client, holds) in [
            ("*", "2001:db8::1", true),
            ("192.0.2.128/25", "192.0.2.127", false),
            ("192.0.2.128/25", "192.0.2.128", true),
            ("192.0.2.129/25", "192.0.2.200", true),
            ("0.0.0.0/0", "203.0.113.9", true),
            ("0.0.0.0/0", "2001:db8::1", false),
            ("2001:db8::/32", "2001:db8:ffff::1", true),
            ("2001:db8::/32", "2001:db9::1", false),
            ("2001:db8::7", "2001:db8::7", true),
            ("2001:db8::7", "2001:db8::8", false),
            ("::/0", "2001:db9::1", true),
            ("192.0.2.7", "::ffff:192.0.2.7", true),
            ("192.0.2.0/24", "::ffff:192.0.3.7", false),
            ("::ffff:192.0.2.0/120", "192.0.2.9", true),
            ("::ffff:192.0.2.0/120", "192.0.3.9", false),
            ("::ffff:192.0.2.7", "192.0.2.7", true),
        ] {
            let parsed: Network = network.parse().unwrap();
            assert_eq!(
                parsed.contains(&Names::default(), client.parse().unwrap()),
                holds,
                "{client} in {network}"
            );
        }
    }

    #[test]
    fn a_name_stands_for_the_addresses_that_are_known_of_it() {
        let network: Network = "Files.Example.org".parse().unwrap();
        let at = "192.0.2.7".parse().unwrap();
        assert!(!network.contains(&Names::default(), at), "nobody, before it is resolved");
        let hosts = [("files.example.org".to_owned(), vec![at])].into();
        let names = Names { hosts, ..Names::default() };
        assert!(network.contains(&names, "::ffff:192.0.2.7".parse().unwrap()));
        assert!(!network.contains(&names, "192.0.2.8".parse().unwrap()));
    }

    #[test]
    fn what_is_read_is_written_the_same() {
        for text in
            ["*", "192.0.2.7", "192.0.2.0/24", "2001:db8::/32", "2001:db8::1", "a-b.example_1.org", "host"]
        {
            assert_eq!(text.parse::<Network>().unwrap().to_string(), text);
        }
        assert_eq!("::ffff:192.0.2.0/120".parse::<Network>().unwrap().to_string(), "192.0.2.0/24");
    }

    #[test]
    fn text_that_is_no_network() {
        let long = "a".repeat(254);
        for text in [
            "",
            "192.0.2.0/33",
            "192.0.2.0/",
            "2001:db8::/129",
            "192.0.2.0/-1",
            "192.0.2",
            "192.0.2.256",
            "*.example.org",
            "a..b",
            "a b",
            "@staff",
            "fe80::1%eth0",
            &long,
        ] {
            assert!(text.parse::<Network>().is_err(), "{text:?}");
        }
    }
}
