//! The origin of a client, as far as the client cannot choose it.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

/// An IPv4 address, or the network of an IPv6 address: a client that has one address of a 64-bit network has all of
/// them (RFC 4291 2.5.1). Link-local addresses are kept apart, since all links have the same network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin(IpAddr);

impl From<IpAddr> for Origin {
    fn from(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(v6) if !v6.is_unicast_link_local() => {
                IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64))
            }
            other => other,
        })
    }
}

impl Origin {
    /// The address, or the first one of the network.
    #[must_use]
    pub fn address(self) -> IpAddr {
        self.0
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_client_is_its_network() {
        let origin = |address: &str| Origin::from(address.parse::<IpAddr>().unwrap());
        assert_eq!(origin("2001:db8::1"), origin("2001:db8::2:3"));
        assert_ne!(origin("2001:db8::1"), origin("2001:db8:0:1::1"));
        assert_ne!(origin("fe80::1"), origin("fe80::2"));
        assert_eq!(origin("::ffff:10.0.0.1"), origin("10.0.0.1"));
        assert_ne!(origin("10.0.0.1"), origin("10.0.0.2"));
    }
}
