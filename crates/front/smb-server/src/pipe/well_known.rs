//! SIDs that mean the same on every server. [MS-DTYP] 2.4.2.4.

use acl::Sid;
use smb_wire::lsarpc::SidKind;

use crate::directory::Known;

const NT_AUTHORITY: &str = "NT AUTHORITY";
const BUILTIN: &str = "BUILTIN";

/// SIDs, their domains, their names, and what they are.
const ALL: [(Sid, &str, &str, SidKind); 15] = [
    (Sid::EVERYONE, "", "Everyone", SidKind::WellKnownGroup),
    (Sid::CREATOR_OWNER, "", "CREATOR OWNER", SidKind::WellKnownGroup),
    (Sid::CREATOR_GROUP, "", "CREATOR GROUP", SidKind::WellKnownGroup),
    (Sid::OWNER_RIGHTS, "", "OWNER RIGHTS", SidKind::WellKnownGroup),
    (Sid::DIALUP, NT_AUTHORITY, "DIALUP", SidKind::WellKnownGroup),
    (Sid::NETWORK, NT_AUTHORITY, "NETWORK", SidKind::WellKnownGroup),
    (Sid::BATCH, NT_AUTHORITY, "BATCH", SidKind::WellKnownGroup),
    (Sid::INTERACTIVE, NT_AUTHORITY, "INTERACTIVE", SidKind::WellKnownGroup),
    (Sid::SERVICE, NT_AUTHORITY, "SERVICE", SidKind::WellKnownGroup),
    (Sid::ANONYMOUS, NT_AUTHORITY, "ANONYMOUS LOGON", SidKind::WellKnownGroup),
    (Sid::AUTHENTICATED_USERS, NT_AUTHORITY, "Authenticated Users", SidKind::WellKnownGroup),
    (Sid::LOCAL_SYSTEM, NT_AUTHORITY, "SYSTEM", SidKind::WellKnownGroup),
    (Sid::ADMINISTRATORS, BUILTIN, "Administrators", SidKind::Alias),
    (Sid::USERS, BUILTIN, "Users", SidKind::Alias),
    (Sid::GUESTS, BUILTIN, "Guests", SidKind::Alias),
];

fn known((sid, domain, name, kind): (Sid, &str, &str, SidKind)) -> Known {
    Known { sid, kind, domain: domain.to_owned(), name: name.to_owned() }
}

/// What this SID stands for, if it is well known.
pub(super) fn of_sid(sid: &Sid) -> Option<Known> {
    ALL.iter().find(|(known, ..)| known == sid).copied().map(known)
}

/// What this name stands for, if it is well known: with its domain or without.
pub(super) fn of_name(name: &str) -> Option<Known> {
    let (domain, name) = name.split_once('\\').map_or((None, name), |(domain, name)| (Some(domain), name));
    let is = |(_, its_domain, its_name, _): &&(Sid, &str, &str, SidKind)| {
        its_name.eq_ignore_ascii_case(name)
            && domain.is_none_or(|domain| domain.eq_ignore_ascii_case(its_domain))
    };
    ALL.iter().find(is).copied().map(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_sids_are_found_from_each_other() {
        for (sid, domain, name, _) in ALL {
            let of_sid = of_sid(&sid).unwrap();
            assert_eq!((of_sid.domain.as_str(), of_sid.name.as_str()), (domain, name));
            assert_eq!(of_name(name), Some(of_sid.clone()));
            assert_eq!(of_name(&format!(r"{domain}\{name}")), Some(of_sid));
        }
        assert_eq!(of_name("everyone").unwrap().sid, Sid::EVERYONE);
        assert_eq!(of_name(r"builtin\ADMINISTRATORS").unwrap().sid, Sid::ADMINISTRATORS);
        assert_eq!((of_name(r"NT AUTHORITY\Everyone"), of_name("Nobody")), (None, None));
        assert_eq!(of_sid(&Sid::of_user(0)), None);
    }
}
