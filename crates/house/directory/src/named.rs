//! What users and groups are called.

use acl::Sid;
use ldap3::{SearchEntry, ldap_escape};

use crate::domain::Domain;
use crate::entry::sid_of;

/// What a search for names asks for.
pub(crate) const NAME_ATTRIBUTES: [&str; 3] = ["objectSid", NAME, TYPE];
/// The name behind the backslash. [MS-ADA3], attribute sAMAccountName.
const NAME: &str = "sAMAccountName";
/// What it is. [MS-ADA3], attribute sAMAccountType.
const TYPE: &str = "sAMAccountType";

/// A user or group with its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// Who it is.
    pub sid: Sid,
    /// The name before the backslash: the domain's NetBIOS name.
    pub domain: String,
    /// The name behind it.
    pub name: String,
    /// What it is.
    pub kind: Kind,
}

/// What has a name in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A user or a machine.
    User,
    /// A group of the domain or of all domains.
    Group,
    /// A local group of the domain.
    Alias,
}

impl Kind {
    /// By the value of sAMAccountType. [MS-SAMR] 2.2.1.9. Trusts and groups of applications are left out.
    fn of(account_type: u32) -> Option<Self> {
        const GROUP: u32 = 0x1000_0000;
        const NON_SECURITY_GROUP: u32 = 0x1000_0001;
        const ALIAS: u32 = 0x2000_0000;
        const NON_SECURITY_ALIAS: u32 = 0x2000_0001;
        const USER: u32 = 0x3000_0000;
        const MACHINE: u32 = 0x3000_0001;
        match account_type {
            USER | MACHINE => Some(Self::User),
            GROUP | NON_SECURITY_GROUP => Some(Self::Group),
            ALIAS | NON_SECURITY_ALIAS => Some(Self::Alias),
            _ => None,
        }
    }
}

impl Named {
    /// None: it is neither a user nor a group of the domain.
    pub(crate) fn of(found: &SearchEntry, domain: &Domain) -> Option<Self> {
        let text = |name| found.attrs.get(name).and_then(|values| values.first());
        let kind = Kind::of(text(TYPE)?.parse().ok()?)?;
        Some(Self { sid: sid_of(found)?, domain: domain.netbios.clone(), name: text(NAME)?.clone(), kind })
    }
}

/// The filter for the user or group with this name behind the backslash.
pub(crate) fn filter_of_account(name: &str) -> String {
    format!("(sAMAccountName={})", ldap_escape(name))
}

/// The filter for the user with this name (`alice@ad.lab.test`; [MS-ADA3], attribute userPrincipalName).
pub(crate) fn filter_of_principal(name: &str) -> String {
    format!("(userPrincipalName={})", ldap_escape(name))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn entry(attributes: &[(&str, &str)]) -> SearchEntry {
        let mut sid = Vec::new();
        "S-1-5-21-1-2-3-1104".parse::<Sid>().unwrap().encode_into(&mut sid);
        SearchEntry {
            dn: String::new(),
            attrs: attributes
                .iter()
                .map(|(name, value)| ((*name).to_owned(), vec![(*value).to_owned()]))
                .collect(),
            bin_attrs: HashMap::from([("objectSid".to_owned(), vec![sid])]),
        }
    }

    #[test]
    fn users_groups_and_local_groups_are_told_apart() {
        let domain = Domain { netbios: "ADLAB".to_owned(), dns: "ad.lab.test".to_owned() };
        let of = |account_type: &str| {
            let found = entry(&[("sAMAccountName", "it"), ("sAMAccountType", account_type)]);
            Named::of(&found, &domain).map(|named| named.kind)
        };
        assert_eq!((of("805306368"), of("805306369")), (Some(Kind::User), Some(Kind::User)));
        assert_eq!((of("268435456"), of("536870912")), (Some(Kind::Group), Some(Kind::Alias)));
        // A trust between domains, and what is no number.
        assert_eq!((of("805306370"), of("-1"), of("")), (None, None, None));
        assert_eq!(Named::of(&entry(&[("sAMAccountType", "805306368")]), &domain), None, "no name");
    }

    /// RFC 4515 3: what has a meaning in a filter is escaped.
    #[test]
    fn names_are_values_in_a_filter_and_nothing_else() {
        assert_eq!(filter_of_account("a*"), r"(sAMAccountName=a\2a)");
        assert_eq!(filter_of_principal("alice)@x"), r"(userPrincipalName=alice\29@x)");
    }
}
