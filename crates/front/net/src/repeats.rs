//! Log lines that clients cause: the first of a kind is written, further ones are counted for a while.

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::Origin;

/// How long further lines of the same kind about the same address are only counted.
const QUIET: Duration = Duration::from_secs(10);
/// How many pairs of address and kind are told apart. All others share one line of each kind.
const LINES_MAX: usize = 256;

/// The subject of a line: an address (`None`: no address, or one too many), and the kind of the line.
type About = (Option<Origin>, &'static str);

/// Which log lines were written lately.
#[derive(Debug, Default)]
pub struct Repeats {
    /// Guards the written lines, and how many were left out since.
    lines: Mutex<HashMap<About, Line>>,
}

#[derive(Debug)]
struct Line {
    written: Instant,
    left_out: u64,
}

impl Repeats {
    /// Whether to write a line, and if so, how many lines of its kind were left out before it.
    pub fn admit(&self, origin: Option<Origin>, kind: &'static str, now: Instant) -> Option<u64> {
        let mut lines = self.lines.lock();
        let mut about = (origin, kind);
        if !lines.contains_key(&about) && lines.len() >= LINES_MAX {
            lines.retain(|_, line| line.left_out > 0 || line.is_recent(now));
            if lines.len() >= LINES_MAX {
                about = (None, kind);
            }
        }
        let Some(line) = lines.get_mut(&about) else {
            lines.insert(about, Line { written: now, left_out: 0 });
            return Some(0);
        };
        if line.is_recent(now) {
            line.left_out += 1;
            return None;
        }
        line.written = now;
        Some(std::mem::take(&mut line.left_out))
    }

    /// As [`Self::admit`], for a line about a client that is written now.
    pub fn admit_from(&self, address: SocketAddr, kind: &'static str) -> Option<u64> {
        self.admit(Some(address.ip().into()), kind, Instant::now())
    }

    /// Writes a line about a client, unless one of its kind was written a short while ago.
    pub(crate) fn warn(&self, address: SocketAddr, kind: &'static str, what: &dyn fmt::Display) {
        match self.admit_from(address, kind) {
            None => {}
            Some(0) => tracing::warn!(%address, "{what}"),
            Some(left_out) => tracing::warn!(%address, left_out, "{what}"),
        }
    }

    /// Lines that were left out long enough ago to be reported: their subjects, and how many.
    fn overdue(&self, now: Instant) -> Vec<(About, u64)> {
        let mut lines = self.lines.lock();
        lines.retain(|_, line| line.left_out > 0 || line.is_recent(now));
        let due = lines.iter_mut().filter(|(_, line)| line.left_out > 0 && !line.is_recent(now));
        due.map(|(about, line)| {
            line.written = now;
            (*about, std::mem::take(&mut line.left_out))
        })
        .collect()
    }

    /// Has `write` log the overdue lines (the address, the kind, how many), for as long as it is polled. Without this, lines
    /// that no other line follows are never reported, and keep their places.
    pub async fn tell_overdue(&self, write: fn(&str, &str, u64)) {
        loop {
            tokio::time::sleep(QUIET).await;
            for ((origin, kind), count) in self.overdue(Instant::now()) {
                let from = origin.map_or_else(|| "several".to_owned(), |origin| origin.to_string());
                write(&from, kind, count);
            }
        }
    }
}

impl Line {
    fn is_recent(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.written) < QUIET
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(n: u32) -> Option<Origin> {
        Some(std::net::IpAddr::from(n.to_be_bytes()).into())
    }

    #[test]
    fn one_line_of_a_kind_is_written_and_the_others_are_counted() {
        let (repeats, start) = (Repeats::default(), Instant::now());
        let (later, soon) = (start + QUIET, start + QUIET / 2);
        assert_eq!(repeats.admit(origin(1), "broken", start), Some(0));
        for _ in 0..1000 {
            assert_eq!(repeats.admit(origin(1), "broken", soon), None);
        }
        assert_eq!(repeats.admit(origin(1), "refused", soon), Some(0), "another kind");
        assert_eq!(repeats.admit(origin(2), "broken", soon), Some(0), "another address");
        assert_eq!(repeats.admit(origin(1), "broken", later), Some(1000));
        assert_eq!(repeats.admit(origin(1), "broken", later), None);
    }

    #[test]
    fn what_was_left_out_is_told_also_when_nothing_follows() {
        let (repeats, start) = (Repeats::default(), Instant::now());
        for _ in 0..3 {
            repeats.admit(origin(1), "broken", start);
        }
        repeats.admit(origin(2), "broken", start);
        assert_eq!(repeats.overdue(start + QUIET / 2), []);
        assert_eq!(repeats.overdue(start + QUIET), [((origin(1), "broken"), 2)]);
        assert_eq!(repeats.overdue(start + 2 * QUIET), []);
        assert!(repeats.lines.lock().is_empty());
    }

    #[test]
    fn many_addresses_are_one_line() {
        let (repeats, start) = (Repeats::default(), Instant::now());
        let written = (0..10_000).filter(|n| repeats.admit(origin(*n), "broken", start).is_some()).count();
        assert_eq!(written, LINES_MAX + 1);
        assert_eq!(repeats.lines.lock().len(), LINES_MAX + 1);
        let told: u64 = repeats.overdue(start + QUIET).into_iter().map(|(_, count)| count).sum();
        assert_eq!(told, 10_000 - 1 - LINES_MAX as u64);
        assert!(repeats.admit(origin(20_000), "broken", start + QUIET).is_some(), "the table is free again");
    }
}
