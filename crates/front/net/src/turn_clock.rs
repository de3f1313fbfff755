//! The time, read as rarely as possible.
//!
//! During a connection's turn, requests follow each other without a pause: each begins when the previous one has ended.
//! So one reading of the clock per request, at its end, is enough. The beginning of each request uses [`now`].

use std::cell::Cell;
use std::time::Instant;

thread_local! {
    /// The last reading in the turn that runs on this thread.
    static LAST: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// The time. Within a turn this is the time of the last [`read`], or of the beginning of the turn.
#[must_use]
pub fn now() -> Instant {
    LAST.get().unwrap_or_else(Instant::now)
}

/// Reads the clock. Requests that follow within this turn begin at this time.
#[must_use]
pub fn read() -> Instant {
    let now = Instant::now();
    if LAST.get().is_some() {
        LAST.set(Some(now));
    }
    now
}

/// A turn, from its beginning until this is dropped.
#[derive(Debug)]
pub(crate) struct Turn(());

impl Turn {
    pub(crate) fn begin() -> Self {
        LAST.set(Some(Instant::now()));
        Self(())
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        LAST.set(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_stands_still_within_a_turn_until_somebody_reads_the_clock() {
        let turn = Turn::begin();
        let begun = now();
        while Instant::now() <= begun {}
        assert_eq!(now(), begun);
        let later = read();
        assert!(later > begun && now() == later);
        drop(turn);
        while Instant::now() <= later {}
        assert!(now() > later && read() > later && LAST.get().is_none());
    }
}
