//! The users of this machine for whom accounts stand.

use std::fs;

use share::Identity;
use state::UserRecord;

use crate::settings::UserSettings;

/// A user of this machine, from the text of `/etc/passwd`: uid and gid.
fn unix_user(passwd: &str, name: &str) -> Option<(u32, u32)> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next()? == name).then_some(())?;
        let uid = fields.nth(1)?.parse().ok()?;
        Some((uid, fields.next()?.parse().ok()?))
    })
}

/// The further groups of a user, from the text of `/etc/group`.
fn unix_groups(group: &str, name: &str) -> Vec<u32> {
    let of_line = |line: &str| {
        let mut fields = line.split(':');
        let gid = fields.nth(2)?.parse().ok()?;
        fields.next()?.split(',').any(|member| member == name).then_some(gid)
    };
    group.lines().filter_map(of_line).collect()
}

/// The uid, gid and further groups of a user of this machine.
pub fn of_system(name: &str) -> Option<(u32, u32, Vec<u32>)> {
    let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let (uid, gid) = unix_user(&text("/etc/passwd"), name)?;
    Some((uid, gid, unix_groups(&text("/etc/group"), name)))
}

/// The user for whom an account of the configuration stands: the declared one, otherwise the one that was given by
/// command (`stored`), otherwise the user of this machine with the same name. None: there is no such user.
pub(crate) fn of_account(user: &UserSettings, stored: Option<&UserRecord>) -> Option<Identity> {
    let identity = of_record(&with_stored(user, stored))?;
    if identity.is_superuser() {
        tracing::warn!("the account {} acts as root in the shares, as its uid says", user.name);
    }
    Some(identity)
}

/// The same on a server that runs as root.
pub(crate) fn of_root(user: &UserSettings, stored: Option<&UserRecord>) -> Option<Identity> {
    let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
    of_root_server(&with_stored(user, stored), &text("/etc/passwd"), &text("/etc/group"))
}

/// What is declared of a user, completed by what was given by command.
fn with_stored(user: &UserSettings, stored: Option<&UserRecord>) -> UserRecord {
    let stored = stored.filter(|_| user.uid.is_none());
    UserRecord {
        name: user.name.clone(),
        uid: user.uid.or_else(|| stored?.uid),
        gid: user.gid.or_else(|| stored?.gid),
        groups: user.groups.clone().or_else(|| stored?.groups.clone()),
        ..UserRecord::default()
    }
}

/// The user for whom an account stands: the recorded one, otherwise the user of this machine with the same name. A
/// server that does not run as root can only act as itself. None: this machine has no such user, or the user is root,
/// which must be stated explicitly.
pub(crate) fn of_record(user: &UserRecord) -> Option<Identity> {
    let me = rustix::process::geteuid();
    if !me.is_root() {
        return Some(Identity::unix(me.as_raw(), rustix::process::getegid().as_raw(), Vec::new()));
    }
    let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
    of_root_server(user, &text("/etc/passwd"), &text("/etc/group"))
}

fn of_root_server(user: &UserRecord, passwd: &str, group: &str) -> Option<Identity> {
    let named = unix_user(passwd, &user.name);
    let uid = user.uid.or_else(|| named.map(|(uid, _)| uid).filter(|uid| *uid != 0))?;
    let gid = user.gid.or_else(|| named.map(|(_, gid)| gid)).unwrap_or(uid);
    let of_name = || match user.uid {
        Some(_) => Vec::new(),
        None => unix_groups(group, &user.name),
    };
    Some(Identity::unix(uid, gid, user.groups.clone().unwrap_or_else(of_name)))
}

/// The identity nobody.
pub(crate) fn nobody() -> Identity {
    Identity::unix(65_534, 65_534, Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_and_groups_are_read_from_their_files() {
        let passwd =
            "root:x:0:0:root:/:/bin/sh\nanna:x:1000:100:Anna:/:/bin/sh\nannabel:x:1001:100::/:/bin/sh\n";
        assert_eq!(unix_user(passwd, "anna"), Some((1000, 100)));
        assert_eq!(unix_user(passwd, "ann"), None);
        assert_eq!(unix_user("anna:x:no:100", "anna"), None);
        let group = "root:x:0:\nmusic:x:50:otto,anna\nart:x:51:annabel\nplay:x:52:anna\n";
        assert_eq!(unix_groups(group, "anna"), [50, 52]);
    }

    #[test]
    fn nobody_is_root_without_a_word() {
        let passwd = "root:x:0:0::/:/bin/sh\nanna:x:1000:100::/:/bin/sh\n";
        let identity = |name: &str, uid, gid| {
            let user = UserRecord { name: name.to_owned(), uid, gid, ..UserRecord::default() };
            of_root_server(&user, passwd, "music:x:50:anna\n")
        };
        assert_eq!(identity("anna", None, None), Some(Identity::unix(1000, 100, vec![50])));
        assert_eq!(identity("anna", None, Some(7)), Some(Identity::unix(1000, 7, vec![50])));
        assert_eq!(identity("anna", Some(1001), None), Some(Identity::unix(1001, 100, vec![])));
        assert_eq!(identity("zoe", None, None), None);
        assert_eq!(identity("zoe", None, Some(0)), None);
        assert_eq!(identity("zoe", Some(1002), None), Some(Identity::unix(1002, 1002, vec![])));
        assert_eq!(identity("root", None, None), None);
        assert_eq!(identity("root", Some(0), None), Some(Identity::unix(0, 0, vec![])));
    }
}
