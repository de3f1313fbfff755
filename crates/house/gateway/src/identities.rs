//! The users of this machine for whom accounts stand.

use share::Identity;
use state::UserRecord;

use crate::name_service::{self, NameAnswer, SystemUser};
use crate::settings::UserSettings;

/// Why an account stands for no user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoUser {
    /// No uid is given, and this machine has no user of that name, or the user is root, which must be stated explicitly.
    Unknown,
    /// No uid is given, and the name service cannot answer, for this reason.
    Unavailable(String),
}

/// The uid, gid and further groups of a user of this machine, if the name service says who it is. May wait for the name
/// service.
pub fn of_system(name: &str) -> Option<(u32, u32, Vec<u32>)> {
    match name_service::user(name) {
        NameAnswer::Known(SystemUser { uid, gid, groups }) => Some((uid, gid, groups)),
        NameAnswer::Unknown | NameAnswer::Unavailable(_) => None,
    }
}

/// The user for whom an account of the configuration stands: the declared one, otherwise the one that was given by
/// command (`stored`), otherwise the user of this machine with the same name. May wait for the name service.
///
/// # Errors
/// There is no such user.
pub(crate) fn of_account(user: &UserSettings, stored: Option<&UserRecord>) -> Result<Identity, NoUser> {
    let identity = of_record(&with_stored(user, stored))?;
    if identity.is_superuser() {
        tracing::warn!("the account {} acts as root in the shares, as its uid says", user.name);
    }
    Ok(identity)
}

/// The same on a server that runs as root.
///
/// # Errors
/// There is no such user.
pub(crate) fn of_root(user: &UserSettings, stored: Option<&UserRecord>) -> Result<Identity, NoUser> {
    of_root_record(&with_stored(user, stored))
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
/// server that does not run as root can only act as itself. May wait for the name service.
///
/// # Errors
/// There is no such user.
pub(crate) fn of_record(user: &UserRecord) -> Result<Identity, NoUser> {
    let me = rustix::process::geteuid();
    if !me.is_root() {
        return Ok(Identity::unix(me.as_raw(), rustix::process::getegid().as_raw(), Vec::new()));
    }
    of_root_record(user)
}

/// The same on a server that runs as root.
///
/// # Errors
/// There is no such user.
pub(crate) fn of_root_record(user: &UserRecord) -> Result<Identity, NoUser> {
    of_root_server(user, name_service::user)
}

/// `ask` is the name service, which is asked only for what the record does not say.
fn of_root_server(
    user: &UserRecord,
    ask: impl Fn(&str) -> NameAnswer<SystemUser>,
) -> Result<Identity, NoUser> {
    let named = match (user.uid, user.gid) {
        (Some(uid), Some(gid)) => {
            return Ok(Identity::unix(uid, gid, user.groups.clone().unwrap_or_default()));
        }
        _ => ask(&user.name),
    };
    let identity = match (user.uid, named) {
        (Some(uid), NameAnswer::Known(named)) => Identity::unix(uid, named.gid, groups(user, Vec::new())),
        // The primary group of a uid is then its own group, as Debian gives each user one.
        (Some(uid), _) => Identity::unix(uid, user.gid.unwrap_or(uid), groups(user, Vec::new())),
        (None, NameAnswer::Known(named)) if named.uid != 0 => {
            Identity::unix(named.uid, user.gid.unwrap_or(named.gid), groups(user, named.groups))
        }
        (None, NameAnswer::Known(_) | NameAnswer::Unknown) => return Err(NoUser::Unknown),
        (None, NameAnswer::Unavailable(why)) => return Err(NoUser::Unavailable(why)),
    };
    Ok(identity)
}

/// The recorded groups, or those of the name service.
fn groups(user: &UserRecord, of_system: Vec<u32>) -> Vec<u32> {
    user.groups.clone().unwrap_or(of_system)
}

/// The identity nobody.
pub(crate) fn nobody() -> Identity {
    Identity::unix(65_534, 65_534, Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_root_without_a_word() {
        let system = |name: &str| match name {
            "root" => NameAnswer::Known(SystemUser { uid: 0, gid: 0, groups: Vec::new() }),
            "anna" => NameAnswer::Known(SystemUser { uid: 1000, gid: 100, groups: vec![50] }),
            "otto" => NameAnswer::Unavailable("out".to_owned()),
            _ => NameAnswer::Unknown,
        };
        let identity = |name: &str, uid, gid| {
            let user = UserRecord { name: name.to_owned(), uid, gid, ..UserRecord::default() };
            of_root_server(&user, system)
        };
        let unknown = Err(NoUser::Unknown);
        assert_eq!(identity("anna", None, None), Ok(Identity::unix(1000, 100, vec![50])));
        assert_eq!(identity("anna", None, Some(7)), Ok(Identity::unix(1000, 7, vec![50])));
        assert_eq!(identity("anna", Some(1001), None), Ok(Identity::unix(1001, 100, vec![])));
        assert_eq!(identity("zoe", None, None), unknown);
        assert_eq!(identity("zoe", None, Some(0)), unknown);
        assert_eq!(identity("zoe", Some(1002), None), Ok(Identity::unix(1002, 1002, vec![])));
        assert_eq!(identity("root", None, None), unknown);
        assert_eq!(identity("root", Some(0), None), Ok(Identity::unix(0, 0, vec![])));
        assert_eq!(identity("otto", None, None), Err(NoUser::Unavailable("out".to_owned())));
        assert_eq!(identity("otto", Some(1003), None), Ok(Identity::unix(1003, 1003, vec![])));
    }

    #[test]
    fn what_the_record_says_is_not_asked_for() {
        let user = UserRecord { uid: Some(5), gid: Some(6), ..UserRecord::default() };
        let silent = |_: &str| -> NameAnswer<SystemUser> { unreachable!() };
        assert_eq!(of_root_server(&user, silent), Ok(Identity::unix(5, 6, vec![])));
    }
}
