//! One ranked list out of many results: each setting once, with the value that all rows together support.
//!
//! The rules speak of one kind of work at a time, so over a whole result they contradict each other: several channels help one row
//! and cost another. Here the rows of a setting are taken together ([`Evidence`]): a change is advised only where the measurement
//! of all of them shows a gain, the rows that it costs are named beside it, and what the documents expect decides only where nothing
//! was measured.

mod evidence;
mod setting;
mod words;

#[cfg(test)]
mod tests;

use load::result::ResultFile;
use load::statistics::{Conclusion, Ratio};
use serde::Serialize;

use crate::advice::{Advice, Command, Side, Source, Verdict};
use crate::facts::Profile;
use crate::from_result::of_result;
use evidence::Evidence;
pub use evidence::{Tally, Tried};
pub use setting::Setting;

/// What is to be done about one setting.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Recommendation {
    /// The server that was measured; absent where results do not name theirs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The setting: no two recommendations for a server have the same.
    pub setting: Setting,
    /// Whether to change it.
    pub action: Action,
    /// The value that the measurement supports, such as `4`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// In a line: what to do.
    pub text: String,
    /// What the change was measured to bring over all rows: above 1. Absent where it was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gain: Option<Ratio>,
    /// How many rows the value helps and costs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tally: Option<Tally>,
    /// Where rows, or documents and measurement, disagree, and how that was decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conflict: Option<String>,
    /// All values that were measured.
    pub tried: Vec<Tried>,
    /// Figures behind it that are no measurement of the setting.
    pub figures: Vec<String>,
    /// Who says so.
    pub source: Source,
    /// The commands that make the change, or that measure what is not known.
    pub commands: Vec<Command>,
    /// The results behind it.
    pub results: Vec<String>,
}

/// Whether to change a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Change it: a measurement shows a gain, or a rule says that it costs something as it is.
    Change,
    /// Not known: nothing was measured, or the measurement is too noisy.
    Undecided,
    /// Leave it: a measurement shows that a change brings nothing, or that it costs something.
    Keep,
}

/// What is to be done about all settings that results speak of, best first: by server, then changes by the gain that is sure (the
/// lower end of the interval), changes whose gain was not measured, what is undecided, and what is to be left as it is. Each
/// result comes with the name of its file.
#[must_use]
pub fn ranked(results: &[(&str, &ResultFile)], profile: Profile) -> Vec<Recommendation> {
    let mut servers: Vec<Option<&str>> = Vec::new();
    for (_, result) in results {
        let server = result.environment.server.as_deref();
        if !servers.contains(&server) {
            servers.push(server);
        }
    }
    servers.sort_by_key(|server| !server.is_some_and(is_anabranch));
    servers.iter().flat_map(|server| of_server(results, *server, profile)).collect()
}

/// The name of a server is that of Anabranch.
#[must_use]
pub fn is_anabranch(server: &str) -> bool {
    server.to_lowercase().starts_with("anabranch")
}

/// The list of one server. Commands and settings of Anabranch are nothing to another one.
fn of_server(results: &[(&str, &ResultFile)], server: Option<&str>, profile: Profile) -> Vec<Recommendation> {
    let own: Vec<(&str, &ResultFile)> = results
        .iter()
        .filter(|(_, result)| result.environment.server.as_deref() == server)
        .copied()
        .collect();
    let measured: Vec<Evidence> = Setting::ALL.iter().filter_map(|s| Evidence::of(*s, &own)).collect();
    let mut all: Vec<Recommendation> =
        measured.iter().map(|evidence| words::of_evidence(evidence, server)).collect();
    for said in by_rules(&own, profile) {
        if all.iter().all(|known| known.setting != said.setting) {
            all.push(words::of_rules(&said, server));
        }
    }
    if server.is_some_and(|server| !is_anabranch(server)) {
        all.retain(|one| one.setting != Setting::MetadataCache);
        all.iter_mut().for_each(|one| one.commands.retain(|command| command.on != Side::Server));
    }
    all.sort_by(|a, b| rank(a).cmp(&rank(b)).then(sure_gain(b).total_cmp(&sure_gain(a))));
    all
}

/// Changes first, those with a measured gain before the others.
fn rank(of: &Recommendation) -> (Action, bool) {
    (of.action, of.gain.is_none())
}

/// The lower end of a gain's interval: so much it is at least.
fn sure_gain(of: &Recommendation) -> f64 {
    of.gain.and_then(|gain| gain.ratio.interval).map_or(0.0, |[low, _]| low)
}

/// What the rules say of one setting, over all rows.
#[derive(Debug)]
struct Said {
    setting: Setting,
    /// The advice of each row.
    advice: Vec<Advice>,
    /// The results that it comes from.
    results: Vec<String>,
}

impl Said {
    /// The advice of the gravest verdict; the first of several.
    fn gravest(&self) -> Option<&Advice> {
        let gravity = |advice: &&Advice| match advice.verdict {
            Verdict::Red => 0,
            Verdict::Green => 1,
            Verdict::Yellow => 2,
        };
        self.advice.iter().min_by_key(gravity)
    }

    fn count(&self, verdict: Verdict) -> usize {
        self.advice.iter().filter(|advice| advice.verdict == verdict).count()
    }
}

fn by_rules(results: &[(&str, &ResultFile)], profile: Profile) -> Vec<Said> {
    let mut all: Vec<Said> = Vec::new();
    for (name, result) in results {
        for advice in of_result(result, profile).into_iter().flat_map(|judged| judged.advice) {
            let setting = Setting::of_rule(advice.rule);
            let known = match all.iter().position(|said| said.setting == setting) {
                Some(known) => known,
                None => {
                    all.push(Said { setting, advice: Vec::new(), results: Vec::new() });
                    all.len() - 1
                }
            };
            let said = &mut all[known];
            said.advice.push(advice);
            if said.results.last().map(String::as_str) != Some(*name) {
                said.results.push((*name).to_owned());
            }
        }
    }
    all
}

impl Action {
    /// What follows from the measurement of a change.
    fn of(conclusion: Conclusion) -> Self {
        match conclusion {
            Conclusion::Higher => Self::Change,
            Conclusion::TooNoisy => Self::Undecided,
            Conclusion::Lower | Conclusion::NoEffect => Self::Keep,
        }
    }
}
