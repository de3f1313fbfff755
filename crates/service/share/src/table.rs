//! The table of served shares, one for all protocols. It can change while it is being read.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use access::folded_name;
use parking_lot::Mutex;
use storage::QuickMap;
use thiserror::Error;

use crate::{Gone, Share, ShareId};

/// Shares served at a time: each has its own tables, threads and descriptors.
pub const SHARES_MAX: usize = 4096;

/// The shares by number, for those who keep none of them.
type InViews = QuickMap<ShareId, Weak<Share>>;

/// The shares at one moment.
#[derive(Debug, Default, Clone)]
pub struct Shares {
    by_id: QuickMap<ShareId, Arc<Share>>,
    /// The shares by folded name.
    by_name: HashMap<String, Arc<Share>>,
    /// The names of shares that will be served once their stores answer.
    awaited: BTreeMap<ShareId, String>,
    /// The shares that other servers have.
    gone: BTreeMap<ShareId, Arc<Gone>>,
    /// Their numbers by folded name.
    gone_by_name: HashMap<String, ShareId>,
    /// What views of the table have of it, which may be old.
    in_views: Arc<InViews>,
}

/// Why a share cannot be entered.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NotEntered {
    /// A share with this name exists. Case does not distinguish names.
    #[error("there is a share {0} already")]
    Name(String),
    /// A share with this number exists.
    #[error("the number of the share is that of the share {0}")]
    Number(String),
    /// There are [`SHARES_MAX`] shares already.
    #[error("there are {SHARES_MAX} shares already")]
    Full,
}

impl Shares {
    /// The share with this number.
    #[must_use]
    pub fn by_id(&self, id: ShareId) -> Option<&Arc<Share>> {
        self.by_id.get(&id)
    }

    /// The share with this name, regardless of case.
    #[must_use]
    pub fn by_name(&self, name: &str) -> Option<&Arc<Share>> {
        self.by_name.get(&folded_name(name))
    }

    /// All shares, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Share>> {
        self.by_id.values()
    }

    /// All shares, by name.
    #[must_use]
    pub fn in_order(&self) -> Vec<Arc<Share>> {
        let mut shares: Vec<_> = self.by_id.values().cloned().collect();
        shares.sort_by(|one, other| one.name().cmp(other.name()));
        shares
    }

    /// The numbers and names of shares that will be served once their stores answer.
    pub fn awaited(&self) -> impl Iterator<Item = (ShareId, &str)> {
        self.awaited.iter().map(|(id, name)| (*id, name.as_str()))
    }

    /// Whether the share with this number waits for its store.
    #[must_use]
    pub fn is_awaited(&self, id: ShareId) -> bool {
        self.awaited.contains_key(&id)
    }

    /// The share with this name, regardless of case, if it waits for its store.
    #[must_use]
    pub fn awaited_by_name(&self, name: &str) -> Option<ShareId> {
        let name = folded_name(name);
        self.awaited().find(|(_, awaited)| folded_name(awaited) == name).map(|(id, _)| id)
    }

    /// The shares that have gone to other servers, by number.
    pub fn gone(&self) -> impl Iterator<Item = &Arc<Gone>> {
        self.gone.values()
    }

    /// Where the share with this number has gone.
    #[must_use]
    pub fn gone_by_id(&self, id: ShareId) -> Option<&Arc<Gone>> {
        self.gone.get(&id)
    }

    /// Where the share with this name has gone, regardless of case.
    #[must_use]
    pub fn gone_by_name(&self, name: &str) -> Option<&Arc<Gone>> {
        self.gone.get(self.gone_by_name.get(&folded_name(name))?)
    }

    /// The number of shares.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Whether there are no shares.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    fn awaits_no_more(&mut self, name: &str) {
        let name = folded_name(name);
        self.awaited.retain(|_, awaited| folded_name(awaited) != name);
    }

    fn is_gone_no_more(&mut self, name: &str) {
        if let Some(id) = self.gone_by_name.remove(&folded_name(name)) {
            self.gone.remove(&id);
        }
    }

    /// Takes out a share. None if there is no such share.
    fn remove(&mut self, id: ShareId) -> Option<Arc<Share>> {
        let share = self.by_id.remove(&id)?;
        self.by_name.remove(&folded_name(share.name()));
        Some(share)
    }

    fn check_new(&self, share: &Share) -> Result<(), NotEntered> {
        if let Some(known) = self.by_name(share.name()) {
            return Err(NotEntered::Name(known.name().to_owned()));
        }
        if let Some(known) = self.by_id(share.id()) {
            return Err(NotEntered::Number(known.name().to_owned()));
        }
        if let Some(gone) = self.gone_by_id(share.id())
            && folded_name(&gone.name) != folded_name(share.name())
        {
            return Err(NotEntered::Number(gone.name.clone()));
        }
        if self.len() >= SHARES_MAX { Err(NotEntered::Full) } else { Ok(()) }
    }
}

