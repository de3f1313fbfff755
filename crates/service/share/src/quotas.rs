//! The quotas of a share: what the files of each user, each group and each directory with a quota occupy, and whether they may
//! occupy more.
//!
//! Counted is what the store reports as allocated for the data of files and for named streams, each object once. Before a
//! write, the worst case of its range is reserved. What the store reports afterwards is asked for later: when a decision or a
//! report depends on it, when much is reserved, or a second after the last write. So a write costs two looks at a table.
//! A [`keeper`] thread does what nobody waits for, and counts all files.
//!
//! This part knows no other part of a share. Who changes files tells it before and after ([`Quotas::begin`],
//! [`Quotas::end`]). A share without quotas only checks one flag.

mod books;
mod keeper;
mod level;
mod of_users;
mod places;
mod rule;
mod walk;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::SystemTime;

use parking_lot::Mutex;
use quota::{Account, Limits, Owners, Standing, Subject};
use storage::{Attributes, FileKind, MayWait, NodeRef, Space, Storage, Wait, Want};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use self::books::{Asked, Books, Charged};
pub use self::of_users::{
    NewLimits, QuotaAuthority, QuotaChange, QuotaChangeError, QuotaChanging, UserQuota,
};
use self::places::Places;
pub use self::rule::{QUOTAS_MAX, QuotaFor, QuotaRule, QuotaRuleError};
use crate::{Error, Result};

/// A file is entered anew this often at most while others drop theirs. Then what is known may be a moment old.
const TRIES_MAX: u32 = 8;
/// The most bytes that one use reserves. No storage has so many, and a file's uses do not add up to 2^64.
const RESERVED_MAX: u64 = 1 << 48;
/// A file has no more allocated than its size rounded up to this, unless something is allocated beyond its end.
const SMALLEST_BLOCK: u64 = 4096;

/// The subject of a quota of a share.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum QuotaSubject {
    /// The files below the directory with this path from the root of the share; empty: the whole share.
    Directory(Vec<u8>),
    /// The files of this user.
    User(u32),
    /// The files of this group.
    Group(u32),
    /// The files of each user that has no quota of its own.
    EachUser,
    /// The files of each group that has no quota of its own.
    EachGroup,
}

/// What the quotas of a share are about, and how they stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotaStatus {
    /// When all files were last counted: what local programs have changed since then is not in the figures. None: not yet.
    pub counted: Option<SystemTime>,
    /// Whether they are being counted, or are about to be because somebody has asked for it. If not, the figures are of after that.
    pub is_counting: bool,
    /// The quotas as they are written, and what each stands for; None for a name that is not known.
    pub rules: Vec<(QuotaRule, Option<QuotaSubject>)>,
    /// The accounts that hold something or have a quota of their own.
    pub standings: Vec<(QuotaSubject, Standing)>,
}

/// The room of a file: what may be allocated to it and all files beside it (RFC 8881 5.8.2.28, 5.8.2.29, 5.8.2.30).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaRoom {
    /// Bytes that may be allocated before further allocations are refused.
    pub hard_left: u64,
    /// Bytes that may be allocated before users are warned.
    pub soft_left: u64,
    /// Bytes that are allocated.
    pub used: u64,
}

/// A use of a file that has begun. [`Quotas::end`] must follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Begun {
    /// The number of the file.
    pub file: u64,
    /// Tells the file from what had its number before.
    entry: u64,
    /// What is reserved for the use.
    reserved: u64,
    /// It may make holes.
    cuts: bool,
    /// It is of a named stream.
    is_stream: bool,
}

/// What a use of a file may lead to.
#[derive(Debug)]
pub(crate) enum Admitted {
    /// It has begun.
    Begun(Begun),
    /// Whether it fits depends on uses by others that have not ended ([`Quotas::others_end`]).
    DependsOnOthers,
}

/// The bytes of a use that may be allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range {
    pub start: u64,
    pub end: u64,
    /// They are of a named stream.
    pub is_stream: bool,
}

impl Range {
    /// Nothing is allocated: something is cut off, removed, or changes hands.
    pub(crate) const NOTHING: Self = Self { start: 0, end: 0, is_stream: false };

    fn is_nothing(self) -> bool {
        self.end == 0
    }
}

