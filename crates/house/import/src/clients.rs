//! Client lists: the first rule whose network holds a client's address decides, as in `[[share.client]]`.

use access::Network;

/// Rules of a client list at most (`access::CLIENT_RULES_MAX`).
pub(crate) const RULES_MAX: usize = access::CLIENT_RULES_MAX;

/// What the clients of a network may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClientRule {
    pub(crate) network: Network,
    /// None: they are refused.
    pub(crate) admitted: Option<Admitted>,
}

/// How a client is admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Admitted {
    pub(crate) read_only: bool,
    /// Only NFS: the users that become nobody.
    pub(crate) squash: Option<access::Squash>,
    /// Only NFS.
    pub(crate) secure_port: bool,
}

impl Admitted {
    /// Reading and writing, as SMB users.
    pub(crate) const FREELY: Self = Self { read_only: false, squash: None, secure_port: false };

    /// What both allow.
    pub(crate) fn and(self, other: Self) -> Self {
        let strength = |squash| match squash {
            None | Some(access::Squash::None) => 0,
            Some(access::Squash::Root) => 1,
            Some(access::Squash::All) => 2,
        };
        let squash = if strength(self.squash) >= strength(other.squash) { self.squash } else { other.squash };
        Self {
            read_only: self.read_only || other.read_only,
            squash,
            secure_port: self.secure_port || other.secure_port,
        }
    }
}

/// The rules that admit a client if both lists do. Clients without a rule are refused. For any client, the first pair of rules
/// that both hold it is the pair of the rules that decide in each list.
///
/// # Errors
/// A machine is known by name in one list only: whether its addresses are in a network of the other is not known here.
pub(crate) fn both(one: &[ClientRule], other: &[ClientRule]) -> Result<Vec<ClientRule>, String> {
    let mut rules = Vec::new();
    for a in one {
        for b in other {
            let Some(network) = intersection(&a.network, &b.network)? else { continue };
            let admitted = a.admitted.zip(b.admitted).map(|(a, b)| a.and(b));
            rules.push(ClientRule { network, admitted });
        }
    }
    Ok(rules)
}

/// The addresses that are in both networks; None: there are none.
fn intersection(one: &Network, other: &Network) -> Result<Option<Network>, String> {
    match (one, other) {
        (Network::Any, network) | (network, Network::Any) => Ok(Some(network.clone())),
        (Network::Prefix { address: a, bits: m }, Network::Prefix { address: b, bits: n }) => {
            let (wide, narrow, inner) = if m <= n { (one, other, b) } else { (other, one, a) };
            let is_inside = wide.contains(&access::Names::default(), (*inner).into());
            Ok(is_inside.then(|| narrow.clone()))
        }
        (Network::Host(a), Network::Host(b)) if a == b => Ok(Some(one.clone())),
        (name @ (Network::Host(_) | Network::Certificate(_)), _)
        | (_, name @ (Network::Host(_) | Network::Certificate(_))) => {
            Err(format!("the lists of the share and of [global] cannot be combined: {name} is a name"))
        }
    }
}

/// A network as Samba and exports(5) write it: an address with or without `/` and a length or a mask.
pub(crate) fn network(text: &str) -> Option<Network> {
    let Some((address, mask)) = text.split_once('/') else { return text.parse().ok() };
    let address = address.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(address);
    let bits = match mask.parse::<std::net::Ipv4Addr>() {
        Ok(mask) => mask_length(mask)?,
        Err(_) => mask.parse().ok()?,
    };
    format!("{address}/{bits}").parse().ok().filter(|network| matches!(network, Network::Prefix { .. }))
}

/// The length of a mask whose ones come first.
fn mask_length(mask: std::net::Ipv4Addr) -> Option<u32> {
    let ones = mask.to_bits().leading_ones();
    (mask.to_bits().count_ones() == ones).then_some(ones)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(network: &str, admits: bool) -> ClientRule {
        ClientRule { network: network.parse().unwrap(), admitted: admits.then_some(Admitted::FREELY) }
    }

    #[test]
    fn a_client_is_admitted_that_both_lists_admit() {
        let one = [rule("10.0.0.5", false), rule("10.0.0.0/8", true), rule("*", false)];
        let other = [rule("10.0.0.0/24", true), rule("10.1.0.0/16", false), rule("*", true)];
        let rules = both(&one, &other).unwrap();
        let admits = |list: &[ClientRule], client: &str| {
            let client = client.parse::<std::net::IpAddr>().unwrap().into();
            let first = list.iter().find(|rule| rule.network.contains(&access::Names::default(), client));
            first.is_some_and(|rule| rule.admitted.is_some())
        };
        for client in ["10.0.0.5", "10.0.0.6", "10.0.1.6", "10.1.2.3", "10.2.0.1", "192.0.2.1"] {
            let expected = admits(&one, client) && admits(&other, client);
            assert_eq!(admits(&rules, client), expected, "{client}");
        }
        assert!(both(&[rule("build", true)], &one).is_err());
        assert_eq!(both(&[rule("build", true)], &[rule("*", true)]).unwrap(), [rule("build", true)]);
    }

    #[test]
    fn networks_have_lengths_or_masks() {
        for (text, expected) in [
            ("10.0.0.0/8", Some("10.0.0.0/8")),
            ("10.0.0.0/255.0.0.0", Some("10.0.0.0/8")),
            ("10.0.0.0/255.0.255.0", None),
            ("10.0.0.0/33", None),
            ("[2001:db8::]/32", Some("2001:db8::/32")),
            ("2001:db8::/32", Some("2001:db8::/32")),
            ("192.0.2.7", Some("192.0.2.7")),
            ("host", Some("host")),
            ("host/24", None),
            ("a*", None),
            ("@group", None),
        ] {
            assert_eq!(network(text).map(|network| network.to_string()).as_deref(), expected, "{text}");
        }
    }
}
