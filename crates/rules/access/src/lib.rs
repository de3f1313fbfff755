//! Who may use a share: from which addresses, by which protocol, and how. One set of rules for all protocols; the protocol
//! servers ask it, and refuse.

mod client;
mod network;
mod rights;

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;

use identity::{Identity, People, Proof};

pub use client::{ClientRule, Squash, is_privileged};
pub use network::{CertificateName, Network, NotANetwork};
pub use rights::{DomainName, Group, InDomain, NamesNobody, RIGHTS_MAX, Right, Role, Who};

/// Entries of a share's client list.
pub const CLIENT_RULES_MAX: usize = 256;

bitflags::bitflags! {
    /// The protocols that a share may be used by.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Protocols: u8 {
        /// All versions of SMB.
        const SMB = 1;
        /// All versions of NFS, and MOUNT.
        const NFS = 1 << 1;
    }
}

impl Protocols {
    /// Of these protocols, those that can encrypt what they carry.
    #[must_use]
    pub fn that_encrypt(self) -> Self {
        self.difference(Self::NFS)
    }

    /// Whether clients of this protocol show by a privileged port that their kernel speaks for its users.
    #[must_use]
    pub fn shows_ports(self) -> bool {
        self == Self::NFS
    }
}

impl Default for Protocols {
    fn default() -> Self {
        Self::all()
    }
}

/// `smb,nfs`
impl FromStr for Protocols {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut protocols = Self::empty();
        for name in text.split(',').map(str::trim) {
            protocols |= match name {
                "smb" => Self::SMB,
                "nfs" => Self::NFS,
                _ => return Err(format!("{name:?} is not a protocol: expected smb, nfs or smb,nfs")),
            };
        }
        Ok(protocols)
    }
}

impl fmt::Display for Protocols {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.contains(Self::SMB), self.contains(Self::NFS)) {
            (true, true) => "smb,nfs",
            (true, false) => "smb",
            (false, true) => "nfs",
            (false, false) => "",
        })
    }
}

/// Who may use a share.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// The protocols by which the share may be used.
    pub protocols: Protocols,
    /// The client list: the first entry whose network holds a client's address decides. An empty list admits every address;
    /// any other list refuses addresses without an entry.
    pub clients: Vec<ClientRule>,
    /// The user list: a user may do the most that any matching entry gives. An empty list admits everybody; any other list
    /// refuses users without an entry.
    pub rights: Vec<Right>,
    /// The least that every user may do whom the server knows: an account, or a user of a domain; no guest. None: what the
    /// user list says.
    pub default_role: Option<Role>,
}

/// A role is given to users who have more by default.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` is without effect: default-role gives every user the role {} already. Remove the list, or lower the default role",
    .list.list(),
    .default.name()
)]
pub struct WithoutEffect {
    list: Role,
    default: Role,
}

/// What a client shows of itself before it says who its user is.
#[derive(Debug, Clone, Copy)]
pub struct Peer<'a> {
    /// Its end of the connection.
    pub address: SocketAddr,
    /// The DNS names in its certificate, which was verified, in lower case. A client without one has none.
    pub certificate_names: &'a [String],
}

impl From<SocketAddr> for Peer<'_> {
    fn from(address: SocketAddr) -> Self {
        Self { address, certificate_names: &[] }
    }
}

/// For questions about networks alone.
impl From<IpAddr> for Peer<'_> {
    fn from(address: IpAddr) -> Self {
        SocketAddr::new(address, 0).into()
    }
}

/// What names in [`Rules`] stand for at present. An unknown name matches nobody.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    /// The addresses of machines by name, IPv4 addresses in their own form.
    pub hosts: HashMap<String, Vec<IpAddr>>,
    /// The groups of the system, by name.
    pub groups: HashMap<String, Group>,
    /// Users and groups of domains.
    pub of_domains: HashMap<DomainName, InDomain>,
    /// The names of the accounts that may log on, folded, by uid.
    pub accounts: HashMap<u32, Vec<String>>,
    /// For whom numbers and SIDs stand.
    pub people: Arc<People>,
}

/// How an admitted client may use a share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entrance {
    /// Whether changes are refused.
    pub read_only: bool,
    /// Users whose stated identity is not accepted; None: the server's default.
    pub squash: Option<Squash>,
    /// Whether the share has a client list.
    pub is_listed: bool,
}

