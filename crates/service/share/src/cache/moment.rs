//! One moment for all answers to a request.
//!
//! The cache is as fresh as the last time it asked the store for changes. Asking costs a system call. So the cache asks once
//! for everything that a request reads before it waits: changes made before the request arrived are then known. After a
//! request has changed something itself, the cache asks again.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

/// What this thread is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    /// No request is known: the cache asks before each answer.
    Unknown,
    /// A request, and the cache that has asked its store since the request began or last changed something.
    Request(Option<u64>),
}

thread_local! {
    static DOING: Cell<Doing> = const { Cell::new(Doing::Unknown) };
}

static NEXT: AtomicU64 = AtomicU64::new(0);

/// While this exists, the thread works on one request, and does not wait.
#[derive(Debug)]
pub(crate) struct Moment {
    /// What the thread did before, if that was something else.
    before: Option<Doing>,
}

impl Moment {
    /// A request is polled.
    pub(crate) fn begin() -> Self {
        Self { before: Some(DOING.replace(Doing::Request(None))) }
    }

    /// Work for a request, possibly the one that is being polled.
    pub(crate) fn join() -> Self {
        if DOING.get() == Doing::Unknown { Self::begin() } else { Self { before: None } }
    }

    /// Another thread has worked for the request that is being polled here, and may have changed something.
    pub(crate) fn renew() {
        end();
    }
}

impl Drop for Moment {
    fn drop(&mut self) {
        match self.before {
            None => {}
            Some(Doing::Unknown) => DOING.set(Doing::Unknown),
            // The directories may have changed since the cache asked.
            Some(Doing::Request(_)) => DOING.set(Doing::Request(None)),
        }
    }
}

/// Runs a request so that everything that it reads in one poll is as of one moment. The caller pins the request, so that it is
/// not moved.
pub fn as_of_one_moment<F: Future>(request: Pin<&mut F>) -> impl Future<Output = F::Output> {
    AsOfOneMoment { request }
}

struct AsOfOneMoment<'a, F> {
    request: Pin<&'a mut F>,
}

impl<F: Future> Future for AsOfOneMoment<'_, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let _moment = Moment::begin();
        self.request.as_mut().poll(cx)
    }
}

/// A new number that identifies a cache.
pub(super) fn next_number() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Whether this cache has asked its store in this moment.
pub(super) fn is_settled(cache: u64) -> bool {
    DOING.get() == Doing::Request(Some(cache))
}

/// Records that this cache has asked its store in this moment.
pub(super) fn settle(cache: u64) {
    if DOING.get() != Doing::Unknown {
        DOING.set(Doing::Request(Some(cache)));
    }
}

/// Something was changed: the last answer of the store is out of date.
pub(super) fn end() {
    if DOING.get() != Doing::Unknown {
        DOING.set(Doing::Request(None));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_asks_once_until_it_changes_something() {
        let (one, other) = (next_number(), next_number());
        settle(one);
        assert!(!is_settled(one), "no request");
        let request = Moment::begin();
        assert!(!is_settled(one));
        settle(one);
        assert!(is_settled(one) && !is_settled(other));
        let within = Moment::join();
        assert!(is_settled(one));
        drop(within);
        assert!(is_settled(one));
        end();
        assert!(!is_settled(one));
        settle(one);
        let other_request = Moment::begin();
        assert!(!is_settled(one));
        drop(other_request);
        assert!(!is_settled(one), "it may have changed something");
        settle(one);
        drop(request);
        assert!(!is_settled(one));
        let alone = Moment::join();
        settle(one);
        assert!(is_settled(one));
        drop(alone);
        assert!(!is_settled(one));
    }
}