/// The table of served shares.
#[derive(Debug, Default)]
pub struct ShareTable {
    /// Counts the changes, so that readers notice a change without taking the lock.
    version: AtomicU64,
    /// Guards the present shares, which are replaced as a whole.
    present: Mutex<Arc<Shares>>,
}

impl ShareTable {
    /// Creates a table with these shares.
    ///
    /// # Errors
    /// Two shares have the same name or number, or there are too many.
    pub fn new(shares: impl IntoIterator<Item = Arc<Share>>) -> Result<Arc<Self>, NotEntered> {
        let table = Self::default();
        for share in shares {
            table.enter(&share)?;
        }
        Ok(Arc::new(table))
    }

    /// The present shares, for rare uses. For every request, use a [`ShareView`].
    #[must_use]
    pub fn present(&self) -> Arc<Shares> {
        Arc::clone(&self.present.lock())
    }

    /// Serves a share from now on.
    ///
    /// # Errors
    /// The name or number is taken, or there are too many shares.
    pub fn enter(&self, share: &Arc<Share>) -> Result<(), NotEntered> {
        let mut present = self.present.lock();
        present.check_new(share)?;
        let mut next = Shares::clone(&present);
        next.by_name.insert(folded_name(share.name()), Arc::clone(share));
        next.by_id.insert(share.id(), Arc::clone(share));
        next.awaits_no_more(share.name());
        next.is_gone_no_more(share.name());
        self.replace(&mut present, next);
        Ok(())
    }

    /// Notes that a share waits for its store. It is entered when the store answers.
    pub fn await_store(&self, id: ShareId, name: &str) {
        let mut present = self.present.lock();
        let mut next = Shares::clone(&present);
        next.awaits_no_more(name);
        next.is_gone_no_more(name);
        next.awaited.insert(id, name.to_owned());
        self.replace(&mut present, next);
    }

    /// Stops waiting for the store of the share with this name.
    pub fn await_no_more(&self, name: &str) {
        let mut present = self.present.lock();
        if present.awaited_by_name(name).is_some() {
            let mut next = Shares::clone(&present);
            next.awaits_no_more(name);
            self.replace(&mut present, next);
        }
    }

    /// Stops serving a share: it can no longer be found, and [`Share::is_withdrawn`] tells callers that have found it
    /// already. The servers must close its opens. None if there is no such share.
    pub fn withdraw(&self, id: ShareId) -> Option<Arc<Share>> {
        let mut present = self.present.lock();
        let mut next = Shares::clone(&present);
        let share = next.remove(id)?;
        share.mark_withdrawn();
        self.replace(&mut present, next);
        Some(share)
    }

    /// Notes that another server has this share, until a share of the name is entered. A share of this name and number that
    /// is served is withdrawn in the same step, so that no client finds nothing in between; the servers must close its
    /// opens. What was noted for the name before is forgotten.
    ///
    /// # Errors
    /// The name or the number is that of another share, or there are too many.
    pub fn has_gone(&self, gone: Gone) -> Result<Option<Arc<Share>>, NotEntered> {
        let mut present = self.present.lock();
        let mut next = Shares::clone(&present);
        let share = next.by_name(&gone.name).map(|share| share.id()).filter(|id| *id == gone.id);
        let share = share.and_then(|id| next.remove(id));
        if let Some(known) = next.by_name(&gone.name) {
            return Err(NotEntered::Name(known.name().to_owned()));
        }
        if let Some(known) = next.by_id(gone.id) {
            return Err(NotEntered::Number(known.name().to_owned()));
        }
        next.awaits_no_more(&gone.name);
        next.is_gone_no_more(&gone.name);
        if let Some(known) = next.gone_by_id(gone.id) {
            return Err(NotEntered::Number(known.name.clone()));
        }
        if next.gone.len() >= SHARES_MAX {
            return Err(NotEntered::Full);
        }
        next.gone_by_name.insert(folded_name(&gone.name), gone.id);
        next.gone.insert(gone.id, Arc::new(gone));
        share.iter().for_each(|share| share.mark_withdrawn());
        self.replace(&mut present, next);
        Ok(share)
    }

