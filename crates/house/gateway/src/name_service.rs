//! The system's name service: DNS, `/etc/hosts`, `/etc/passwd` and `/etc/group`, and directory services, as configured by
//! nsswitch.conf(5).

use std::ffi::CString;
use std::io;
use std::net::{IpAddr, ToSocketAddrs};

use nix::unistd;
use share::{DomainName, Group, InDomain, folded_name};

/// The answer of the name service about a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NameAnswer<T> {
    /// The meaning of the name.
    Known(T),
    /// There is no such name.
    Unknown,
    /// The name service cannot answer, for this reason.
    Unavailable(String),
}

impl<T> NameAnswer<T> {
    /// The answer about something that the meaning leads to.
    pub(crate) fn map<U>(self, lead: impl FnOnce(T) -> U) -> NameAnswer<U> {
        match self {
            Self::Known(meaning) => NameAnswer::Known(lead(meaning)),
            Self::Unknown => NameAnswer::Unknown,
            Self::Unavailable(why) => NameAnswer::Unavailable(why),
        }
    }
}

/// An answer of the functions that ask the name service.
impl<T> From<nix::Result<Option<T>>> for NameAnswer<T> {
    fn from(found: nix::Result<Option<T>>) -> Self {
        match found {
            Ok(Some(found)) => Self::Known(found),
            Ok(None) => Self::Unknown,
            Err(error) => Self::Unavailable(error.to_string()),
        }
    }
}

/// Looks names up, which may take long.
pub(crate) trait NameService: Send {
    /// The addresses of a machine, in the form of their family, in order and without duplicates.
    fn host(&self, name: &str) -> NameAnswer<Vec<IpAddr>>;
    /// A group of users.
    fn group(&self, name: &str) -> NameAnswer<Group>;
    /// A user or a group of a domain that the name service asks (winbind, SSSD).
    fn in_domain(&self, name: &DomainName) -> NameAnswer<InDomain>;
}

/// A user of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SystemUser {
    pub(crate) uid: u32,
    /// The primary group.
    pub(crate) gid: u32,
    /// The groups that the user belongs to besides the primary one.
    pub(crate) groups: Vec<u32>,
}

/// A user of this machine, or of a directory service that it asks. The answer may take long: not to be called on a
/// thread that serves connections. getpwnam(3), getgrouplist(3).
pub(crate) fn user(name: &str) -> NameAnswer<SystemUser> {
    match found(name) {
        NameAnswer::Known(user) => with_groups(&user.name, &user),
        NameAnswer::Unknown => NameAnswer::Unknown,
        NameAnswer::Unavailable(why) => NameAnswer::Unavailable(why),
    }
}

/// The same for a name with a domain. The groups are those of the name that the name service prefers (its groups
/// may be known by no other), if that has a domain: without one, it could be that of another user of this machine,
/// with other groups.
pub(crate) fn user_called(name: &str) -> NameAnswer<SystemUser> {
    match found(name) {
        NameAnswer::Known(user) if has_domain(&user.name) => with_groups(&user.name, &user),
        NameAnswer::Known(user) => with_groups(name, &user),
        NameAnswer::Unknown => NameAnswer::Unknown,
        NameAnswer::Unavailable(why) => NameAnswer::Unavailable(why),
    }
}

/// Whether a name has a domain in it, between which and the user winbind and SSSD put one of these.
fn has_domain(name: &str) -> bool {
    name.contains(['\\', '@', '+'])
}

fn found(name: &str) -> NameAnswer<unistd::User> {
    unistd::User::from_name(name).into()
}

fn with_groups(name: &str, user: &unistd::User) -> NameAnswer<SystemUser> {
    let Ok(c_name) = CString::new(name) else { return NameAnswer::Unknown };
    match unistd::getgrouplist(&c_name, user.gid) {
        Ok(of_user) => {
            let further = of_user.into_iter().filter(|gid| *gid != user.gid);
            let groups = further.map(unistd::Gid::as_raw).collect();
            NameAnswer::Known(SystemUser { uid: user.uid.as_raw(), gid: user.gid.as_raw(), groups })
        }
        Err(error) => NameAnswer::Unavailable(error.to_string()),
    }
}

/// The user with this uid, and the user's groups. The answer may take long. getpwuid(3), getgrouplist(3).
pub(crate) fn user_of(uid: u32) -> NameAnswer<SystemUser> {
    match user_name(uid) {
        NameAnswer::Known(name) => user(&name),
        NameAnswer::Unknown => NameAnswer::Unknown,
        NameAnswer::Unavailable(why) => NameAnswer::Unavailable(why),
    }
}

