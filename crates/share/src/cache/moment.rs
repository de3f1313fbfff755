//! One moment for all answers to a request.
//!
//! What the cache knows is as of the moment when the store was last asked what has changed. Asking costs a system call, so
//! that is done once for all that a request looks at before it waits for something: what had changed when the request
//! came is known then. Who has changed something itself asks anew.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// What this thread is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    /// No request is known: each answer is a moment of its own.
    Unknown,
    /// A request, and which cache has asked its store since it began or changed something.
    Request(Option<u64>),
}

thread_local! {
    static DOING: Cell<Doing> = const { Cell::new(Doing::Unknown) };
}

static NEXT: AtomicU64 = AtomicU64::new(0);

/// As long as it lives this thread works on one request, and waits for nobody.
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

    /// Something is done for a request, which may be the one that is polled.
    pub(crate) fn join() -> Self {
        if DOING.get() == Doing::Unknown { Self::begin() } else { Self { before: None } }
    }

    /// Another thread has done something for the request that is polled here, and may have changed something.
    pub(crate) fn renew() {
        end();
    }
}

impl Drop for Moment {
    fn drop(&mut self) {
        match self.before {
            None => {}
            Some(Doing::Unknown) => DOING.set(Doing::Unknown),
            // What was known of the directories may have been changed since.
            Some(Doing::Request(_)) => DOING.set(Doing::Request(None)),
        }
    }
}

/// A number for a cache.
pub(super) fn next_number() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Whether this cache has asked in this moment.
pub(super) fn is_settled(cache: u64) -> bool {
    DOING.get() == Doing::Request(Some(cache))
}

/// It does.
pub(super) fn settle(cache: u64) {
    if DOING.get() != Doing::Unknown {
        DOING.set(Doing::Request(Some(cache)));
    }
}

/// Something was changed: what was asked before is out of date.
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
