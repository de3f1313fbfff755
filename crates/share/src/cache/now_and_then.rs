//! What nearly every call would ask, and need not know at once: it is asked now and then.
//!
//! A directory that is found by its handle may have been moved out of the share. The feed tells of that when it is drained,
//! which costs a system call.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// So long nobody asks again.
const PAUSE: Duration = Duration::from_millis(10);

/// When it was asked last.
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
    /// Whether to ask now; then nobody else need for a while.
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
