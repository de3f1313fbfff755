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
mod score;
mod show;
mod summary;
mod units;
mod words;

use serde::Serialize;

pub use beside::{Beside, BesideRow};
pub use chart::{Chart, Point, Series};
pub use claim::Figure;
pub use counters::Counted;
pub use evidence::{Case, Judgement, Verdict};
pub use html::{html, pages};
pub use judge::{Finding, Obstacle, Statement, Table};
pub use markdown::markdown;
pub use run::{Run, RunAdvice, RunRow};
pub use score::{ScoreRow, Scorecard, Standing, Work};
pub use summary::{Rating, Summary};
pub use units::moment;

use advise::{self, Profile, Recommendation};
use load::result::ResultFile;
use summary::Grounds;

/// The version of the report's JSON form.
const FORMAT: u32 = 1;

/// What results say together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The version of this form.
    pub report_format: u32,
    /// Whether the server is good.
    pub summary: Summary,
    /// The server against each of its peers.
    pub scorecards: Vec<Scorecard>,
    /// What to change, by server and best first: each setting once.
    pub recommendations: Vec<Recommendation>,
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
        let named: Vec<(&str, &ResultFile)> =
            results.iter().map(|(name, result)| (name.as_str(), result)).collect();
        let runs: Vec<Run> = results.iter().map(|(name, result)| Run::of(name, result, profile)).collect();
        let server = score::subject(&runs);
        let scorecards = score::scorecards(&files, server.as_deref());
        let documents = judge::judge(&files, profile);
        let recommendations = advise::ranked(&named, profile);
        let own = own_advice(&recommendations, server.as_deref());
        let grounds = Grounds {
            server: server.as_deref(),
            runs: &runs,
            scorecards: &scorecards,
            documents: &documents,
            advice: &own,
        };
        Self {
            report_format: FORMAT,
            summary: grounds.summary(),
            scorecards,
            recommendations,
            runs,
            documents,
            beside: beside::lay_out(&files),
        }
    }

    /// The advice on the server that is judged; all advice where none is.
    #[must_use]
    pub fn advice(&self) -> Vec<&Recommendation> {
        own_advice(&self.recommendations, self.summary.server.as_deref())
    }

    /// How many findings were judged so.
    #[must_use]
    pub fn count_judged(&self, judgement: Judgement) -> usize {
        self.findings().filter(|finding| finding.judgement == judgement).count()
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

fn own_advice<'a>(all: &'a [Recommendation], server: Option<&str>) -> Vec<&'a Recommendation> {
    all.iter().filter(|one| server.is_none() || one.server.as_deref() == server).collect()
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