/// A role, and what gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant<'r> {
    /// What the user may do.
    pub role: Role,
    /// What gives the role.
    pub by: GrantedBy<'r>,
}

/// What gives a role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrantedBy<'r> {
    /// There is neither an entry nor a default role, so all are admitted.
    NoList,
    /// The role of all users whom the server knows.
    DefaultRole,
    /// This entry of the user list.
    Entry(&'r Who),
}

impl fmt::Display for GrantedBy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoList => f.write_str("no list"),
            Self::DefaultRole => f.write_str("default-role"),
            Self::Entry(who) => who.fmt(f),
        }
    }
}

impl Rules {
    /// How a client may use the share by this protocol; None: it may not.
    #[must_use]
    pub fn entrance(&self, names: &Names, by: Protocols, client: Peer<'_>) -> Option<Entrance> {
        if !self.protocols.contains(by) {
            return None;
        }
        if self.clients.is_empty() {
            return Some(Entrance { read_only: false, squash: None, is_listed: false });
        }
        let rule = self.clients.iter().find(|rule| rule.is_for(names, client))?;
        let ClientRule { read_only, squash, .. } = *rule;
        rule.lets_in(by, client.address).then_some(Entrance { read_only, squash, is_listed: true })
    }

    /// What a user may do; None: nothing. Without a user list and a default role, everybody is a contributor. Contributors may
    /// change permissions unless the rules give a role to do so to somebody: before there were roles, they always could.
    #[must_use]
    pub fn role(&self, names: &Names, identity: &Identity, proof: &Proof) -> Option<Role> {
        self.grant(names, identity, proof).map(|grant| grant.role)
    }

    /// The same, and what gives the role.
    #[must_use]
    pub fn grant(&self, names: &Names, identity: &Identity, proof: &Proof) -> Option<Grant<'_>> {
        if self.rights.is_empty() && self.default_role.is_none() {
            return Some(Grant { role: Role::Elevated, by: GrantedBy::NoList });
        }
        let listed = rights::listed(&self.rights, names, identity, proof);
        let listed = listed.map(|right| Grant { role: right.role, by: GrantedBy::Entry(&right.who) });
        let by_default = self.default_role.filter(|_| rights::is_known(names, identity, proof));
        let by_default = by_default.map(|role| Grant { role, by: GrantedBy::DefaultRole });
        let Grant { role, by } = match (listed, by_default) {
            (Some(listed), Some(default)) if default.role > listed.role => default,
            (Some(listed), _) => listed,
            (None, default) => default?,
        };
        match role {
            Role::Contributor if !self.names_who_changes_permissions() => {
                Some(Grant { role: Role::Elevated, by })
            }
            role => Some(Grant { role, by }),
        }
    }

    /// Whether somebody has a role that the others lack to change permissions.
    fn names_who_changes_permissions(&self) -> bool {
        let given = self.rights.iter().map(|right| right.role).chain(self.default_role);
        given.max().is_some_and(Role::changes_permissions)
    }

    /// Refuses lists whose users have at least their role anyway.
    ///
    /// # Errors
    /// The least of these roles.
    pub fn check_roles(&self) -> Result<(), WithoutEffect> {
        let Some(default) = self.default_role else { return Ok(()) };
        match self.rights.iter().map(|right| right.role).min() {
            Some(list) if list <= default => Err(WithoutEffect { list, default }),
            _ => Ok(()),
        }
    }

    /// Whether the rules are about the certificates of clients.
    #[must_use]
    pub fn name_certificates(&self) -> bool {
        self.clients.iter().any(|rule| matches!(rule.network, Network::Certificate(_)))
    }

    /// The names of machines that the rules mention.
    pub fn host_names(&self) -> impl Iterator<Item = &str> {
        self.clients.iter().filter_map(|rule| match &rule.network {
            Network::Host(name) => Some(name.as_str()),
            Network::Any | Network::Prefix { .. } | Network::Certificate(_) => None,
        })
    }
}

