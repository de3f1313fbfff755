//! What a run measures: rows, and which of them are held against each other.

mod advice;
mod family;
mod selection;

use std::collections::BTreeMap;

use crate::result::{Key, Mix};
use crate::security::Security;

pub use advice::{advice, advice_extent, alone, settings};
pub use family::{FAMILIES, Family, family};
pub use selection::Selection;

/// One row that is to be measured.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedRow {
    /// What is set.
    pub key: Key,
    /// Statements of the documents that it belongs to.
    pub documents: Vec<&'static str>,
    /// How messages are protected, where that is what the row is about.
    pub security: Option<Security>,
}

/// All that a run measures.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The family's name, or `job`.
    pub family: String,
    /// Statements of the documents that it belongs to.
    pub documents: Vec<String>,
    /// The rows, in the order of the report.
    pub rows: Vec<PlannedRow>,
    /// Rows that are held against others: first the base, then the one that is judged.
    pub comparisons: Vec<(usize, usize)>,
    /// What the family asks for and this program cannot do, in words.
    pub not_honoured: Vec<String>,
}

/// How long and how often rows are measured, and on how much data.
#[derive(Debug, Clone, PartialEq)]
pub struct Extent {
    /// A short run.
    pub quick: bool,
    /// Repetitions that count; one more goes before them.
    pub repetitions: u32,
    /// Seconds of load before each measurement.
    pub ramp_seconds: f64,
    /// Seconds of each measurement.
    pub seconds: f64,
    /// Bytes of each file.
    pub file_bytes: u64,
}

impl Extent {
    /// Six repetitions, which give a 95 % interval without an assumption; three in a quick run.
    #[must_use]
    pub fn new(quick: bool) -> Self {
        if quick {
            Self { quick, repetitions: 3, ramp_seconds: 0.1, seconds: 0.4, file_bytes: 16 << 20 }
        } else {
            Self { quick, repetitions: 6, ramp_seconds: 0.3, seconds: 1.0, file_bytes: 64 << 20 }
        }
    }
}

/// Reads or writes of one size: the key that most rows begin with.
#[must_use]
pub fn key(connections: u32, block_bytes: u64, reads: u8) -> Key {
    Key {
        connections,
        block_bytes,
        mix: Mix::ReadPercent(reads),
        random: true,
        files: 1,
        threads: 1,
        queue_depth: 1,
        clients: 1,
        settings: BTreeMap::new(),
    }
}

impl Plan {
    /// Holds each row against the one that differs from it only in what `base` sets.
    pub(crate) fn compare_with(&mut self, base: impl Fn(&Key) -> Key) {
        for (at, row) in self.rows.iter().enumerate() {
            let key = base(&row.key);
            if let Some(other) = self.rows.iter().position(|row| row.key == key)
                && other != at
            {
                self.comparisons.push((other, at));
            }
        }
    }

    /// Leaves only the rows that `keep` wants, with their comparisons.
    pub fn retain(&mut self, keep: impl Fn(&Key) -> bool) {
        let kept: Vec<usize> = (0..self.rows.len()).filter(|at| keep(&self.rows[*at].key)).collect();
        let now_at = |was: usize| kept.binary_search(&was).ok();
        self.comparisons = std::mem::take(&mut self.comparisons)
            .into_iter()
            .filter_map(|(base, other)| now_at(base).zip(now_at(other)))
            .collect();
        self.rows.retain(|row| keep(&row.key));
    }

    /// The block size that all blocks of the plan are multiples of.
    pub(crate) fn granule(&self) -> u64 {
        let blocks = self.rows.iter().map(|row| row.key.block_bytes).filter(|bytes| *bytes > 0);
        blocks.map(|bytes| 1 << bytes.trailing_zeros()).min().unwrap_or(4096)
    }
}
