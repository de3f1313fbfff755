//! `anabranch check`: all that is wrong with a configuration, and what it amounts to.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use clap::Args;
use control::configuration::Configuration;
use gateway::Subject;
use rustix::process::geteuid;
use serde::Serialize;

use crate::place::Mistake;
use crate::print::{counted, json, print};
use crate::problem::{Cause, Problem, Result};
use crate::settings::{Given, PasswordFileGiven, Settings};
use crate::{config, effective, password, settings, sources, state_directory};

/// The configuration file, unless another one is named.
pub(crate) const DEFAULT_FILE: &str = "/etc/anabranch/anabranch.toml";

/// In place of a password that is not read.
const NO_PASSWORD: &str = "-";

#[derive(Debug, Args)]
pub(crate) struct Check {
    /// The configuration file
    #[arg(value_name = "FILE", default_value = DEFAULT_FILE)]
    pub(crate) file: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What `--json` prints. Fields are only ever added.
#[derive(Debug, Serialize)]
struct Checked {
    /// Whether `serve` would accept the configuration.
    ok: bool,
    errors: usize,
    warnings: usize,
    reports: Vec<Report>,
    configuration: Configuration,
}

/// Something that is wrong, or may be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Report {
    severity: Severity,
    /// Null: it concerns no line.
    file: Option<String>,
    line: Option<usize>,
    message: String,
    /// May be empty.
    advice: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Severity {
    /// `serve` would refuse the configuration.
    Error,
    /// `serve` would warn.
    Warning,
}

/// Checks the file and prints the result. Nothing is changed, and no running server is asked.
///
/// # Errors
/// The configuration would be refused.
pub(crate) fn run(check: &Check) -> Result<()> {
    let given = config::read(&check.file);
    let configuration = effective::of(&given);
    let reports = reports(given);
    let count = |severity| reports.iter().filter(|report| report.severity == severity).count();
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    let checked = Checked { ok: errors == 0, errors, warnings, reports, configuration };
    print(&if check.json { json(&checked)? } else { render(&check.file, &checked) })?;
    if errors == 0 {
        return Ok(());
    }
    let (errors, warnings) = (counted(errors, "error"), counted(warnings, "warning"));
    let what = format!("{} would be refused: {errors}, {warnings}", check.file.display());
    Err(Problem::new(Cause::Settings, what, "Each error is listed with its place and advice."))
}

fn render(file: &Path, Checked { ok, warnings, reports, configuration, .. }: &Checked) -> String {
    let mut text: String = reports.iter().map(told).collect();
    if *ok {
        if !text.is_empty() {
            text.push('\n');
        }
        let file = file.display();
        let warnings =
            if *warnings == 0 { String::new() } else { format!(", {}", counted(*warnings, "warning")) };
        text += &format!("# {file} would be accepted{warnings}. The effective configuration:\n\n");
        text += &effective::render(configuration);
    }
    text
}

fn told(report: &Report) -> String {
    let severity = match report.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let place = match (&report.file, report.line) {
        (Some(file), Some(line)) => format!("{file} line {line}: "),
        (Some(file), None) => format!("{file}: "),
        (None, _) => String::new(),
    };
    let advice = if report.advice.is_empty() { String::new() } else { format!("  {}\n", report.advice) };
    format!("{severity}: {place}{}\n{advice}", report.message)
}

/// All errors and warnings, in the order of the file.
fn reports(given: Given) -> Vec<Report> {
    let places = given.from.places.clone();
    let exposed = given.from.exposed.clone();
    let mut unread = Vec::new();
    let (settings, mistakes) = sources::look(given, |given| read_password(given, &mut unread));
    let mut found: Vec<(Severity, Mistake)> =
        mistakes.into_iter().map(|mistake| (Severity::Error, mistake)).collect();
    let is_wrong = !found.is_empty();
    found.extend(state_directory(&settings).map(|wrong| (Severity::Error, wrong)));
    for finding in gateway::findings(&settings.gateway) {
        // A share or user with a mistake is missing in the settings.
        let is_of_missing = matches!(finding.subject, Subject::Server("share" | "user"));
        if !(is_wrong && is_of_missing) {
            let severity = if finding.is_error { Severity::Error } else { Severity::Warning };
            found.push((severity, Mistake::found(finding, &places)));
        }
    }
    let warning =
        |(what, advice): (String, String)| (Severity::Warning, Mistake { place: None, what, advice });
    found.extend(unread.into_iter().map(warning));
    found.extend(exposed.into_iter().map(|file| settings::exposed(&file)).map(warning));
    found.sort_by(|(severity, one), (other_severity, other)| {
        (&one.place, severity, &one.what).cmp(&(&other.place, other_severity, &other.what))
    });
    found.dedup();
    found.into_iter().map(|(severity, mistake)| report(severity, mistake)).collect()
}

fn report(severity: Severity, Mistake { place, what: message, advice }: Mistake) -> Report {
    let file = place.as_ref().map(|place| place.file.display().to_string());
    Report { severity, file, line: place.map(|place| place.line), message, advice }
}

/// The password of a file, as far as this user may read it. Nobody is asked for one.
fn read_password(given: &PasswordFileGiven, unread: &mut Vec<(String, String)>) -> Result<String> {
    let Some(file) = &given.file else { return Ok(NO_PASSWORD.to_owned()) };
    let is_forbidden = fs::File::open(file).is_err_and(|e| e.kind() == ErrorKind::PermissionDenied);
    if is_forbidden && !geteuid().is_root() {
        let what = format!("this user may not read the password of {} in {}", given.name, file.display());
        unread.push((what, "Check as the user of the server.".to_owned()));
        return Ok(NO_PASSWORD.to_owned());
    }
    password::of_file(given)
}

/// The problem of a state directory that nobody has named, and that is not there.
fn state_directory(settings: &Settings) -> Option<Mistake> {
    let is_there = settings.is_state_given || Path::new(state_directory::DEFAULT).exists();
    let Problem { what, advice, .. } = state_directory::missing();
    (!is_there).then_some(Mistake { place: None, what, advice })
}
