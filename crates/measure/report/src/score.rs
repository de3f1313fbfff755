//! A server against each of its peers: about ten kinds of work, one figure each.

use serde::Serialize;

use super::claim::Figure;
use super::evidence::{figure, values};
use super::run::Run;
use load::result::{Key, Mix, ResultFile, Row};
use load::statistics::{Conclusion, Estimate, Ratio, compare_all, compare_all_apart};

use super::beside::took_turns_in;

/// Reads and writes up to here are small (documents 1.21 and 3.16).
const SMALL: u64 = 16 << 10;
/// From here on they are large.
const LARGE: u64 = 256 << 10;

/// A server against one peer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Scorecard {
    /// The peer, such as `Samba 4.17.12-Debian`.
    pub peer: String,
    /// The kinds of work that both were measured on.
    pub rows: Vec<ScoreRow>,
    /// All rows took turns with those of the peer.
    pub in_turns: bool,
}

/// A kind of work.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScoreRow {
    /// The work.
    pub work: Work,
    /// Rows that it is taken from.
    pub rows: usize,
    /// The server's figure by the peer's, over these rows together.
    pub ratio: Ratio,
    /// What that means for the server.
    pub standing: Standing,
}

/// What a figure means for a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// Better than the peer, beyond the noise.
    Ahead,
    /// Worse, beyond the noise.
    Behind,
    /// An equivalence test finds no difference.
    Same,
    /// Neither is shown.
    TooNoisy,
}

/// Kinds of work, each row of a result in one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// Reads of at most 16 KiB.
    SmallReads,
    /// Writes of at most 16 KiB.
    SmallWrites,
    /// Reads of 32 to 128 KiB.
    MediumReads,
    /// Writes of 32 to 128 KiB.
    MediumWrites,
    /// Reads of 256 KiB and more.
    LargeReads,
    /// Writes of 256 KiB and more.
    LargeWrites,
    /// Reads and writes.
    Mixed,
    /// One operation at a time.
    OneAtATime,
    /// Signed or encrypted.
    Protected,
    /// Names and attributes.
    Metadata,
    /// CPU time of the server for an operation, over all rows: less is better.
    ServerCpu,
}

impl Work {
    const ALL: [Self; 11] = [
        Self::SmallReads,
        Self::SmallWrites,
        Self::MediumReads,
        Self::MediumWrites,
        Self::LargeReads,
        Self::LargeWrites,
        Self::Mixed,
        Self::OneAtATime,
        Self::Protected,
        Self::Metadata,
        Self::ServerCpu,
    ];

    /// The work of a row.
    fn of(key: &Key) -> Self {
        let is_protected = key.settings.get("security").is_some_and(|name| name != "none");
        let (small, large) = (key.block_bytes <= SMALL, key.block_bytes >= LARGE);
        match key.mix {
            _ if is_protected => Self::Protected,
            Mix::Metadata => Self::Metadata,
            _ if key.threads == 1 && key.queue_depth == 1 && key.clients == 1 => Self::OneAtATime,
            Mix::ReadPercent(100) if small => Self::SmallReads,
            Mix::ReadPercent(100) if large => Self::LargeReads,
            Mix::ReadPercent(100) => Self::MediumReads,
            Mix::ReadPercent(0) if small => Self::SmallWrites,
            Mix::ReadPercent(0) if large => Self::LargeWrites,
            Mix::ReadPercent(0) => Self::MediumWrites,
            Mix::ReadPercent(_) => Self::Mixed,
        }
    }

    /// In words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::SmallReads => "small reads (to 16 KiB)",
            Self::SmallWrites => "small writes",
            Self::MediumReads => "64 KiB reads",
            Self::MediumWrites => "64 KiB writes",
            Self::LargeReads => "large reads (from 256 KiB)",
            Self::LargeWrites => "large writes",
            Self::Mixed => "reads and writes mixed",
            Self::OneAtATime => "one operation at a time",
            Self::Protected => "signed or encrypted",
            Self::Metadata => "names and attributes",
            Self::ServerCpu => "server CPU an operation",
        }
    }
}

impl Standing {
    fn of(work: Work, conclusion: Conclusion) -> Self {
        match (work, conclusion) {
            (_, Conclusion::NoEffect) => Self::Same,
            (_, Conclusion::TooNoisy) => Self::TooNoisy,
            (Work::ServerCpu, Conclusion::Lower) => Self::Ahead,
            (Work::ServerCpu, Conclusion::Higher) => Self::Behind,
            (_, Conclusion::Higher) => Self::Ahead,
            (_, Conclusion::Lower) => Self::Behind,
        }
    }
}

/// A row of the server and the same row of the peer.
struct Pair<'a> {
    base: &'a Row,
    other: &'a Row,
    in_turns: bool,
}

/// The server that is judged: Anabranch, where it was measured.
pub(super) fn subject(runs: &[Run]) -> Option<String> {
    runs.iter().find(|run| run.is_of_anabranch()).and_then(|run| run.environment.server.clone())
}

