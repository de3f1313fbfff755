//! `anabranch share create --pool`: what is said of a directory that the server makes.

use control::shares::NewShare;
use nix::unistd::{Group, User};

use crate::cli::InPool;
use crate::problem::{Cause, Problem, Result};

/// Enters the pool, the size and the owner of a new share.
///
/// # Errors
/// The size is none, or this machine does not know the owner.
pub(super) fn enter(given: &InPool, new: &mut NewShare) -> Result<()> {
    let InPool { pool, size, owner } = given;
    new.pool.clone_from(pool);
    let refuse = |what: String, advice: &str| Problem::new(Cause::Settings, what, advice);
    let parse = |text: &String| {
        let parsed = limits::parse_size(text);
        parsed.ok_or_else(|| refuse(format!("{text:?} is no size"), "For example: --size 100GiB"))
    };
    new.size = size.as_ref().map(parse).transpose()?;
    if let Some(owner) = owner {
        let (user, group) =
            owner.split_once(':').map_or((&**owner, None), |(user, group)| (user, Some(group)));
        let (uid, gid) = ids_of(user).ok_or_else(|| unknown("user", user))?;
        let of_group = |name: &str| gid_of(name).ok_or_else(|| unknown("group", name));
        (new.uid, new.gid) = (Some(uid), Some(group.map(of_group).transpose()?.unwrap_or(gid)));
    }
    Ok(())
}

fn unknown(what: &str, name: &str) -> Problem {
    let said = format!("this machine has no {what} {name}");
    Problem::new(Cause::Refused, said, "Name one that it has, or give numbers: --owner 1000:100")
}

/// A user, with the group of the user. A number needs no user: its group is the one with the same number.
fn ids_of(user: &str) -> Option<(u32, u32)> {
    if let Ok(uid) = user.parse() {
        return Some((uid, uid));
    }
    let found = User::from_name(user).ok().flatten()?;
    Some((found.uid.as_raw(), found.gid.as_raw()))
}

fn gid_of(group: &str) -> Option<u32> {
    group.parse().ok().or_else(|| Some(Group::from_name(group).ok().flatten()?.gid.as_raw()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entered(size: &str, owner: Option<&str>) -> Result<NewShare> {
        let mut new = NewShare::default();
        let owner = owner.map(str::to_owned);
        enter(&InPool { pool: Some("fast".to_owned()), size: Some(size.to_owned()), owner }, &mut new)?;
        Ok(new)
    }

    #[test]
    fn what_is_given_is_entered() {
        let new = entered("3GiB", Some("1000:100")).unwrap();
        assert_eq!(
            (new.pool.as_deref(), new.size, new.uid, new.gid),
            (Some("fast"), Some(3 << 30), Some(1000), Some(100))
        );
        let of = |owner| entered("1MiB", owner).map(|new| (new.uid, new.gid));
        assert_eq!(of(None).unwrap(), (None, None));
        assert_eq!(of(Some("root")).unwrap(), (Some(0), Some(0)));
        assert_eq!(of(Some("7")).unwrap(), (Some(7), Some(7)));
        assert!(of(Some("no-such-user")).unwrap_err().what.contains("no user"));
        assert!(of(Some("root:no-such-group")).unwrap_err().what.contains("no group"));
        for bad in ["", "1", "much", "-1GiB", "1.5GiB"] {
            assert!(entered(bad, None).unwrap_err().what.contains("no size"), "{bad}");
        }
    }
}
