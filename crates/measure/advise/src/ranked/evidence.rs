//! What rows of results show of a setting: each value against the base, row by row and all rows together.

use load::result::{Key, ResultFile, Row};
use load::statistics::{Conclusion, Estimate, Ratio, compare, compare_all, compare_all_apart, compare_apart};
use serde::Serialize;

use super::setting::Setting;

/// How many rows say what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Tally {
    /// All of them.
    pub rows: usize,
    /// More with the value, beyond the noise.
    pub higher: usize,
    /// Less.
    pub lower: usize,
    /// No measurable effect.
    pub no_effect: usize,
    /// Too noisy to tell.
    pub too_noisy: usize,
}

/// A value that was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tried {
    /// The value.
    pub value: String,
    /// What it was held against.
    pub against: &'static str,
    /// Its rate by that of the base, over all rows together.
    pub ratio: Ratio,
    /// What may be concluded from that.
    pub conclusion: Conclusion,
    /// What the rows say one by one.
    pub tally: Tally,
}

/// A row with a value, and its base.
#[derive(Debug, Clone)]
pub(super) struct Pair {
    /// The result.
    pub result: String,
    /// The row, without what is varied.
    pub work: Key,
    /// The row, as its key prints.
    pub row: String,
    figures: Figures,
    /// One by the other.
    pub ratio: Ratio,
}

/// The rates of a base and of a row.
#[derive(Debug, Clone)]
enum Figures {
    /// They took turns: repetition by repetition.
    Turns(Vec<f64>, Vec<f64>),
    /// One was measured after the other.
    Apart(Estimate, Estimate),
}

/// All rows with one value.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub value: String,
    pub pairs: Vec<Pair>,
    /// All rows together.
    pub ratio: Ratio,
}

/// All that results show of a setting: at least one value.
#[derive(Debug, Clone)]
pub(super) struct Evidence {
    pub setting: Setting,
    pub candidates: Vec<Candidate>,
}

impl Candidate {
    fn of(value: String, pairs: Vec<Pair>) -> Option<Self> {
        let ratio = together(&pairs)?;
        Some(Self { value, pairs, ratio })
    }

    pub(super) fn conclusion(&self) -> Conclusion {
        self.ratio.conclusion()
    }

    pub(super) fn tally(&self) -> Tally {
        let of = |wanted| self.pairs.iter().filter(|pair| pair.ratio.conclusion() == wanted).count();
        Tally {
            rows: self.pairs.len(),
            higher: of(Conclusion::Higher),
            lower: of(Conclusion::Lower),
            no_effect: of(Conclusion::NoEffect),
            too_noisy: of(Conclusion::TooNoisy),
        }
    }

    /// The row that says this most clearly.
    pub(super) fn extreme(&self, conclusion: Conclusion) -> Option<&Pair> {
        let pairs = self.pairs.iter().filter(|pair| pair.ratio.conclusion() == conclusion);
        let farthest = |pair: &&Pair| pair.ratio.ratio.median.max(f64::MIN_POSITIVE).ln().abs();
        pairs.max_by(|a, b| farthest(a).total_cmp(&farthest(b)))
    }

    /// It is surely better than another one on the work that both were measured on.
    fn beats(&self, other: &Self) -> bool {
        let mut rows = Vec::new();
        for own in &self.pairs {
            let same = |pair: &&Pair| pair.result == own.result && pair.work == own.work;
            if let (Figures::Turns(_, with), Some(Pair { figures: Figures::Turns(_, without), .. })) =
                (&own.figures, other.pairs.iter().find(same))
            {
                rows.push((without.clone(), with.clone()));
            }
        }
        compare_all(&rows).is_some_and(|ratio| ratio.conclusion() == Conclusion::Higher)
    }

    pub(super) fn tried(&self, setting: Setting) -> Tried {
        Tried {
            value: self.value.clone(),
            against: setting.base_value(),
            ratio: self.ratio,
            conclusion: self.conclusion(),
            tally: self.tally(),
        }
    }

    /// The results that it was measured in, each once.
    pub(super) fn results(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for pair in &self.pairs {
            if !names.contains(&pair.result) {
                names.push(pair.result.clone());
            }
        }
        names
    }
}

impl Evidence {
    /// What results show of a setting. None: nothing.
    pub(super) fn of(setting: Setting, results: &[(&str, &ResultFile)]) -> Option<Self> {
        let pairs = match setting {
            Setting::MetadataCache => between_results(results),
            _ => results.iter().flat_map(|(name, result)| within(setting, name, result)).collect(),
        };
        let mut values: Vec<(String, Vec<Pair>)> = Vec::new();
        for (value, pair) in pairs {
            match values.iter_mut().find(|(known, _)| *known == value) {
                Some((_, pairs)) => pairs.push(pair),
                None => values.push((value, vec![pair])),
            }
        }
        // Numbers by their size, names by their place in the results.
        values.sort_by_key(|(value, _)| value.parse::<u32>().unwrap_or(0));
        let candidates: Vec<Candidate> =
            values.into_iter().filter_map(|(value, pairs)| Candidate::of(value, pairs)).collect();
        (!candidates.is_empty()).then_some(Self { setting, candidates })
    }

