//! Networks in a client list: addresses, prefixes, names of machines, and names in their certificates.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use thiserror::Error;

use crate::{Names, Peer};

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
    /// Those of machines that show a certificate with this name, wherever they are.
    Certificate(CertificateName),
}

/// What stands before a name of a certificate.
const CERTIFICATE: &str = "cert:";

/// A DNS name of certificates, in lower case, or all names in a domain (`*.example.org`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateName(String);

impl CertificateName {
    /// Whether one of the names of a certificate is meant. RFC 9525 6.3: a wildcard is the whole first label, and stands for one.
    fn is_among(&self, names: &[String]) -> bool {
        names.iter().any(|name| match self.0.strip_prefix('*') {
            Some(domain) => {
                name.strip_suffix(domain).is_some_and(|label| !label.is_empty() && !label.contains('.'))
            }
            None => *name == self.0,
        })
    }
}

impl FromStr for CertificateName {
    type Err = NotANetwork;

    fn from_str(text: &str) -> Result<Self, NotANetwork> {
        let name = text.strip_prefix("*.").unwrap_or(text);
        let is_name = is_host_name(name) && (name.len() == text.len() || name.contains('.'));
        if is_name {
            Ok(Self(text.to_ascii_lowercase()))
        } else {
            Err(NotANetwork(format!("{CERTIFICATE}{text}")))
        }
    }
}

impl Network {
    /// Whether a client belongs to the network. An IPv4 address may come as an IPv6 one (`::ffff:10.0.0.1`).
    #[must_use]
    pub fn contains(&self, names: &Names, peer: Peer<'_>) -> bool {
        let client = peer.address.ip().to_canonical();
        match self {
            Self::Any => true,
            Self::Certificate(name) => name.is_among(peer.certificate_names),
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
     the name in its certificate (cert:a.example.org, cert:*.example.org), or * for everybody"
)]
pub struct NotANetwork(String);

impl FromStr for Network {
    type Err = NotANetwork;

    fn from_str(text: &str) -> Result<Self, NotANetwork> {
        if text == "*" {
            return Ok(Self::Any);
        }
        if let Some(name) = text.strip_prefix(CERTIFICATE) {
            return name.parse().map(Self::Certificate);
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
            Self::Certificate(CertificateName(name)) => write!(formatter, "{CERTIFICATE}{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    fn at(client: &str) -> Peer<'static> {
        SocketAddr::new(client.parse().unwrap(), 700).into()
    }

    #[test]
    fn a_certificate_has_the_name_or_one_in_the_domain() {
        let of = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        for (network, names, holds) in [
            ("cert:a.lab.test", &["a.lab.test"][..], true),
            ("cert:A.Lab.Test", &["b.lab.test", "a.lab.test"], true),
            ("cert:a.lab.test", &["a.lab.test.evil.test"], false),
            ("cert:a.lab.test", &["x.a.lab.test"], false),
            ("cert:a.lab.test", &["*.lab.test"], false),
            ("cert:a.lab.test", &[], false),
            ("cert:*.lab.test", &["a.lab.test"], true),
            ("cert:*.lab.test", &["a.b.lab.test"], false),
            ("cert:*.lab.test", &["lab.test"], false),
            ("cert:*.lab.test", &[".lab.test"], false),
            ("cert:*.lab.test", &["evillab.test"], false),
            ("cert:*.lab.test", &[], false),
        ] {
            let (network, names): (Network, _) = (network.parse().unwrap(), of(names));
            let peer = Peer { certificate_names: &names, ..at("192.0.2.7") };
            assert_eq!(network.contains(&Names::default(), peer), holds, "{names:?} in {network}");
        }
        for text in
            ["cert:", "cert:*", "cert:*.", "cert:*.test", "cert:a.*.test", "cert:10.0.0.1", "cert:a b"]
        {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
    }

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
            assert_eq!(parsed.contains(&Names::default(), at(client)), holds, "{client} in {network}");
        }
    }

    #[test]
    fn a_name_stands_for_the_addresses_that_are_known_of_it() {
        let network: Network = "Files.Example.org".parse().unwrap();
        assert!(!network.contains(&Names::default(), at("192.0.2.7")), "nobody, before it is resolved");
        let hosts = [("files.example.org".to_owned(), vec!["192.0.2.7".parse().unwrap()])].into();
        let names = Names { hosts, ..Names::default() };
        assert!(network.contains(&names, at("::ffff:192.0.2.7")));
        assert!(!network.contains(&names, at("192.0.2.8")));
    }

    #[test]
    fn what_is_read_is_written_the_same() {
        for text in [
            "*",
            "192.0.2.7",
            "192.0.2.0/24",
            "2001:db8::/32",
            "2001:db8::1",
            "a-b.example_1.org",
            "host",
            "cert:*.lab.test",
        ] {
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
