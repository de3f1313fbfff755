//! Who may use a share ([`crate::security`]).

use std::sync::Arc;

use file_state::Access;
use storage::ObjectId;

use crate::{
    Entrance, Error, Found, Identity, Names, Peer, People, Proof, Protocols, ReadOnly, Result, Role, Rules,
    Share, Terms,
};

/// Terms and rules.
impl Share {
    /// The present terms of use.
    #[must_use]
    pub fn terms(&self) -> Terms {
        self.security.terms()
    }

    /// Replaces the terms. Clients are not told again what they were told when they connected.
    pub fn set_terms(&self, terms: Terms) {
        self.security.set_terms(terms);
    }

    /// The rules that hold now.
    #[must_use]
    pub fn rules(&self) -> Arc<Rules> {
        self.security.rules()
    }

    /// Replaces the rules, for every later call.
    pub fn set_rules(&self, rules: Rules) {
        self.security.set_rules(rules);
    }

    /// Sets what the names in the rules stand for from now on.
    pub fn set_names(&self, names: Names) {
        self.security.set_names(names);
    }

    /// A number that changes whenever the set of those who may use the share may have changed. A result found under one
    /// number holds while the number is the same. Read it before asking the rules.
    #[must_use]
    pub fn rules_generation(&self) -> u64 {
        self.security.generation()
    }

    /// Whether the rules admit every client by the share's protocols.
    #[must_use]
    pub fn is_for_everybody(&self) -> bool {
        self.security.is_for_everybody()
    }

    /// What a user may do in the share; None: nothing.
    #[must_use]
    pub fn role(&self, identity: &Identity, proof: &Proof) -> Option<Role> {
        self.security.role(identity, proof)
    }

    /// The same, and what gives the role: an entry of the user list as it is written, `default-role`, or `no list`.
    #[must_use]
    pub fn grant(&self, identity: &Identity, proof: &Proof) -> Option<(Role, String)> {
        self.security.grant(identity, proof)
    }

    /// For whom numbers and SIDs stand at present.
    #[must_use]
    pub fn people(&self) -> Arc<People> {
        self.security.people()
    }

    /// The protocols by which the share is served: those in its rules, or only those that can encrypt if the terms require
    /// encryption.
    #[must_use]
    pub fn served_by(&self) -> Protocols {
        self.security.served_by()
    }

    /// How a client may use the share by this protocol; None: it may not.
    #[must_use]
    pub fn entrance(&self, by: Protocols, client: Peer<'_>) -> Option<Entrance> {
        self.security.entrance(by, client)
    }
}

/// Changes.
impl Share {
    /// Whether the share refuses all changes. [`Share::read_only`] is the question about one object.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.security.is_read_only()
    }

    /// Why nobody may change this object, if that is so. For a name that is made, removed or changed, the directory is asked
    /// about as well as the object.
    #[must_use]
    pub fn read_only(&self, object: ObjectId) -> Option<ReadOnly> {
        self.security.read_only(object)
    }

    /// Refuses to change an object that nobody may change.
    pub(crate) fn check_writable(&self, object: ObjectId) -> Result<()> {
        self.security.check_writable(object)
    }

    /// Why a caller for whom [`Share::maximal_access`] leaves out some of `asked` is refused.
    #[must_use]
    pub fn why_refused(&self, found: &Found, asked: Access) -> Error {
        self.security.why_refused(found.node.id(), asked)
    }
}
