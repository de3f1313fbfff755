//! The system's clock, by which change times are given.

use std::time::{Duration, UNIX_EPOCH};

/// The time since 1970.
pub(crate) fn now() -> Duration {
    UNIX_EPOCH.elapsed().unwrap_or_default()
}
