//! What one row is to another.

use serde::{Deserialize, Serialize};

use super::row::{Key, Repetition, Row};
use crate::statistics::{Ratio, compare};

/// One row beside the row that it is held against.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The row that is held against: the ratio's denominator.
    pub base: Key,
    /// The row that is judged.
    pub other: Key,
    /// Operations a second.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rate: Option<Ratio>,
    /// Median latency of the reads, writes or cycles: below 1 is quicker.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub latency_p50: Option<Ratio>,
    /// The 99th percentile of that latency.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub latency_p99: Option<Ratio>,
    /// Statements of the documents that it speaks to, such as `1.20`.
    #[serde(default)]
    pub documents: Vec<String>,
}

impl Comparison {
    /// Compares two rows that were measured in turns.
    #[must_use]
    pub fn of(base: &Row, other: &Row) -> Self {
        let latency = |percent| compare(&latencies(base, percent), &latencies(other, percent));
        let mut documents = other.documents.clone();
        documents.retain(|d| base.documents.contains(d));
        Self {
            base: base.key.clone(),
            other: other.key.clone(),
            rate: compare(&base.rates(), &other.rates()),
            latency_p50: latency(50.0),
            latency_p99: latency(99.0),
            documents,
        }
    }
}

/// A percentile of each repetition's reads, writes and cycles together; 0 where none was done.
fn latencies(row: &Row, percent: f64) -> Vec<f64> {
    row.repetitions.iter().map(|r| r.latency().percentile(percent).unwrap_or(0.0)).collect()
}

impl Repetition {
    /// The latencies of reads, writes and cycles, merged.
    #[must_use]
    pub fn latency(&self) -> crate::histogram::Histogram {
        crate::histogram::Histogram::merged(self.whole().map(|tally| &tally.latency))
    }
}
