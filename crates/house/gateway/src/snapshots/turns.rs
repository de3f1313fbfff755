//! Turns to take or remove snapshots: one at a time on one file system, whatever the shares are.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// The file systems whose turn is taken.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Guards the file systems, by what [`storage::Snapshots::file_system`] says. Not held while a snapshot is taken or removed.
    taken: Mutex<HashSet<Vec<u8>>>,
    given_back: Condvar,
}

/// The turn on one file system, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    turns: &'a Turns,
    file_system: Vec<u8>,
}

impl Turns {
    /// Waits for the turn. None: others have it for longer.
    pub(super) fn take(&self, file_system: Vec<u8>, patience: Duration) -> Option<Turn<'_>> {
        let until = Instant::now() + patience;
        let mut taken = self.taken.lock();
        while !taken.insert(file_system.clone()) {
            if self.given_back.wait_until(&mut taken, until).timed_out() && taken.contains(&file_system) {
                return None;
            }
        }
        drop(taken);
        Some(Turn { turns: self, file_system })
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.turns.taken.lock().remove(&self.file_system);
        self.turns.given_back.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_on_one_file_system() {
        let turns = Turns::default();
        let take = |name: &str| turns.take(name.into(), Duration::ZERO);
        let first = take("a").unwrap();
        assert!(take("a").is_none());
        let other = take("b").unwrap();
        drop(first);
        let again = take("a").unwrap();
        assert!(take("b").is_none());
        drop((other, again));
        assert!(take("a").is_some() && take("b").is_some());
    }

    /// A turn that is given back wakes all who wait: also those for another file system, and then these go on waiting.
    #[test]
    fn who_waits_gets_the_turn_that_is_given_back() {
        const PATIENCE: Duration = Duration::from_secs(600);
        let turns = Turns::default();
        let [first, other] = ["a", "b"].map(|name| turns.take(name.into(), Duration::ZERO).unwrap());
        let begun = Instant::now();
        std::thread::scope(|scope| {
            let waiting = ["a", "b"].map(|name| {
                let turns = &turns;
                scope.spawn(move || turns.take(name.into(), PATIENCE).map(|_| Instant::now()))
            });
            // They wait by then. On a machine that is slower than that this shows nothing.
            std::thread::sleep(Duration::from_millis(200));
            drop((first, other));
            for one in waiting {
                let at = one.join().unwrap().unwrap();
                assert!(at < begun + PATIENCE, "nobody has woken it");
            }
        });
    }
}