/// What a file occupies by the store.
#[derive(Debug, Clone, Copy)]
struct Held {
    bytes: u64,
    /// The data has no holes up to here.
    dense: u64,
    uid: u32,
    gid: u32,
    links: u32,
}

/// What was asked for.
#[derive(Default)]
struct Wishes {
    rules: Arc<Vec<QuotaRule>>,
    names: HashMap<String, QuotaSubject>,
    /// Since when soft limits are exceeded, from before a restart.
    over_since: HashMap<QuotaSubject, SystemTime>,
}

impl Wishes {
    /// The quotas, as far as names are known. Of two for the same user or group, the first counts.
    fn quotas(&self) -> HashMap<QuotaSubject, Limits> {
        let mut quotas = HashMap::new();
        for rule in self.rules.iter() {
            if let Some(subject) = rule.subject.meaning(&self.names) {
                quotas.entry(subject).or_insert(rule.limits);
            }
        }
        quotas
    }
}

/// The quotas of a share.
///
/// Locks: that of the wishes comes first. The others are taken one at a time. None is held across a call to the store that may
/// wait, or an await.
pub(crate) struct Quotas {
    /// The name of the share, for the log.
    name: String,
    storage: Arc<dyn Storage>,
    root: NodeRef,
    is_on: AtomicBool,
    /// Guards what was asked for.
    wishes: Mutex<Wishes>,
    /// Allocation unit of the store in bytes.
    block: AtomicU64,
    /// Guards what is charged.
    books: Mutex<Books>,
    /// Guards which directories have quotas.
    places: Mutex<Arc<Places>>,
    /// Notified when a use has ended.
    ended: Notify,
    keeper: keeper::Handle,
}

impl Quotas {
    /// No quotas, for the share of this name on `storage`.
    pub(crate) fn new(name: &str, storage: &Arc<dyn Storage>, root: &NodeRef) -> Arc<Self> {
        Arc::new(Self {
            name: name.to_owned(),
            storage: Arc::clone(storage),
            root: Arc::clone(root),
            is_on: AtomicBool::new(false),
            wishes: Mutex::default(),
            block: AtomicU64::new(4096),
            books: Mutex::default(),
            places: Mutex::default(),
            ended: Notify::new(),
            keeper: keeper::Handle::default(),
        })
    }

