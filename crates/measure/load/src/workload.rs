//! What load consists of.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::result::{Key, Mix};
use crate::trace::Replay;

/// What load consists of, and for how long.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    /// What is done: blocks, mix, files, threads, queue depth.
    pub key: Key,
    /// Operations a second in all, at even distances; none: as fast as answers come.
    pub rate: Option<f64>,
    /// How long a place rests between an answer and its next operation.
    pub think: Duration,
    /// How long the load runs before it is measured.
    pub ramp: Duration,
    /// How long it is measured.
    pub time: Duration,
    /// What is read is compared with what was written.
    pub check: bool,
    /// What is done instead of what `key` says, once: the measurement ends with it. Workers have none.
    #[serde(skip)]
    pub replay: Option<Replay>,
}

impl Workload {
    /// Load as fast as answers come, checked, for `time` after `ramp`.
    #[must_use]
    pub fn new(key: Key, ramp: Duration, time: Duration) -> Self {
        Self { key, rate: None, think: Duration::ZERO, ramp, time, check: true, replay: None }
    }

    /// Operations under way at a time, over all threads.
    #[must_use]
    pub fn places(&self) -> usize {
        let places = u64::from(self.key.threads.max(1)) * u64::from(self.key.queue_depth.max(1));
        usize::try_from(places).unwrap_or(usize::MAX)
    }

    /// Reads of a hundred operations; `None` for metadata.
    pub(crate) fn reads(&self) -> Option<u8> {
        match self.key.mix {
            Mix::ReadPercent(reads) => Some(reads.min(100)),
            Mix::Metadata => None,
        }
    }
}
