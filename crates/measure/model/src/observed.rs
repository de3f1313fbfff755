//! What passes the links of a model: counted by the kernel, looked at again and again.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use serde::Serialize;

/// Over how long a link's rate is looked at.
const SPAN: Duration = Duration::from_secs(1);

/// The bytes that have passed each link until now.
pub type Counters = Vec<u64>;

/// A link in one direction.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Link {
    /// The machine at its end.
    pub machine: String,
    /// `out`: what the machine sends; `in`: what it receives.
    pub direction: &'static str,
    /// Its limit, in bytes a second.
    pub limit: Option<u64>,
    /// What may pass at once after a rest, in bytes.
    pub bucket: Option<u64>,
    /// The bytes that have passed it.
    pub bytes: u64,
    /// Those in the busiest second, or little more than a second.
    pub busiest_bytes: u64,
    /// How long that was, in seconds: from before the first look at the counter to after the last.
    pub busiest_seconds: f64,
}

/// What the forwarder of a link has done in one direction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Forwarded {
    /// The machine at the end of the link.
    pub machine: String,
    /// `out`: what the machine sends; `in`: what it receives.
    pub direction: &'static str,
    /// Frames that it has seen.
    pub frames: u64,
    /// Those that it has lost, as the model says.
    pub lost: u64,
    /// Those that it has dropped: more waited than it holds.
    pub dropped: u64,
}

impl Link {
    pub(crate) fn new(machine: &str, is_out: bool, limit: Option<(u64, u64)>) -> Self {
        Self {
            machine: machine.to_owned(),
            direction: if is_out { "out" } else { "in" },
            limit: limit.map(|(rate, _)| rate),
            bucket: limit.map(|(_, bucket)| bucket),
            bytes: 0,
            busiest_bytes: 0,
            busiest_seconds: 0.0,
        }
    }

    /// Bytes a second in the busiest second.
    #[must_use]
    pub fn busiest_rate(&self) -> f64 {
        if self.busiest_seconds > 0.0 { self.busiest_bytes as f64 / self.busiest_seconds } else { 0.0 }
    }
}

/// Looks at counters, and keeps the busiest second of each.
#[derive(Debug)]
pub struct Observer {
    links: Vec<Link>,
    first: Option<Counters>,
    /// The looks of the last second, and the one before them: when each began, and what it found.
    recent: VecDeque<(Instant, Counters)>,
}

impl Observer {
    /// Of these links.
    #[must_use]
    pub fn new(links: Vec<Link>) -> Self {
        Self { links, first: None, recent: VecDeque::new() }
    }

    /// A look that began and ended at these times.
    pub fn look(&mut self, began: Instant, ended: Instant, counters: Counters) {
        let first = self.first.get_or_insert_with(|| counters.clone());
        // One that is a second old stays the oldest, and no older one does.
        while self.recent.get(1).is_some_and(|(at, _)| ended.duration_since(*at) >= SPAN) {
            self.recent.pop_front();
        }
        if let Some((at, before)) = self.recent.front() {
            let span = ended.duration_since(*at);
            for ((link, now), before) in self.links.iter_mut().zip(&counters).zip(before) {
                let bytes = now.saturating_sub(*before);
                let rate = bytes as f64 / span.as_secs_f64();
                if span >= SPAN && rate > link.busiest_rate() {
                    (link.busiest_bytes, link.busiest_seconds) = (bytes, span.as_secs_f64());
                }
            }
        }
        for ((link, now), first) in self.links.iter_mut().zip(&counters).zip(first.iter()) {
            link.bytes = now.saturating_sub(*first);
        }
        self.recent.push_back((began, counters));
    }

    /// What was found.
    #[must_use]
    pub fn end(self) -> Vec<Link> {
        self.links
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_second_is_kept() {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let mut observer = Observer::new(vec![Link::new("vm-1", true, Some((8_000_000, 8000)))]);
        for (ms, bytes) in [(0, 100), (500, 200), (1000, 1100), (1500, 3100), (2000, 3200), (4000, 3300)] {
            observer.look(at(ms), at(ms + 1), vec![bytes]);
        }
        let links = observer.end();
        assert_eq!((links[0].bytes, links[0].busiest_bytes), (3200, 2900));
        assert!((links[0].busiest_seconds - 1.001).abs() < 1e-6, "{links:?}");
    }

    #[test]
    fn less_than_a_second_has_no_busiest_one() {
        let start = Instant::now();
        let mut observer = Observer::new(vec![Link::new("vm-1", false, None)]);
        observer.look(start, start, vec![0]);
        observer.look(start, start + Duration::from_millis(900), vec![7]);
        let links = observer.end();
        assert_eq!((links[0].bytes, links[0].busiest_bytes, links[0].direction), (7, 0, "in"));
    }
}
