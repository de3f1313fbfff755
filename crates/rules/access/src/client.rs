//! What the clients of a network may do: one entry of a share's client list.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use crate::{Names, Network, Peer, Protocols};

/// Ports that a system reserves for privileged programs.
const SECURE_PORTS: std::ops::Range<u16> = 1..1024;

/// Users whose stated identity is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Squash {
    /// None: every stated identity is accepted.
    None,
    /// The superuser.
    Root,
    /// All users.
    All,
}

/// What the clients of a network may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientRule {
    /// The addresses of the clients.
    pub network: Network,
    /// Whether changes are refused.
    pub read_only: bool,
    /// Users whose stated identity is not accepted; None: the server's default. Only NFS uses stated identities.
    pub squash: Option<Squash>,
    /// The protocols that the clients may use.
    pub protocols: Protocols,
    /// Whether NFS clients must use privileged ports.
    pub secure_port: bool,
}

impl ClientRule {
    /// The defaults for a network: reading and writing by all protocols.
    #[must_use]
    pub fn of(network: Network) -> Self {
        Self { network, read_only: false, squash: None, protocols: Protocols::all(), secure_port: false }
    }

    /// Whether the rule applies to a client.
    pub(super) fn is_for(&self, names: &Names, client: Peer<'_>) -> bool {
        self.network.contains(names, client)
    }

    /// Whether the rule admits such a client by this protocol.
    pub(super) fn lets_in(&self, by: Protocols, client: SocketAddr) -> bool {
        self.protocols.contains(by) && !(self.secure_port && by.shows_ports() && !is_privileged(client))
    }
}

/// Whether only a privileged process can have sent from this port (IPPORT_RESERVED).
#[must_use]
pub fn is_privileged(client: SocketAddr) -> bool {
    SECURE_PORTS.contains(&client.port())
}

/// `NETWORK [access=rw|ro] [squash=none|root|all] [protocols=smb,nfs] [secure-port]`
impl FromStr for ClientRule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        let network = words.next().unwrap_or_default().parse().map_err(|e| format!("{e}"))?;
        let mut rule = Self::of(network);
        for word in words {
            match word.split_once('=').unwrap_or((word, "true")) {
                ("access", access) => rule.read_only = is_read_only(access)?,
                ("squash", squash) => rule.squash = Some(squash.parse()?),
                ("protocols", protocols) => rule.protocols = protocols.parse()?,
                ("secure-port", "true") => rule.secure_port = true,
                ("secure-port", "false") => rule.secure_port = false,
                _ => {
                    return Err(format!(
                        "{word:?} is none of access=rw|ro, squash=none|root|all, protocols=smb,nfs and secure-port"
                    ));
                }
            }
        }
        Ok(rule)
    }
}

/// Whether this value of `access` means read-only.
fn is_read_only(access: &str) -> Result<bool, String> {
    match access {
        "rw" => Ok(false),
        "ro" => Ok(true),
        _ => Err(format!("{access:?} is not a kind of access: expected rw or ro")),
    }
}

impl FromStr for Squash {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self::None),
            "root" => Ok(Self::Root),
            "all" => Ok(Self::All),
            _ => Err(format!("{text:?} says not who is squashed: expected none, root or all")),
        }
    }
}

impl fmt::Display for Squash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Root => "root",
            Self::All => "all",
        })
    }
}

impl fmt::Display for ClientRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { network, read_only, squash, protocols, secure_port } = self;
        write!(f, "{network} access={}", if *read_only { "ro" } else { "rw" })?;
        if let Some(squash) = squash {
            write!(f, " squash={squash}")?;
        }
        if *protocols != Protocols::all() {
            write!(f, " protocols={protocols}")?;
        }
        if *secure_port { f.write_str(" secure-port") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_written_the_same() {
        for text in [
            "* access=rw",
            "10.0.0.0/8 access=ro squash=all",
            "host access=rw squash=none protocols=nfs secure-port",
            "2001:db8::/32 access=rw squash=root protocols=smb",
            "cert:*.lab.test access=ro",
        ] {
            assert_eq!(text.parse::<ClientRule>().unwrap().to_string(), text);
        }
        let short: ClientRule = "10.0.0.1 secure-port=false protocols=smb,nfs".parse().unwrap();
        assert_eq!(short, ClientRule::of("10.0.0.1".parse().unwrap()));
    }

    #[test]
    fn what_is_no_rule_is_refused_with_its_word() {
        for (text, why) in [
            ("", "no network"),
            ("10.0.0.0/40", "10.0.0.0/40"),
            ("* access=all", "rw or ro"),
            ("* squash=some", "none, root or all"),
            ("* protocols=ftp", "ftp"),
            ("* secure-port=maybe", "secure-port"),
            ("* rw", "access=rw|ro"),
        ] {
            let refused = text.parse::<ClientRule>().unwrap_err();
            assert!(refused.contains(why), "{text}: {refused}");
        }
    }
}
