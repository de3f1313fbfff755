//! The threads of a store, for calls that may block.
//!
//! Each store has its own threads, started on demand and ended when idle for a while. Calls to a store that has stopped
//! answering wait there, and take neither threads nor time from calls to other stores. Calls beyond the capacity of the
//! threads wait in the futures of their requests, without a job.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use storage::StoreThread;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::{Error, Result};

/// Threads of a store.
pub const STORE_THREADS_MAX: usize = 64;
/// Calls of a store that are running or about to run. Further calls wait in their requests.
const PLACES: usize = 2 * STORE_THREADS_MAX;
/// Requests that wait for a place. Further requests are refused: a client that sends more gets no answer to those either.
pub const STORE_WAITING_MAX: usize = 16_384;
/// An idle thread ends after this time.
const IDLE: Duration = Duration::from_secs(10);
/// A store is stuck when a call has taken this long and no other call has ended meanwhile.
pub(super) const SILENT: Duration = Duration::from_secs(5);
/// A store is also stuck when a call has taken this long, whatever other calls do.
const LONG: Duration = Duration::from_secs(60);

/// A call that may block.
pub type Job = Box<dyn FnOnce() + Send>;

/// Who runs the calls to a store that may block. Usually these are threads of the store; a simulation runs the calls
/// itself, in an order and at times that it decides.
pub trait Workers: Send + Sync {
    /// Runs a call, now or later, once. Calls may run side by side and in any order.
    fn run(&self, job: Job);
}

/// The same, as the pool has it.
type ThreadJob = Box<dyn FnOnce(&StoreThread) + Send>;

/// How a store answers at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StoreHealth {
    /// Calls to the store in progress.
    pub under_way: usize,
    /// Requests that wait for a thread to call it.
    pub waiting: usize,
    /// How long the oldest of these calls has been in progress.
    pub longest: Option<Duration>,
    /// Whether the store has stopped answering: a call has been in progress for 5 seconds and no other has ended meanwhile,
    /// or for a minute.
    pub is_stuck: bool,
}

/// The threads of one store, and of the views at its snapshots.
#[derive(Clone)]
pub(super) struct Pool(Arc<Shared>);

struct Shared {
    name: String,
    /// Guards the jobs that no thread has taken yet, and the state of the threads.
    state: Mutex<PoolState>,
    work: Condvar,
    places: Arc<Semaphore>,
    /// Requests that wait for a place.
    waiting: AtomicUsize,
    /// Who runs the calls, if it is not the threads.
    others: Option<Arc<dyn Workers>>,
}

#[derive(Default)]
struct PoolState {
    queue: VecDeque<ThreadJob>,
    threads: usize,
    /// Threads that wait for a job.
    idle: usize,
    calls: Calls,
}

/// The calls in progress.
#[derive(Debug, Default)]
struct Calls {
    begun: Vec<(u64, Instant)>,
    next: u64,
    /// When a call last ended.
    ended: Option<Instant>,
}

impl Calls {
    fn begin(&mut self, now: Instant) -> u64 {
        let number = self.next;
        self.next += 1;
        self.begun.push((number, now));
        number
    }

    fn end(&mut self, number: u64, now: Instant) {
        self.begun.retain(|(begun, _)| *begun != number);
        self.ended = Some(now);
    }

    fn health(&self, now: Instant) -> StoreHealth {
        let oldest = self.begun.iter().map(|(_, begun)| *begun).min();
        let since = |then: Instant| now.saturating_duration_since(then);
        let is_stuck = |begun: Instant| {
            since(self.ended.map_or(begun, |ended| ended.max(begun))) >= SILENT || since(begun) >= LONG
        };
        StoreHealth {
            under_way: self.begun.len(),
            waiting: 0,
            longest: oldest.map(since),
            is_stuck: oldest.is_some_and(is_stuck),
        }
    }
}

/// Counts one waiting request while it exists.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn begin(waiting: &'a AtomicUsize) -> Result<Self> {
        let guard = Self(waiting);
        if waiting.fetch_add(1, Ordering::Relaxed) >= STORE_WAITING_MAX {
            return Err(Error::LimitReached("calls that wait for the store"));
        }
        Ok(guard)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let before = self.0.fetch_sub(1, Ordering::Relaxed);
        debug_assert!(before > 0, "a call that no longer waits was counted");
    }
}

