//! The present rules of a share, what the names in them stand for, and a number that changes with either.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use access::{Asking, Entrance, Names, Protocols, Role, Rules, is_privileged};
use parking_lot::RwLock;

use crate::{Share, Terms};

/// The rules and names in force.
#[derive(Debug)]
pub(crate) struct CurrentRules {
    /// Counts the changes.
    generation: AtomicU64,
    /// Whether the rules admit every client, by all protocols and in the same way.
    for_everybody: AtomicBool,
    /// Guards the rules and the names, each replaced as a whole.
    present: RwLock<(Arc<Rules>, Arc<Names>)>,
}

impl CurrentRules {
    pub(crate) fn new(rules: Rules) -> Self {
        Self {
            generation: AtomicU64::new(0),
            for_everybody: AtomicBool::new(rules == Rules::default()),
            present: RwLock::new((Arc::new(rules), Arc::default())),
        }
    }

    pub(crate) fn changed(&self) {
        self.generation.fetch_add(1, Ordering::Release);
    }

    fn present(&self) -> (Arc<Rules>, Arc<Names>) {
        self.present.read().clone()
    }
}

impl Share {
    /// The rules that hold now.
    #[must_use]
    pub fn rules(&self) -> Arc<Rules> {
        self.rules.present().0
    }

    /// Replaces the rules, for every later call.
    pub fn set_rules(&self, rules: Rules) {
        let mut present = self.rules.present.write();
        self.rules.for_everybody.store(rules == Rules::default(), Ordering::Relaxed);
        present.0 = Arc::new(rules);
        drop(present);
        self.rules.changed();
    }

    /// Sets what the names in the rules stand for from now on.
    pub fn set_names(&self, names: Names) {
        let mut present = self.rules.present.write();
        if *present.1 != names {
            present.1 = Arc::new(names);
            drop(present);
            self.rules.changed();
        }
    }

    /// A number that changes whenever the set of those who may use the share may have changed. A result found under one
    /// number holds while the number is the same. Read it before asking the rules.
    #[must_use]
    pub fn rules_generation(&self) -> u64 {
        self.rules.generation.load(Ordering::Acquire)
    }

    /// Whether the rules admit every client by the share's protocols.
    #[must_use]
    pub fn is_for_everybody(&self) -> bool {
        self.rules.for_everybody.load(Ordering::Relaxed)
    }

    /// What a user may do in the share; None: nothing.
    #[must_use]
    pub fn role(&self, asking: Asking<'_>) -> Option<Role> {
        let (rules, names) = self.rules.present();
        rules.role(&names, asking)
    }

    /// The protocols by which the share is served: those in its rules, or only those that can encrypt if the terms require
    /// encryption.
    #[must_use]
    pub fn served_by(&self) -> Protocols {
        served_by(self.rules().protocols, self.terms())
    }

    /// How a client may use the share by this protocol; None: it may not.
    #[must_use]
    pub fn entrance(&self, by: Protocols, client: SocketAddr) -> Option<Entrance> {
        let (rules, names) = self.rules.present();
        if !served_by(by, self.terms()).contains(by) {
            return None;
        }
        let demands_port = by.shows_ports() && self.terms().contains(Terms::SECURE_PORT);
        if demands_port && !is_privileged(client) {
            return None;
        }
        rules.entrance(&names, by, client)
    }
}

/// Of these protocols, those by which a share with these terms is served.
#[must_use]
pub fn served_by(protocols: Protocols, terms: Terms) -> Protocols {
    if terms.contains(Terms::ENCRYPTED) { protocols.that_encrypt() } else { protocols }
}

#[cfg(test)]
mod tests {
    use storage::memory::MemoryStore;

    use super::*;
    use crate::{Settings, ShareId};

    #[test]
    fn every_change_has_a_number_of_its_own() {
        let share = Share::new(ShareId(1), Settings::new("data"), Arc::new(MemoryStore::new()));
        let client = ([192, 0, 2, 7], 700).into();
        let enters = || share.entrance(Protocols::NFS, client).is_some();
        let first = share.rules_generation();
        assert!(enters());
        share.set_rules(Rules { clients: vec!["host".parse().unwrap()], ..Rules::default() });
        let second = share.rules_generation();
        assert!(second != first && !enters());
        let hosts = [("host".to_owned(), vec![client.ip()])].into();
        let names = Names { hosts, ..Names::default() };
        share.set_names(names.clone());
        let third = share.rules_generation();
        assert!(third != second && enters());
        share.set_names(names);
        assert_eq!(share.rules_generation(), third, "what is known already changes nothing");
        share.set_terms(Terms::SECURE_PORT);
        assert!(share.rules_generation() != third && enters());
        assert_eq!(share.entrance(Protocols::NFS, ([192, 0, 2, 7], 7000).into()), None);
        assert!(share.entrance(Protocols::SMB, ([192, 0, 2, 7], 7000).into()).is_some());
    }

    #[test]
    fn what_must_be_encrypted_is_not_served_in_the_clear() {
        let share = Share::new(ShareId(1), Settings::new("data"), Arc::new(MemoryStore::new()));
        let client = ([192, 0, 2, 7], 700).into();
        share.set_terms(Terms::ENCRYPTED | Terms::GUESTS);
        assert_eq!(share.served_by(), Protocols::SMB);
        assert!(share.entrance(Protocols::NFS, client).is_none());
        assert!(share.entrance(Protocols::SMB, client).is_some());
        share.set_terms(Terms::empty());
        assert!(share.served_by() == Protocols::all() && share.entrance(Protocols::NFS, client).is_some());
    }
}
