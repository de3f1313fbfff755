//! `anabranch advise`: what a measurement means, and what to do about it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use load::advise::{Advice, Facts, Judged, Profile, advise, of_result};
use load::result::ResultFile;

use crate::print::{json, print};
use crate::problem::{Cause, Problem, Result};

/// What to advise on.
#[derive(Debug, Args)]
pub(crate) struct Advise {
    /// A result of `anabranch bench ... --out FILE`
    #[arg(required_unless_present = "facts")]
    result: Option<PathBuf>,
    /// Facts instead of a result: a JSON file with the fields of docs/advice.md
    #[arg(long, value_name = "FILE", conflicts_with = "result")]
    facts: Option<PathBuf>,
    /// What the server is sold as
    #[arg(long, value_enum, default_value_t = SoldAs::Other)]
    profile: SoldAs,
    /// As JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum SoldAs {
    AzureFiles,
    AzureNetappFiles,
    Other,
}

impl From<SoldAs> for Profile {
    fn from(sold_as: SoldAs) -> Self {
        match sold_as {
            SoldAs::AzureFiles => Self::AzureFiles,
            SoldAs::AzureNetappFiles => Self::AzureNetappFiles,
            SoldAs::Other => Self::Other,
        }
    }
}

/// Carries out the command.
///
/// # Errors
/// The file cannot be read, or is no result or no facts.
pub(crate) fn run(command: &Advise) -> Result<()> {
    let judged = match (&command.facts, &command.result) {
        (Some(path), _) => vec![Judged { row: path.display().to_string(), advice: advise(&facts(path)?) }],
        (None, Some(path)) => of_result(&result(path)?, command.profile.into()),
        (None, None) => Vec::new(),
    };
    print(&if command.json { json(&judged)? } else { render(&judged) })
}

fn result(path: &Path) -> Result<ResultFile> {
    ResultFile::load(path).map_err(|e| {
        Problem::new(
            Cause::Settings,
            format!("{}: {e}", path.display()),
            "Make one with `anabranch bench run FAMILY --target ... --out FILE`.",
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

fn render(judged: &[Judged]) -> String {
    let mut text = String::new();
    for of in judged {
        let _ = writeln!(text, "{}", of.row);
        if of.advice.is_empty() {
            text.push_str(
                "  nothing to say: no rule has all the facts that it needs, or all is as it should be\n",
            );
        }
        for advice in &of.advice {
            one(&mut text, advice);
        }
        text.push('\n');
    }
    text
}

fn one(text: &mut String, advice: &Advice) {
    let _ = writeln!(text, "  {:<6}  R{:<2}  {}", advice.verdict, advice.rule, advice.text);
    for figure in &advice.figures {
        let _ = writeln!(text, "               {figure}");
    }
    let _ = writeln!(text, "               source: {}", advice.source);
    for command in &advice.commands {
        let _ = writeln!(text, "               on {:<8} {}", command.on, command.line);
    }
}
