//! Checks the texts of this repository for faults that no other tool finds.
//!
//! Sources are ASCII and short, name nothing of one machine, use the words of CONTRIBUTING.md, and leave no notes to
//! oneself. Links lead to existing pages and headings. Examples are run. Tokens that let a call to a store wait are made in few places.

mod examples;
mod glossary;
mod lines;
mod links;
mod tokens;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use crate::command::Chore;
use crate::repository;
use glossary::Glossary;

const LINES_MAX: usize = 700;
const TEST_LINES_MAX: usize = 1000;
const BYTES_MAX: usize = 64 << 10;
/// The endings of the names of sources. A file that begins with `#!` is a source too.
const SOURCE: [&str; 8] = [".rs", ".py", ".sh", ".toml", ".md", ".txt", ".tsv", ".yml"];
/// Parts of the paths of data files.
const DATA: [&str; 8] =
    ["/testdata/", "/corpus/", "/captures/", "LICENSE", "Cargo.lock", "/baseline-", "/expected", "/data/"];
/// These files contain what they look for.
const SELF: &str = "xtask/src/tidy/";

pub(crate) fn run() -> Chore {
    let verdict = check(&repository::top())?;
    for (path, what) in &verdict.faults {
        println!("FAIL {path}: {what}");
    }
    let failed = verdict.failed();
    println!("{} files, {failed} to mend", verdict.files);
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The result of the checks of a repository.
struct Verdict {
    files: usize,
    /// Paths, each with a fault.
    faults: Vec<(String, String)>,
}

impl Verdict {
    fn failed(&self) -> usize {
        self.faults.iter().map(|(path, _)| path).collect::<BTreeSet<_>>().len()
    }
}

/// The files of a repository.
struct Texts<'a> {
    top: &'a Path,
    /// The paths from the top of the files that git tracks or does not ignore.
    paths: BTreeSet<String>,
}

fn check(top: &Path) -> Result<Verdict, String> {
    let texts = Texts { top, paths: listed(top)? };
    let glossary = Glossary::read(&texts)?;
    let mut faults = Vec::new();
    for path in &texts.paths {
        let raw = texts.read(path)?;
        if DATA.iter().any(|part| format!("/{path}").contains(part)) {
            continue;
        }
        let wrong = file_faults(path, &raw, &texts);
        let wrong = wrong.into_iter().chain(glossary.faults(path, &String::from_utf8_lossy(&raw)));
        faults.extend(wrong.map(|what| (path.clone(), what)));
    }
    Ok(Verdict { files: texts.paths.len(), faults })
}

fn listed(top: &Path) -> Result<BTreeSet<String>, String> {
    let arguments = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let done =
        Command::new("git").args(arguments).current_dir(top).output().map_err(|e| format!("git: {e}"))?;
    if !done.status.success() {
        return Err(format!("git ls-files: {}", String::from_utf8_lossy(&done.stderr).trim()));
    }
    let listed = String::from_utf8(done.stdout).map_err(|e| format!("git ls-files: {e}"))?;
    Ok(listed.split_terminator('\0').filter(|path| top.join(path).is_file()).map(str::to_owned).collect())
}

impl Texts<'_> {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        fs::read(self.top.join(path)).map_err(|e| format!("{path}: {e}"))
    }
}

fn file_faults(path: &str, raw: &[u8], texts: &Texts<'_>) -> Vec<String> {
    let mut wrong = Vec::new();
    if raw.len() > BYTES_MAX {
        wrong.push(format!("{} bytes, at most {BYTES_MAX}", raw.len()));
    }
    if !SOURCE.iter().any(|end| path.ends_with(end)) && !raw.starts_with(b"#!") {
        return wrong;
    }
    let lines: Vec<_> = raw.split(|byte| *byte == b'\n').collect();
    let foreign = (1..).zip(&lines).filter(|(_, line)| !line.is_ascii());
    wrong.extend(foreign.take(3).map(|(number, _)| format!("line {number}: not ASCII")));
    if path.ends_with(".rs") || path.ends_with(".py") {
        wrong.extend(too_long(path, &lines));
    }
    if raw.last().is_some_and(|last| *last != b'\n') {
        wrong.push("no newline at the end".to_owned());
    }
    if path.starts_with(SELF) {
        return wrong;
    }
    let text = String::from_utf8_lossy(raw);
    for (number, line) in (1..).zip(text.lines()) {
        wrong.extend(lines::faults(line).map(|what| format!("line {number}: {what}")));
        if path.ends_with(".rs") {
            wrong.extend(lines::poor_name(line).map(|name| format!("line {number}: the name {name}")));
        }
    }
    wrong.extend(examples::faults(path, &text, texts));
    wrong.extend(links::faults(path, &text, texts));
    wrong.extend(tokens::faults(path, &text));
    wrong
}

/// Whether a file is too long. A file of tests may be longer, and tests at the end of a file do not count.
fn too_long(path: &str, lines: &[&[u8]]) -> Option<String> {
    let tests = path.contains("/tests/") || path.ends_with("/tests.rs");
    let (count, most) = if tests {
        (lines.len(), TEST_LINES_MAX)
    } else {
        (lines.iter().position(|line| *line == b"#[cfg(test)]").unwrap_or(lines.len()), LINES_MAX)
    };
    (count > most).then(|| format!("{count} lines, at most {most}: does it hold one idea?"))
}

#[cfg(test)]
mod tests;
