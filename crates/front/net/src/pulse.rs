//! Whether the shards are alive.
//!
//! Each shard notes the time four times a second. A shard that hangs in a call notes nothing, so others recognise it
//! without asking it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::watch;

/// How often a shard notes the time.
const BEAT: Duration = Duration::from_millis(250);
/// A shard that has noted nothing for this long is stuck.
const STUCK: Duration = Duration::from_secs(5);

/// When each shard last noted the time.
#[derive(Debug, Clone)]
pub struct Pulse {
    began: Instant,
    /// For each shard, milliseconds since `began`.
    beats: Arc<[AtomicU64]>,
}

impl Pulse {
    pub(crate) fn new(shards: usize) -> Self {
        Self { began: Instant::now(), beats: (0..shards).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Notes the time for a shard, until the shards end.
    pub(crate) async fn keep(self, shard: usize, mut stop: watch::Receiver<bool>) {
        let mut interval = tokio::time::interval(BEAT);
        interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = interval.tick() => self.beat(shard, Instant::now()),
                _ = stop.wait_for(|stop| *stop) => return,
            }
        }
    }

    pub(crate) fn beat(&self, shard: usize, now: Instant) {
        let after = now.saturating_duration_since(self.began).as_millis();
        if let Some(beat) = self.beats.get(shard) {
            beat.store(u64::try_from(after).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
    }

    /// The numbers of the shards that have been held up for more than 5 seconds, and for how long.
    #[must_use]
    pub fn stuck(&self) -> Vec<(usize, Duration)> {
        self.stuck_at(Instant::now())
    }

    /// How long a shard has noted nothing.
    pub(crate) fn silent(&self, shard: usize, now: Instant) -> Duration {
        let last = self.beats.get(shard).map_or(0, |beat| beat.load(Ordering::Relaxed));
        now.saturating_duration_since(self.began + Duration::from_millis(last))
    }

    fn stuck_at(&self, now: Instant) -> Vec<(usize, Duration)> {
        let silent = (0..self.beats.len()).map(|shard| (shard, self.silent(shard, now)));
        silent.filter(|(_, silent)| *silent > STUCK).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_that_notes_nothing_is_stuck() {
        let pulse = Pulse::new(3);
        let at = |seconds| pulse.began + Duration::from_secs(seconds);
        assert_eq!(pulse.stuck_at(at(5)), []);
        pulse.beat(0, at(4));
        pulse.beat(2, at(8));
        pulse.beat(7, at(8));
        assert_eq!(pulse.stuck_at(at(10)), [(0, Duration::from_secs(6)), (1, Duration::from_secs(10))]);
        pulse.beat(0, at(10));
        pulse.beat(1, at(10));
        assert_eq!(pulse.stuck_at(at(11)), []);
    }

    #[test]
    fn shards_note_the_time_by_themselves() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let pulse = Pulse::new(1);
        let stop = watch::Sender::new(false);
        runtime.block_on(async {
            let kept = tokio::spawn(pulse.clone().keep(0, stop.subscribe()));
            let deadline = Instant::now() + Duration::from_secs(60);
            while pulse.beats[0].load(Ordering::Relaxed) == 0 && Instant::now() < deadline {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            assert!(pulse.beats[0].load(Ordering::Relaxed) > 0);
            stop.send_replace(true);
            kept.await.unwrap();
        });
    }
}
