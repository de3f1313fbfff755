//! Calls that turn out to take long.
//!
//! Most calls that look names up take microseconds and run inline ([`crate::schedule`]). To find a name regardless of case,
//! a call may have to read a large directory first. That would delay all other calls of its shard. So reading a directory
//! for this purpose stops after some entries when the job is to be [brief](Effort::Brief). The call is then made again on the pool,
//! where it reads the index or finds one that another call has read: each share reads one index at a time.

use std::sync::Arc;

use cache::Effort;
use storage::MayWait;

use crate::agreement::Admission;
use crate::attempt::{Attempt, unless_too_long};
use crate::schedule::Work;
use crate::{Call, Error, Result, Share};

/// A call that may take long, and is then made again.
pub(crate) type LongCall<T> = Arc<dyn Fn(&Arc<Share>, Effort, MayWait<'_>) -> Attempt<T> + Send + Sync>;

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
        if let Some(result) = self.run_with(call, work, job, Effort::Brief).await? {
            return Ok(result);
        }
        let _turn = self.store.long_call().await;
        if let Some(result) = self.run_with(call, work, job, Effort::Brief).await? {
            return Ok(result);
        }
        let result = self.run_with(call, Work::Blocking, job, Effort::Whole).await?;
        debug_assert!(result.is_some(), "no step stops with Effort::Whole");
        result.ok_or(Error::Storage(storage::Error::Busy))
    }

    async fn run_with<T: Send + 'static>(
        self: &Arc<Self>,
        call: &Call,
        work: Work,
        job: &LongCall<T>,
        effort: Effort,
    ) -> Result<Option<T>> {
        let job = Arc::clone(job);
        let attempt = move |share: &Arc<Self>, may: MayWait<'_>| unless_too_long(job(share, effort, may));
        self.run(call, work, attempt).await
    }

    /// Runs `call` ([`Share::run`]) until it need not wait for any client.
    ///
    /// # Errors
    /// Those of `call`; [`Error::Delayed`] when it takes longer than the call's front waits.
    pub(crate) fn run_settled<T: Send + 'static>(
        self: &Arc<Self>,
        call: &Call,
        work: Work,
        job: impl Fn(&Arc<Self>, MayWait<'_>) -> Result<Admission<T>> + Send + Sync + 'static,
    ) -> impl Future<Output = Result<T>> {
        let job = move |share: &Arc<Self>, _, may: MayWait<'_>| Ok(job(share, may)?);
        self.run_long_settled(call, work, job)
    }

    /// As [`Share::run_settled`], for a call that may take long ([`Share::run_long`]).
    pub(crate) async fn run_long_settled<T: Send + 'static>(
        self: &Arc<Self>,
        call: &Call,
        work: Work,
        job: impl Fn(&Arc<Self>, Effort, MayWait<'_>) -> Attempt<Admission<T>> + Send + Sync + 'static,
    ) -> Result<T> {
        let job: LongCall<Admission<T>> = Arc::new(job);
        let mut patience = None;
        loop {
            match self.run_long(call, work, &job).await? {
                Admission::Done(done) => return Ok(done),
                Admission::Wait(answering) => self.agreement.bear(call, &mut patience, answering).await?,
            }
        }
    }
}
