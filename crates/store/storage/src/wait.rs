//! Who may wait for a store.
//!
//! A store may take as long as it likes over a call, and a thread that serves connections must not wait for it. So each call
//! that can wait takes a [`MayWait`], which nobody can make: it is lent by a [`StoreThread`], which serves no connections, and
//! by a [`KnownLocal`], which exists for stores that are on this machine. A call that can also do without waiting takes
//! [`Wait`].
//!
//! A token is lent with a [`View`], which says as of when a cache in front of the store may answer.

use std::cell::Cell;
use std::io;
use std::thread::{Builder, JoinHandle};

use crate::{Capabilities, Storage};

/// Whether a call may wait for a device.
#[derive(Debug, Clone, Copy)]
pub enum Wait<'a> {
    /// Answer from memory, or return [`crate::Error::WouldBlock`]. A read may return a part.
    Never(View<'a>),
    /// Wait as long as it takes.
    May(MayWait<'a>),
}

impl<'a> Wait<'a> {
    /// Whether the call must answer without waiting.
    #[must_use]
    pub fn is_never(self) -> bool {
        matches!(self, Self::Never(_))
    }

    /// As of when a cache may answer.
    #[must_use]
    pub fn view(self) -> View<'a> {
        match self {
            Self::Never(view) => view,
            Self::May(may) => may.view,
        }
    }
}

/// The permission to wait for a store, for as long as it is lent. It stays on its thread:
///
/// ```compile_fail,E0277
/// fn hand_over(may: anabranch_storage::MayWait<'_>) {
///     std::thread::scope(|scope| {
///         scope.spawn(move || drop(may));
///     });
/// }
/// ```
///
/// It cannot be made:
///
/// ```compile_fail,E0451
/// use anabranch_storage::{MayWait, View};
/// let may = MayWait { view: View::FRESH };
/// ```
///
/// It does not outlive the work that it was lent for:
///
/// ```compile_fail,E0521
/// use anabranch_storage::{MayWait, Moment, StoreThread, View};
/// use std::cell::Cell;
/// thread_local! { static KEPT: Cell<Option<MayWait<'static>>> = const { Cell::new(None) } }
/// StoreThread::spawn("a", |thread| {
///     let moment = Moment::default();
///     KEPT.set(Some(thread.may_wait(View::of(&moment))));
/// });
/// ```
#[derive(Debug, Clone, Copy)]
pub struct MayWait<'a> {
    view: View<'a>,
}

impl<'a> MayWait<'a> {
    /// For the checks of this crate.
    pub(crate) const IN_A_TEST: MayWait<'static> = MayWait { view: View::FRESH };

    /// The same permission, for answers as of now instead of the moment of a request.
    #[must_use]
    pub fn fresh(self) -> Self {
        Self { view: View::FRESH }
    }

    /// As of when a cache may answer.
    #[must_use]
    pub fn view(self) -> View<'a> {
        self.view
    }
}

/// A thread that serves no connections: whatever runs there may wait.
#[derive(Debug)]
pub struct StoreThread(());

impl StoreThread {
    /// Starts such a thread.
    ///
    /// ```
    /// use anabranch_storage::{Storage, StoreThread, View, memory::MemoryStore};
    /// let free = StoreThread::spawn("space", |thread| MemoryStore::new().space(thread.may_wait(View::FRESH)));
    /// assert!(free.unwrap().join().unwrap().is_ok());
    /// ```
    ///
    /// # Errors
    /// The system has no more threads.
    pub fn spawn<T: Send + 'static>(
        name: impl Into<String>,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> io::Result<JoinHandle<T>> {
        Builder::new().name(name.into()).spawn(move || work(&Self(())))
    }

    /// What a simulation has in place of such a thread: it runs calls itself, in an order that it decides, and serves nobody
    /// meanwhile.
    #[must_use]
    pub fn simulated() -> Self {
        Self(())
    }

    /// Lends the token.
    #[must_use]
    pub fn may_wait<'a>(&'a self, view: View<'a>) -> MayWait<'a> {
        MayWait { view }
    }
}

/// The knowledge that a store is on this machine ([`Capabilities::LOCAL`]): it is called on any thread, by callers who look
/// after how long that takes.
#[derive(Debug, Clone, Copy)]
pub struct KnownLocal(());