/// The server against each of its peers, in the order of the results.
pub(super) fn scorecards(results: &[&ResultFile], subject: Option<&str>) -> Vec<Scorecard> {
    let Some(subject) = subject else { return Vec::new() };
    let server = |result: &ResultFile| result.environment.server.clone();
    let mut peers: Vec<String> = Vec::new();
    for peer in results.iter().filter_map(|result| server(result)) {
        if peer != subject && !peers.contains(&peer) {
            peers.push(peer);
        }
    }
    let of_peer = |peer: String| {
        let mut pairs = Vec::new();
        for own in results.iter().filter(|result| server(result).is_some_and(|name| name == subject)) {
            let theirs = results.iter().filter(|result| server(result).is_some_and(|name| name == peer));
            pairs.extend(
                theirs.filter(|other| are_comparable(own, other)).flat_map(|base| pairs_of(base, own)),
            );
        }
        let rows: Vec<ScoreRow> = Work::ALL.iter().filter_map(|work| score(*work, &pairs)).collect();
        (!rows.is_empty()).then(|| Scorecard { peer, rows, in_turns: pairs.iter().all(|pair| pair.in_turns) })
    };
    peers.into_iter().filter_map(of_peer).collect()
}

/// The same family over the same protocol, on shares with the same plan.
fn are_comparable(own: &ResultFile, other: &ResultFile) -> bool {
    let plan = |result: &ResultFile| result.environment.settings.get("plan").cloned();
    own.family == other.family
        && own.environment.protocol == other.environment.protocol
        && plan(own) == plan(other)
}

fn pairs_of<'a>(base: &'a ResultFile, own: &'a ResultFile) -> Vec<Pair<'a>> {
    let of_row = |row: &'a Row| {
        let against = base.row(&row.key)?;
        Some(Pair { base: against, other: row, in_turns: took_turns_in((base, against), (own, row)) })
    };
    own.rows.iter().filter_map(of_row).collect()
}

/// All rows of one kind of work together. Those that took turns are compared repetition by repetition; where none did, the
/// interval is as wide as both make it.
fn score(work: Work, pairs: &[Pair<'_>]) -> Option<ScoreRow> {
    let of: Vec<&Pair<'_>> =
        pairs.iter().filter(|pair| work == Work::ServerCpu || Work::of(&pair.other.key) == work).collect();
    let turns: Vec<(Vec<f64>, Vec<f64>)> = of
        .iter()
        .filter(|pair| pair.in_turns)
        .filter_map(|pair| figures(work, pair.base).zip(figures(work, pair.other)))
        .collect();
    let apart: Vec<(Estimate, Estimate)> =
        of.iter().filter_map(|pair| estimate(work, pair.base).zip(estimate(work, pair.other))).collect();
    let (ratio, rows) = if turns.is_empty() {
        (compare_all_apart(&apart)?, apart.len())
    } else {
        (compare_all(&turns)?, turns.len())
    };
    Some(ScoreRow { work, rows, ratio, standing: Standing::of(work, ratio.conclusion()) })
}

/// The figure of each repetition. None where one is not known.
fn figures(work: Work, row: &Row) -> Option<Vec<f64>> {
    match work {
        Work::ServerCpu => row.repetitions.iter().map(load::result::Repetition::server_cpu_us).collect(),
        _ => Some(values(Figure::Rate, row)),
    }
}

fn estimate(work: Work, row: &Row) -> Option<Estimate> {
    match work {
        Work::ServerCpu => row.measure.as_ref()?.server_cpu_us,
        _ => figure(Figure::Rate, row),
    }
}

impl Scorecard {
    /// The kinds of work with this standing; the server's CPU time is none.
    pub(super) fn with(&self, standing: Standing) -> impl Iterator<Item = &ScoreRow> {
        self.kinds().filter(move |row| row.standing == standing)
    }

    /// The kinds of work.
    pub(super) fn kinds(&self) -> impl Iterator<Item = &ScoreRow> {
        self.rows.iter().filter(|row| row.work != Work::ServerCpu)
    }

    /// The server's CPU time for an operation, where both told.
    pub(super) fn cpu(&self) -> Option<&ScoreRow> {
        self.rows.iter().find(|row| row.work == Work::ServerCpu)
    }
}

impl ScoreRow {
    /// In words: `2.03x, faster`.
    pub(super) fn words(&self) -> String {
        let ratio = super::units::ratio(self.ratio.ratio.median);
        match (self.standing, self.work) {
            (Standing::Ahead, Work::ServerCpu) => format!("{ratio}, less"),
            (Standing::Behind, Work::ServerCpu) => format!("{ratio}, more"),
            (Standing::Ahead, _) => format!("{ratio}, faster"),
            (Standing::Behind, _) => format!("{ratio}, slower"),
            (Standing::Same, _) => format!("{ratio}, the same"),
            (Standing::TooNoisy, _) => format!("{ratio}, too noisy to tell"),
        }
    }
}