impl Pool {
    /// The threads for the store of the share with this name. None are started before the first call, and none at all
    /// when others run the calls.
    pub(super) fn new(name: &str, others: Option<Arc<dyn Workers>>) -> Self {
        Self(Arc::new(Shared {
            name: format!("store {name}"),
            state: Mutex::default(),
            work: Condvar::new(),
            places: Arc::new(Semaphore::new(PLACES)),
            waiting: AtomicUsize::new(0),
            others,
        }))
    }

    /// Runs a call on one of the threads. A call that has got its place runs even if no caller waits for it any more.
    ///
    /// # Errors
    /// [`Error::LimitReached`] when too many requests wait, [`storage::Error::OutOfResources`] without any thread.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        call: impl FnOnce(&StoreThread) -> T + Send + 'static,
    ) -> Result<T> {
        let place = self.place().await?;
        let (done, answer) = oneshot::channel();
        self.hand_over(Box::new(move |thread| {
            let outcome = call(thread);
            drop(place);
            let _ = done.send(outcome); // whoever has asked may be gone
        }))?;
        answer.await.map_err(|_| Error::Storage(storage::Error::Io(0)))
    }

    /// Has a thread make a call that nothing waits for. The caller limits the number of such calls.
    pub(super) fn later(&self, call: impl FnOnce(&StoreThread) + Send + 'static) {
        if self.hand_over(Box::new(call)).is_err() {
            tracing::error!("{}: no thread for a call", self.0.name);
        }
    }

    async fn place(&self) -> Result<OwnedSemaphorePermit> {
        if let Ok(place) = Arc::clone(&self.0.places).try_acquire_owned() {
            return Ok(place);
        }
        let _waiting = Waiting::begin(&self.0.waiting)?;
        let place = Arc::clone(&self.0.places).acquire_owned().await;
        place.map_err(|_| Error::Storage(storage::Error::OutOfResources))
    }

    fn hand_over(&self, job: ThreadJob) -> Result<()> {
        let job = within_runtime(job);
        if let Some(others) = &self.0.others {
            others.run(Box::new(move || job(&StoreThread::simulated())));
            return Ok(());
        }
        let mut state = self.0.state.lock();
        state.queue.push_back(job);
        if state.idle >= state.queue.len() {
            self.0.work.notify_one();
            return Ok(());
        }
        if state.threads >= STORE_THREADS_MAX {
            return Ok(());
        }
        state.threads += 1;
        drop(state);
        let shared = Arc::clone(&self.0);
        let thread = StoreThread::spawn(self.0.name.clone(), move |thread| shared.work(thread));
        thread.map(drop).or_else(|_| self.go_on_with_fewer())
    }

    /// The system has no more threads. The existing threads do the work; without any, the call is refused.
    fn go_on_with_fewer(&self) -> Result<()> {
        let mut state = self.0.state.lock();
        state.threads -= 1;
        if state.threads > 0 {
            return Ok(());
        }
        let refused = std::mem::take(&mut state.queue);
        drop(state);
        drop(refused);
        Err(Error::Storage(storage::Error::OutOfResources))
    }

    /// How the store is answering.
    pub(super) fn health(&self) -> StoreHealth {
        let health = self.0.state.lock().calls.health(Instant::now());
        StoreHealth { waiting: self.0.waiting.load(Ordering::Relaxed), ..health }
    }
}

/// Messages to clients during a call may have to wait: those go on in the runtime from which the call was made.
fn within_runtime(job: ThreadJob) -> ThreadJob {
    let Ok(runtime) = Handle::try_current() else { return job };
    Box::new(move |thread| {
        let _within = runtime.enter();
        job(thread);
    })
}

