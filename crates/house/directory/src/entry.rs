//! Users and groups as a directory describes them.

use std::fmt::Write;

use acl::Sid;
use ldap3::{SearchEntry, ldap_escape};

/// What a search asks for.
pub(crate) const ATTRIBUTES: [&str; 3] = [SID, UID_NUMBER, GID_NUMBER];
const SID: &str = "objectSid";
/// RFC 2307 3.
const UID_NUMBER: &str = "uidNumber";
const GID_NUMBER: &str = "gidNumber";

/// A user or group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Who it is.
    pub sid: Sid,
    /// Where it is in the directory, for people.
    pub dn: String,
    /// `uidNumber`.
    pub uid: Option<u32>,
    /// `gidNumber`.
    pub gid: Option<u32>,
}

impl Entry {
    /// None: it has no SID.
    pub(crate) fn of(found: SearchEntry) -> Option<Self> {
        let number = |name| found.attrs.get(name).and_then(|values| values.first()?.parse().ok());
        let (uid, gid) = (number(UID_NUMBER), number(GID_NUMBER));
        Some(Self { sid: sid_of(&found)?, dn: found.dn, uid, gid })
    }
}

/// The SID of an entry.
pub(crate) fn sid_of(found: &SearchEntry) -> Option<Sid> {
    // A value that happens to be text is among the others.
    let binary = found.bin_attrs.get(SID).and_then(|values| values.first().map(Vec::as_slice));
    let text = found.attrs.get(SID).and_then(|values| values.first().map(String::as_bytes));
    Sid::decode(binary.or(text)?).ok()
}

/// The filter for entries with these SIDs. RFC 4515 3: a value is its bytes, each as a backslash and two digits.
pub(crate) fn filter(sids: &[Sid]) -> String {
    let mut filter = String::from("(|");
    for sid in sids {
        let mut bytes = Vec::new();
        sid.encode_into(&mut bytes);
        filter += "(objectSid=";
        for byte in bytes {
            let _ = write!(filter, "\\{byte:02x}"); // a string takes everything
        }
        filter.push(')');
    }
    filter.push(')');
    filter
}

/// The filter for the user or group of this name; `is_group`: a group alone.
pub(crate) fn filter_by_name(name: &str, is_group: bool) -> String {
    let class = if is_group { "(objectClass=group)" } else { "(|(objectClass=user)(objectClass=group))" };
    format!("(&(sAMAccountName={}){class}(objectSid=*))", ldap_escape(name))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn sid(text: &str) -> Sid {
        text.parse().unwrap()
    }

    /// As Samba 4.17 takes it; [MS-DTYP] 2.4.2.2: revision, count, authority, and the parts in little-endian.
    #[test]
    fn a_filter_has_all_sids_as_bytes() {
        assert_eq!(
            filter(&[sid("S-1-5-32-544"), sid("S-1-5-21-10")]),
            r"(|(objectSid=\01\02\00\00\00\00\00\05\20\00\00\00\20\02\00\00)(objectSid=\01\02\00\00\00\00\00\05\15\00\00\00\0a\00\00\00))"
        );
    }

    /// RFC 4515 3: what has a meaning in a filter is escaped.
    #[test]
    fn a_name_is_a_value_in_a_filter_and_nothing_else() {
        assert_eq!(
            filter_by_name("Domain Users", true),
            "(&(sAMAccountName=Domain Users)(objectClass=group)(objectSid=*))"
        );
        assert_eq!(
            filter_by_name("*)(uid=a\\", false),
            r"(&(sAMAccountName=\2a\29\28uid=a\5c)(|(objectClass=user)(objectClass=group))(objectSid=*))"
        );
    }

    #[test]
    fn numbers_that_are_none_are_left_out() {
        let mut bytes = Vec::new();
        sid("S-1-5-21-1-2-3-1104").encode_into(&mut bytes);
        let entry = |uid: &str, gid: Option<&str>| {
            let mut attrs = HashMap::from([("uidNumber".to_owned(), vec![uid.to_owned()])]);
            attrs.extend(gid.map(|gid| ("gidNumber".to_owned(), vec![gid.to_owned()])));
            let bin_attrs = HashMap::from([("objectSid".to_owned(), vec![bytes.clone()])]);
            Entry::of(SearchEntry { dn: "CN=alice".to_owned(), attrs, bin_attrs }).unwrap()
        };
        assert_eq!(
            (entry("10001", Some("10000")).uid, entry("10001", Some("10000")).gid),
            (Some(10_001), Some(10_000))
        );
        for bad in ["", "-1", "4294967296", "1e3", "0x10"] {
            assert_eq!((entry(bad, None).uid, entry("7", None).gid), (None, None), "{bad}");
        }
    }

    #[test]
    fn a_sid_that_is_text_by_chance_is_a_sid() {
        let mut bytes = Vec::new();
        sid("S-1-5-21-1-2-3-100").encode_into(&mut bytes);
        let text = String::from_utf8(bytes).unwrap();
        let attrs = HashMap::from([("objectSid".to_owned(), vec![text])]);
        let found = SearchEntry { dn: String::new(), attrs, bin_attrs: HashMap::new() };
        assert_eq!(Entry::of(found).unwrap().sid, sid("S-1-5-21-1-2-3-100"));
        let without = SearchEntry { dn: String::new(), attrs: HashMap::new(), bin_attrs: HashMap::new() };
        assert_eq!(Entry::of(without), None);
    }
}
