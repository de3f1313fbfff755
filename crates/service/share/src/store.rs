//! The store of a share with its layers, and where calls to it run.
//!
//! This part knows no other part of a share. It says where a piece of work runs now, lends the token that lets a call wait, and
//! notes how the store answers. What is done there, and what must frame it, is for [`crate::Share`] to put together
//! ([`crate::schedule`]).

mod alarm;
mod gate;
mod inside;
mod pool;

use std::sync::Arc;
use std::time::Instant;

use cache::{Cache, CacheCounts, FoldedNames};
use parking_lot::Mutex;
use storage::{KnownLocal, MayWait, NodeRef, Storage, StoreThread, View};

use self::alarm::Alarms;
use self::gate::{Begun, Gate, in_one_moment};
use self::inside::{Held, Inside};
use self::pool::{Pool, SILENT};
use crate::{Result, Settings};

pub use self::alarm::Alarm;
pub(crate) use self::gate::Work;
pub use self::inside::StoreWatch;
pub use self::pool::{Job, STORE_THREADS_MAX, STORE_WAITING_MAX, StoreHealth, Workers};

/// The store of a share.
///
/// Locks: [`Pool`] and [`Alarms`] say what theirs guard. All are taken alone, and none is held while the store is called. That of
/// the long calls is the exception: it is there to be held.
pub(crate) struct Store {
    /// The name of the share, for the log.
    name: String,
    storage: Arc<dyn Storage>,
    root: NodeRef,
    cache: Option<Arc<Cache>>,
    gate: Gate,
    pool: Pool,
    alarms: Arc<Alarms>,
    /// Guards the calls that the store holds up at present.
    held: Mutex<Option<Held>>,
    /// Serializes long calls ([`Store::long_call`]). It guards no data.
    long_calls: tokio::sync::Mutex<()>,
}

/// A piece of work that runs on this thread, which belongs to no store.
pub(crate) struct InlineTurn<'a> {
    store: &'a Store,
    local: KnownLocal,
    work: Work,
    begun: Begun,
}

/// A piece of work that runs on a thread of the store.
pub(crate) struct ThreadTurn<'a> {
    store: &'a Store,
    thread: &'a StoreThread,
    work: Work,
    begun: Begun,
}

impl Store {
    /// The store of a share with these settings, with its layers in front of `storage`, and the index of folded names that
    /// the layers keep up to date. Calls that may block are run by `workers`, or by threads of the store.
    pub(crate) fn new(
        settings: &Settings,
        storage: Arc<dyn Storage>,
        workers: Option<Arc<dyn Workers>>,
    ) -> (Self, Arc<FoldedNames>) {
        let pool = Pool::new(&settings.name, workers);
        Self::over(settings, storage, pool)
    }

    /// The store of a view: threads of this store run its calls.
    pub(crate) fn beside(&self, settings: &Settings, storage: Arc<dyn Storage>) -> (Self, Arc<FoldedNames>) {
        Self::over(settings, storage, self.pool.clone())
    }

    fn over(settings: &Settings, storage: Arc<dyn Storage>, pool: Pool) -> (Self, Arc<FoldedNames>) {
        let cached = cache::Settings {
            is_on: settings.metadata_cache,
            bytes_max: settings.metadata_cache_bytes_max,
            quick: settings.quick_answer,
        };
        let cache::Layer { store: storage, cache, names } = cache::Layer::over(storage, &cached);
        let store = Self {
            name: settings.name.clone(),
            root: storage.root(),
            cache,
            gate: Gate::new(KnownLocal::of(&*storage)),
            pool,
            alarms: Alarms::new(&settings.name, &storage),
            held: Mutex::default(),
            long_calls: tokio::sync::Mutex::default(),
            storage,
        };
        (store, names)
    }

    /// The store itself, behind its layers.
    pub(crate) fn storage(&self) -> &Arc<dyn Storage> {
        &self.storage
    }

    /// The root directory.
    pub(crate) fn root(&self) -> &NodeRef {
        &self.root
    }

