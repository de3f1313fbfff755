//! The time, read as rarely as it can be.
//!
//! While a connection has its turn, requests follow each other without a pause: each begins when the one before it has
//! ended. So one reading of the clock for each request is enough, for its end; what begins asks [`now`].

use std::cell::Cell;
use std::time::Instant;

thread_local! {
    /// The last reading of the turn that runs on this thread.
    static LAST: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// The time. Within a turn it is that of the last [`read`], or of the turn's begin.
#[must_use]
pub fn now() -> Instant {
    LAST.get().unwrap_or_else(Instant::now)
}

/// Reads the clock: what follows within this turn begins then.
#[must_use]
pub fn read() -> Instant {
    let now = Instant::now();
    if LAST.get().is_some() {
        LAST.set(Some(now));
    }
    now
}

/// A turn: from its begin until it is dropped.
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
