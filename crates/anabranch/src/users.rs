//! `anabranch user`: who may log on over SMB.

use control::Administration as _;
use control::users::{NewUser, User, UserChange, Users};
use control_client::path_part;

use crate::administrator::{Administrator, Intent};
use crate::asking::Asking;
use crate::cli::{OfCluster, UserAdd, UserCommand, UserList, UserSet};
use crate::clusters::PATIENCE;
use crate::print::{json, print};
use crate::problem::Result;
use crate::{password, table};

const USERS: &str = "/v1/users";
const OF_CLUSTER: &str = "/v1/cluster/users";

/// Carries out the command.
///
/// # Errors
/// It is refused, or the server cannot be asked.
pub(crate) fn run(command: &UserCommand) -> Result<()> {
    match command {
        UserCommand::Add(add) => {
            let asked = Asked::find(&add.of, &add.asking, Intent::Change)?;
            let new = new_user(add)?;
            let user = asked.add(&new)?;
            tell(&add.asking, &user, "was added")
        }
        UserCommand::List(UserList { of, asking }) => {
            let users = Asked::find(of, asking, Intent::Look)?.all()?;
            print(&if asking.json { json(&users)? } else { render(&users) })
        }
        UserCommand::Set(set) => {
            let asked = Asked::find(&set.of, &set.asking, Intent::Change)?;
            let user = asked.set(&set.name, &change(set)?)?;
            tell(&set.asking, &user, "was changed")
        }
        UserCommand::Remove { name, of, asking } => {
            let user = Asked::find(of, asking, Intent::Change)?.remove(name)?;
            tell(asking, &user, "was removed")
        }
    }
}

/// Who is asked, and about whose users.
enum Asked {
    /// The server about its own.
    Server(Administrator),
    /// The gateway about those of the cluster.
    Gateway(Administrator),
}

impl Asked {
    fn find(of: &OfCluster, asking: &Asking, intent: Intent) -> Result<Self> {
        Ok(if of.is_meant {
            // Only a running gateway has a cluster.
            Self::Gateway(Administrator::find(asking, Intent::Look)?)
        } else {
            Self::Server(Administrator::find(asking, intent)?)
        })
    }

    fn all(&self) -> Result<Users> {
        match self {
            Self::Server(server) => server.call(("GET", USERS), None::<&()>, |here| here.users()),
            Self::Gateway(gateway) => {
                gateway.call(("GET", OF_CLUSTER), None::<&()>, |here| here.cluster_gateways()?.users())
            }
        }
    }

    fn add(&self, new: &NewUser) -> Result<User> {
        match self {
            Self::Server(server) => {
                server.call(("POST", USERS), Some(new), |here| here.add_user(new.clone()))
            }
            Self::Gateway(gateway) => {
                gateway.call_within(PATIENCE, ("POST", OF_CLUSTER), Some(new), |here| {
                    here.cluster_gateways()?.add_user(new)
                })
            }
        }
    }

    fn set(&self, name: &str, change: &UserChange) -> Result<User> {
        match self {
            Self::Server(server) => server.call(("PATCH", &*path(USERS, name)), Some(change), |here| {
                here.change_user(name, change.clone())
            }),
            Self::Gateway(gateway) => {
                let call = ("PATCH", &*path(OF_CLUSTER, name));
                gateway.call_within(PATIENCE, call, Some(change), |here| {
                    here.cluster_gateways()?.change_user(name, change)
                })
            }
        }
    }

    fn remove(&self, name: &str) -> Result<User> {
        match self {
            Self::Server(server) => {
                server.call(("DELETE", &*path(USERS, name)), None::<&()>, |here| here.remove_user(name))
            }
            Self::Gateway(gateway) => {
                let call = ("DELETE", &*path(OF_CLUSTER, name));
                gateway.call_within(PATIENCE, call, None::<&()>, |here| {
                    here.cluster_gateways()?.remove_user(name)
                })
            }
        }
    }
}

fn path(users: &str, name: &str) -> String {
    format!("{users}/{}", path_part(name))
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