/// A name in the form in which names are compared: those that differ only in case are the same.
#[must_use]
pub fn folded_name(name: &str) -> String {
    name.chars().flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(clients: &[&str]) -> Rules {
        let clients = clients.iter().map(|rule| rule.parse().unwrap()).collect();
        Rules { clients, ..Rules::default() }
    }

    fn asked(rules: &Rules, by: Protocols, client: &str) -> Option<Entrance> {
        let client = SocketAddr::new(client.parse().unwrap(), 40_000);
        rules.entrance(&Names::default(), by, client.into())
    }

    #[test]
    fn without_a_list_everybody_comes() {
        let free = Some(Entrance { read_only: false, squash: None, is_listed: false });
        for by in [Protocols::SMB, Protocols::NFS] {
            assert_eq!(asked(&Rules::default(), by, "203.0.113.1"), free);
        }
    }

    #[test]
    fn the_first_rule_that_fits_counts_and_nobody_comes_without_one() {
        let rules = rules(&["192.0.2.7", "192.0.2.8 protocols=smb", "192.0.2.0/24 access=ro squash=all"]);
        let read_only = |by, client: &str| asked(&rules, by, client).map(|entrance| entrance.read_only);
        assert_eq!(read_only(Protocols::NFS, "192.0.2.7"), Some(false));
        assert_eq!(read_only(Protocols::NFS, "192.0.2.9"), Some(true));
        assert_eq!(read_only(Protocols::NFS, "::ffff:192.0.2.9"), Some(true));
        assert_eq!(read_only(Protocols::SMB, "192.0.3.9"), None);
        // The rule of its network does not let it in: no other one is asked.
        assert_eq!(read_only(Protocols::NFS, "192.0.2.8"), None);
        assert_eq!(read_only(Protocols::SMB, "192.0.2.8"), Some(false));
        let squash = asked(&rules, Protocols::NFS, "192.0.2.9").unwrap().squash;
        assert_eq!(squash, Some(Squash::All));
    }

    #[test]
    fn a_share_is_used_by_its_own_protocols_only() {
        let nfs = Rules { protocols: Protocols::NFS, ..rules(&["*"]) };
        assert_eq!(asked(&nfs, Protocols::SMB, "192.0.2.7"), None);
        assert!(asked(&nfs, Protocols::NFS, "192.0.2.7").is_some());
        for (text, protocols) in
            [("smb", Protocols::SMB), ("nfs", Protocols::NFS), ("smb, nfs", Protocols::all())]
        {
            assert_eq!(text.parse::<Protocols>().unwrap(), protocols);
        }
        assert!("".parse::<Protocols>().is_err() && "smb,,nfs".parse::<Protocols>().is_err());
    }

    #[test]
    fn a_privileged_port_is_demanded_of_nfs_alone() {
        let rules = rules(&["* secure-port"]);
        let from = |by, port| {
            let client = SocketAddr::from(([192, 0, 2, 7], port));
            rules.entrance(&Names::default(), by, client.into()).is_some()
        };
        assert!(from(Protocols::NFS, 1023) && !from(Protocols::NFS, 1024) && from(Protocols::SMB, 1024));
    }

    #[test]
    fn a_list_below_the_default_role_is_refused() {
        let check = |roles: &[Role], default_role| {
            let right = |&role| Right { who: "anna".parse().unwrap(), role };
            let rules = Rules { rights: roles.iter().map(right).collect(), default_role, ..Rules::default() };
            rules.check_roles().map_err(|refused| refused.to_string())
        };
        assert_eq!(check(&[Role::Reader, Role::Admin], None), Ok(()));
        assert_eq!(check(&[Role::Contributor, Role::Admin], Some(Role::Reader)), Ok(()));
        let refused = check(&[Role::Admin, Role::Contributor], Some(Role::Contributor)).unwrap_err();
        assert!(refused.contains("`write`") && refused.contains("the role contributor"), "{refused}");
        assert!(check(&[Role::Reader], Some(Role::Elevated)).unwrap_err().contains("`read`"));
    }

    #[test]
    fn the_names_that_must_be_resolved_are_told() {
        let rules = rules(&["*", "Alpha.example.org", "10.0.0.1", "cert:gamma.example.org", "beta"]);
        assert_eq!(rules.host_names().collect::<Vec<_>>(), ["alpha.example.org", "beta"]);
    }
}