/// The name of the user with this uid. The answer may take long. getpwuid(3).
pub(crate) fn user_name(uid: u32) -> NameAnswer<String> {
    NameAnswer::from(unistd::User::from_uid(uid.into())).map(|user| user.name)
}

/// The name of the group with this gid. The answer may take long. getgrgid(3).
pub(crate) fn group_name(gid: u32) -> NameAnswer<String> {
    NameAnswer::from(unistd::Group::from_gid(gid.into())).map(|group| group.name)
}

/// The uid of a user. The answer may take long. getpwnam(3).
pub(crate) fn uid_of(name: &str) -> NameAnswer<u32> {
    NameAnswer::from(unistd::User::from_name(name)).map(|user| user.uid.as_raw())
}

/// The gid of a group. The answer may take long. getgrnam(3).
pub(crate) fn gid_of(name: &str) -> NameAnswer<u32> {
    NameAnswer::from(unistd::Group::from_name(name)).map(|group| group.gid.as_raw())
}

/// The name service of this machine.
#[derive(Debug)]
pub(crate) struct System;

impl NameService for System {
    fn host(&self, name: &str) -> NameAnswer<Vec<IpAddr>> {
        match (name, 0).to_socket_addrs() {
            Ok(found) => {
                let mut addresses: Vec<IpAddr> = found.map(|address| address.ip().to_canonical()).collect();
                addresses.sort_unstable();
                addresses.dedup();
                if addresses.is_empty() { NameAnswer::Unknown } else { NameAnswer::Known(addresses) }
            }
            Err(error) if is_unknown(&error) => NameAnswer::Unknown,
            Err(error) => NameAnswer::Unavailable(error.to_string()),
        }
    }

    fn group(&self, name: &str) -> NameAnswer<Group> {
        match unistd::Group::from_name(name) {
            Ok(Some(found)) => {
                let members = found.mem.iter().map(|member| folded_name(member)).collect();
                NameAnswer::Known(Group { gid: found.gid.as_raw(), members })
            }
            Ok(None) => NameAnswer::Unknown,
            // getgrnam_r(3) of glibc fails only if the last service that it asked could not answer.
            Err(error) => NameAnswer::Unavailable(error.to_string()),
        }
    }

    fn in_domain(&self, name: &DomainName) -> NameAnswer<InDomain> {
        let plain = name.plain();
        match gid_of(&plain) {
            NameAnswer::Unknown if !name.is_group => uid_of(&plain).map(InDomain::Uid),
            group => group.map(InDomain::Gid),
        }
    }
}

/// Whether the error says that the name, or an address of it, does not exist: EAI_NONAME and EAI_NODATA of
/// getaddrinfo(3). The standard library keeps only the text of the error, which is that of gai_strerror(3) of glibc or
/// of musl. All other errors, and unknown texts, count as no answer.
fn is_unknown(error: &io::Error) -> bool {
    const DEFINITE: [&str; 4] = [
        "Name or service not known",
        "No address associated with hostname",
        "Name does not resolve",
        "Name has no usable address",
    ];
    let text = error.to_string();
    DEFINITE.iter().any(|definite| text.ends_with(definite))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_knows_itself_and_nobody_of_a_name_that_cannot_be() {
        let here: IpAddr = [127, 0, 0, 1].into();
        assert!(
            matches!(System.host("localhost"), NameAnswer::Known(addresses) if addresses.contains(&here))
        );
        assert_eq!(System.group("root"), NameAnswer::Known(Group { gid: 0, members: Vec::new() }));
        assert_eq!(System.group("nobody knows this one"), NameAnswer::Unknown);
    }

    #[test]
    fn a_name_with_a_domain_is_told_from_one_of_this_machine() {
        assert!([r"AD\alice", "alice@ad.test", "AD+alice"].map(has_domain).iter().all(|has| *has));
        assert!(!has_domain("alice") && !has_domain(""));
        assert_eq!(user_called("root").map(|user| user.uid), NameAnswer::Known(0));
    }

    #[test]
    fn no_answer_is_told_from_no_such_name() {
        // gai_strerror(3) of glibc 2.36, after the prefix of the standard library.
        let says =
            |text| is_unknown(&io::Error::other(format!("failed to lookup address information: {text}")));
        assert!(says("Name or service not known") && says("No address associated with hostname"));
        assert!(!says("Temporary failure in name resolution"));
        assert!(!says("Non-recoverable failure in name resolution") && !says("System error"));
    }
}
