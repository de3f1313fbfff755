//! `anabranch advise`: what a measurement, a client's work or a machine comes to, and what to do about it.

mod apply;
mod arguments;
mod figures;
mod host;
pub(crate) mod live;
mod measure;
mod show;

use std::path::Path;

use advise::{Facts, Judged, Profile, advise, of_result};
use load::result::ResultFile;
use load::target::Target;

pub(crate) use arguments::{Advise, SoldAs};
use arguments::{AdviseCommand, Subject};

use crate::print::{json, print};
use crate::problem::{Cause, Problem, Result};

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
        (None, Some(Subject::Result(path))) => tell(command, &of_result(&result(path)?, profile)),
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
    tell(command, &of_result(&measured, profile))
}

fn tell(command: &Advise, judged: &[Judged]) -> Result<()> {
    print(&if command.asking.json { json(&judged)? } else { show::render(judged) })
}

fn result(path: &Path) -> Result<ResultFile> {
    ResultFile::load(path).map_err(|e| {
        Problem::new(
            Cause::Settings,
            format!("{}: {e}", path.display()),
            "Create one with `anabranch bench run FAMILY --target ... --out FILE`.",
        )
    })
}

fn facts(path: &Path) -> Result<Facts> {
    let wrong = |e: &dyn std::fmt::Display| {
        Problem::new(Cause::Settings, format!("{}: {e}", path.display()), "docs/advice.md names the facts.")
    };
    let text = std::fs::read_to_string(path).map_err(|e| wrong(&e))?;
    serde_json::from_str(&text).map_err(|e| wrong(&e))
}
