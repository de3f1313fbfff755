//! Who may use a share and its objects: the terms of the share, its rules, permissions and security descriptors.
//!
//! This part knows no other part of a share. What a user may do with an object follows from the object's attributes and
//! descriptor alone ([`permission`]), so it has no state here.

mod descriptor;
pub(crate) mod permission;
mod read_only;
mod rules;
mod terms;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use access::{Entrance, Names, Peer, Protocols, Role, Rules};
use file_state::Access;
use identity::{Identity, People, Proof};
use storage::{Capabilities, ObjectId};

use self::rules::CurrentRules;
use self::terms::CurrentTerms;
use crate::{Error, Result, Settings};

pub use self::descriptor::SecurityChange;
pub(crate) use self::descriptor::{Birth, Exchange, keep_in_step, of_mode};
pub use self::permission::{Object, may_delete, permitted};
pub use self::read_only::ReadOnly;
pub(crate) use self::read_only::{CHANGES, PERMISSION_CHANGES};
pub use self::rules::served_by;
pub use self::terms::Terms;

/// Who may use a share.
///
/// Locks: [`CurrentRules`] says what its lock guards. It is taken alone.
pub(crate) struct Security {
    /// The name of the share, for the log.
    name: String,
    terms: Arc<CurrentTerms>,
    rules: Arc<CurrentRules>,
    /// Whether all objects are of a snapshot.
    is_snapshot: bool,
    /// Whether the store cannot change anything.
    is_store_read_only: bool,
    /// Whether the log has said what to do about directories of root that keep users out.
    root_is_told: AtomicBool,
}

impl Security {
    /// The terms and rules of a share with these settings.
    pub(crate) fn new(settings: &Settings, store: Capabilities) -> Self {
        Self {
            name: settings.name.clone(),
            terms: Arc::new(CurrentTerms::new(settings.terms)),
            rules: Arc::new(CurrentRules::new(settings.rules.clone())),
            is_snapshot: false,
            is_store_read_only: !store.contains(Capabilities::WRITE),
            root_is_told: AtomicBool::new(false),
        }
    }

    /// The terms and rules of this share, also when they change, for a view at a snapshot.
    pub(crate) fn of_snapshot(&self) -> Self {
        Self {
            name: self.name.clone(),
            terms: Arc::clone(&self.terms),
            rules: Arc::clone(&self.rules),
            is_snapshot: true,
            is_store_read_only: true,
            root_is_told: AtomicBool::new(true),
        }
    }

    /// The present terms of use.
    pub(crate) fn terms(&self) -> Terms {
        self.terms.load()
    }

    /// Replaces the terms, for every later call.
    pub(crate) fn set_terms(&self, terms: Terms) {
        self.terms.store(terms);
        self.rules.changed();
    }

    /// The rules that hold now.
    pub(crate) fn rules(&self) -> Arc<Rules> {
        self.rules.rules()
    }

    /// Replaces the rules, for every later call.
    pub(crate) fn set_rules(&self, rules: Rules) {
        self.rules.set_rules(rules);
    }

    /// Sets what the names in the rules stand for from now on.
    pub(crate) fn set_names(&self, names: Names) {
        self.rules.set_names(names);
    }

    /// A number that changes whenever the set of those who may use the share may have changed.
    pub(crate) fn generation(&self) -> u64 {
        self.rules.generation()
    }

    /// Whether the rules admit every client by the share's protocols.
    pub(crate) fn is_for_everybody(&self) -> bool {
        self.rules.is_for_everybody()
    }

    /// What a user may do in the share; None: nothing.
    pub(crate) fn role(&self, identity: &Identity, proof: &Proof) -> Option<Role> {
        self.rules.role(identity, proof)
    }

    /// The same, and what gives the role.
    pub(crate) fn grant(&self, identity: &Identity, proof: &Proof) -> Option<(Role, String)> {
        self.rules.grant(identity, proof)
    }

    /// For whom numbers and SIDs stand.
    pub(crate) fn people(&self) -> Arc<People> {
        self.rules.people()
    }

    /// The protocols by which the share is served.
    pub(crate) fn served_by(&self) -> Protocols {
        served_by(self.rules().protocols, self.terms())
    }

    /// How a client may use the share by this protocol; None: it may not.
    pub(crate) fn entrance(&self, by: Protocols, client: Peer<'_>) -> Option<Entrance> {
        self.rules.entrance(self.terms(), by, client)
    }

    /// Whether all changes are refused: by the terms, or because nobody can change a snapshot or what is in this store.
    pub(crate) fn is_read_only(&self) -> bool {
        self.is_snapshot || self.is_store_read_only || self.terms().contains(Terms::READ_ONLY)
    }

    /// Why nobody may change this object, if that is so.
    pub(crate) fn read_only(&self, object: ObjectId) -> Option<ReadOnly> {
        if self.is_snapshot {
            Some(ReadOnly::Snapshot)
        } else if self.is_read_only() {
            Some(ReadOnly::Share)
        } else if object.is_live() {
            None
        } else {
            Some(ReadOnly::Snapshot)
        }
    }

