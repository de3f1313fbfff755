//! Calls that turn out to take long.
//!
//! Most calls that look names up take microseconds and run inline ([`crate::schedule`]). One that must read a large directory
//! first, to find a name whatever its case, would hold up all others of its shard for as long as that takes. So what reads a
//! directory for that gives up after some entries while it [`must_be_brief`]; the call is made again on the pool, and finds
//! the index that is read there by itself or by another: of a share, one is read at a time.

use std::cell::Cell;
use std::sync::Arc;

use crate::schedule::Work;
use crate::{Error, Result, Share};

thread_local! {
    static IS_BRIEF: Cell<bool> = const { Cell::new(false) };
}

/// As long as it lives this thread must not be held up.
struct Brief;

impl Brief {
    fn begin() -> Self {
        IS_BRIEF.set(true);
        Self
    }
}

impl Drop for Brief {
    fn drop(&mut self) {
        IS_BRIEF.set(false);
    }
}

/// Whether what would take long is to end with [`TOO_LONG`] instead.
pub(crate) fn must_be_brief() -> bool {
    IS_BRIEF.get()
}

/// It would have taken long.
pub(crate) const TOO_LONG: Error = Error::Storage(storage::Error::WouldBlock);

/// What may take long, and is then done again.
pub(crate) type LongCall<T> = Arc<dyn Fn(&Arc<Share>) -> Result<T> + Send + Sync>;

impl Share {
    /// Runs `call` as [`Share::run`] does, and on the pool when it turns out to take long. What it changes it changes after it
    /// has found all that it looks for.
    ///
    /// The call is behind a pointer: it is some hundred bytes, and a future has room of its own for each place in which it
    /// keeps it.
    pub(crate) async fn run_long<T: Send + 'static>(
        self: &Arc<Self>,
        work: Work,
        call: &LongCall<T>,
    ) -> Result<T> {
        match self.try_briefly(work, call).await {
            Err(TOO_LONG) => {}
            outcome => return outcome,
        }
        let _turn = self.long_calls.lock().await;
        match self.try_briefly(work, call).await {
            Err(TOO_LONG) => {}
            outcome => return outcome,
        }
        let call = Arc::clone(call);
        self.run(Work::Blocking, move |share| call(share)).await
    }

    async fn try_briefly<T: Send + 'static>(self: &Arc<Self>, work: Work, call: &LongCall<T>) -> Result<T> {
        let call = Arc::clone(call);
        let briefly = move |share: &Arc<Self>| {
            let _brief = Brief::begin();
            call(share)
        };
        self.run(work, briefly).await
    }
}
