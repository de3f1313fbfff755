//! What administrators ask about the users of a cluster.

use std::sync::Arc;

use control::users::{NewUser, User, UserChange, Users as Told};
use control::{Refusal, RefusalKind};
use state::UserRecord;
use state::cluster::{Register, Seen};

use super::Seat;
use super::accounts::Users;
use super::calls::{Result, failed, refused, too_quick};
use crate::accounts;
use crate::administration::{USERS_MAX, check_identity, tell_user};
use crate::identities;
use crate::settings::check_user_name;

const LIST: &str = "`anabranch user list --cluster` says who there is.";

impl Seat {
    /// All users of the cluster.
    pub(super) fn told_users(&self) -> Result<Told> {
        let register = self.asked_register()?;
        let listed = Users::read(self, &register).map_err(failed)?.listed;
        let names: Vec<&str> = listed.seen.iter().map(|seen| &*seen.record.name).collect();
        let sids = register.account_domain().sids_of(&names).map_err(|error| failed(error.into()))?;
        let users = listed.seen.iter().zip(sids).map(|(Seen { record, .. }, sid)| User {
            sid: sid.map(|sid| sid.to_string()),
            ..tell_user(&accounts::added(record), record.keys.is_some())
        });
        Ok(Told { users: users.collect() })
    }

    pub(super) fn enter_user(&self, new: &NewUser) -> Result<User> {
        let register = self.asked_register()?;
        let name = &new.name;
        check_user_name(name).map_err(|why| invalid(format!("the user {name:?}: {why}"), ""))?;
        let listed = Users::read(self, &register).map_err(failed)?.listed;
        if listed.seen.len() >= USERS_MAX {
            let what = format!("there are {USERS_MAX} users already");
            return Err(refused(RefusalKind::TooMany, what, "Remove one that nobody needs."));
        }
        let user = known_everywhere(&self.host.administration.record_of(new)?)?;
        if !register.add_user(&user).map_err(|error| self.no_answer(&error))? {
            let advice = format!(
                "Names do not differ by case. To change this user: anabranch user set {name} --cluster"
            );
            return Err(refused(RefusalKind::NameTaken, format!("there is a user {name} already"), advice));
        }
        tracing::info!(user = name, uid = user.uid, "a user of the cluster was added");
        self.have_changed(&register);
        self.told_user(&register, &user)
    }

    pub(super) fn set_user(&self, name: &str, change: &UserChange) -> Result<User> {
        let register = self.asked_register()?;
        let seen = self.one_user(&register, name)?;
        let user = known_everywhere(&self.host.administration.changed(seen.record.clone(), change)?)?;
        if !register.change_user(&seen, &user).map_err(|error| self.no_answer(&error))? {
            return Err(too_quick());
        }
        tracing::info!(user = user.name, disabled = user.disabled, "a user of the cluster was changed");
        self.have_changed(&register);
        self.told_user(&register, &user)
    }

    pub(super) fn end_user(&self, name: &str) -> Result<User> {
        let register = self.asked_register()?;
        let seen = self.one_user(&register, name)?;
        let told = self.told_user(&register, &seen.record)?;
        if !register.remove_user(&seen).map_err(|error| self.no_answer(&error))? {
            return Err(too_quick());
        }
        tracing::info!(user = told.name, "a user of the cluster was removed");
        self.have_changed(&register);
        Ok(told)
    }

    fn one_user(&self, register: &Register, name: &str) -> Result<Seen<UserRecord>> {
        register.user(name).map_err(|error| self.no_answer(&error))?.ok_or_else(|| {
            refused(RefusalKind::NotFound, format!("there is no user {name} of the cluster"), LIST)
        })
    }

    fn told_user(&self, register: &Register, user: &UserRecord) -> Result<User> {
        let sid = register.account_domain().sid_of(&user.name);
        let sid = sid.map_err(|error| failed(error.into()))?.map(|sid| sid.to_string());
        Ok(User { sid, ..tell_user(&accounts::added(user), user.keys.is_some()) })
    }

    /// Has the vservers of this gateway use the users as they are now, and those of others soon. If that fails, the keeper tries it again.
    fn have_changed(&self, register: &Arc<Register>) {
        self.tell(register);
        let used = Users::read(self, register).and_then(|users| self.use_accounts(register, &users));
        if let Err(problem) = used {
            tracing::error!("the vservers do not have the users as they are now: {problem}");
        }
    }
}

fn invalid(what: String, advice: &str) -> Refusal {
    refused(RefusalKind::Invalid, what, advice)
}

/// The user with numbers that are the same at each gateway, whatever users its machine has.
fn known_everywhere(user: &UserRecord) -> Result<UserRecord> {
    check_identity(user)?;
    let identity = identities::of_root_record(user).map_err(|why| {
        let problem = accounts::stands_for_nobody(&user.name, &why);
        invalid(problem.what, "Say who it is to the files: --uid N")
    })?;
    Ok(UserRecord {
        uid: Some(identity.uid()),
        gid: Some(identity.gid()),
        groups: Some(identity.groups().to_vec()),
        ..user.clone()
    })
}
