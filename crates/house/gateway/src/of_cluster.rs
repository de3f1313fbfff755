//! What the vservers of a cluster have in common: accounts with SIDs in the domain of the cluster, and what is lent to all servers of the
//! process ([`crate::lent`]).

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use share::People;

use crate::lent::Lent;
use crate::vservers::Vservers;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct OfCluster {
    /// None: the users of the cluster are not known yet, or the gateway belongs to none. Held for look-ups.
    known: Mutex<Option<Known>>,
    /// Held by whoever makes it anew, while others look at what it was. It guards no data.
    making: Mutex<()>,
}

#[derive(Debug)]
struct Known {
    lent: Arc<Lent>,
    made_of: Sources,
    /// For whom numbers and SIDs stand in the shares of the vservers.
    people: Arc<People>,
}

/// Of which state of others the accounts are made: how often those had changed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sources {
    /// The users of the cluster.
    pub(crate) users: u64,
    /// The accounts of the gateway.
    pub(crate) own: u64,
}

impl OfCluster {
    /// Nobody else makes it anew meanwhile.
    pub(crate) fn making(&self) -> MutexGuard<'_, ()> {
        self.making.lock()
    }

    /// What is lent to vservers, if it is known.
    pub(crate) fn lent(&self) -> Option<Arc<Lent>> {
        self.known.lock().as_ref().map(|known| Arc::clone(&known.lent))
    }

    /// Of what the accounts are made.
    pub(crate) fn made_of(&self) -> Option<Sources> {
        self.known.lock().as_ref().map(|known| known.made_of)
    }

    /// From now on, this is lent to vservers. The shares of those that are served are to be told ([`OfCluster::use_people_now`]).
    pub(crate) fn set(&self, lent: Arc<Lent>, made_of: Sources) {
        let before = self.known.lock().replace(Known { lent, made_of, people: Arc::default() });
        // What nobody uses any more ends with its threads.
        drop(before);
    }

    /// It is to be made anew before anything is served again.
    pub(crate) fn forget(&self) {
        let _making = self.making();
        let before = self.known.lock().take();
        drop(before);
    }

    /// Has numbers, SIDs and the names in rules looked up in the shares of all vservers. They have another meaning when accounts have
    /// changed, or when domains have other numbers.
    pub(crate) fn use_people_now(&self, vservers: &Vservers) {
        let mut known = self.known.lock();
        let Some(known) = &mut *known else { return };
        let people = known.lent.accounts.people();
        if !Arc::ptr_eq(&people, &known.people) {
            for names in vservers.names() {
                names.look_soon();
            }
            known.people = people;
        }
    }
}
