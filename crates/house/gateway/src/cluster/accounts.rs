//! The accounts of the vservers of a cluster: the users of the cluster, and the accounts of this gateway whose names no user of the cluster
//! has. All have their SIDs in the domain of the cluster, so that an access list means the same at each gateway.

use std::collections::HashSet;
use std::sync::Arc;

use acl::Sid;
use auth::{Account, folded_name};
use parking_lot::Mutex;
use share::{Names, People, Shares};
use state::UserRecord;
use state::cluster::{Listed, Register};

use super::Seat;
use crate::accounts;
use crate::lent::Lent;
use crate::problem::Result;
use crate::vserver_commands::Host;

/// What the vservers of a cluster have in common.
#[derive(Debug, Default)]
pub(crate) struct OfCluster {
    /// None: the users of the cluster are not known yet, or the gateway belongs to none. Held for look-ups.
    known: Mutex<Option<Known>>,
    /// Held by whoever makes it anew, while others look at what it was. It guards no data.
    making: Mutex<()>,
}

impl OfCluster {
    /// The users are to be read before anything is served again.
    pub(super) fn forget(&self) {
        let _making = self.making.lock();
        drop(self.known.lock().take());
    }
}

#[derive(Debug)]
struct Known {
    lent: Arc<Lent>,
    made_of: Sources,
    people: Arc<People>,
}

/// Of which state of others the accounts are made: how often those had changed.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Sources {
    users: u64,
    own: u64,
}

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

/// Gives numbers and SIDs their meaning in shares of vservers, whose rules name nobody.
fn use_people(shares: &Shares, people: &Arc<People>) {
    for share in shares.in_order() {
        share.set_names(Names { people: Arc::clone(people), ..Names::default() });
    }
}

impl Host {
    /// What a vserver has in common with others.
    pub(crate) fn lent_to_vservers(&self) -> Arc<Lent> {
        let known = self.of_cluster.known.lock();
        known.as_ref().map_or_else(|| Arc::clone(&self.lent), |known| Arc::clone(&known.lent))
    }

    /// Gives numbers and SIDs their meaning in the shares of a vserver that is in the list.
    pub(crate) fn use_people_in(&self, shares: &Shares) {
        let known = self.of_cluster.known.lock();
        match &*known {
            Some(known) => use_people(shares, &known.people),
            None => use_people(shares, &self.lent.accounts.people()),
        }
    }

    /// They are others when accounts have changed, or when domains have other numbers.
    fn use_people_now(&self) {
        let mut known = self.of_cluster.known.lock();
        let Some(known) = &mut *known else { return };
        let people = known.lent.accounts.people();
        if !Arc::ptr_eq(&people, &known.people) {
            for shares in self.vservers.tables() {
                use_people(&shares, &people);
            }
            known.people = people;
        }
    }
}

impl Seat {
    /// Whether the vservers have accounts.
    pub(super) fn has_accounts(&self) -> bool {
        self.host.of_cluster.known.lock().is_some()
    }

    /// Has the vservers use the accounts as they are now. Users that were read before others whom the vservers have already change nothing.
    ///
    /// # Errors
    /// The store does not answer, or the system lacks threads. Whoever may not log on any more does not, all the same.
    pub(super) fn use_accounts(&self, register: &Register, users: &Users) -> Result<()> {
        let _making = self.host.of_cluster.making.lock();
        let own = &self.host.lent.accounts;
        let now = Sources { users: users.changes, own: own.changes() };
        let before = self.host.of_cluster.known.lock().as_ref().map(|known| known.made_of);
        match before {
            Some(before) if before == now || before.users > now.users => {}
            _ => self.make_accounts(register, users)?,
        }
        self.host.use_people_now();
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
        let known = self.host.of_cluster.known.lock().as_ref().map(|known| Arc::clone(&known.lent));
        let lent = match known.filter(|lent| lent.machine == domain) {
            Some(lent) => lent,
            None => Arc::new(self.host.lent.with_accounts(Arc::new(own.beside()), domain)?),
        };
        let gone = lent.accounts.replace(of_cluster, of_gateway);
        let made_of = Sources { users: users.changes, own: changes };
        let people = Arc::default();
        let before = self.host.of_cluster.known.lock().replace(Known { lent, made_of, people });
        // A book that nobody uses ends with its threads.
        drop(before);
        self.host.vservers.end_users(gone);
        Ok(())
    }

    /// Nobody logs on to the vservers any more who is not among these users, or is disabled.
    fn withdraw_all_but(&self, users: &Users) {
        let Some(lent) = self.host.of_cluster.known.lock().as_ref().map(|known| Arc::clone(&known.lent))
        else {
            return;
        };
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
