//! Runs the work of a share: control flow between the store, which says where work runs now, and what must frame it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use storage::{MayWait, StoreThread, View};

pub(crate) use crate::store::Work;
use crate::{Call, Error, Result, Share};

impl Share {
    /// Runs `job` inline or on the store's threads, as is decided for its kind of work at present. Only there is the token that
    /// lets a call to the store wait.
    pub(crate) async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        call: &Call,
        work: Work,
        job: impl FnOnce(&Arc<Self>, MayWait<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let asked = Instant::now();
        if let Some(turn) = self.store.inline(work, asked) {
            let _under_way = self.changes.work_begins();
            return self.heeded(turn.run(call.view(), |may| job(self, may)));
        }
        let (result, queued) = self.run_on_thread(work, asked, job).await;
        // On a busy machine the outcome may be there at once, in the same poll and moment in which the call was made. Another
        // thread has worked for the call, and may have changed something.
        call.view().end();
        call.waited_for_thread(queued);
        result
    }

    /// As [`Share::run`], for no call.
    pub(crate) async fn run_unasked<T: Send + 'static>(
        self: &Arc<Self>,
        work: Work,
        job: impl FnOnce(&Arc<Self>, MayWait<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let asked = Instant::now();
        if let Some(turn) = self.store.inline(work, asked) {
            let _under_way = self.changes.work_begins();
            return self.heeded(turn.run(View::FRESH, |may| job(self, may)));
        }
        self.run_on_thread(work, asked, job).await.0
    }

    /// Runs `job` on a thread of the store. Also returns how long the job has waited for the thread since it was `asked` for.
    async fn run_on_thread<T: Send + 'static>(
        self: &Arc<Self>,
        work: Work,
        asked: Instant,
        job: impl FnOnce(&Arc<Self>, MayWait<'_>) -> Result<T> + Send + 'static,
    ) -> (Result<T>, Duration) {
        let share = Arc::clone(self);
        let on_thread = move |thread: &StoreThread| {
            let turn = share.store.threaded(thread, work);
            let queued = turn.begun().saturating_duration_since(asked);
            let _under_way = share.changes.work_begins();
            (share.heeded(turn.run(|may| job(&share, may))), queued)
        };
        let answer = Box::pin(self.store.on_thread(on_thread)).await;
        answer.unwrap_or_else(|error| (Err(error), Duration::ZERO))
    }

    /// Passes on the outcome of a call to the store. A failure may raise an alarm.
    fn heeded<T>(&self, outcome: Result<T>) -> Result<T> {
        if let Err(Error::Storage(error)) = &outcome {
            self.heed(*error);
        }
        outcome
    }

    /// Records a failed call to the store.
    pub(crate) fn heed(&self, error: storage::Error) {
        self.store.heed(error, || self.is_read_only());
    }

    /// Asks the store for what a local store knows without waiting, above all attributes: inline for a local store,
    /// otherwise on its threads.
    pub(crate) async fn consult<T: Send + 'static>(
        self: &Arc<Self>,
        call: &Call,
        job: impl FnOnce(&Arc<Self>, MayWait<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let Some(local) = self.store.near() else {
            // In a box, as above: most calls need it never, and their futures have no room for it then.
            return Box::pin(self.run(call, Work::Blocking, job)).await;
        };
        let _inside = self.store.inside();
        job(self, local.may_wait(call.view()))
    }

    /// Runs a call that nothing waits for: inline, or on the threads of a store that is not known to be local.
    pub(crate) fn afterwards(self: &Arc<Self>, call: impl FnOnce(&Arc<Self>, MayWait<'_>) + Send + 'static) {
        if let Some(local) = self.store.near() {
            let _inside = self.store.inside();
            return call(self, local.may_wait(View::FRESH));
        }
        let share = Arc::clone(self);
        self.store.later(move |thread| call(&share, thread.may_wait(View::FRESH)));
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::rc::Rc;
    use std::task::{Context, Waker};

    use storage::conformance::MAY;
    use storage::{Moment, Name, SetAttributes, SetTime, Timestamp, Wait, Want};
    use storage_local::{LocalOptions, LocalStore};

    use super::*;
    use crate::call::of_tests::{LOOKUP, call};
    use crate::{Client, Settings, ShareId};

    /// As on a busy machine, where the store's thread is done before the thread that has asked it goes on.
    #[test]
    fn what_another_thread_has_changed_for_a_request_is_seen_by_the_rest_of_it() {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir(place.path().join("d")).unwrap();
        let store = Arc::new(LocalStore::open(place.path(), LocalOptions::default()).unwrap());
        let share = Share::new(ShareId(1), Settings::new("data"), store);
        let dir = share.root().lookup(Name::new(b"d").unwrap(), Wait::May(MAY)).unwrap();
        for _ in 0..3 {
            dir.attributes(Want::empty(), Wait::May(MAY)).unwrap();
        }
        let hits = || share.cache_counts().unwrap().attributes.hits;
        let before = hits();
        let moment = Rc::new(Moment::default());
        let call = call(&LOOKUP, Client::Unknown).within(&moment);
        let look = || dir.attributes(Want::empty(), Wait::Never(call.view())).unwrap();
        moment.during(|| {
            look();
            assert_eq!(hits(), before + 1, "it is kept");

            share.store.rest_for_ever();
            let time = Timestamp { secs: 1_900_000_000, nanos: 0 };
            let times = Some(SetTime::To(time));
            let set = SetAttributes { atime: times, mtime: times, ..SetAttributes::default() };
            let node = Arc::clone(&dir);
            let mut change =
                pin!(share.run(&call, Work::Metadata, move |_, may| Ok(node.set_attributes(&set, may)?)));
            let mut context = Context::from_waker(Waker::noop());
            while change.as_mut().poll(&mut context).map(Result::unwrap).is_pending() {
                std::thread::yield_now();
            }
            let seen = look();
            assert_eq!((seen.atime, seen.mtime), (time, time));
        });
    }
}
