//! How the time of an operation is spent.
//!
//! An operation is one future, polled on one thread at a time. While it is polled, its waits are recorded with it, however
//! deep the call that waits, and no clock is read unless something waits. Everything that the operation reads in one poll is
//! as of one moment (see [`crate::cache::Moment`]).

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use limits::Limit;

use crate::cache::Moment;
use crate::in_use::Used;

/// How long an operation has waited, and what it worked on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Timings {
    /// Time waited for a thread of the pool for blocking work.
    pub queue: Duration,
    /// Time waited for the budget of the share.
    pub limit: Duration,
    /// The limit that it waited for longest.
    pub throttled: Option<Limit>,
    /// The file and open that it worked on.
    pub used: Option<Used>,
}

impl Timings {
    /// Whether the operation has waited at all.
    pub(crate) fn has_waited(&self) -> bool {
        !self.queue.is_zero() || !self.limit.is_zero()
    }
}

thread_local! {
    /// Of the operation being polled on this thread.
    static CURRENT: Cell<Timings> = const {
        Cell::new(Timings { queue: Duration::ZERO, limit: Duration::ZERO, throttled: None, used: None })
    };
}

/// Runs an operation and records its waits with it alone. The caller pins the operation, so that it is not moved.
pub fn scope<F: Future>(operation: Pin<&mut F>) -> impl Future<Output = F::Output> {
    Scope { operation, timings: Timings::default() }
}

/// The timings of the operation being polled since the last call of this function.
#[must_use]
pub fn take() -> Timings {
    CURRENT.take()
}

struct Scope<'a, F> {
    operation: Pin<&'a mut F>,
    timings: Timings,
}

impl<F: Future> Future for Scope<'_, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let outer = CURRENT.replace(self.timings);
        let _moment = Moment::begin();
        let polled = self.operation.as_mut().poll(cx);
        self.timings = CURRENT.replace(outer);
        polled
    }
}

/// Records that the operation being polled has waited for the budget.
pub(crate) fn waited(limit: Limit, time: Duration) {
    let mut timings = CURRENT.get();
    timings.limit += time;
    timings.throttled = Some(limit);
    CURRENT.set(timings);
}

/// Records what the operation being polled reads or writes.
pub(crate) fn uses(used: Used) {
    CURRENT.set(Timings { used: Some(used), ..CURRENT.get() });
}

/// Records that the operation being polled has waited for a thread.
pub(crate) fn queued(time: Duration) {
    let mut timings = CURRENT.get();
    timings.queue += time;
    CURRENT.set(timings);
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    #[tokio::test]
    async fn what_waits_is_noted_with_its_own_operation() {
        let second = Duration::from_secs(1);
        let wait = |limit, times: u32| async move {
            for _ in 0..times {
                tokio::task::yield_now().await;
                waited(limit, second);
                queued(second);
            }
            take()
        };
        let (one, two) = (pin!(wait(Limit::Read, 2)), pin!(wait(Limit::Iops, 3)));
        let (one, two) = tokio::join!(scope(one), scope(two));
        let expected = |times: u32, limit| Timings {
            queue: second * times,
            limit: second * times,
            throttled: Some(limit),
            used: None,
        };
        assert_eq!((one, two), (expected(2, Limit::Read), expected(3, Limit::Iops)));
        assert_eq!(CURRENT.get(), Timings::default());
    }
}