    /// Forgets where the share with this name has gone, regardless of case.
    pub fn is_gone_no_more(&self, name: &str) {
        let mut present = self.present.lock();
        if present.gone_by_name(name).is_some() {
            let mut next = Shares::clone(&present);
            next.is_gone_no_more(name);
            self.replace(&mut present, next);
        }
    }

    fn replace(&self, present: &mut Arc<Shares>, mut next: Shares) {
        next.in_views = Arc::new(next.by_id.iter().map(|(id, share)| (*id, Arc::downgrade(share))).collect());
        *present = Arc::new(next);
        self.version.fetch_add(1, Ordering::Release);
    }
}

/// A reader's view of the table, for use with every request. It only reads a counter while nothing changes. It keeps no share that was
/// withdrawn from its end, although it notices that with the next request only.
#[derive(Debug)]
pub struct ShareView {
    table: Arc<ShareTable>,
    seen: RefCell<(u64, Arc<InViews>)>,
}

impl ShareView {
    /// Creates a view of this table.
    #[must_use]
    pub fn new(table: &Arc<ShareTable>) -> Self {
        // The counter first: a change in between costs one extra lookup, and is never missed.
        let version = table.version.load(Ordering::Acquire);
        let seen = Arc::clone(&table.present().in_views);
        Self { table: Arc::clone(table), seen: RefCell::new((version, seen)) }
    }

    /// Whether the share with this number waits for its store.
    #[must_use]
    pub fn is_awaited(&self, id: ShareId) -> bool {
        self.table.present().is_awaited(id)
    }

    /// Where the share with this number has gone.
    #[must_use]
    pub fn gone_by_id(&self, id: ShareId) -> Option<Arc<Gone>> {
        self.table.present().gone_by_id(id).cloned()
    }

    /// The share with this number, as the table is now.
    #[must_use]
    pub fn by_id(&self, id: ShareId) -> Option<Arc<Share>> {
        let version = self.table.version.load(Ordering::Acquire);
        let mut seen = self.seen.borrow_mut();
        if seen.0 != version {
            *seen = (version, Arc::clone(&self.table.present().in_views));
        }
        seen.1.get(&id)?.upgrade()
    }
}

#[cfg(test)]
mod tests {
    use storage::memory::MemoryStore;

    use super::*;
    use crate::Settings;

    fn share(id: u32, name: &str) -> Arc<Share> {
        Share::new(ShareId(id), Settings::new(name), Arc::new(MemoryStore::new()))
    }

    #[test]
    fn shares_come_and_go_before_the_eyes_of_a_reader() {
        let table = ShareTable::new([share(1, "Data")]).unwrap();
        let view = ShareView::new(&table);
        let before = table.present();
        table.enter(&share(2, "more")).unwrap();
        assert_eq!(view.by_id(ShareId(2)).unwrap().name(), "more");
        assert_eq!(table.present().by_name("MORE").unwrap().id(), ShareId(2));
        let data = table.withdraw(ShareId(1)).unwrap();
        assert!(data.is_withdrawn() && view.by_id(ShareId(1)).is_none());
        assert!(table.present().by_name("data").is_none() && table.withdraw(ShareId(1)).is_none());
        assert_eq!(before.len(), 1, "what somebody looks at stays as it was");
        assert_eq!(table.present().in_order().len(), 1);
    }

    #[test]
    fn a_reader_who_asks_for_nothing_keeps_no_share_that_is_withdrawn() {
        let table = ShareTable::new([share(1, "data"), share(2, "more")]).unwrap();
        let view = ShareView::new(&table);
        view.by_id(ShareId(1)).unwrap();
        let gone = Arc::downgrade(&table.withdraw(ShareId(1)).unwrap());
        assert_eq!(gone.strong_count(), 0);
        assert!(view.by_id(ShareId(1)).is_none() && view.by_id(ShareId(2)).is_some());
    }

    #[test]
    fn names_and_numbers_are_not_given_twice() {
        let table = ShareTable::new([share(1, "\u{d6}l")]).unwrap();
        assert_eq!(table.enter(&share(2, "\u{f6}L")), Err(NotEntered::Name("\u{d6}l".to_owned())));
        assert_eq!(table.enter(&share(1, "x")), Err(NotEntered::Number("\u{d6}l".to_owned())));
        assert!(ShareTable::new([share(1, "a"), share(2, "A")]).is_err());
        // A name is free again when its share is gone.
        table.withdraw(ShareId(1)).unwrap();
        table.enter(&share(2, "\u{f6}L")).unwrap();
    }

