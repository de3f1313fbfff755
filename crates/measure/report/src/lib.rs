//! From results to a report: the documents' statements beside what was measured, charts, results side by side, what went
//! wrong, and what it means.
//!
//! [`Report::of`] is a pure function of results. [`html`], [`markdown`] and JSON (the report serializes) show the same.
//!
//! It will never know how load is made, nor reach a server, a file or a clock: all that it says comes from the
//! [`ResultFile`]s that it is given, so the same results always give the same report.

mod beside;
mod chart;
mod claim;
mod claims;
mod counters;
mod evidence;
mod html;
mod judge;
mod markdown;
mod range;
mod run;
mod show;
mod units;
mod words;

use serde::Serialize;

pub use beside::{Beside, BesideRow};
pub use chart::{Chart, Point, Series};
pub use claim::Figure;
pub use counters::Counted;
pub use evidence::{Case, Verdict};
pub use html::html;
pub use judge::{Finding, Obstacle, Statement, Table};
pub use markdown::markdown;
pub use run::{Run, RunAdvice, RunRow};
pub use units::moment;

use advise::{self, Profile};
use load::result::ResultFile;

/// The version of the report's JSON form.
const FORMAT: u32 = 1;

/// What results say together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The version of this form.
    pub report_format: u32,
    /// The results.
    pub runs: Vec<Run>,
    /// The documents' statements beside what was measured.
    pub documents: Vec<Table>,
    /// Results of one family laid side by side.
    pub beside: Vec<Beside>,
}

impl Report {
    /// The report of results, each with the name of its file. `profile` says what the servers are sold as: figures that hold for
    /// one service are tested on that service only.
    #[must_use]
    pub fn of(results: &[(String, ResultFile)], profile: Profile) -> Self {
        let files: Vec<&ResultFile> = results.iter().map(|(_, result)| result).collect();
        Self {
            report_format: FORMAT,
            runs: results.iter().map(|(name, result)| Run::of(name, result, profile)).collect(),
            documents: judge::judge(&files, profile),
            beside: beside::lay_out(&files),
        }
    }

    /// How many findings have a verdict.
    #[must_use]
    pub fn count(&self, verdict: Verdict) -> usize {
        self.findings().filter(|finding| finding.verdict == verdict).count()
    }

    fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.documents.iter().flat_map(|table| &table.statements).flat_map(|s| &s.findings)
    }
}

/// What is told first: what should be changed.
fn weight(verdict: advise::Verdict) -> u8 {
    match verdict {
        advise::Verdict::Red => 2,
        advise::Verdict::Yellow => 1,
        advise::Verdict::Green => 0,
    }
}

#[cfg(test)]
mod tests;
