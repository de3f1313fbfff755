//! The present rules of a share, what the names in them stand for, and a number that changes with either.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use access::{Entrance, Names, Peer, Protocols, Role, Rules, is_privileged};
use identity::{Identity, People, Proof};
use parking_lot::RwLock;

use super::terms::Terms;

/// Where the numbers of the next share's rules begin. A share that was withdrawn may return under its number, and what was
/// remembered of its rules must not count then.
static NEXT: AtomicU64 = AtomicU64::new(0);
/// More changes than the rules of one share see.
const CHANGES_MAX: u64 = 1 << 32;

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
            generation: AtomicU64::new(NEXT.fetch_add(CHANGES_MAX, Ordering::Relaxed)),
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

impl CurrentRules {
    /// The rules that hold now.
    pub(crate) fn rules(&self) -> Arc<Rules> {
        self.present().0
    }

    /// Replaces the rules, for every later call.
    pub(crate) fn set_rules(&self, rules: Rules) {
        let mut present = self.present.write();
        self.for_everybody.store(rules == Rules::default(), Ordering::Relaxed);
        present.0 = Arc::new(rules);
        drop(present);
        self.changed();
    }

    /// Sets what the names in the rules stand for from now on.
    pub(crate) fn set_names(&self, names: Names) {
        let mut present = self.present.write();
        if *present.1 != names {
            present.1 = Arc::new(names);
            drop(present);
            self.changed();
        }
    }

    /// A number that changes with the rules, the names in them, and the terms.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Whether the rules admit every client by the share's protocols.
    pub(crate) fn is_for_everybody(&self) -> bool {
        self.for_everybody.load(Ordering::Relaxed)
    }

    /// For whom numbers and SIDs stand.
    pub(crate) fn people(&self) -> Arc<People> {
        Arc::clone(&self.present.read().1.people)
    }

    /// What a user may do in the share; None: nothing.
    pub(crate) fn role(&self, identity: &Identity, proof: &Proof) -> Option<Role> {
        let (rules, names) = self.present();
        rules.role(&names, identity, proof)
    }

    /// The same, and what gives the role.
    pub(crate) fn grant(&self, identity: &Identity, proof: &Proof) -> Option<(Role, String)> {
        let (rules, names) = self.present();
        rules.grant(&names, identity, proof).map(|grant| (grant.role, grant.by.to_string()))
    }

    /// How a client may use a share with these terms by this protocol; None: it may not. A share that is encrypted is the
    /// business of the protocol: it knows how each call comes.
    pub(crate) fn entrance(&self, terms: Terms, by: Protocols, client: Peer<'_>) -> Option<Entrance> {
        let demands_port = by.shows_ports() && terms.contains(Terms::SECURE_PORT);
        if demands_port && !is_privileged(client.address) {
            return None;
        }
        let (rules, names) = self.present();
        rules.entrance(&names, by, client)
    }
}

/// Of these protocols, those by which a share with these terms is served.
#[must_use]
pub fn served_by(protocols: Protocols, terms: Terms) -> Protocols {
    if terms.intersects(Terms::ENCRYPTED | Terms::TLS) { protocols.that_encrypt() } else { protocols }
}
