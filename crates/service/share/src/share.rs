//! A share, put together from its parts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use access_log::AccessLog;
use storage::{Snapshot, Storage};

use crate::agreement::Agreement;
use crate::budget::Provision;
use crate::data::Data;
use crate::namespace::Namespace;
use crate::quotas::Quotas;
use crate::recycling::Recycling;
use crate::security::Security;
use crate::store::Store;
use crate::versions::{IDLE_VIEWS_MAX, Versions};
use crate::vigilance::Vigilance;
use crate::{Accounting, Accounts, Call, Changes, Ending, Outcome, Settings, ShareId, Workers};

/// A share: a store, and everything that its clients must agree on.
pub struct Share {
    id: ShareId,
    settings: Settings,
    /// Guards itself alone.
    comment: parking_lot::Mutex<String>,
    withdrawn: Arc<AtomicBool>,
    accounting: Arc<Accounting>,
    pub(crate) store: Store,
    pub(crate) agreement: Agreement,
    pub(crate) namespace: Namespace,
    pub(crate) data: Data,
    pub(crate) security: Security,
    pub(crate) changes: Arc<Changes>,
    pub(crate) budget: Arc<Provision>,
    quotas: Arc<Quotas>,
    pub(crate) versions: Versions<Self>,
    pub(crate) recycling: Recycling,
    pub(crate) vigilance: Vigilance,
    /// What this is a view at.
    pub(crate) snapshot: Option<Snapshot>,
}

impl std::fmt::Debug for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Share")
            .field("id", &self.id)
            .field("name", &self.settings.name)
            .field("snapshot", &self.snapshot)
            .finish_non_exhaustive()
    }
}

impl Share {
    /// Creates a share on a store.
    #[must_use]
    pub fn new(id: ShareId, settings: Settings, store: Arc<dyn Storage>) -> Arc<Self> {
        Self::with_workers(id, settings, store, None)
    }

    /// Creates a share whose calls to the store are run by others than threads of its own, where they may block.
    #[must_use]
    pub fn with_workers(
        id: ShareId,
        settings: Settings,
        store: Arc<dyn Storage>,
        workers: Option<Arc<dyn Workers>>,
    ) -> Arc<Self> {
        let (store, folded) = Store::new(&settings, store, workers);
        Arc::new(Self {
            id,
            comment: parking_lot::Mutex::new(settings.comment.clone()),
            withdrawn: Arc::default(),
            accounting: Arc::new(Accounting::new(settings.accounting)),
            agreement: Agreement::new(id, &settings),
            namespace: Namespace::new(Arc::clone(store.root()), folded),
            data: Data::default(),
            security: Security::new(&settings, store.storage().capabilities()),
            changes: Changes::new(&settings.name, store.storage(), settings.watches_max),
            budget: Arc::new(Provision::new(settings.provisioned.clone(), &settings.name, store.root())),
            quotas: Quotas::new(&settings.name, store.storage(), store.root()),
            versions: Versions::default(),
            recycling: Recycling::new(settings.recycle_bin.clone()),
            vigilance: Vigilance::new(settings.ransomware),
            snapshot: None,
            store,
            settings,
        })
    }

    /// A view of this share at a snapshot, which is in `store`.
    pub(crate) fn view(&self, snapshot: Snapshot, store: Arc<dyn Storage>) -> Arc<Self> {
        // Nothing changes there.
        let settings = Settings {
            metadata_cache: false,
            metadata_cache_bytes_max: self.settings.metadata_cache_bytes_max / IDLE_VIEWS_MAX,
            watches_max: self.settings.watches_max / IDLE_VIEWS_MAX,
            ..self.settings.clone()
        };
        let (store, folded) = self.store.beside(&settings, store);
        Arc::new(Self {
            id: self.id,
            comment: parking_lot::Mutex::new(self.comment()),
            withdrawn: Arc::clone(&self.withdrawn),
            accounting: Arc::clone(&self.accounting),
            agreement: self.agreement.beside(&settings),
            namespace: Namespace::new(Arc::clone(store.root()), folded),
            data: Data::default(),
            security: self.security.of_snapshot(),
            changes: Changes::new(&settings.name, store.storage(), settings.watches_max),
            budget: Arc::clone(&self.budget),
            // Nothing is charged there.
            quotas: Quotas::new(&settings.name, store.storage(), store.root()),
            versions: Versions::default(),
            recycling: Recycling::default(),
            vigilance: Vigilance::new(None),
            snapshot: Some(snapshot),
            store,
            settings,
        })
    }

    /// The number of the share.
    #[must_use]
    pub fn id(&self) -> ShareId {
        self.id
    }

    /// The name of the share.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.settings.name
    }

    /// The comment for clients that list the shares.
    #[must_use]
    pub fn comment(&self) -> String {
        self.comment.lock().clone()
    }

    /// Replaces the comment.
    pub fn set_comment(&self, comment: String) {
        *self.comment.lock() = comment;
    }

    /// Whether the share is no longer served. A caller that found it in the table before must not begin anything in it.
    #[must_use]
    pub fn is_withdrawn(&self) -> bool {
        self.withdrawn.load(Ordering::Acquire)
    }

    pub(crate) fn mark_withdrawn(&self) {
        self.withdrawn.store(true, Ordering::Release);
    }

    pub(crate) fn quotas(&self) -> &Arc<Quotas> {
        &self.quotas
    }

    pub(crate) fn access_log(&self) -> &AccessLog {
        &self.settings.access_log
    }

    /// The accounts of what calls cost.
    #[must_use]
    pub fn accounting(&self) -> &Accounting {
        &self.accounting
    }

    /// Counts a call that has ended, in the account that the caller's connection has with this share. `ending` is asked only
    /// where calls are counted.
    pub fn count(&self, accounts: &Accounts, call: &Call, ending: impl FnOnce() -> Ending) {
        accounts.end((self.id.0, &self.accounting), &call.cost(), || {
            let ending = ending();
            debug_assert!(
                call.has_had_turn() || ending.outcome != Outcome::Done,
                "{} has succeeded without its turn in the budget",
                call.operation().api.name
            );
            ending
        });
    }
}
