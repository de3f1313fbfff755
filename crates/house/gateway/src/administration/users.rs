//! The users of [`Administration`].

use auth::{Account, Accounts, same_name};
use control::users::{NewUser, Password, User, UserChange};
use control::{Refusal, RefusalKind};
use state::{Secrets, UserRecord};

use super::{Administration, USERS_MAX, failed, invalid};
use crate::accounts;
use crate::declared::Declared;
use crate::identities;
use crate::passwords;
use crate::settings::{check_ids, check_user_name};
use crate::waiting::wait_for;

type Result<T> = std::result::Result<T, Refusal>;

/// The longest password, in characters: the limit of the prompt of Windows.
const PASSWORD_MAX: usize = 127;
/// The most groups of a user. A credential of AUTH_SYS carries no more (RFC 5531 appendix A), so both protocols see the
/// same groups.
const GROUPS_MAX: usize = 16;

impl Administration {
    fn added_users(&self) -> Result<Vec<UserRecord>> {
        self.state.added_users().map_err(failed)
    }

    fn added_user(&self, name: &str) -> Result<UserRecord> {
        let declared = self.declared();
        if let Some(account) = declared.account(name) {
            let (name, place) = (&account.name, declared.account_place(name));
            let what = format!("the user {name} is declared in {place}");
            return Err(Refusal::new(RefusalKind::Declared, what, declared.advice(place)));
        }
        let added = self.added_users()?.into_iter().find(|user| same_name(&user.name, name));
        added.ok_or_else(|| {
            let what = format!("there is no user {name}");
            Refusal::new(RefusalKind::NotFound, what, "`anabranch user list` says who there is.")
        })
    }

    pub(super) fn all_users(&self) -> Result<Vec<User>> {
        let declared = self.declared();
        let added = self.added_users()?;
        let mut users = Vec::with_capacity(added.len());
        for account in &declared.accounts {
            users.push(self.tell_declared_user(account, &declared, &added)?);
        }
        let added = added.iter().filter(|user| declared.account(&user.name).is_none());
        users.extend(added.map(|user| tell_user(&self.account(user), user.keys.is_some())));
        for user in &mut users {
            user.sid = self.sid_of(&user.name)?;
        }
        users.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(users)
    }

    pub(super) fn one_user(&self, name: &str) -> Result<User> {
        let declared = self.declared();
        let user = match declared.account(name) {
            Some(account) => self.tell_declared_user(account, &declared, &self.added_users()?),
            None => self.added_user(name).map(|user| tell_user(&self.account(&user), user.keys.is_some())),
        }?;
        Ok(User { sid: self.sid_of(&user.name)?, ..user })
    }

    /// The SID of an account; None: no server has had the account yet.
    fn sid_of(&self, name: &str) -> Result<Option<String>> {
        let sid = self.state.account_domain().sid_of(name).map_err(failed)?;
        Ok(sid.map(|sid| sid.to_string()))
    }

    /// A declared user. Its password is that of the user who was added by command under the same name (`added`), where the
    /// configuration has none.
    fn tell_declared_user(
        &self,
        account: &Account,
        declared: &Declared,
        added: &[UserRecord],
    ) -> Result<User> {
        let name = &account.name;
        let stored = added.iter().find(|user| same_name(&user.name, name));
        let kept = self.state.account(name).map_err(failed)?.or_else(|| stored.map(UserRecord::secrets));
        let has_keys = kept.is_some_and(|kept| kept.keys.is_some());
        let declared_in = Some(declared.account_place(name).to_owned());
        Ok(User { declared_in, ..tell_user(account, has_keys) })
    }

    /// The account of a user who was added by command, as the running server has it.
    fn account(&self, user: &UserRecord) -> Account {
        let running = self.serving.as_ref().and_then(|serving| serving.accounts.find(&user.name));
        running.unwrap_or_else(|| accounts::added(user))
    }

    pub(super) fn enter_user(&self, new: &NewUser) -> Result<User> {
        let changing = self.idle.lock();
        let name = &new.name;
        check_user_name(name).map_err(|why| invalid(format!("the user {name:?}: {why}"), ""))?;
        let added = self.added_users()?;
        let declared = self.declared();
        let taken = declared.account(name).map(|account| &account.name);
        if let Some(taken) =
            taken.or_else(|| Some(&added.iter().find(|user| same_name(&user.name, name))?.name))
        {
            return Err(Refusal::new(
                RefusalKind::NameTaken,
                format!("there is a user {taken} already"),
                format!("Names do not differ by case. To change this user: anabranch user set {taken}"),
            ));
        }
        if added.len() >= USERS_MAX {
            let what = format!("there are {USERS_MAX} users already");
            return Err(Refusal::new(RefusalKind::TooMany, what, "Remove one that nobody needs."));
        }
        let user = self.record_of(new)?;
        check_identity(&user)?;
        self.state.keep_user(&user).map_err(failed)?;
        let account = accounts::added(&user);
        self.use_account(&account)?;
        drop(changing);
        tracing::info!(user = name, uid = account.uid, "a user was added");
        Ok(User { sid: self.sid_of(name)?, ..tell_user(&account, user.keys.is_some()) })
    }