    /// The store, if any work may run inline: it is local, and answers.
    pub(crate) fn near(&self) -> Option<KnownLocal> {
        self.gate.near()
    }

    /// Whether any work may run inline.
    pub(crate) fn is_near(&self) -> bool {
        self.gate.is_near()
    }

    /// Notes that this thread is in a call to the store, while the result exists.
    pub(crate) fn inside(&self) -> Inside {
        Inside::begin(self)
    }

    /// A turn on this thread, if this kind of work runs inline now.
    pub(crate) fn inline(&self, work: Work, now: Instant) -> Option<InlineTurn<'_>> {
        let local = self.gate.inline(work, now)?;
        Some(InlineTurn { store: self, local, work, begun: self.gate.begin(work, now) })
    }

    /// A turn on this thread of the store.
    pub(crate) fn threaded<'a>(&'a self, thread: &'a StoreThread, work: Work) -> ThreadTurn<'a> {
        ThreadTurn { store: self, thread, work, begun: self.gate.begin(work, Instant::now()) }
    }

    /// Makes a call on one of the store's threads. A call that has got its place runs even if no caller waits for it any more.
    ///
    /// # Errors
    /// [`Error::LimitReached`](crate::Error::LimitReached) when too many requests wait,
    /// [`storage::Error::OutOfResources`] without any thread.
    pub(crate) async fn on_thread<T: Send + 'static>(
        &self,
        call: impl FnOnce(&StoreThread) -> T + Send + 'static,
    ) -> Result<T> {
        self.pool.run(call).await
    }

    /// Has one of the store's threads make a call that nothing waits for. The caller limits the number of such calls.
    pub(crate) fn later(&self, call: impl FnOnce(&StoreThread) + Send + 'static) {
        self.pool.later(call);
    }

    /// The turn of a long call: one of a store has it at a time.
    pub(crate) async fn long_call(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.long_calls.lock().await
    }

    /// How the store is answering. This does not call the store.
    pub(crate) fn health(&self) -> StoreHealth {
        let health = self.pool.health();
        let Some(held) = *self.held.lock() else { return health };
        let since = held.since.elapsed();
        StoreHealth {
            under_way: health.under_way + held.threads,
            longest: Some(health.longest.map_or(since, |longest| longest.max(since))),
            is_stuck: health.is_stuck || since >= SILENT,
            ..health
        }
    }

    /// Records a failed call to the store, of a share that may be declared read-only.
    pub(crate) fn heed(&self, error: storage::Error, is_declared_read_only: impl FnOnce() -> bool) {
        self.alarms.heed(error, is_declared_read_only);
    }

    /// The present alarms.
    pub(crate) fn alarms(&self) -> Vec<Alarm> {
        self.alarms.present().collect()
    }

    /// Has a separate thread ask the store whether its path still leads to it and whether alarms are over. Does not wait.
    pub(crate) fn review_alarms(&self, is_declared_read_only: bool) {
        if self.alarms.begin_review() {
            let alarms = Arc::clone(&self.alarms);
            self.pool.later(move |thread| alarms.review(is_declared_read_only, thread.may_wait(View::FRESH)));
        }
    }

    /// What the metadata cache has done; None if it is switched off or the store cannot report the changes of others.
    pub(crate) fn cache_counts(&self) -> Option<CacheCounts> {
        self.cache.as_ref().filter(|cache| cache.is_on()).map(|cache| cache.counts())
    }

    /// Switches the metadata cache on or off. While it is off, nothing is kept.
    pub(crate) fn set_metadata_cache(&self, on: bool) {
        if let Some(cache) = &self.cache {
            cache.switch(on);
        }
    }

    /// Has the store's threads do all work on names and attributes from now on.
    #[cfg(test)]
    pub(crate) fn rest_for_ever(&self) {
        self.gate.rest_for_ever(Work::Metadata);
    }
}

