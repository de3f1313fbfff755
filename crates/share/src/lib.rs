//! The one door to a share: identity, permission, file state, storage, accounting.
//!
//! SMB and NFS both come through here, and nothing here knows either. What two protocols must agree on
//! (who has a file open and how, who has locked which bytes, what changed in a directory) is kept per
//! share, and every call is counted. Calls are async, but complete at once unless they have to wait for
//! the device, for a lock or for another client: a server polls them once inline ([`schedule`]).

mod account;
mod accounting;
mod alarm;
mod attributes;
mod cache;
mod caching;
mod caller;
mod capacity;
mod courtesy;
mod dir_change;
mod directory;
mod error;
mod files;
mod folded;
mod in_use;
mod inside;
mod io;
mod lock;
mod long_call;
mod namespace;
mod notify;
mod observe;
mod open;
mod openers;
mod overwrite;
mod own_changes;
mod permission;
mod pool;
mod provision;
mod ranges;
mod reclaims;
mod removed;
mod restore;
mod rules;
pub mod schedule;
mod security;
mod short_name;
mod streams;
mod table;
mod terms;
mod throttle;
pub mod timings;
mod trace;
mod unwritten;
mod within;
mod xattrs;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use storage::{NodeRef, Storage};

pub use account::{Account, Accounting, Accounts, CLIENTS_AWAY_MAX, CLIENTS_MAX};
pub use accounting::{
    Api, Counts, HISTOGRAM_BUCKETS, Measure, Outcome, Record, SIZE_BUCKETS, Waited, bucket_limit,
    response_type, size_limit,
};
pub use alarm::Alarm;
pub use attributes::{Changed, Guard};
pub use cache::{CacheCount, CacheCounts};
pub use caching::{Admission, Answering, GrantCounts, GrantHolder, GrantKey, GrantRequest, Granted};
pub use caller::{Caller, Client, Identity, Protocol};
pub use courtesy::Courtesy;
pub use dir_change::DirChange;
pub use directory::{Entry, Listing, Pick};
pub use error::{Error, Result};
pub use file_state::{
    Access, AcknowledgeError, Break, ByteRange, ByteRangeLock, Caching, Holder, LockKind, LockOwner, OpenKey,
    Sharing,
};
pub use files::Location;
pub use in_use::{InUse, Used};
pub use inside::StoreWatch;
pub use io::{File, Written};
pub use lock::{ClientLock, LockWait};
pub use namespace::{Case, Created, Found, NewObject, RenameHow, Walk};
pub use notify::{Change, ChangeAction, ChangeKinds, Changes, Seen, Watch};
pub use open::{Open, OpenRequest};
pub use openers::{Opener, Openers};
pub use permission::{Object, may_delete, permitted};
pub use pool::{STORE_THREADS_MAX, STORE_WAITING_MAX, StoreHealth};
pub use provision::{LimitsStatus, Turn, turn};
pub use ranges::CloneRule;
pub use restore::Holding;
pub use rules::{
    Asking, CLIENT_RULES_MAX, ClientRule, Entrance, Group, Names, NamesNobody, Network, NotANetwork,
    Protocols, RIGHTS_MAX, Right, Role, Rules, Squash, Who, served_by,
};
pub use security::SecurityChange;
pub use short_name::{is_short_name, short_name};
pub use streams::Stream;
pub use table::{NotEntered, SHARES_MAX, ShareTable, ShareView, Shares, folded_name};
pub use terms::Terms;
pub use trace::{AlreadyRecording, Recorded, Traced, TracedData};
pub use unwritten::{Asked, Unwritten};
pub use xattrs::ExtendedAttribute;

/// The number of a share on this server: the same after a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShareId(pub u32);

