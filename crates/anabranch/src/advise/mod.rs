//! `anabranch advise`: what a measurement, a client's work or a machine comes to, and what to do about it.

mod apply;
mod arguments;
mod figures;
mod host;
pub(crate) mod live;
mod measure;
mod show;

use std::path::Path;

use advise::{Facts, Judged, Profile, Recommendation, advise, of_result, ranked};
use load::result::ResultFile;
use load::target::Target;
use serde::Serialize;

pub(crate) use arguments::{Advise, SoldAs};
use arguments::{AdviseCommand, Subject};

use crate::print::{json, print};
use crate::problem::{Cause, Problem, Result};
use crate::result_files::read_all;

/// Carries out the command.
///
/// # Errors
/// The file cannot be read, or is no result or no facts; the server cannot be asked; something went wrong while it was measured.
pub(crate) fn run(command: &Advise) -> Result<()> {
    if let Some(AdviseCommand::Host { json }) = command.command {
        return host::run(json);
    }
    let profile: Profile = command.profile.into();
    if let Some(client) = &command.client {
        return live::run(command, client, profile);
    }
    match (&command.facts, &command.subject) {
        (Some(path), _) => {
            let judged = Judged { row: path.display().to_string(), advice: advise(&facts(path)?) };
            tell(command, &[judged])
        }
        (None, Some(Subject::Result(path))) => on_results(command, path, profile),
        (None, Some(Subject::Target(target))) => of_target(command, target, profile),
        (None, None) => Ok(()),
    }
}

fn of_target(command: &Advise, target: &Target, profile: Profile) -> Result<()> {
    if command.apply {
        return apply::on_target(command, target, profile);
    }
    if !command.measure {
        return print(&measure::offer(target));
    }
    let measured = measure::run(target)?;
    if command.asking.json {
        return tell(command, &of_result(&measured, profile));
    }
    let mut text = show::ranked(&ranked(&[("this measurement", &measured)], profile));
    if command.rows {
        text.push_str(&format!("\n{}", show::render(&of_result(&measured, profile))));
    }
    print(&text)
}

fn tell(command: &Advise, judged: &[Judged]) -> Result<()> {
    print(&if command.asking.json { json(&judged)? } else { show::render(judged) })
}

/// Advice on a result, or on all results of a directory: one list, and with `--rows` what the rules say of each kind of work.
fn on_results(command: &Advise, path: &Path, profile: Profile) -> Result<()> {
    let results = read_all(&[path.to_owned()])?;
    let named: Vec<(&str, &ResultFile)> =
        results.iter().map(|(name, result)| (name.as_str(), result)).collect();
    let by_rows = || named.iter().map(|(name, result)| OfResult { name, rows: of_result(result, profile) });
    if command.asking.json {
        // One result has been an array of its rows since there is advice; a directory has the list, too.
        return match (path.is_dir(), named.as_slice()) {
            (false, [(_, one)]) => print(&json(&of_result(one, profile))?),
            _ => print(&json(&OfResults {
                recommendations: ranked(&named, profile),
                results: by_rows().collect(),
            })?),
        };
    }
    let mut text = show::ranked(&ranked(&named, profile));
    if command.rows {
        for of in by_rows() {
            text.push_str(&format!("\n{}\n\n{}", of.name, show::render(&of.rows)));
        }
    }
    print(&text)
}

/// Advice on several results, for programs.
#[derive(Serialize)]
struct OfResults<'a> {
    recommendations: Vec<Recommendation>,
    results: Vec<OfResult<'a>>,
}

/// What the rules say of the rows of one result.
#[derive(Serialize)]
struct OfResult<'a> {
    name: &'a str,
    rows: Vec<Judged>,
}

fn facts(path: &Path) -> Result<Facts> {
    let wrong = |e: &dyn std::fmt::Display| {
        Problem::new(Cause::Settings, format!("{}: {e}", path.display()), "docs/advice.md names the facts.")
    };
    let text = std::fs::read_to_string(path).map_err(|e| wrong(&e))?;
    serde_json::from_str(&text).map_err(|e| wrong(&e))
}