impl InlineTurn<'_> {
    /// Does the work, as of the moment of `view` or one of its own.
    pub(crate) fn run<T>(self, view: View<'_>, job: impl FnOnce(MayWait<'_>) -> T) -> T {
        let _inside = self.store.inside();
        let result = in_one_moment(view, |view| job(self.local.may_wait(view)));
        self.store.gate.end(self.work, self.begun);
        result
    }
}

impl ThreadTurn<'_> {
    /// When the thread has begun.
    pub(crate) fn begun(&self) -> Instant {
        self.begun.at
    }

    /// Does the work, as of a moment of its own.
    pub(crate) fn run<T>(self, job: impl FnOnce(MayWait<'_>) -> T) -> T {
        let result = in_one_moment(View::FRESH, |view| job(self.thread.may_wait(view)));
        self.store.gate.end(self.work, self.begun);
        result
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use storage::memory::MemoryStore;

    use super::*;

    fn store(workers: Option<Arc<dyn Workers>>) -> Arc<Store> {
        Arc::new(Store::new(&Settings::new("data"), Arc::new(MemoryStore::new()), workers).0)
    }

    /// Keeps what it is given to do.
    #[derive(Default)]
    struct Later(Mutex<Vec<Job>>);

    impl Workers for Later {
        fn run(&self, job: Job) {
            self.0.lock().push(job);
        }
    }

    #[tokio::test]
    async fn work_runs_here_or_on_a_thread_and_has_a_moment_in_both_places() {
        let store = store(None);
        let is_one_moment = |may: MayWait<'_>| may.view().is_one_moment();
        let here = store.inline(Work::Metadata, Instant::now()).unwrap();
        assert!(here.run(View::FRESH, is_one_moment));
        assert!(store.inline(Work::Blocking, Instant::now()).is_none());
        store.rest_for_ever();
        assert!(store.inline(Work::Metadata, Instant::now()).is_none() && store.is_near());
        let (asked, of_job) = (std::thread::current().id(), Arc::clone(&store));
        let on_thread = store.on_thread(move |thread| {
            let turn = of_job.threaded(thread, Work::Metadata);
            turn.run(|may| (is_one_moment(may), std::thread::current().id() != asked))
        });
        assert_eq!(on_thread.await, Ok((true, true)));
    }

    #[test]
    fn one_review_of_the_alarms_is_under_way_at_a_time() {
        let later = Arc::new(Later::default());
        let store = store(Some(Arc::clone(&later) as _));
        store.heed(storage::Error::ReadOnly, || true);
        store.heed(storage::Error::NotFound, || false);
        assert_eq!(store.alarms(), []);
        store.heed(storage::Error::NoSpace, || false);
        store.heed(storage::Error::ReadOnly, || false);
        assert_eq!(store.alarms(), [Alarm::Full, Alarm::ReadOnly]);
        store.review_alarms(false);
        store.review_alarms(false);
        let mut jobs = std::mem::take(&mut *later.0.lock());
        assert_eq!(jobs.len(), 1);
        jobs.pop().unwrap()();
        assert_eq!(store.alarms().len(), 2, "calls have failed a moment ago");
        store.review_alarms(false);
        assert_eq!(later.0.lock().len(), 1);
    }

    #[tokio::test]
    async fn long_calls_take_turns() {
        let (store, running) = (store(None), AtomicUsize::new(0));
        let call = async || {
            let _turn = store.long_call().await;
            assert_eq!(running.fetch_add(1, Ordering::Relaxed), 0);
            tokio::task::yield_now().await;
            running.fetch_sub(1, Ordering::Relaxed);
        };
        tokio::join!(call(), call(), call());
    }

    #[test]
    fn a_store_that_holds_up_threads_for_long_is_stuck() {
        let store = store(None);
        assert_eq!(store.health(), StoreHealth::default());
        *store.held.lock() = Some(Held { since: Instant::now() - SILENT, threads: 2 });
        let health = store.health();
        assert!(health.is_stuck && health.longest >= Some(SILENT));
        assert_eq!(health.under_way, 2);
    }
}
