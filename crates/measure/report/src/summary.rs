//! What a report says first: whether the server is good, in words.

use serde::Serialize;

use super::evidence::Judgement;
use super::judge::Table;
use super::run::Run;
use super::score::{ScoreRow, Scorecard, Standing};
use super::units;
use super::words::counted;
use advise::{Action, Recommendation};
use load::result::Outcome;

/// The changes that are shown first.
pub(super) const FIRST: usize = 3;

/// Whether a server is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rating {
    /// Ahead of its peers in most kinds of work, behind in none.
    Good,
    /// Ahead in more kinds than behind.
    GoodWithExceptions,
    /// As often ahead as behind, or nowhere either.
    Even,
    /// Behind in more kinds than ahead.
    Behind,
    /// Most kinds of work are too noisy to tell.
    TooNoisy,
    /// Nothing was measured beside it.
    Alone,
    /// Wrong bytes came back, or nothing could be measured.
    NotSound,
}

/// What a report says first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// The server that is judged: absent where results do not name one that can be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Whether it is good.
    pub rating: Rating,
    /// That in a sentence.
    pub headline: String,
    /// What it stands on, a sentence each.
    pub sentences: Vec<String>,
}

/// All that the summary is made of.
pub(super) struct Grounds<'a> {
    pub server: Option<&'a str>,
    pub runs: &'a [Run],
    pub scorecards: &'a [Scorecard],
    pub documents: &'a [Table],
    pub advice: &'a [&'a Recommendation],
}

impl Grounds<'_> {
    pub(super) fn summary(&self) -> Summary {
        let rating = self.rating();
        let mut sentences: Vec<String> = self.scorecards.iter().map(against).collect();
        sentences.extend(self.statements());
        sentences.push(self.changes());
        Summary { server: self.server.map(str::to_owned), rating, headline: self.headline(rating), sentences }
    }

    fn own(&self) -> impl Iterator<Item = &Run> {
        self.runs
            .iter()
            .filter(|run| self.server.is_none() || run.environment.server.as_deref() == self.server)
    }

    fn wrong_blocks(&self) -> u64 {
        self.own().flat_map(|run| &run.rows).map(|row| row.wrong_blocks).sum()
    }

    fn counts(&self) -> [usize; 4] {
        [Standing::Ahead, Standing::Behind, Standing::Same, Standing::TooNoisy]
            .map(|standing| self.scorecards.iter().map(|card| card.with(standing).count()).sum())
    }

    fn rating(&self) -> Rating {
        let nothing = self.own().all(|run| run.outcome == Outcome::Failed && run.rows.is_empty());
        if self.wrong_blocks() > 0 || nothing {
            return Rating::NotSound;
        }
        match self.counts() {
            [0, 0, 0, 0] => Rating::Alone,
            [ahead, behind, same, noisy] if noisy > ahead + behind + same => Rating::TooNoisy,
            [ahead, 0, same, noisy] if ahead >= same + noisy => Rating::Good,
            [ahead, behind, ..] if ahead > behind && ahead > 0 => Rating::GoodWithExceptions,
            [ahead, behind, ..] if behind > ahead => Rating::Behind,
            _ => Rating::Even,
        }
    }

    fn headline(&self, rating: Rating) -> String {
        let server = self.server.unwrap_or("This server");
        let [ahead, behind, same, noisy] = self.counts();
        let all = ahead + behind + same + noisy;
        let peers = match self.scorecards {
            [one] => one.peer.clone(),
            _ => "its peers".to_owned(),
        };
        match rating {
            Rating::Good => {
                format!(
                    "{server} is good: faster than {peers} in {ahead} of {all} kinds of work, slower in none"
                )
            }
            Rating::GoodWithExceptions if behind == 0 => {
                format!(
                    "{server} is good where it could be told: faster than {peers} in {ahead} of {all} kinds of work, slower in none"
                )
            }
            Rating::GoodWithExceptions => {
                format!(
                    "{server} is good, with exceptions: faster than {peers} in {ahead} of {all} kinds of work, slower in {behind}"
                )
            }
            Rating::Even => format!(
                "{server} is about as fast as {peers}: faster in {ahead} of {all} kinds of work, slower in {behind}"
            ),
            Rating::Behind => format!(
                "{server} is not good enough: slower than {peers} in {behind} of {all} kinds of work, faster in {ahead}"
            ),
            Rating::TooNoisy => format!(
                "Mostly too noisy to tell whether {server} is good: faster than {peers} in {ahead} of {all} kinds of work, slower in {behind}, too noisy in {noisy}"
            ),
            Rating::Alone => {
                format!("{server} was measured alone: nothing says whether another server is faster")
            }
            Rating::NotSound if self.wrong_blocks() > 0 => {
                format!(
                    "{server} is not sound: {} came back with wrong bytes",
                    number(self.wrong_blocks(), "block")
                )
            }
            Rating::NotSound => "Nothing could be measured".to_owned(),
        }
    }

    /// What became of the documents' statements on this server.
    fn statements(&self) -> Option<String> {
        let findings = self.documents.iter().flat_map(|table| &table.statements).flat_map(|s| &s.findings);
        let is_own = |run: Option<usize>| {
            let run = run.and_then(|n| self.runs.get(n));
            run.is_some_and(|run| self.server.is_none() || run.environment.server.as_deref() == self.server)
        };
        let judged: Vec<Judgement> = findings.filter(|f| is_own(f.run)).map(|f| f.judgement).collect();
        let count = |wanted| judged.iter().filter(|judgement| **judgement == wanted).count();
        let told: Vec<String> = Judgement::ALL[..4]
            .iter()
            .filter(|judgement| count(**judgement) > 0)
            .map(|judgement| format!("{} {}", count(*judgement), judgement.words()))
            .collect();
        (!told.is_empty()).then(|| format!("Findings on the documents' statements: {}.", told.join(", ")))
    }

    fn changes(&self) -> String {
        let paying: Vec<&&Recommendation> =
            self.advice.iter().filter(|one| one.action == Action::Change && one.gain.is_some()).collect();
        let sure = paying.first().and_then(|one| one.gain?.ratio.interval);
        match (paying.len(), sure) {
            (0, _) | (_, None) => "No change pays measurably.".to_owned(),
            (1, Some([low, _])) => format!("One change pays measurably: {} or more.", units::ratio(low)),
            (count, Some([low, _])) => {
                format!("{count} changes pay measurably; the best brings {} or more.", units::ratio(low))
            }
        }
    }
}