    /// The value that all rows together support: of those that surely help, the one that was measured on most rows, unless another
    /// one is surely better on the rows that both have. Where none helps, the value that was measured on most rows.
    pub(super) fn best(&self) -> Option<&Candidate> {
        let all: Vec<&Candidate> = self.candidates.iter().collect();
        let helping: Vec<&Candidate> =
            all.iter().filter(|candidate| candidate.conclusion() == Conclusion::Higher).copied().collect();
        let mut best = widest(if helping.is_empty() { &all } else { &helping })?;
        for other in helping {
            if other.beats(best) {
                best = other;
            }
        }
        Some(best)
    }
}

/// The first of those that were measured on most rows.
fn widest<'a>(candidates: &[&'a Candidate]) -> Option<&'a Candidate> {
    let most = candidates.iter().map(|candidate| candidate.pairs.len()).max()?;
    candidates.iter().find(|candidate| candidate.pairs.len() == most).copied()
}

/// All rows of a value together.
fn together(pairs: &[Pair]) -> Option<Ratio> {
    let mut turns = Vec::new();
    let mut apart = Vec::new();
    for pair in pairs {
        match &pair.figures {
            Figures::Turns(base, other) => turns.push((base.clone(), other.clone())),
            Figures::Apart(base, other) => apart.push((*base, *other)),
        }
    }
    if turns.is_empty() { compare_all_apart(&apart) } else { compare_all(&turns) }
}

/// The rows of one result that show a value, with their bases.
fn within(setting: Setting, name: &str, result: &ResultFile) -> Vec<(String, Pair)> {
    let protocol = result.environment.protocol;
    let of_row = |row: &Row| {
        let shown = setting.shown(protocol, &row.key)?;
        let base = result.rows.iter().find(|base| setting.is_same_work(&shown.base, &base.key))?;
        let sound = is_sound(row) && is_sound(base);
        let (before, after) = (rates(setting, base), rates(setting, row));
        let ratio = compare(&before, &after).filter(|_| sound)?;
        let pair = Pair {
            result: name.to_owned(),
            work: shown.base,
            row: row.key.to_string(),
            figures: Figures::Turns(before, after),
            ratio,
        };
        Some((shown.value, pair))
    };
    result.rows.iter().filter_map(of_row).collect()
}

/// What a setting is judged by: reads of different sizes by their bytes, all others by their number.
fn rates(setting: Setting, row: &Row) -> Vec<f64> {
    match setting {
        Setting::ReadAhead => row.repetitions.iter().map(|r| r.throughput().unwrap_or(0.0)).collect(),
        _ => row.rates(),
    }
}

/// All connections were there, and all bytes were right.
fn is_sound(row: &Row) -> bool {
    let asked = row.key.connections.saturating_mul(row.key.clients);
    row.repetitions.iter().all(|r| r.wrong_blocks == 0 && r.connections >= asked)
}

/// The note of a result that says whether the share caches names and attributes.
const CACHE_NOTE: &str = "metadata-cache";

/// Results of one protocol that differ in the share's cache.
fn between_results(results: &[(&str, &ResultFile)]) -> Vec<(String, Pair)> {
    let with = |value: &'static str| {
        results
            .iter()
            .filter(move |(_, r)| r.environment.settings.get(CACHE_NOTE).is_some_and(|v| v == value))
    };
    let mut pairs = Vec::new();
    for (name, on) in with("on") {
        let Some((_, off)) = with("off").find(|(_, r)| r.environment.protocol == on.environment.protocol)
        else {
            continue;
        };
        for row in on.rows.iter().filter(|row| is_sound(row)) {
            let Some(base) = off.row(&row.key).filter(|base| is_sound(base)) else { continue };
            let rate = |row: &Row| row.measure.as_ref().map(|measure| measure.rate);
            let Some((before, after)) = rate(base).zip(rate(row)) else { continue };
            let Some(ratio) = compare_apart(&before, &after) else { continue };
            let pair = Pair {
                result: (*name).to_owned(),
                work: row.key.clone(),
                row: row.key.to_string(),
                figures: Figures::Apart(before, after),
                ratio,
            };
            pairs.push(("on".to_owned(), pair));
        }
    }
    pairs
}
