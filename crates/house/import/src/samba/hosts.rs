//! `hosts allow` and `hosts deny`, as `lib/util/access.c` reads them.

use access::Network;

use crate::clients::{self, Admitted, ClientRule, RULES_MAX};

/// The clients that are always admitted unless a list denies them.
const LOOPBACK: [&str; 2] = ["127.0.0.1", "::1"];

/// What came of an `allow` and a `deny` list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Hosts {
    /// None: every client is admitted.
    pub(super) rules: Option<Vec<ClientRule>>,
    /// Entries that admitted clients and are left out, with the reason.
    pub(super) left_out: Vec<(String, &'static str)>,
}

/// A list: what matches it, without the exceptions.
struct List {
    networks: Vec<Network>,
    exceptions: Vec<Network>,
    left_out: Vec<(String, &'static str)>,
    exceptions_left_out: Vec<(String, &'static str)>,
}

const NAME: &str = "Samba looks no names up, so the entry admits nobody there (hostname lookups = no)";
const DOMAIN: &str = "domains cannot be in client lists";
const NETGROUP: &str = "netgroups cannot be in client lists";
const PATTERN: &str = "patterns cannot be in client lists";
const MASK: &str = "it is no network";

/// The network that an entry stands for.
fn network(entry: &str, looks_up_names: bool) -> Result<Network, &'static str> {
    let upper = entry.to_ascii_uppercase();
    let entry = if upper.starts_with("::FFFF:") { entry.get(7..).unwrap_or(entry) } else { entry };
    if matches!(upper.as_str(), "ALL" | "FAIL" | "*") {
        return Ok(Network::Any);
    }
    if entry.starts_with('.') || upper == "LOCAL" {
        return Err(DOMAIN);
    }
    if entry.starts_with('@') {
        return Err(NETGROUP);
    }
    if let Some(start) = entry.strip_suffix(".*").or_else(|| entry.strip_suffix('.')) {
        return numbers(start).ok_or(PATTERN);
    }
    if entry.contains(['*', '?']) {
        return Err(PATTERN);
    }
    match clients::network(entry) {
        Some(Network::Host(_)) if !looks_up_names => Err(NAME),
        Some(network) => Ok(network),
        None => Err(MASK),
    }
}

/// The first numbers of an IPv4 address: `150.203`.
fn numbers(start: &str) -> Option<Network> {
    let numbers = start.split('.').map(|number| number.parse::<u8>().ok()).collect::<Option<Vec<_>>>()?;
    let missing = 4_usize.checked_sub(numbers.len()).filter(|missing| *missing > 0)?;
    let bits = numbers.len().saturating_mul(8);
    format!("{start}{}/{bits}", ".0".repeat(missing)).parse().ok()
}

impl List {
    fn new(entries: &[String], looks_up_names: bool) -> Self {
        let mut list = Self {
            networks: Vec::new(),
            exceptions: Vec::new(),
            left_out: Vec::new(),
            exceptions_left_out: Vec::new(),
        };
        let mut is_exception = false;
        for entry in entries {
            if entry.eq_ignore_ascii_case("EXCEPT") {
                is_exception = true;
                continue;
            }
            match (network(entry, looks_up_names), is_exception) {
                (Ok(network), false) => list.networks.push(network),
                (Ok(network), true) => list.exceptions.push(network),
                (Err(why), false) => list.left_out.push((entry.clone(), why)),
                (Err(why), true) => list.exceptions_left_out.push((entry.clone(), why)),
            }
        }
        list
    }
}

/// The client list that admits whom the two lists admit, or fewer.
///
/// # Errors
/// Clients that are denied cannot be named in a client list.
pub(super) fn hosts(allow: &[String], deny: &[String], looks_up_names: bool) -> Result<Hosts, String> {
    if allow.is_empty() && deny.is_empty() {
        return Ok(Hosts::default());
    }
    let (a, d) = (List::new(allow, looks_up_names), List::new(deny, looks_up_names));
    let denied = [("hosts allow", &a.exceptions_left_out), ("hosts deny", &d.left_out)];
    for (list, entries) in denied {
        if let Some((entry, why)) = entries.first() {
            return Err(format!("{list} refuses {entry}, and {why}"));
        }
    }
    let admit = |network: &Network| ClientRule { network: network.clone(), admitted: Some(Admitted::FREELY) };
    let refuse = |network: &Network| ClientRule { network: network.clone(), admitted: None };
    let mut rules: Vec<ClientRule> = Vec::new();
    if deny.is_empty() {
        rules.extend(
            LOOPBACK.iter().filter_map(|address| address.parse().ok()).map(|address| admit(&address)),
        );
    }
    rules.extend(a.exceptions.iter().map(refuse));
    rules.extend(a.networks.iter().map(admit));
    if !deny.is_empty() {
        // Clients that neither list names are admitted; so are those that both name.
        rules.extend(d.exceptions.iter().map(admit));
        rules.extend(d.networks.iter().map(refuse));
        rules.push(admit(&Network::Any));
    }
    let mut left_out = [a.left_out, d.exceptions_left_out].concat();
    if deny.is_empty() {
        left_out.retain(|(entry, _)| !entry.eq_ignore_ascii_case("localhost"));
    }
    Ok(Hosts { rules: Some(shortened(rules)), left_out })
}

/// Without rules that never decide.
fn shortened(mut rules: Vec<ClientRule>) -> Vec<ClientRule> {
    if let Some(everybody) = rules.iter().position(|rule| rule.network == Network::Any) {
        rules.truncate(everybody.saturating_add(1));
    }
    while rules.len() > 1 && rules.last().is_some_and(|rule| rule.admitted.is_none()) {
        rules.pop();
    }
    let mut known = Vec::new();
    rules.retain(|rule| {
        let is_new = !known.contains(&rule.network);
        known.push(rule.network.clone());
        is_new
    });
    rules
}

/// What both the lists of `[global]` and those of a share admit.
///
/// # Errors
/// The two cannot be combined.
pub(super) fn both(global: Hosts, share: Hosts) -> Result<Hosts, String> {
    if global == share {
        return Ok(share);
    }
    let rules = match (global.rules, share.rules) {
        (None, rules) | (rules, None) => rules,
        (Some(global), Some(share)) => Some(shortened(clients::both(&global, &share)?)),
    };
    // An empty list would admit everybody.
    let rules = rules.map(|rules| match rules.is_empty() {
        true => vec![ClientRule { network: Network::Any, admitted: None }],
        false => rules,
    });
    if rules.as_ref().is_some_and(|rules| rules.len() > RULES_MAX) {
        return Err(format!("its client list would have more than {RULES_MAX} entries"));
    }
    let mut left_out = global.left_out;
    left_out.extend(share.left_out);
    Ok(Hosts { rules, left_out })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samba::value;

    fn of(allow: &str, deny: &str) -> Result<Hosts, String> {
        hosts(&value::list(allow), &value::list(deny), false)
    }

    fn admits(hosts: &Hosts, client: &str) -> bool {
        let client = client.parse::<std::net::IpAddr>().unwrap().into();
        let Some(rules) = &hosts.rules else { return true };
        let first = rules.iter().find(|rule| rule.network.contains(&access::Names::default(), client));
        first.is_some_and(|rule| rule.admitted.is_some())
    }

    #[test]
    fn lists_admit_whom_samba_admits() {
        for (allow, deny, admitted, refused) in [
            ("", "", "192.0.2.1 10.0.0.1", ""),
            ("150.203. EXCEPT 150.203.6.66", "", "150.203.1.1 127.0.0.1 ::1", "150.203.6.66 10.0.0.1"),
            ("150.203.15.0/255.255.255.0", "", "150.203.15.7", "150.203.16.7"),
            ("", "150.203.4. 10.0.0.1", "150.203.5.1 10.0.0.2", "150.203.4.9 10.0.0.1"),
            ("10.0.0.0/8", "ALL", "10.1.2.3", "127.0.0.1 192.0.2.1"),
            ("10.0.0.0/8", "10.0.0.1 192.0.2.", "10.0.0.1 203.0.113.1", "192.0.2.1"),
            ("", "ALL EXCEPT 10.", "10.0.0.1", "192.0.2.1 127.0.0.1"),
            ("192.168.1.* [2001:db8::]/32", "", "192.168.1.9 2001:db8::1", "192.168.2.9 2001:db9::1"),
            ("ALL", "", "192.0.2.1", ""),
            ("10. EXCEPT ALL", "", "127.0.0.1", "10.0.0.1"),
            ("", "0.0.0.0/0", "2001:db8::1", "192.0.2.1"),
            ("@group", "", "127.0.0.1", "192.0.2.1"),
        ] {
            let hosts = of(allow, deny).unwrap();
            for client in admitted.split_whitespace() {
                assert!(admits(&hosts, client), "{allow} / {deny}: {client}: {hosts:?}");
            }
            for client in refused.split_whitespace() {
                assert!(!admits(&hosts, client), "{allow} / {deny}: {client}: {hosts:?}");
            }
        }
    }

    #[test]
    fn what_admits_may_be_left_out_and_what_refuses_may_not() {
        let left = of("@group .example.org lapland 10.0.0.1", "").unwrap();
        assert_eq!(left.left_out.len(), 3);
        assert!(hosts(&["lapland".to_owned()], &[], true).unwrap().left_out.is_empty());
        for (allow, deny) in
            [("", "@group"), ("", "pirate"), ("ALL EXCEPT *.example.org", ""), ("", ".example.org")]
        {
            assert!(of(allow, deny).unwrap_err().contains("refuses"), "{allow} / {deny}");
        }
    }

    #[test]
    fn the_lists_of_global_and_of_a_share_both_count() {
        let both = |global: (&str, &str), share: (&str, &str)| {
            both(of(global.0, global.1).unwrap(), of(share.0, share.1).unwrap())
        };
        let list = both(("10.", ""), ("", "10.0.0.0/24")).unwrap();
        assert!(admits(&list, "10.0.1.1") && !admits(&list, "10.0.0.1") && !admits(&list, "192.0.2.1"));
        let nobody = both(("10.", "ALL"), ("192.0.2.1", "ALL")).unwrap();
        assert!(!admits(&nobody, "10.0.0.1") && !admits(&nobody, "192.0.2.1"), "{nobody:?}");
    }

    /// `allow_access_internal` of Samba, for lists of addresses.
    fn samba_admits(allow: &[String], deny: &[String], client: &str) -> bool {
        let is_in = |entry: &String| {
            let network = network(entry, false);
            network.is_ok_and(|network| {
                network
                    .contains(&access::Names::default(), client.parse::<std::net::IpAddr>().unwrap().into())
            })
        };
        let matches = |list: &[String]| {
            let at = list.iter().position(|entry| entry == "EXCEPT").unwrap_or(list.len());
            list[..at].iter().any(is_in) && !list[at..].iter().any(is_in)
        };
        if matches!(client, "127.0.0.1" | "::1") {
            return !matches(deny) || matches(allow);
        }
        match (allow.is_empty(), deny.is_empty()) {
            (true, true) => true,
            (false, true) => matches(allow),
            (true, false) => !matches(deny),
            (false, false) => matches(allow) || !matches(deny),
        }
    }

    fn any_list() -> impl proptest::strategy::Strategy<Value = Vec<String>> {
        const ENTRIES: &[&str] = &[
            "ALL",
            "EXCEPT",
            "10.",
            "10.0.0.0/24",
            "10.0.0.1",
            "192.168.",
            "127.0.0.1",
            "::1",
            "2001:db8::/32",
            "0.0.0.0/0",
        ];
        proptest::collection::vec(proptest::sample::select(ENTRIES).prop_map(str::to_owned), 0..6)
    }

    use proptest::strategy::Strategy as _;

    proptest::proptest! {
        #[test]
        fn nobody_is_admitted_whom_samba_refuses(a in any_list(), b in any_list(), c in any_list(), d in any_list()) {
            let lists = [&a, &b, &c, &d];
            let hosts = both(hosts(&a, &b, false).unwrap(), hosts(&c, &d, false).unwrap()).unwrap();
            for client in ["10.0.0.1", "10.0.0.2", "10.9.0.1", "192.168.0.1", "203.0.113.1", "127.0.0.1", "::1", "2001:db8::1", "2001:db9::1"] {
                let samba = samba_admits(&a, &b, client) && samba_admits(&c, &d, client);
                proptest::prop_assert!(samba || !admits(&hosts, client), "{:?} {}: {:?}", lists, client, hosts);
            }
        }
    }
}