impl KnownLocal {
    /// None if the store is not known to be local.
    #[must_use]
    pub fn of(store: &dyn Storage) -> Option<Self> {
        store.capabilities().contains(Capabilities::LOCAL).then_some(Self(()))
    }

    /// Lends the token.
    #[must_use]
    pub fn may_wait<'a>(&'a self, view: View<'a>) -> MayWait<'a> {
        MayWait { view }
    }
}

/// As of when a cache in front of a store may answer. Stores without a cache take no notice of it.
#[derive(Debug, Clone, Copy)]
pub struct View<'a>(Option<&'a Moment>);

impl<'a> View<'a> {
    /// Each answer is as of the time of its call.
    pub const FRESH: View<'static> = View(None);

    /// All answers within this moment are as of one time.
    #[must_use]
    pub fn of(moment: &'a Moment) -> Self {
        Self(Some(moment))
    }

    /// Whether all answers are as of one time at present.
    #[must_use]
    pub fn is_one_moment(self) -> bool {
        self.0.is_some_and(|moment| moment.0.get() != Doing::Nothing)
    }

    /// Whether the cache of this number has asked its store within the moment.
    #[must_use]
    pub fn is_settled(self, cache: u64) -> bool {
        self.0.is_some_and(|moment| moment.0.get() == Doing::Work(Some(cache)))
    }

    /// Notes that the cache of this number is asking its store.
    pub fn settle(self, cache: u64) {
        self.set(Some(cache));
    }

    /// Notes that something was changed: what a cache was told before is out of date.
    pub fn end(self) {
        self.set(None);
    }

    fn set(self, asked: Option<u64>) {
        if let Some(moment) = self.0.filter(|moment| moment.0.get() != Doing::Nothing) {
            moment.0.set(Doing::Work(asked));
        }
    }
}

/// What a moment is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Doing {
    /// Nothing: a cache asks its store before each answer.
    #[default]
    Nothing,
    /// Work, and the cache that has asked its store since the work began or last changed something.
    Work(Option<u64>),
}

/// One moment for all answers to a piece of work.
///
/// A cache is as fresh as the last time it asked its store for changes, which costs a system call. So it asks once for
/// everything that a request reads before the request waits: changes made before the request arrived are known then. It asks
/// again after the request has changed something.
#[derive(Debug, Default)]
pub struct Moment(Cell<Doing>);

impl Moment {
    /// Runs work that does not wait for anything but the store.
    pub fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        let _ended = Ended(self);
        self.0.set(Doing::Work(None));
        work()
    }
}

/// Ends a moment.
struct Ended<'a>(&'a Moment);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.0.set(Doing::Nothing);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::FaultyStore;
    use crate::memory::MemoryStore;

    #[test]
    fn work_asks_once_until_it_changes_something() {
        let moment = Moment::default();
        let view = View::of(&moment);
        view.settle(1);
        assert!(!view.is_settled(1) && !view.is_one_moment(), "there is no work");
        moment.during(|| {
            assert!(!view.is_settled(1) && view.is_one_moment());
            view.settle(1);
            assert!(view.is_settled(1) && !view.is_settled(2));
            view.end();
            assert!(!view.is_settled(1));
            view.settle(2);
            assert!(view.is_settled(2));
        });
        assert!(!view.is_settled(2));
        moment.during(|| assert!(!view.is_settled(2), "the directories may have changed since"));
    }

    #[test]
    fn a_fresh_view_is_never_settled() {
        View::FRESH.settle(1);
        assert!(!View::FRESH.is_settled(1) && !View::FRESH.is_one_moment());
    }

    #[test]
    fn work_that_panics_ends_its_moment() {
        let moment = Moment::default();
        let panics = std::panic::AssertUnwindSafe(|| moment.during(|| panic!("as expected")));
        assert!(std::panic::catch_unwind(panics).is_err());
        assert!(!View::of(&moment).is_one_moment());
    }

    #[test]
    fn only_a_local_store_is_known_to_be_local() {
        assert!(KnownLocal::of(&MemoryStore::new()).is_some());
        let distant = FaultyStore::distant(std::sync::Arc::new(MemoryStore::new()));
        assert!(KnownLocal::of(&distant).is_none());
    }
}