    /// Whether there are any quotas.
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Acquire)
    }

    /// The directories with quotas.
    pub(crate) fn places(&self) -> Arc<Places> {
        Arc::clone(&self.places.lock())
    }

    /// The quotas as they are written.
    pub(crate) fn rules(&self) -> Arc<Vec<QuotaRule>> {
        Arc::clone(&self.wishes.lock().rules)
    }

    /// Replaces the quotas. Those of names that are not known yet hold nobody back.
    pub(crate) fn set_rules(self: &Arc<Self>, rules: Vec<QuotaRule>) {
        let moved = {
            let mut wishes = self.wishes.lock();
            if *wishes.rules == rules {
                return;
            }
            wishes.rules = Arc::new(rules);
            self.set(&wishes.quotas(), &wishes.over_since)
        };
        self.move_all(moved);
    }

    /// Sets what names in the quotas stand for.
    pub(crate) fn set_names(self: &Arc<Self>, names: HashMap<String, QuotaSubject>) {
        let moved = {
            let mut wishes = self.wishes.lock();
            let before = wishes.quotas();
            wishes.names = names;
            let quotas = wishes.quotas();
            if quotas == before {
                return;
            }
            self.set(&quotas, &wishes.over_since)
        };
        self.move_all(moved);
    }

    /// Sets since when soft limits are exceeded, from before a restart. To be called before there are quotas.
    pub(crate) fn set_over_since(&self, over_since: HashMap<QuotaSubject, SystemTime>) {
        self.wishes.lock().over_since = over_since;
    }

    /// Since when soft limits are exceeded; None until all files were counted.
    pub(crate) fn over_since(&self) -> Option<HashMap<QuotaSubject, SystemTime>> {
        let places = self.places();
        let books = self.books.lock();
        let standings = books.ledger.is_counted().then(|| books.ledger.standings())?;
        let over = standings
            .into_iter()
            .filter_map(|standing| Some((places.subject_of(standing.account)?, standing.over_since?)));
        Some(over.collect())
    }

    /// Replaces the quotas. `over_since`: since when users, groups and directories hold more than their soft limits, from
    /// before a restart. All files are counted in the background. [`Quotas::move_all`] must follow.
    fn set(
        self: &Arc<Self>,
        quotas: &HashMap<QuotaSubject, Limits>,
        over_since: &HashMap<QuotaSubject, SystemTime>,
    ) -> Moved {
        if quotas.is_empty() {
            self.is_on.store(false, Ordering::Release);
            *self.places.lock() = Arc::default();
            self.books.lock().reset();
            self.keeper.reset();
            self.ended.notify_waiters();
            return Moved::default();
        }
        let places = {
            let mut places = self.places.lock();
            *places = Arc::new(places.with(quotas.keys()));
            Arc::clone(&places)
        };
        let limits = quotas.iter().filter_map(|(subject, limits)| Some((places.subject(subject)?, *limits)));
        let now = SystemTime::now();
        let moved = {
            let mut books = self.books.lock();
            // Those from before a restart are only for the first count.
            let over_since = over_since.iter().filter(|_| !books.ledger.is_counted());
            for (subject, since) in over_since.collect::<Vec<_>>() {
                let account = places.subject(subject).and_then(Subject::account);
                account.into_iter().for_each(|account| books.ledger.set_over_since(account, *since));
            }
            books.ledger.set_quotas(limits.collect(), now);
            books.places_changed()
        };
        self.keeper.count_anew();
        self.is_on.store(true, Ordering::Release);
        keeper::keep(self);
        moved
    }

    /// Charges the directories that have quotas now for files that are entered.
    fn move_all(&self, moved: Moved) {
        let places = self.places();
        for (file, node) in moved.files {
            let directory = places.of_node(&node);
            self.books.lock().move_to((file, directory), moved.change, SystemTime::now());
        }
    }

    /// Has all files counted again soon, because something was changed without telling.
    pub(crate) fn count_again(&self) {
        self.keeper.ask_for_count();
    }

    /// The worst case of a range: each block that it touches. What the file has already is left out where that is known.
    fn worst_case(&self, range: Range, dense: u64) -> u64 {
        let block = self.block.load(Ordering::Relaxed).max(512);
        let start = if range.is_stream { range.start } else { range.start.max(dense) };
        if start >= range.end {
            return 0;
        }
        let first = start / block;
        range.end.div_ceil(block).saturating_sub(first).saturating_mul(block).min(RESERVED_MAX)
    }

    /// Begins a use of a file. Refuses if the worst case of `range` does not fit.
    ///
    /// # Errors
    /// [`Error::OverQuota`], the store's.
    pub(crate) fn begin(&self, node: &NodeRef, range: Range, may: MayWait<'_>) -> Result<Admitted> {
        let file = node.id().number;
        let mut asked = self.ask(file, range).map_or_else(|| self.enter(node, may), Ok)?;
        let mut has_settled = false;
        loop {
            match asked {
                Asked::Begun(begun) => return Ok(Admitted::Begun(begun)),
                Asked::Entered => {}
                Asked::Refused(refused) if has_settled && !refused.depends_on_others => {
                    return Err(Error::OverQuota);
                }
                Asked::Refused(_) if has_settled => return Ok(Admitted::DependsOnOthers),
                // What was reserved for earlier writes may not have been needed.
                Asked::Refused(_) => {
                    has_settled = true;
                    self.settle_all(may);
                }
            }
            // It may have been forgotten meanwhile.
            asked = self.ask(file, range).map_or_else(|| self.enter(node, may), Ok)?;
        }
    }

    /// Begins a use of a file that is entered, if it fits as far as is known. Without a call to the store.
    pub(crate) fn begin_known(&self, file: u64, range: Range) -> Option<Begun> {
        match self.ask(file, range) {
            Some(Asked::Begun(begun)) => Some(begun),
            Some(Asked::Entered | Asked::Refused(_)) | None => None,
        }
    }

    /// Asks for a use of a file that is entered; None if it is not.
    fn ask(&self, file: u64, range: Range) -> Option<Asked> {
        self.books
            .lock()
            .ask(file, range.is_nothing(), range.is_stream, |dense| self.worst_case(range, dense))
    }

    /// Enters a file.
    fn enter(&self, node: &NodeRef, may: MayWait<'_>) -> Result<Asked> {
        for attempt in 1..=TRIES_MAX {
            let before = self.books.lock().dropped();
            let held = look(node, may.fresh())?;
            let charged = Charged::new(node, &held, self.places().of_node(node));
            if self.books.lock().enter(node.id().number, charged, before, attempt == TRIES_MAX) {
                break;
            }
        }
        Ok(Asked::Entered)
    }

    /// Ends a use. Returns whether the file should be settled now ([`Quotas::settle`]).
    pub(crate) fn end(&self, begun: Begun) -> bool {
        let is_due = self.books.lock().end(begun);
        if begun.reserved > 0 {
            self.ended.notify_waiters();
        }
        is_due
    }

    /// Notes that the store has allocated these bytes of a file in use.
    pub(crate) fn allocated(&self, begun: Begun, range: (u64, u64)) {
        self.books.lock().allocated(begun, range);
    }

    /// Completes when a use by others has ended. Take it before asking whether something fits.
    pub(crate) fn others_end(&self) -> Notified<'_> {
        self.ended.notified()
    }

    /// Charges a file for what the store reports now.
    pub(crate) fn settle(&self, file: u64, may: MayWait<'_>) {
        let Some(begun) = self.books.lock().begin_look(file) else { return };
        let held = look(&begun.node, may.fresh());
        let has_more = self.books.lock().end_look(file, &begun, held.ok().as_ref(), SystemTime::now());
        // Who waits may have asked before what was reserved here was given back.
        if has_more {
            self.ended.notify_waiters();
        }
    }

    /// As [`Quotas::settle`], after a use that may have freed something. The file is forgotten if too many are entered.
    pub(crate) fn settle_used(&self, file: u64, may: MayWait<'_>) {
        self.settle(file, may);
        self.books.lock().forget_idle(file, u32::MAX, SystemTime::now());
    }

    /// Settles all files for which something is reserved that is not in use.
    pub(crate) fn settle_all(&self, may: MayWait<'_>) {
        let files = self.books.lock().unsettled();
        files.into_iter().for_each(|file| self.settle(file, may));
    }

    /// Reserves room with new owners of a file in use. [`Quotas::end_transfer`] must follow.
    ///
    /// # Errors
    /// [`Error::OverQuota`]; [`storage::Error::Stale`] if the store does not know the file any more.
    pub(crate) fn begin_transfer(&self, begun: Begun, to: NewOwners, may: MayWait<'_>) -> Result<Transfer> {
        self.settle_all(may);
        self.settle(begun.file, may);
        self.books.lock().begin_transfer(begun.file, to, SystemTime::now())
    }

    /// Ends a transfer. If it `is_done`, the file is charged to its new owners.
    pub(crate) fn end_transfer(&self, transfer: Transfer, is_done: bool) {
        self.books.lock().end_transfer(&transfer, is_done, SystemTime::now());
        self.ended.notify_waiters();
    }

    /// Follows the removal of the last name of a file in use.
    pub(crate) fn removed(&self, begun: Begun) {
        self.books.lock().remove(begun.file, SystemTime::now());
        self.ended.notify_waiters();
    }

    /// Follows the making of an object.
    pub(crate) fn made(&self, node: &NodeRef, attributes: &Attributes) {
        if attributes.kind != FileKind::Regular {
            return;
        }
        let held = Held::of_data(attributes);
        let charged = Charged::new(node, &Held { bytes: 0, ..held }, self.places().of_node(node));
        self.books.lock().made(node.id().number, charged, held.bytes, SystemTime::now());
    }

    /// Follows the move of a file in use, or of a directory: a count that is under way may have missed it.
    pub(crate) fn moved(&self, node: &NodeRef) {
        self.books.lock().moved(node);
    }

    /// The accounts for which a quota holds, among those of these owners, as far as files are settled.
    fn standings_of(&self, owners: Owners) -> Vec<Standing> {
        let books = self.books.lock();
        if !books.ledger.is_counted() {
            return Vec::new();
        }
        let standings = owners.accounts().map(|account| books.ledger.standing(account));
        standings.filter(|standing| standing.limits.is_some()).collect()
    }

    /// The least room that a quota leaves to these owners, as far as files are settled; None without a quota.
    pub(crate) fn room(&self, owners: Owners) -> Option<QuotaRoom> {
        let nearest = self.standings_of(owners).into_iter().min_by_key(Standing::left)?;
        let soft = nearest.limits.and_then(|limits| limits.soft());
        let hard_left = nearest.left();
        let soft_left = soft.map_or(hard_left, |soft| soft.saturating_sub(nearest.used));
        Some(QuotaRoom { hard_left, soft_left, used: nearest.used })
    }

    /// The part of a space that quotas leave to these owners. Settles first.
    pub(crate) fn space(&self, space: Space, owners: Owners, may: MayWait<'_>) -> Space {
        self.settle_all(may);
        let nearest = self.standings_of(owners).into_iter().min_by_key(Standing::left);
        let Some((nearest, limits)) = nearest.and_then(|nearest| Some((nearest, nearest.limits?))) else {
            return space;
        };
        let (total, left) = (space.total.min(limits.last()), nearest.left());
        Space { total, free: space.free.min(left), available: space.available.min(left), ..space }
    }

    /// How everything stands. Settles first.
    pub(crate) fn settled_status(&self, may: MayWait<'_>) -> QuotaStatus {
        self.settle_all(may);
        self.status()
    }

    /// How one account stands, as far as is known without a call to the store.
    pub(crate) fn standing(&self, account: Account) -> Standing {
        let ledger = &self.books.lock().ledger;
        let standing = ledger.standing(account);
        if ledger.is_counted() { standing } else { Standing { used: 0, over_since: None, ..standing } }
    }

    /// When all files were last counted.
    pub(crate) fn counted(&self) -> Option<SystemTime> {
        self.keeper.counted()
    }

    /// How everything stands, as far as is known without a call to the store: writes of the last second may be missing.
    pub(crate) fn status(&self) -> QuotaStatus {
        let rules = {
            let wishes = self.wishes.lock();
            wishes.rules.iter().map(|rule| (rule.clone(), rule.subject.meaning(&wishes.names))).collect()
        };
        // Before the figures: what has ended by now is in them.
        let is_counting = self.keeper.is_asked() || self.books.lock().ledger.is_counting();
        let (places, counted) = (self.places(), self.keeper.counted());
        let books = self.books.lock();
        let standings = if books.ledger.is_counted() { books.ledger.standings() } else { Vec::new() };
        let named = standings
            .into_iter()
            .filter_map(|standing| Some((places.subject_of(standing.account)?, standing)));
        QuotaStatus { counted, rules, is_counting, standings: named.collect() }
    }
}

