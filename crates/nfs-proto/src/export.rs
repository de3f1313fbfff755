//! Which client may see an export, and who its users are there.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use nfs_wire::auth_sys::AuthSys;
use thiserror::Error;

/// The user and group that nobody in particular has, as most systems number them.
pub const NOBODY: u32 = 65534;

/// Who may mount an export: the first rule whose network holds the client's address counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    /// The rules, in order. No rule, no access.
    pub rules: Vec<ClientRule>,
}

impl Default for Export {
    /// Every client reads and writes; its superuser is nobody.
    fn default() -> Self {
        Self { rules: vec![ClientRule::default()] }
    }
}

impl Export {
    /// The rule for a client; `None` if it may not use the export.
    #[must_use]
    pub fn rule_for(&self, client: IpAddr) -> Option<&ClientRule> {
        self.rules.iter().find(|rule| rule.network.contains(client))
    }
}

/// What the clients of a network may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientRule {
    /// Their addresses.
    pub network: Network,
    /// Nothing is changed.
    pub read_only: bool,
    /// Whose word is not taken.
    pub squash: Squash,
    /// Who those are instead, and callers without credentials.
    pub anonymous: Anonymous,
}

impl Default for ClientRule {
    fn default() -> Self {
        Self {
            network: Network::Any,
            read_only: false,
            squash: Squash::Root,
            anonymous: Anonymous { uid: NOBODY, gid: NOBODY },
        }
    }
}

/// Whose word about their identity is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Squash {
    /// Everybody's is.
    None,
    /// The superuser's is not.
    Root,
    /// Nobody's is.
    All,
}

/// The identity of whose word is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Anonymous {
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

/// The identity in whose name a call is carried out.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Credentials {
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Other groups.
    pub groups: Vec<u32>,
}

impl ClientRule {
    /// Who a caller is that sends this credential; `None` stands for AUTH_NONE.
    #[must_use]
    pub fn credentials(&self, stated: Option<&AuthSys<'_>>) -> Credentials {
        let Anonymous { uid, gid } = self.anonymous;
        let anonymous = Credentials { uid, gid, groups: Vec::new() };
        let Some(stated) = stated else { return anonymous };
        let taken = |stated: u32, instead: u32| if stated == 0 { instead } else { stated };
        let groups = stated.groups.as_slice().iter();
        match self.squash {
            Squash::None => {
                Credentials { uid: stated.uid, gid: stated.gid, groups: groups.copied().collect() }
            }
            Squash::Root => Credentials {
                uid: taken(stated.uid, uid),
                gid: taken(stated.gid, gid),
                groups: groups.map(|group| taken(*group, gid)).collect(),
            },
            Squash::All => anonymous,
        }
    }
}

/// A set of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// All there are.
    Any,
    /// Those whose first bits are these.
    Prefix {
        /// An address of the network.
        address: IpAddr,
        /// How many of its bits count.
        bits: u8,
    },
}

impl Network {
    /// Whether an address belongs to the network. An IPv4 address may come as an IPv6 one (`::ffff:10.0.0.1`).
    #[must_use]
    pub fn contains(&self, client: IpAddr) -> bool {
        let Self::Prefix { address, bits } = *self else { return true };
        match (address.to_canonical(), client.to_canonical()) {
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
}

/// The text is no network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("expected an address (192.0.2.7), a network (192.0.2.0/24) or * for everybody")]
pub struct NotANetwork;

impl FromStr for Network {
    type Err = NotANetwork;

    fn from_str(text: &str) -> Result<Self, NotANetwork> {
        if text == "*" {
            return Ok(Self::Any);
        }
        let (address, bits) = text.split_once('/').map_or((text, None), |(a, b)| (a, Some(b)));
        let address: IpAddr = address.parse().map_err(|_| NotANetwork)?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), |bits| bits.parse().map_err(|_| NotANetwork))?;
        if bits > most { Err(NotANetwork) } else { Ok(Self::Prefix { address, bits }) }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => formatter.write_str("*"),
            Self::Prefix { address, bits } => write!(formatter, "{address}/{bits}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nfs_wire::auth_sys::{Groups, MachineName};

    fn stated(uid: u32, gid: u32, groups: &[u32]) -> AuthSys<'static> {
        let groups = Groups::new(groups).unwrap();
        AuthSys { stamp: 0, machine_name: MachineName(b"client"), uid, gid, groups }
    }

    fn rule(squash: Squash) -> ClientRule {
        ClientRule { squash, anonymous: Anonymous { uid: 500, gid: 501 }, ..ClientRule::default() }
    }

    fn credentials(uid: u32, gid: u32, groups: &[u32]) -> Credentials {
        Credentials { uid, gid, groups: groups.to_vec() }
    }

    #[test]
    fn no_squash_takes_every_word() {
        let who = rule(Squash::None).credentials(Some(&stated(0, 0, &[0, 4])));
        assert_eq!(who, credentials(0, 0, &[0, 4]));
    }

    #[test]
    fn root_squash_replaces_user_and_groups_zero_only() {
        let rule = rule(Squash::Root);
        assert_eq!(rule.credentials(Some(&stated(0, 0, &[0, 4]))), credentials(500, 501, &[501, 4]));
        assert_eq!(rule.credentials(Some(&stated(7, 0, &[]))), credentials(7, 501, &[]));
        assert_eq!(rule.credentials(Some(&stated(7, 8, &[9]))), credentials(7, 8, &[9]));
    }

    #[test]
    fn all_squash_replaces_everybody() {
        let who = rule(Squash::All).credentials(Some(&stated(7, 8, &[9])));
        assert_eq!(who, credentials(500, 501, &[]));
    }

    #[test]
    fn a_caller_without_credentials_is_anonymous() {
        for squash in [Squash::None, Squash::Root, Squash::All] {
            assert_eq!(rule(squash).credentials(None), credentials(500, 501, &[]));
        }
    }

    #[test]
    fn the_first_rule_that_fits_counts() {
        let only = |network: &str, read_only| ClientRule {
            network: network.parse().unwrap(),
            read_only,
            ..ClientRule::default()
        };
        let export = Export { rules: vec![only("192.0.2.7", false), only("192.0.2.0/24", true)] };
        let read_only = |client: &str| export.rule_for(client.parse().unwrap()).map(|rule| rule.read_only);
        assert_eq!(read_only("192.0.2.7"), Some(false));
        assert_eq!(read_only("192.0.2.8"), Some(true));
        assert_eq!(read_only("192.0.3.8"), None);
    }

    #[test]
    fn networks_hold_their_addresses() {
        for (network, client, holds) in [
            ("*", "2001:db8::1", true),
            ("192.0.2.128/25", "192.0.2.127", false),
            ("192.0.2.128/25", "192.0.2.128", true),
            ("0.0.0.0/0", "203.0.113.9", true),
            ("0.0.0.0/0", "2001:db8::1", false),
            ("2001:db8::/32", "2001:db8:ffff::1", true),
            ("2001:db8::/32", "2001:db9::1", false),
            ("::/0", "2001:db9::1", true),
            ("192.0.2.7", "::ffff:192.0.2.7", true),
        ] {
            let parsed: Network = network.parse().unwrap();
            assert_eq!(parsed.contains(client.parse().unwrap()), holds, "{client} in {network}");
        }
    }

    #[test]
    fn text_that_is_no_network() {
        for text in ["", "example.org", "192.0.2.0/33", "192.0.2.0/", "2001:db8::/129", "192.0.2.0/-1"] {
            assert_eq!(text.parse::<Network>(), Err(NotANetwork), "{text:?}");
        }
    }
}