    pub(super) fn set_user(&self, name: &str, change: &UserChange) -> Result<User> {
        let changing = self.idle.lock();
        let user = self.changed(self.added_user(name)?, change)?;
        check_identity(&user)?;
        self.state.keep_user(&user).map_err(failed)?;
        let account = accounts::added(&user);
        self.use_account(&account)?;
        drop(changing);
        tracing::info!(user = user.name, disabled = user.disabled, "a user was changed");
        Ok(User { sid: self.sid_of(&user.name)?, ..tell_user(&account, user.keys.is_some()) })
    }

    pub(super) fn end_user(&self, name: &str) -> Result<User> {
        let changing = self.idle.lock();
        let user = self.added_user(name)?;
        let account = self.account(&user);
        let sid = self.sid_of(&user.name)?;
        self.state.forget_user(&user.name).map_err(failed)?;
        if let Some(serving) = &self.serving {
            serving.accounts.take(&user.name);
            serving.names.look_again();
            wait_for(serving.smb.end_user(&user.name))?;
        }
        drop(changing);
        tracing::info!(user = user.name, "a user was removed");
        Ok(User { sid, ..tell_user(&account, user.keys.is_some()) })
    }

    /// The record of a user to be added.
    pub(crate) fn record_of(&self, new: &NewUser) -> Result<UserRecord> {
        let Secrets { nt_hash, keys } = self.secrets_of(&new.name, &new.password)?;
        Ok(UserRecord {
            name: new.name.clone(),
            nt_hash,
            keys,
            uid: new.uid,
            gid: new.gid,
            groups: new.groups.clone(),
            disabled: new.disabled,
        })
    }

    /// The record of a user with these changes.
    pub(crate) fn changed(&self, mut user: UserRecord, change: &UserChange) -> Result<UserRecord> {
        if let Some(password) = &change.password {
            Secrets { nt_hash: user.nt_hash, keys: user.keys } = self.secrets_of(&user.name, password)?;
        }
        user.uid = change.uid.or(user.uid);
        user.gid = change.gid.or(user.gid);
        user.groups = change.groups.clone().or(user.groups);
        user.disabled = change.disabled.unwrap_or(user.disabled);
        Ok(user)
    }

    /// What is kept of a password. It takes some 20 ms: calls of the API are carried out off the shards.
    fn secrets_of(&self, name: &str, password: &Password) -> Result<Secrets> {
        check_password(name, password)?;
        let secrets = passwords::secrets(name, &password.0, None, &self.state);
        secrets.map_err(|problem| Refusal::new(RefusalKind::Failed, problem.what, problem.advice))
    }

    /// Makes the running server use an account as it is now.
    fn use_account(&self, account: &Account) -> Result<()> {
        let Some(serving) = &self.serving else { return Ok(()) };
        serving.accounts.enter(account.clone());
        serving.names.look_again();
        if account.disabled { wait_for(serving.smb.end_user(&account.name)) } else { Ok(()) }
    }
}

pub(crate) fn tell_user(account: &Account, aes_keys: bool) -> User {
    User {
        name: account.name.clone(),
        declared_in: None,
        disabled: account.disabled,
        uid: account.uid,
        gid: account.gid,
        groups: account.groups.clone(),
        sid: None,
        aes_keys,
    }
}

fn check_password(name: &str, Password(password): &Password) -> Result<()> {
    if password.is_empty() {
        return Err(invalid(
            format!("the password of the user {name} is empty"),
            "Give the user a password: nobody can log on without one.",
        ));
    }
    if password.chars().count() > PASSWORD_MAX {
        let what = format!("the password of the user {name} is longer than {PASSWORD_MAX} characters");
        return Err(invalid(what, "Clients do not accept longer passwords."));
    }
    if password.chars().any(char::is_control) {
        let what = format!("the password of the user {name} has a control character");
        return Err(invalid(what, "Nobody could type it into a client."));
    }
    Ok(())
}

pub(crate) fn check_identity(user: &UserRecord) -> Result<()> {
    let groups = user.groups.as_ref().map_or(0, Vec::len);
    if groups > GROUPS_MAX {
        let what = format!("the user {} has {groups} further groups", user.name);
        return Err(invalid(what, format!("It can have {GROUPS_MAX}.")));
    }
    let ids = user.uid.into_iter().chain(user.gid).chain(user.groups.iter().flatten().copied());
    check_ids(&user.name, ids).map_err(|why| invalid(why, ""))?;
    match identities::of_record(user) {
        Ok(_) => Ok(()),
        Err(why) => {
            let problem = accounts::stands_for_nobody(&user.name, &why);
            Err(invalid(problem.what, "Say who it is to the files: --uid N"))
        }
    }
}
