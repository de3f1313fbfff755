//! The accounts of the vservers of a cluster: the users of the cluster, and the accounts of this gateway whose names no user of the cluster
//! has. All have their SIDs in the domain of the cluster, so that an access list means the same at each gateway.

use std::collections::HashSet;
use std::sync::Arc;

use acl::Sid;
use auth::{Account, folded_name};
use state::UserRecord;
use state::cluster::{Listed, Register};

use super::Seat;
use crate::accounts;
use crate::of_cluster::Sources;
use crate::problem::Result;

/// The users of the cluster, as they were read.
#[derive(Debug, Default)]
pub(super) struct Users {
    /// How often they had changed before.
    pub(super) changes: u64,
    pub(super) listed: Listed<UserRecord>,
}

impl Users {
    /// # Errors
    /// The store does not answer.
    pub(super) fn read(seat: &Seat, register: &Register) -> Result<Self> {
        let changes = register.user_changes().map_err(|error| seat.failed(&error))?;
        let listed = register.users().map_err(|error| seat.failed(&error))?;
        Ok(Self { changes, listed })
    }

    /// Their accounts, without SIDs.
    fn accounts(&self) -> Vec<Account> {
        self.listed.seen.iter().map(|seen| accounts::added(&seen.record)).collect()
    }

    /// The accounts of the gateway whose names no user of the cluster has. Whoever cannot be read is one all the same.
    fn beside(&self, mut own: Vec<Account>) -> Vec<Account> {
        let readable = self.listed.seen.iter().map(|seen| folded_name(&seen.record.name));
        let unreadable = self.listed.unreadable.iter().map(|unreadable| unreadable.name.clone());
        let taken: HashSet<_> = readable.chain(unreadable).collect();
        own.retain(|account| !taken.contains(&folded_name(&account.name)));
        own
    }
}

impl Seat {
    /// Whether the vservers have accounts.
    pub(super) fn has_accounts(&self) -> bool {
        self.host.of_cluster.made_of().is_some()
    }

    /// Has the vservers use the accounts as they are now. Users that were read before others whom the vservers have already change nothing.
    ///
    /// # Errors
    /// The store does not answer, or the system lacks threads. Whoever may not log on any more does not, all the same.
    pub(super) fn use_accounts(&self, register: &Register, users: &Users) -> Result<()> {
        let of_cluster = &self.host.of_cluster;
        let _making = of_cluster.making();
        let now = Sources { users: users.changes, own: self.host.lent.accounts.changes() };
        match of_cluster.made_of() {
            Some(before) if before == now || before.users > now.users => {}
            _ => self.make_accounts(register, users)?,
        }
        of_cluster.use_people_now(&self.host.vservers);
        Ok(())
    }

    fn make_accounts(&self, register: &Register, users: &Users) -> Result<()> {
        let own = &self.host.lent.accounts;
        let (all_own, changes) = own.all();
        let (mut of_cluster, mut of_gateway) = (users.accounts(), users.beside(all_own));
        let domain = give_sids(register, of_cluster.iter_mut().chain(&mut of_gateway));
        let domain = domain.inspect_err(|_| self.withdraw_all_but(users))?;
        // A RID may be that of another user of the same name, who has come since.
        if register.user_changes().map_err(|error| self.failed(&error))? != users.changes {
            return Ok(());
        }
        let lent = match self.host.of_cluster.lent().filter(|lent| lent.machine == domain) {
            Some(lent) => lent,
            None => Arc::new(self.host.lent.with_accounts(Arc::new(own.beside()), domain)?),
        };
        let gone = lent.accounts.replace(of_cluster, of_gateway);
        self.host.of_cluster.set(lent, Sources { users: users.changes, own: changes });
        self.host.vservers.end_users(gone);
        Ok(())
    }

    /// Nobody logs on to the vservers any more who is not among these users, or is disabled.
    fn withdraw_all_but(&self, users: &Users) {
        let Some(lent) = self.host.of_cluster.lent() else { return };
        let may_log_on = users.listed.seen.iter().filter(|seen| !seen.record.disabled);
        let may_log_on = may_log_on.map(|seen| folded_name(&seen.record.name)).collect();
        self.host.vservers.end_users(lent.accounts.keep_own(&may_log_on));
    }
}

/// Gives accounts their SIDs in the domain of the cluster, which is returned.
fn give_sids<'a>(register: &Register, accounts: impl Iterator<Item = &'a mut Account>) -> Result<Sid> {
    let domain = register.account_domain();
    let sid = domain.sid()?;
    let accounts: Vec<_> = accounts.collect();
    let names: Vec<&str> = accounts.iter().map(|account| &*account.name).collect();
    let rids = domain.rids(&names)?;
    for (account, rid) in accounts.into_iter().zip(rids) {
        account.sid = sid.member(rid);
    }
    Ok(sid)
}
