//! The accounts of the vservers of a cluster: the users of the cluster, and the accounts of this gateway whose names no user of the cluster
//! has. All have their SIDs in the domain of the cluster, so that an access list means the same at each gateway.

use std::collections::BTreeSet;
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

/// What the vservers of a cluster have in common. Its lock guards it; None: the users of the cluster are not known yet, or the gateway
/// belongs to none.
#[derive(Debug, Default)]
pub(crate) struct OfCluster(Mutex<Option<Known>>);

#[derive(Debug)]
struct Known {
    lent: Arc<Lent>,
    made_of: Sources,
    people: Arc<People>,
}

/// Of which state of others the accounts are made: how often those had changed.
#[derive(Debug, PartialEq)]
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

    /// All accounts, with SIDs of other domains or none.
    fn accounts_beside(&self, own: Vec<Account>) -> Vec<Account> {
        let mut accounts: Vec<_> =
            self.listed.seen.iter().map(|seen| accounts::added(&seen.record)).collect();
        let names = accounts.iter().map(|account| folded_name(&account.name));
        // Whoever cannot be read is a user of the cluster all the same.
        let unreadable = self.listed.unreadable.iter().map(|unreadable| unreadable.name.clone());
        let taken: BTreeSet<_> = names.chain(unreadable).collect();
        accounts.extend(own.into_iter().filter(|account| !taken.contains(&folded_name(&account.name))));
        accounts
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
        let known = self.of_cluster.0.lock();
        known.as_ref().map_or_else(|| Arc::clone(&self.lent), |known| Arc::clone(&known.lent))
    }

    /// Gives numbers and SIDs their meaning in the shares of a vserver that is in the list.
    pub(crate) fn use_people_in(&self, shares: &Shares) {
        let known = self.of_cluster.0.lock();
        match &*known {
            Some(known) => use_people(shares, &known.people),
            None => use_people(shares, &self.lent.accounts.people()),
        }
    }
}

impl Seat {
    /// Whether the vservers have accounts.
    pub(super) fn has_accounts(&self) -> bool {
        self.host.of_cluster.0.lock().is_some()
    }

    /// Has the vservers use the accounts as they are now.
    ///
    /// # Errors
    /// The store does not answer, or the system lacks threads.
    pub(super) fn use_accounts(&self, register: &Register, users: &Users) -> Result<()> {
        let own = &self.host.lent.accounts;
        let mut known = self.host.of_cluster.0.lock();
        let made_of = Sources { users: users.changes, own: own.changes() };
        if known.as_ref().is_none_or(|known| known.made_of != made_of) {
            let (all_own, changes) = own.all();
            let made_of = Sources { own: changes, ..made_of };
            let (accounts, domain) = with_sids(register, users.accounts_beside(all_own))?;
            let lent = match known.take_if(|known| known.lent.machine == domain) {
                Some(known) => known.lent,
                None => Arc::new(self.host.lent.with_accounts(Arc::new(own.beside()), domain)?),
            };
            self.host.vservers.end_users(lent.accounts.replace(accounts));
            *known = Some(Known { people: Arc::default(), lent, made_of });
        }
        if let Some(known) = &mut *known {
            // They are others as well when domains have other numbers.
            let people = known.lent.accounts.people();
            if !Arc::ptr_eq(&people, &known.people) {
                known.people = Arc::clone(&people);
                for shares in self.host.vservers.tables() {
                    use_people(&shares, &people);
                }
            }
        }
        Ok(())
    }
}

/// The accounts with their SIDs, and the domain that these are in.
fn with_sids(register: &Register, mut accounts: Vec<Account>) -> Result<(Vec<Account>, Sid)> {
    let domain = register.account_domain();
    let sid = domain.sid()?;
    let names: Vec<&str> = accounts.iter().map(|account| &*account.name).collect();
    let rids = domain.rids(&names)?;
    for (account, rid) in accounts.iter_mut().zip(rids) {
        account.sid = sid.member(rid);
    }
    Ok((accounts, sid))
}