impl Shared {
    /// The loop of a thread.
    fn work(&self, thread: &StoreThread) {
        let mut state = self.state.lock();
        loop {
            if let Some(job) = state.queue.pop_front() {
                let number = state.calls.begin(Instant::now());
                drop(state);
                if catch_unwind(AssertUnwindSafe(|| job(thread))).is_err() {
                    tracing::error!("{}: a call ended with a panic", self.name);
                }
                state = self.state.lock();
                state.calls.end(number, Instant::now());
                continue;
            }
            state.idle += 1;
            let is_over = self.work.wait_for(&mut state, IDLE).timed_out();
            state.idle -= 1;
            if is_over && state.queue.is_empty() {
                state.threads -= 1;
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
    }

    async fn until(is_so: impl Fn() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !is_so() {
            assert!(Instant::now() < deadline);
            tokio::task::yield_now().await;
        }
    }

    #[test]
    fn calls_that_never_end_leave_other_stores_alone() {
        let (stuck, sound) = (Arc::new(Pool::new("stuck", None)), Pool::new("sound", None));
        let (release, held) = mpsc::channel::<()>();
        let held = Arc::new(Mutex::new(held));
        runtime().block_on(async {
            let calls = 3 * PLACES;
            let waiting: Vec<_> = (0..calls)
                .map(|_| {
                    let (stuck, held) = (Arc::clone(&stuck), Arc::clone(&held));
                    tokio::spawn(async move { stuck.run(move |_| held.lock().recv().is_err()).await })
                })
                .collect();
            until(|| stuck.health().waiting == calls - PLACES).await;
            for n in 0..100 {
                assert_eq!(sound.run(move |_| n).await, Ok(n));
            }
            until(|| stuck.health().under_way == STORE_THREADS_MAX).await;
            assert_eq!(stuck.0.state.lock().threads, STORE_THREADS_MAX, "and no more");
            drop(release);
            for call in waiting {
                assert_eq!(call.await.unwrap(), Ok(true));
            }
        });
    }

    #[test]
    fn who_gives_up_waiting_leaves_nothing_behind() {
        let pool = Pool::new("p", None);
        let (release, held) = mpsc::channel::<()>();
        let held = Arc::new(Mutex::new(held));
        let ran = Arc::new(AtomicUsize::new(0));
        runtime().block_on(async {
            let call = || {
                let (held, ran) = (Arc::clone(&held), Arc::clone(&ran));
                pool.run(move |_| {
                    ran.fetch_add(1, Ordering::Relaxed);
                    held.lock().recv().is_err()
                })
            };
            let mut calls: Vec<_> = (0..PLACES + 10).map(|_| Box::pin(call())).collect();
            for call in &mut calls {
                assert!(futures_are_pending(call.as_mut()).await);
            }
            assert_eq!(pool.health().waiting, 10);
            drop(calls);
            assert_eq!(pool.health().waiting, 0);
            drop(release);
            assert_eq!(pool.run(|_| 7).await, Ok(7));
            until(|| ran.load(Ordering::Relaxed) == PLACES && pool.health().under_way == 0).await;
        });
        assert_eq!(ran.load(Ordering::Relaxed), PLACES, "what was handed over is done");
    }

    async fn futures_are_pending<F: Future>(mut future: std::pin::Pin<&mut F>) -> bool {
        std::future::poll_fn(|cx| std::task::Poll::Ready(future.as_mut().poll(cx).is_pending())).await
    }

    #[test]
    fn what_a_call_begins_goes_on_in_the_runtime_of_who_made_it() {
        let pool = Pool::new("p", None);
        runtime().block_on(async {
            let (tell, told) = oneshot::channel();
            let begin = move |_: &StoreThread| drop(Handle::current().spawn(async move { tell.send(7) }));
            pool.run(begin).await.unwrap();
            assert_eq!(told.await, Ok(7));
        });
    }

    #[test]
    fn a_call_that_panics_is_an_error_and_the_thread_goes_on() {
        let pool = Pool::new("p", None);
        runtime().block_on(async {
            let failed = pool.run(|_| panic!("as a fault of the server would")).await;
            assert_eq!(failed.map(|()| 0), Err(Error::Storage(storage::Error::Io(0))));
            assert_eq!(pool.run(|_| 1).await, Ok(1));
        });
    }

    #[test]
    fn more_than_may_wait_are_refused() {
        let waiting = AtomicUsize::new(STORE_WAITING_MAX - 1);
        let last = Waiting::begin(&waiting);
        assert!(last.is_ok());
        assert!(Waiting::begin(&waiting).is_err());
        drop(last);
        assert!(Waiting::begin(&waiting).is_ok());
    }

    #[test]
    fn a_store_is_stuck_when_nothing_ends_any_more() {
        let now = Instant::now();
        let at = |seconds| now + Duration::from_secs(seconds);
        let mut calls = Calls::default();
        assert_eq!(calls.health(at(100)), StoreHealth::default());
        let first = calls.begin(at(0));
        assert!(!calls.health(at(4)).is_stuck && calls.health(at(5)).is_stuck);
        let second = calls.begin(at(3));
        calls.end(second, at(4));
        let health = calls.health(at(8));
        assert_eq!((health.under_way, health.longest, health.is_stuck), (1, Some(at(8) - at(0)), false));
        assert!(calls.health(at(9)).is_stuck);
        let third = calls.begin(at(58));
        calls.end(third, at(59));
        assert!(calls.health(at(60)).is_stuck, "one has taken a minute");
        calls.end(first, at(61));
        assert_eq!(calls.health(at(200)), StoreHealth::default());
    }
}
