//! Which user of this machine an account stands for.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use share::Identity;

use crate::records::UserRecord;
use crate::settings::UserGiven;

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

/// The user that an account stands for. A server that is not root can only be itself; else what the
/// configuration says, else the user of this machine of the same name, else the owner of `directory`.
pub(crate) fn of_account(user: &UserGiven, directory: &Path) -> Identity {
    let me = rustix::process::geteuid();
    if !me.is_root() {
        return Identity { uid: me.as_raw(), gid: rustix::process::getegid().as_raw(), groups: Vec::new() };
    }
    let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let named = unix_user(&text("/etc/passwd"), &user.name);
    let identity = match (user.uid, named) {
        (Some(uid), _) => {
            let gid = user.gid.unwrap_or_else(|| named.map_or(uid, |(_, gid)| gid));
            Identity { uid, gid, groups: user.groups.clone().unwrap_or_default() }
        }
        (None, Some((uid, gid))) => {
            let of_name = || unix_groups(&text("/etc/group"), &user.name);
            let groups = user.groups.clone().unwrap_or_else(of_name);
            Identity { uid, gid: user.gid.unwrap_or(gid), groups }
        }
        (None, None) => {
            let owner = fs::metadata(directory).map_or((65534, 65534), |found| (found.uid(), found.gid()));
            let groups = user.groups.clone().unwrap_or_default();
            Identity { uid: owner.0, gid: user.gid.unwrap_or(owner.1), groups }
        }
    };
    if identity.is_superuser() {
        tracing::warn!(
            "the account {} acts as root in the shares: give it a uid in the configuration, \
             or the directory {} another owner",
            user.name,
            directory.display()
        );
    }
    identity
}

/// The user that an account stands for which was added by command: as above, but nobody's directory makes it an owner.
/// None: the user of this machine is not there.
pub(crate) fn of_record(user: &UserRecord) -> Option<Identity> {
    let me = rustix::process::geteuid();
    if !me.is_root() {
        return Some(Identity {
            uid: me.as_raw(),
            gid: rustix::process::getegid().as_raw(),
            groups: Vec::new(),
        });
    }
    let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let named = unix_user(&text("/etc/passwd"), &user.name);
    let uid = user.uid.or_else(|| named.map(|(uid, _)| uid))?;
    let gid = user.gid.or_else(|| named.map(|(_, gid)| gid)).unwrap_or(uid);
    let of_name = || match user.uid {
        Some(_) => Vec::new(),
        None => unix_groups(&text("/etc/group"), &user.name),
    };
    Some(Identity { uid, gid, groups: user.groups.clone().unwrap_or_else(of_name) })
}

/// Nobody in particular.
pub(crate) fn nobody() -> Identity {
    Identity { uid: 65_534, gid: 65_534, groups: Vec::new() }
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
}
