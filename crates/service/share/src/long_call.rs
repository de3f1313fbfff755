//! Calls that turn out to take long.
//!
//! Most calls that look names up take microseconds and run inline ([`crate::schedule`]). To find a name regardless of case,
//! a call may have to read a large directory first. That would delay all other calls of its shard. So reading a directory
//! for this purpose stops after some entries when the job is to be [brief](Effort::Brief). The call is then made again on the pool,
//! where it reads the index or finds one that another call has read: each share reads one index at a time.

use std::sync::Arc;

use storage::MayWait;

use crate::schedule::Work;
use crate::{Call, Error, Result, Share};

/// How long a job may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effort {
    /// The thread must not be held up: a step that would take long ends with [`TOO_LONG`] instead.
    Brief,
    /// As long as it takes.
    Whole,
}

/// The step would have taken long.
pub(crate) const TOO_LONG: Error = Error::Storage(storage::Error::WouldBlock);

/// A call that may take long, and is then made again.
pub(crate) type LongCall<T> = Arc<dyn Fn(&Arc<Share>, Effort, MayWait<'_>) -> Result<T> + Send + Sync>;

impl Share {
    /// Runs `call` as [`Share::run`] does, and again on the pool if it turns out to take long. The call must make its
    /// changes only after it has found all names that it needs.
    ///
    /// The call is behind a pointer: it takes some hundred bytes, and a future reserves room for each place that holds it.
    pub(crate) async fn run_long<T: Send + 'static>(
        self: &Arc<Self>,
        call: &Call,
        work: Work,
        job: &LongCall<T>,
    ) -> Result<T> {
        match self.try_briefly(call, work, job).await {
            Err(TOO_LONG) => {}
            outcome => return outcome,
        }
        let _turn = self.long_calls.lock().await;
        match self.try_briefly(call, work, job).await {
            Err(TOO_LONG) => {}
            outcome => return outcome,
        }
        let job = Arc::clone(job);
        self.run(call, Work::Blocking, move |share, may| job(share, Effort::Whole, may)).await
    }

    async fn try_briefly<T: Send + 'static>(
        self: &Arc<Self>,
        call: &Call,
        work: Work,
        job: &LongCall<T>,
    ) -> Result<T> {
        let job = Arc::clone(job);
        let briefly = move |share: &Arc<Self>, may: MayWait<'_>| job(share, Effort::Brief, may);
        self.run(call, work, briefly).await
    }
}
