//! `anabranch report`: whether a server is good and what to change, from results of measurements, as HTML, Markdown or JSON.

use std::path::{Path, PathBuf};
use std::{fs, io};

use clap::{Args, ValueEnum};
use load::whole_file;
use report::{Report, html, markdown, pages};

use crate::advise::SoldAs;
use crate::print::{json, print};
use crate::problem::{Cause, Problem, Result};
use crate::result_files::read_all;

/// What to report, and where.
#[derive(Debug, Args)]
pub(crate) struct ReportCommand {
    /// Results of `anabranch bench ... --out FILE`, or directories of them; results of one family are shown side by side
    #[arg(required = true, value_name = "RESULT.json|DIRECTORY")]
    results: Vec<PathBuf>,
    /// The output file, or a directory for index.html and its pages, README.md and report.json [default: standard output]
    #[arg(long, value_name = "FILE|DIRECTORY")]
    out: Option<PathBuf>,
    /// The format [default: by the extension of --out; without --out: markdown]
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// The service that the servers belong to; absolute figures of the documents are only tested on the service they describe
    #[arg(long, value_enum, default_value_t = SoldAs::Other)]
    profile: SoldAs,
}

/// A form of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A self-contained page
    Html,
    Markdown,
    /// For programs
    Json,
}

/// Carries out the command.
///
/// # Errors
/// A file cannot be read, is no result, or the report cannot be written.
pub(crate) fn run(command: &ReportCommand) -> Result<()> {
    // A form that there is not is told before anything is read.
    let place = Destination::of(command)?;
    let report = Report::of(&read_all(&command.results)?, command.profile.into());
    match place {
        Destination::Output(format) => print(&text(&report, format)?),
        Destination::File(path, format) => write(path, &text(&report, format)?),
        Destination::Directory(path) => {
            fs::create_dir_all(path).map_err(|e| cannot_write(path, &e))?;
            for (name, page) in pages(&report) {
                write(&path.join(name), &page)?;
            }
            write(&path.join("README.md"), &markdown(&report))?;
            write(&path.join("report.json"), &json(&report)?)
        }
    }
}

/// Where a report goes.
#[derive(Debug, PartialEq, Eq)]
enum Destination<'a> {
    Output(Format),
    File(&'a Path, Format),
    Directory(&'a Path),
}

impl<'a> Destination<'a> {
    fn of(command: &'a ReportCommand) -> Result<Self> {
        let Some(path) = &command.out else {
            return Ok(Self::Output(command.format.unwrap_or(Format::Markdown)));
        };
        let ending = path.extension().and_then(|ending| ending.to_str());
        let by_ending = match ending {
            Some("html" | "htm") => Some(Format::Html),
            Some("md" | "markdown") => Some(Format::Markdown),
            Some("json") => Some(Format::Json),
            _ => None,
        };
        match (command.format, by_ending) {
            _ if path.is_dir() || (command.format.is_none() && ending.is_none()) => Ok(Self::Directory(path)),
            (Some(format), _) | (None, Some(format)) => Ok(Self::File(path, format)),
            (None, None) => Err(Problem::new(
                Cause::Settings,
                format!("{}: no form of a report ends so", path.display()),
                "Give a file that ends in .html, .md or .json, or --format, or a directory.",
            )),
        }
    }
}

fn text(report: &Report, format: Format) -> Result<String> {
    match format {
        Format::Html => Ok(html(report)),
        Format::Markdown => Ok(markdown(report)),
        Format::Json => json(report),
    }
}

fn write(path: &Path, text: &str) -> Result<()> {
    whole_file::write(path, text).map_err(|e| cannot_write(path, &e))
}

fn cannot_write(path: &Path, why: &io::Error) -> Problem {
    Problem::new(Cause::Settings, format!("{} cannot be written: {why}", path.display()), "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(out: Option<&str>, format: Option<Format>) -> ReportCommand {
        ReportCommand { results: Vec::new(), out: out.map(PathBuf::from), format, profile: SoldAs::Other }
    }

    #[test]
    fn the_form_comes_from_the_ending() {
        let of = |out, format| {
            let command = command(out, format);
            match Destination::of(&command) {
                Ok(Destination::Output(format)) => format!("output {format:?}"),
                Ok(Destination::File(path, format)) => format!("{} {format:?}", path.display()),
                Ok(Destination::Directory(path)) => format!("{}/", path.display()),
                Err(problem) => problem.what,
            }
        };
        assert_eq!(of(None, None), "output Markdown");
        assert_eq!(of(None, Some(Format::Html)), "output Html");
        assert_eq!(of(Some("a.html"), None), "a.html Html");
        assert_eq!(of(Some("a.md"), None), "a.md Markdown");
        assert_eq!(of(Some("a.json"), Some(Format::Html)), "a.json Html");
        assert_eq!(of(Some("a"), Some(Format::Json)), "a Json");
        assert_eq!(of(Some("report"), None), "report/");
        assert_eq!(of(Some("a.pdf"), None), "a.pdf: no form of a report ends so");
    }
}
