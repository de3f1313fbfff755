//! `anabranch user`: who may log on over SMB.

use control::Administration as _;
use control::users::{NewUser, User, UserChange, Users};
use control_client::path_part;

use crate::administrator::{Administrator, Intent};
use crate::asking::Asking;
use crate::cli::{UserAdd, UserCommand, UserSet};
use crate::print::{json, print};
use crate::problem::Result;
use crate::{password, table};

/// Carries out the command.
///
/// # Errors
/// It is refused, or the server cannot be asked.
pub(crate) fn run(command: &UserCommand) -> Result<()> {
    match command {
        UserCommand::Add(add) => {
            let administrator = Administrator::find(&add.asking, Intent::Change)?;
            let new = new_user(add)?;
            let call = ("POST", "/v1/users");
            let user = administrator.call(call, Some(&new), |here| here.add_user(new.clone()))?;
            tell(&add.asking, &user, "was added")
        }
        UserCommand::List(asking) => {
            let administrator = Administrator::find(asking, Intent::Look)?;
            let users = administrator.call(("GET", "/v1/users"), None::<&()>, |here| here.users())?;
            print(&if asking.json { json(&users)? } else { render(&users) })
        }
        UserCommand::Set(set) => {
            let administrator = Administrator::find(&set.asking, Intent::Change)?;
            let change = change(set)?;
            let call = ("PATCH", &*path(&set.name));
            let user = administrator
                .call(call, Some(&change), |here| here.change_user(&set.name, change.clone()))?;
            tell(&set.asking, &user, "was changed")
        }
        UserCommand::Remove { name, asking } => {
            let administrator = Administrator::find(asking, Intent::Change)?;
            let user =
                administrator.call(("DELETE", &*path(name)), None::<&()>, |here| here.remove_user(name))?;
            tell(asking, &user, "was removed")
        }
    }
}

fn path(name: &str) -> String {
    format!("/v1/users/{}", path_part(name))
}

fn new_user(add: &UserAdd) -> Result<NewUser> {
    Ok(NewUser {
        name: add.name.clone(),
        password: password::read(&add.name)?,
        uid: add.uid,
        gid: add.gid,
        groups: add.groups.clone(),
        disabled: add.disabled,
    })
}

fn change(set: &UserSet) -> Result<UserChange> {
    Ok(UserChange {
        password: if set.password { Some(password::read(&set.name)?) } else { None },
        uid: set.uid,
        gid: set.gid,
        groups: set.groups.clone(),
        disabled: (set.disable || set.enable).then_some(set.disable),
    })
}

fn tell(asking: &Asking, user: &User, what: &str) -> Result<()> {
    print(&if asking.json { json(user)? } else { format!("The user {} {what}.\n", user.name) })
}

fn render(users: &Users) -> String {
    let groups = |user: &User| match user.groups.iter().map(u32::to_string).collect::<Vec<_>>().join(",") {
        none if none.is_empty() => "-".to_owned(),
        groups => groups,
    };
    let row = |user: &User| {
        [
            user.name.clone(),
            user.uid.to_string(),
            user.gid.to_string(),
            groups(user),
            if user.disabled { "disabled" } else { "may log on" }.to_owned(),
            if user.aes_keys { "yes" } else { "no: set the password" }.to_owned(),
            user.declared_in.clone().unwrap_or_else(|| "-".to_owned()),
        ]
    };
    let rows: Vec<_> = users.users.iter().map(row).collect();
    table::render(["USER", "UID", "GID", "GROUPS", "STATE", "AES KEYS", "DECLARED IN"], &rows)
}