    /// Refuses to change an object that nobody may change.
    ///
    /// # Errors
    /// [`Error::ReadOnly`].
    pub(crate) fn check_writable(&self, object: ObjectId) -> Result<()> {
        self.read_only(object).map_or(Ok(()), |why| Err(Error::ReadOnly(why)))
    }

    /// Why a user who was asked for `asked` and may not is refused: to change an object of a snapshot is not a matter of
    /// permission.
    pub(crate) fn why_refused(&self, object: ObjectId, asked: Access) -> Error {
        match self.read_only(object) {
            Some(why @ ReadOnly::Snapshot) if asked.intersects(CHANGES) => Error::ReadOnly(why),
            _ => Error::AccessDenied,
        }
    }

    /// Requires the right to create an entry in a directory; `right` says of which kind (ADD_FILE, ADD_SUBDIRECTORY). The first
    /// refusal in a directory that belongs to root is logged with advice: in a share that was just set up it is rarely
    /// intended.
    ///
    /// # Errors
    /// [`Error::AccessDenied`].
    pub(crate) fn check_add(&self, who: &Identity, dir: Object<'_>, right: Access) -> Result<()> {
        let checked = permission::check_add(who, dir, right);
        if checked.is_err() && dir.uid == 0 && !self.root_is_told.swap(true, Ordering::Relaxed) {
            let (uid, mode) = (who.uid(), dir.mode & 0o7777);
            tracing::warn!(
                share = self.name,
                "the user {uid} may make nothing in a directory that belongs to root (mode {mode:o}): give users their directories \
                 (`chown {uid} DIRECTORY`) or let them write there (`setfacl -m u:{uid}:rwx DIRECTORY`); this is said once"
            );
        }
        checked
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    fn security() -> Security {
        Security::new(&Settings::new("data"), Capabilities::WRITE)
    }

    #[test]
    fn every_change_has_a_number_of_its_own() {
        let security = security();
        let client = SocketAddr::from(([192, 0, 2, 7], 700));
        let enters = || security.entrance(Protocols::NFS, client.into()).is_some();
        let first = security.generation();
        assert!(enters());
        security.set_rules(Rules { clients: vec!["host".parse().unwrap()], ..Rules::default() });
        let second = security.generation();
        assert!(second != first && !enters());
        let hosts = [("host".to_owned(), vec![client.ip()])].into();
        let names = Names { hosts, ..Names::default() };
        security.set_names(names.clone());
        let third = security.generation();
        assert!(third != second && enters());
        security.set_names(names);
        assert_eq!(security.generation(), third, "what is known already changes nothing");
        security.set_terms(Terms::SECURE_PORT);
        assert!(security.generation() != third && enters());
        let other = SocketAddr::from(([192, 0, 2, 7], 7000));
        assert_eq!(security.entrance(Protocols::NFS, other.into()), None);
        assert!(security.entrance(Protocols::SMB, other.into()).is_some());
    }

    #[test]
    fn what_must_be_encrypted_is_served_by_protocols_that_always_can() {
        let security = security();
        let client = SocketAddr::from(([192, 0, 2, 7], 700));
        security.set_terms(Terms::ENCRYPTED | Terms::GUESTS);
        assert_eq!(security.served_by(), Protocols::SMB);
        let entered =
            [Protocols::SMB, Protocols::NFS].map(|by| security.entrance(by, client.into()).is_some());
        assert_eq!(entered, [true; 2], "each protocol knows which of its calls are encrypted");
        security.set_terms(Terms::empty());
        assert_eq!(security.served_by(), Protocols::all());
    }

    #[test]
    fn a_read_only_share_and_a_snapshot_are_refused_for_reasons_of_their_own() {
        let security = security();
        let live = ObjectId::live(7);
        let snapshot = ObjectId { snapshot: 1, ..live };
        assert_eq!((security.read_only(live), security.check_writable(live)), (None, Ok(())));
        assert_eq!(security.check_writable(snapshot), Err(Error::ReadOnly(ReadOnly::Snapshot)));
        let refused = |object, asked| security.why_refused(object, asked);
        assert_eq!(refused(snapshot, Access::WRITE_DATA), Error::ReadOnly(ReadOnly::Snapshot));
        assert_eq!(refused(snapshot, Access::READ_DATA), Error::AccessDenied);
        assert_eq!(refused(live, Access::WRITE_DATA), Error::AccessDenied);
        security.set_terms(Terms::READ_ONLY);
        assert_eq!(security.read_only(snapshot), Some(ReadOnly::Share));
        assert!(security.is_read_only() && security.check_writable(live).is_err());
        let view = security.of_snapshot();
        assert_eq!(view.read_only(live), Some(ReadOnly::Snapshot));
        security.set_terms(Terms::GUESTS);
        assert!(view.is_read_only() && view.terms() == Terms::GUESTS, "its share's terms");
    }
}