/// What an administrator says of a share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Its name: clients connect to `\\server\NAME`, or mount `/NAME`.
    pub name: String,
    /// On what terms clients use it, at first.
    pub terms: Terms,
    /// Who may use it, at first ([`Share::set_rules`]).
    pub rules: Rules,
    /// What clients that list the shares are told of it, at first ([`Share::set_comment`]).
    pub comment: String,
    /// Opens at a time, of all clients together, at first ([`Share::set_opens_max`]). The last quarter is for those that hold
    /// less than a quarter ([`limits::may_take`]).
    pub opens_max: usize,
    /// Open watches for changes at a time, of all clients together.
    pub watches_max: usize,
    /// How long a client may take to give back what it caches, before it is taken from it. [MS-SMB2] 3.3.2.1
    /// leaves it to the server; Windows waits for 35 seconds.
    pub break_timeout: Duration,
    /// How long an NFS request waits for that, before its client is told to come back later: less than the
    /// client waits before it sends the request again.
    pub nfs_patience: Duration,
    /// What is provisioned for it at first ([`Share::set_plan`] changes it).
    pub provisioned: limits::Provisioned,
    /// What was read of names and directories is kept at first, where the store tells what others change
    /// ([`Share::set_metadata_cache`]).
    pub metadata_cache: bool,
    /// What the metadata cache keeps, and the indexes of folded names, in bytes.
    pub metadata_cache_bytes_max: usize,
    /// A store that answers in less than this, as a rule, is quick: what changes often there is not kept.
    pub quick_answer: Duration,
    /// What calls cost is counted. Without it nothing of it is told: to measure what the counting costs.
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
            nfs_patience: Duration::from_secs(3),
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
    terms: terms::Present,
    doors: rules::Doors,
    /// Guards itself alone.
    comment: parking_lot::Mutex<String>,
    withdrawn: AtomicBool,
    /// The log has said what to do where root's directories keep users out.
    root_is_told: AtomicBool,
    store: Arc<dyn Storage>,
    root: NodeRef,
    gate: schedule::Gate,
    pool: pool::Pool,
    alarms: alarm::Alarms,
    /// Guards what its store holds up at present.
    held: parking_lot::Mutex<Option<inside::Held>>,
    files: files::Files,
    folded: Arc<folded::FoldedNames>,
    /// Whose turn it is to take long ([`Share::run_long`]). It guards nothing.
    long_calls: tokio::sync::Mutex<()>,
    cache: Option<Arc<cache::Cache>>,
    changes: Changes,
    accounting: Accounting,
    grants: GrantCounts,
    provision: provision::Provision,
    reclaims: reclaims::Reclaims,
    opens: openers::OpenCount,
    courtesies: courtesy::Courtesies,
    next_open: AtomicU64,
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
    /// A share on a store.
    #[must_use]
    pub fn new(id: ShareId, settings: Settings, store: Arc<dyn Storage>) -> Arc<Self> {
        let budget = Arc::new(cache::Budget::new(settings.metadata_cache_bytes_max));
        let folded = Arc::new(folded::FoldedNames::new(Arc::clone(&budget)));
        let cached = cache::CachedStore::in_front_of(&store, &folded, &budget, &settings);
        let (store, cache) = cached.map_or((store, None), |(store, cache)| (store, Some(cache)));
        let root = store.root();
        let opens_max = settings.opens_max;
        let provision = provision::Provision::new(settings.provisioned.clone());
        let is_local = store.capabilities().contains(storage::Capabilities::LOCAL);
        let pool = pool::Pool::new(&settings.name);
        Arc::new(Self {
            id,
            changes: Changes::new(Arc::clone(&root), settings.watches_max),
            terms: terms::Present::new(settings.terms),
            doors: rules::Doors::new(settings.rules.clone()),
            comment: parking_lot::Mutex::new(settings.comment.clone()),
            withdrawn: AtomicBool::new(false),
            root_is_told: AtomicBool::new(false),
            accounting: Accounting::new(settings.accounting),
            settings,
            root,
            store,
            gate: schedule::Gate::new(is_local),
            pool,
            alarms: alarm::Alarms::default(),
            held: parking_lot::Mutex::default(),
            files: files::Files::default(),
            folded,
            long_calls: tokio::sync::Mutex::default(),
            cache,
            grants: GrantCounts::default(),
            provision,
            reclaims: reclaims::Reclaims::default(),
            opens: openers::OpenCount::new(opens_max),
            courtesies: courtesy::Courtesies::default(),
            next_open: AtomicU64::new(1),
        })
    }

    /// Its number.
    #[must_use]
    pub fn id(&self) -> ShareId {
        self.id
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.settings.name
    }

    /// On what terms clients use it now.
    #[must_use]
    pub fn terms(&self) -> Terms {
        self.terms.load()
    }

    /// The terms are others from now on. What clients were told when they connected they are not told again.
    pub fn set_terms(&self, terms: Terms) {
        self.terms.store(terms);
        self.doors.changed();
    }

    /// What clients that list the shares are told of it.
    #[must_use]
    pub fn comment(&self) -> String {
        self.comment.lock().clone()
    }

    /// They are told this from now on.
    pub fn set_comment(&self, comment: String) {
        *self.comment.lock() = comment;
    }

    /// So many opens there may be from now on; more that there are stay.
    pub fn set_opens_max(&self, opens_max: usize) {
        self.opens.set_most(opens_max);
    }

    /// Whether nothing can be changed through it.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.terms().contains(Terms::READ_ONLY)
    }

    /// Whether it is served no more: who has found it in the table before must not begin anything in it.
    #[must_use]
    pub fn is_withdrawn(&self) -> bool {
        self.withdrawn.load(Ordering::Acquire)
    }

    pub(crate) fn mark_withdrawn(&self) {
        self.withdrawn.store(true, Ordering::Release);
    }

    /// The directory at its top.
    #[must_use]
    pub fn root(&self) -> &NodeRef {
        &self.root
    }

    /// What its store can do.
    #[must_use]
    pub fn capabilities(&self) -> storage::Capabilities {
        self.store.capabilities()
    }

    /// What its calls cost.
    #[must_use]
    pub fn accounting(&self) -> &Accounting {
        &self.accounting
    }

    /// What its metadata cache has done; None where there is none: it is switched off, or the store cannot tell what others
    /// change.
    #[must_use]
    pub fn cache_counts(&self) -> Option<CacheCounts> {
        self.cache.as_ref().filter(|cache| cache.is_on()).map(|cache| cache.counts())
    }

    /// Switches the metadata cache on or off: when it is off nothing is kept.
    pub fn set_metadata_cache(&self, on: bool) {
        if let Some(cache) = &self.cache {
            cache.switch(on);
        }
    }

    /// What changes in it.
    #[must_use]
    pub fn changes(&self) -> &Changes {
        &self.changes
    }
}
