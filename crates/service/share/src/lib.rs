//! The interface of a share: identity, permission, file state, storage, accounting.
//!
//! SMB and NFS both use it, and it knows neither. What the protocols must agree on (who has a file open and how, who has
//! locked which bytes, what changed in a directory) is kept per share, and every call is counted. Calls are async, but
//! complete at once unless they have to wait for the device, for a lock or for another client: a server first polls them
//! inline (`schedule`).

mod agreement;
mod attributes;
mod budget;
mod call;
mod caller;
mod data;
mod directory;
mod door;
mod error;
mod found;
mod growth;
mod io;
mod long_call;
mod names;
mod namespace;
mod open;
mod operation;
mod overwrite;
mod ranges;
mod read;
mod restore;
mod schedule;
mod security;
mod store;
mod streams;
mod table;
mod unwritten;
mod watch;
mod xattrs;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use storage::Storage;

pub use access::{
    Asking, CLIENT_RULES_MAX, ClientRule, Entrance, Group, Names, NamesNobody, Network, NotANetwork,
    Protocols, RIGHTS_MAX, Right, Role, Rules, Squash, Who, folded_name,
};
pub use accounting::{
    Account, Accounting, Accounts, AlreadyRecording, Api, Client, Counts, Direction, Ending,
    HISTOGRAM_BUCKETS, InUse, Outcome, Record, Recorded, SIZE_BUCKETS, Traced, TracedData, Used, Waited,
    Waits, bucket_limit, response_type, size_limit,
};
pub use agreement::{
    Admission, Answering, Asked, ClientLock, Courtesy, File, GrantCounts, GrantHolder, GrantKey,
    GrantRequest, Granted, Holding, LockWait, Open, OpenRequest, Opener, Openers, Unwritten,
};
pub use attributes::{Changed, Guard};
pub use budget::LimitsStatus;
pub use cache::{CacheCount, CacheCounts, is_short_name, short_name};
pub use call::{Call, as_of_one_moment};
pub use caller::Caller;
pub use directory::{Entry, Listing, Pick};
pub use error::{Error, Result};
pub use file_state::{
    Access, AcknowledgeError, Break, ByteRange, ByteRangeLock, Caching, Holder, LockKind, LockOwner, OpenKey,
    Sharing,
};
pub use found::{Found, Location, Stream};
pub use identity::Identity;
pub use io::Written;
pub use names::DirChange;
pub use namespace::{Case, Created, NewObject, RenameHow, Walk};
pub use operation::{DirectoryReport, Front, Operation, Patience, Turn};
pub use ranges::CloneRule;
pub use read::{Read, ReadWithAttributes};
pub use security::{Object, ReadOnly, SecurityChange, Terms, may_delete, permitted, served_by};
pub use store::{Alarm, Job, STORE_THREADS_MAX, STORE_WAITING_MAX, StoreHealth, StoreWatch, Workers};
pub use table::{NotEntered, SHARES_MAX, ShareTable, ShareView, Shares};
pub use watch::{Change, ChangeAction, ChangeKinds, Changes, Seen, Watch};
pub use xattrs::ExtendedAttribute;

/// The number of a share on this server: the same after a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShareId(pub u32);

/// The configuration of a share. Values given "at first" can be changed later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The name: clients connect to `\\server\NAME`, or mount `/NAME`.
    pub name: String,
    /// The terms of use, at first.
    pub terms: Terms,
    /// The rules on who may use the share, at first ([`Share::set_rules`]).
    pub rules: Rules,
    /// The comment for clients that list the shares, at first ([`Share::set_comment`]).
    pub comment: String,
    /// Opens of all clients together, at first ([`Share::set_opens_max`]). The last quarter is for clients that hold less
    /// than a quarter ([`limits::may_take`]).
    pub opens_max: usize,
    /// Watches for changes of all clients together.
    pub watches_max: usize,
    /// How long a client may take to give up what it caches, before its grant is revoked. [MS-SMB2] 3.3.2.1 leaves the time
    /// to the server; Windows waits for 35 seconds.
    pub break_timeout: Duration,
    /// How long an operation with [`Patience::UntilRetry`] waits for that, before its client is told to retry: less than the
    /// time after which the client sends the request again.
    pub retry_after: Duration,
    /// The plan, at first ([`Share::set_plan`] changes it).
    pub provisioned: limits::Provisioned,
    /// Whether the metadata cache is on, at first ([`Share::set_metadata_cache`]). It works only on stores that report the
    /// changes of others.
    pub metadata_cache: bool,
    /// The most memory for the metadata cache and the indexes of folded names, in bytes.
    pub metadata_cache_bytes_max: usize,
    /// A store that usually answers in less than this is quick: directories of it that change often are not cached.
    pub quick_answer: Duration,
    /// Whether the cost of calls is counted. Switched off only to measure the cost of counting.
    pub accounting: bool,
}

impl Settings {
    /// The defaults for a share of this name.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            terms: Terms::empty(),
            rules: Rules::default(),
            comment: String::new(),
            opens_max: 262_144,
            watches_max: 65_536,
            break_timeout: Duration::from_secs(35),
            retry_after: Duration::from_secs(3),
            provisioned: limits::Provisioned::default(),
            metadata_cache: true,
            metadata_cache_bytes_max: cache::BYTES_MAX,
            quick_answer: cache::QUICK,
            accounting: true,
        }
    }
}

/// A share: a store, and everything that its clients must agree on.
pub struct Share {
    id: ShareId,
    settings: Settings,
    terms: security::Present,
    rules: security::CurrentRules,
    /// Guards itself alone.
    comment: parking_lot::Mutex<String>,
    withdrawn: AtomicBool,
    /// Whether the log has said what to do about directories of root that keep users out.
    root_is_told: AtomicBool,
    store: store::Store,
    agreement: agreement::Agreement,
    folded: Arc<cache::FoldedNames>,
    changes: Arc<Changes>,
    accounting: Accounting,
    budget: budget::Provision,
    read_permits: data::read_permits::ReadPermits,
}

impl std::fmt::Debug for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Share")
            .field("id", &self.id)
            .field("name", &self.settings.name)
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
        let (store, folded) = store::Store::new(&settings, store, workers);
        Arc::new(Self {
            id,
            changes: Changes::new(&settings.name, store.storage(), settings.watches_max),
            terms: security::Present::new(settings.terms),
            rules: security::CurrentRules::new(settings.rules.clone()),
            comment: parking_lot::Mutex::new(settings.comment.clone()),
            withdrawn: AtomicBool::new(false),
            root_is_told: AtomicBool::new(false),
            accounting: Accounting::new(settings.accounting),
            agreement: agreement::Agreement::new(id, &settings),
            budget: budget::Provision::new(settings.provisioned.clone(), &settings.name, store.root()),
            read_permits: data::read_permits::ReadPermits::default(),
            settings,
            folded,
            store,
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

    /// The present terms of use.
    #[must_use]
    pub fn terms(&self) -> Terms {
        self.terms.load()
    }

    /// Replaces the terms. Clients are not told again what they were told when they connected.
    pub fn set_terms(&self, terms: Terms) {
        self.terms.store(terms);
        self.rules.changed();
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