    #[test]
    fn a_share_is_awaited_until_it_comes() {
        let table = ShareTable::new([share(1, "data")]).unwrap();
        let view = ShareView::new(&table);
        table.await_store(ShareId(2), "Late");
        table.await_store(ShareId(3), "later");
        assert!(view.by_id(ShareId(2)).is_none() && view.is_awaited(ShareId(2)));
        assert_eq!(table.present().awaited_by_name("LATE"), Some(ShareId(2)));
        assert_eq!(table.present().len(), 1);
        // It has another number since its directory is another one.
        table.await_store(ShareId(4), "late");
        assert!(!view.is_awaited(ShareId(2)) && view.is_awaited(ShareId(4)));
        table.enter(&share(4, "late")).unwrap();
        assert!(!view.is_awaited(ShareId(4)));
        table.await_no_more("LATER");
        table.await_no_more("nobody");
        assert_eq!(table.present().awaited().count(), 0);
    }

    fn gone(id: u32, name: &str, address: &str) -> Gone {
        let addresses = vec![address.parse().unwrap()];
        Gone { id: ShareId(id), name: name.to_owned(), addresses, is_hidden: false }
    }

    #[test]
    fn a_share_goes_in_one_step_and_comes_again() {
        let table = ShareTable::new([share(1, "data"), share(2, "other")]).unwrap();
        let view = ShareView::new(&table);
        let there = gone(1, "Data", "192.0.2.1:2049");
        let data = table.has_gone(there.clone()).unwrap().unwrap();
        assert!(data.is_withdrawn() && view.by_id(ShareId(1)).is_none());
        assert_eq!(view.gone_by_id(ShareId(1)).as_deref(), Some(&there));
        assert_eq!(table.present().gone_by_name("DATA").map(|gone| gone.id), Some(ShareId(1)));
        assert_eq!((table.present().len(), table.present().gone().count()), (1, 1));
        // It has gone on.
        let further = gone(1, "data", "192.0.2.2:2049");
        assert!(table.has_gone(further.clone()).unwrap().is_none());
        assert_eq!(view.gone_by_id(ShareId(1)).as_deref(), Some(&further));
        // A share of the name is here again, with any number.
        table.enter(&share(3, "data")).unwrap();
        assert!(view.gone_by_id(ShareId(1)).is_none() && table.present().gone().next().is_none());
        table.has_gone(gone(7, "elsewhere", "192.0.2.2:2049")).unwrap();
        table.is_gone_no_more("ELSEWHERE");
        table.is_gone_no_more("nobody");
        assert!(view.gone_by_id(ShareId(7)).is_none());
    }

    #[test]
    fn what_has_gone_takes_no_name_and_no_number_of_another_share() {
        let table = ShareTable::new([share(1, "data"), share(2, "other")]).unwrap();
        let name = |name: &str| NotEntered::Name(name.to_owned());
        let number = |name: &str| NotEntered::Number(name.to_owned());
        assert_eq!(table.has_gone(gone(3, "DATA", "192.0.2.1:2049")).unwrap_err(), name("data"));
        assert_eq!(table.has_gone(gone(2, "new", "192.0.2.1:2049")).unwrap_err(), number("other"));
        table.has_gone(gone(3, "new", "192.0.2.1:2049")).unwrap();
        assert_eq!(table.has_gone(gone(3, "newer", "192.0.2.1:2049")).unwrap_err(), number("new"));
        assert_eq!(table.enter(&share(3, "newer")), Err(number("new")));
        assert_eq!(table.present().len(), 2, "nothing was withdrawn");
        table.await_store(ShareId(3), "new");
        assert!(table.present().gone().next().is_none(), "it is awaited here");
    }

    #[test]
    fn there_is_an_end_to_them() {
        let table = ShareTable::new([]).unwrap();
        let store = Arc::new(MemoryStore::new());
        // Made by hand: 4096 shares with all their tables take a while.
        let one = share(0, "0");
        let mut full = Shares::default();
        for number in 0..u32::try_from(SHARES_MAX).unwrap() {
            full.by_id.insert(ShareId(number), Arc::clone(&one));
        }
        *table.present.lock() = Arc::new(full);
        let more = Share::new(ShareId(u32::MAX), Settings::new("more"), store);
        assert_eq!(table.enter(&more), Err(NotEntered::Full));
        table.withdraw(ShareId(7)).unwrap();
        table.enter(&more).unwrap();
    }
}