/// A scorecard in a sentence.
fn against(card: &Scorecard) -> String {
    let all = card.kinds().count();
    let mut parts = vec![format!(
        "Against {}: faster in {} of {}{}",
        card.peer,
        card.with(Standing::Ahead).count(),
        if all == 1 { "1 kind of work".to_owned() } else { format!("{all} kinds of work") },
        span(card.with(Standing::Ahead))
    )];
    let behind: Vec<String> = card
        .with(Standing::Behind)
        .map(|row| format!("{} ({})", row.work.words(), units::ratio(row.ratio.ratio.median)))
        .collect();
    parts.push(if behind.is_empty() {
        "slower in none".to_owned()
    } else {
        format!("slower: {}", behind.join(", "))
    });
    let count = |standing, words: &str| {
        let count = card.with(standing).count();
        (count > 0).then(|| format!("{words} in {count}"))
    };
    parts.extend(count(Standing::Same, "the same"));
    parts.extend(count(Standing::TooNoisy, "too noisy to tell"));
    parts.extend(card.cpu().map(|row| format!("CPU time of the server {}", row.words())));
    format!("{}.", parts.join("; "))
}

/// From the least to the greatest: ` (1.24x to 6.50x)`.
fn span<'a>(rows: impl Iterator<Item = &'a ScoreRow>) -> String {
    let mut ratios: Vec<f64> = rows.map(|row| row.ratio.ratio.median).collect();
    ratios.sort_by(f64::total_cmp);
    match (ratios.first(), ratios.last()) {
        (Some(least), Some(greatest)) if ratios.len() > 1 => {
            format!(" ({} to {})", units::ratio(*least), units::ratio(*greatest))
        }
        (Some(only), _) => format!(" ({})", units::ratio(*only)),
        _ => String::new(),
    }
}

fn number(count: u64, thing: &str) -> String {
    counted(u32::try_from(count).unwrap_or(u32::MAX), thing)
}