/// Files that were entered when other directories got quotas.
#[derive(Default)]
struct Moved {
    files: Vec<(u64, NodeRef)>,
    /// Which change of directories it was.
    change: u64,
}

/// Whom a file is to be charged to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NewOwners {
    /// Another user and group.
    People(u32, u32),
    /// Another directory with a quota, or none.
    Directory(Option<u64>),
}

/// A transfer that has begun.
#[derive(Debug)]
pub(crate) struct Transfer {
    file: u64,
    from: Owners,
    to: Owners,
    bytes: u64,
    /// Of which books.
    epoch: u64,
}

impl Held {
    fn of_data(attributes: &Attributes) -> Self {
        let is_file = attributes.kind == FileKind::Regular;
        let allocated = if is_file { attributes.allocated } else { 0 };
        Self {
            bytes: allocated,
            // What is allocated beyond the end may stand for a hole before it.
            dense: if is_file && is_dense(attributes.size, allocated) { attributes.size } else { 0 },
            uid: attributes.uid,
            gid: attributes.gid,
            links: attributes.links,
        }
    }
}

/// Whether a file of this size has no holes, as far as its allocation tells.
fn is_dense(size: u64, allocated: u64) -> bool {
    size <= allocated && allocated <= size.checked_next_multiple_of(SMALLEST_BLOCK).unwrap_or(u64::MAX)
}

/// What an object occupies: its data and its named streams.
fn look(node: &NodeRef, may: MayWait<'_>) -> storage::Result<Held> {
    let held = Held::of_data(&node.attributes(Want::empty(), Wait::May(may))?);
    Ok(Held { bytes: held.bytes.saturating_add(streams(node, may)?), ..held })
}

/// What the named streams of an object occupy.
fn streams(node: &NodeRef, may: MayWait<'_>) -> storage::Result<u64> {
    match node.streams(may) {
        Err(storage::Error::NotSupported | storage::Error::WrongKind) => Ok(0),
        listed => Ok(listed?.iter().map(|stream| stream.allocated).fold(0, u64::saturating_add)),
    }
}

#[cfg(test)]
mod tests;
