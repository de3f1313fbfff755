//! A check that nearly every call needs, but that may be late: it is made now and then.
//!
//! A directory found by its handle may have been moved out of the share. The feed reports that when it is drained, which
//! costs a system call.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Time between two checks.
const PAUSE: Duration = Duration::from_millis(10);

/// The time of the last check.
#[derive(Debug)]
pub(super) struct NowAndThen {
    began: Instant,
    /// In milliseconds after `began`.
    asked: AtomicU64,
}

impl Default for NowAndThen {
    fn default() -> Self {
        Self { began: Instant::now(), asked: AtomicU64::new(0) }
    }
}

impl NowAndThen {
    /// Whether to check now. If so, no other call need check for a while.
    pub(super) fn is_due(&self) -> bool {
        self.is_due_after(self.began.elapsed())
    }

    fn is_due_after(&self, passed: Duration) -> bool {
        let now = u64::try_from(passed.as_millis()).unwrap_or(u64::MAX);
        let pause = now.saturating_sub(self.asked.load(Ordering::Relaxed));
        let is_due = u128::from(pause) >= PAUSE.as_millis();
        if is_due {
            self.asked.store(now, Ordering::Relaxed);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_asks_again_within_the_pause() {
        let asked = NowAndThen::default();
        let is_due = |milliseconds| asked.is_due_after(Duration::from_millis(milliseconds));
        assert!(!is_due(9) && is_due(10));
        assert!(!is_due(19) && is_due(25) && !is_due(34) && is_due(35));
    }
}
