//! Runs the fuzz targets (bolero's `check!` in the crates' tests) for longer than the tests do.
//!
//! This uses libFuzzer if cargo-bolero and a nightly compiler are there, otherwise random input through the test
//! harness. An input that fails belongs in the crate's corpus, in the commit that fixes the fault.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use clap::Args;

use crate::command::Chore;
use crate::repository;
use crate::words::word_at;

/// The extra time of a target for building and ending, in seconds.
const SLACK: u64 = 600;

#[derive(Args)]
pub(crate) struct FuzzArguments {
    /// The run time of each target, in seconds
    #[arg(default_value_t = 60)]
    seconds: u64,
    /// Only targets with this in their name
    #[arg(default_value = "")]
    part: String,
    /// So many runs of each target, built with optimization, instead of a time; SECONDS is the most that they may take
    #[arg(long, value_name = "N")]
    runs: Option<u64>,
}

pub(crate) fn run(given: &FuzzArguments) -> Chore {
    let guided = succeeds(&["bolero", "--version"]) && succeeds(&["+nightly", "--version"]);
    let (mut passed, mut failed) = (0, 0);
    for (package, target) in targets()?.iter().filter(|(_, target)| target.contains(&given.part)) {
        println!("== {package} {target}");
        let mut command = match given.runs {
            Some(runs) => counted(runs, given.seconds),
            None if guided => with_libfuzzer(given.seconds),
            None => with_random_input(given.seconds),
        };
        command.args(["-p", package, target]).stdin(Stdio::null()).current_dir(repository::top());
        let begun = Instant::now();
        let status = command.status().map_err(|e| format!("{target}: {e}"))?;
        println!("{target}: {:.0} s", begun.elapsed().as_secs_f64());
        *(if status.success() { &mut passed } else { &mut failed }) += 1;
    }
    println!("{passed} passed, {failed} failed");
    Ok(if failed == 0 && passed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn succeeds(arguments: &[&str]) -> bool {
    let mut command = Command::new("cargo");
    let status = command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

fn with_libfuzzer(seconds: u64) -> Command {
    let mut command = Command::new("cargo");
    command.args(["+nightly", "bolero", "test", "--engine", "libfuzzer", "-T", &format!("{seconds}s")]);
    command
}

fn with_random_input(seconds: u64) -> Command {
    let mut command = Command::new("timeout");
    command.args([&(seconds + SLACK).to_string(), "cargo", "test", "-q"]);
    command.env("BOLERO_RANDOM_TEST_TIME_MS", (seconds * 1000).to_string());
    command.env("BOLERO_RANDOM_ITERATIONS", "1000000000");
    command
}

/// Optimized, but with the assertions of a debug build.
fn counted(runs: u64, seconds: u64) -> Command {
    let mut command = Command::new("timeout");
    command.args([&(seconds + SLACK).to_string(), "cargo", "test", "-q", "--release"]);
    for checked in ["debug-assertions", "overflow-checks"] {
        command.args(["--config", &format!("profile.release.{checked}=true")]);
    }
    command.env("BOLERO_RANDOM_ITERATIONS", runs.to_string());
    command
}

/// The packages, each with the function around a `check!`.
fn targets() -> Result<BTreeSet<(String, String)>, String> {
    let mut found = BTreeSet::new();
    for layer in folders(&repository::top().join("crates"))? {
        for folder in folders(&layer)? {
            let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
            if manifest.lines().any(|line| line.starts_with("bolero")) {
                let name = folder.file_name().unwrap_or_default().display();
                let names = targets_below(&folder)?.into_iter();
                found.extend(names.map(|target| (format!("anabranch-{name}"), target)));
            }
        }
    }
    Ok(found)
}

fn folders(folder: &Path) -> Result<Vec<PathBuf>, String> {
    Ok(entries(folder)?.into_iter().filter(|path| path.is_dir()).collect())
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let problem = |e| format!("{}: {e}", folder.display());
    let entries = fs::read_dir(folder).map_err(problem)?.map(|entry| Ok(entry.map_err(problem)?.path()));
    entries.collect()
}

fn targets_below(folder: &Path) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    for path in entries(folder)? {
        if path.is_dir() {
            found.extend(targets_below(&path)?);
        } else if path.extension().is_some_and(|end| end == "rs") {
            let source = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
            found.extend(targets_of(&source));
        }
    }
    Ok(found)
}

/// The functions of a source that have a `check!`.
fn targets_of(source: &str) -> Vec<String> {
    let (mut around, mut found) = ("", Vec::new());
    for line in source.lines() {
        let item = line.trim_start_matches(' ');
        if let Some(name) = item.strip_prefix("pub ").unwrap_or(item).strip_prefix("fn ") {
            around = word_at(name);
        }
        if line.contains("check!(") {
            found.push(around.to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_the_function_around_a_check() {
        let source =
            "fn a() {}\n    pub fn b_1<T>() {\n        bolero::check!().for_each(|x| x);\n    }\nfn c() {}\n";
        assert_eq!(targets_of(source), ["b_1"]);
    }

    #[test]
    fn there_are_targets() {
        let targets = targets().unwrap();
        assert!(targets.iter().any(|(package, _)| package == "anabranch-smb-wire"), "{targets:?}");
    }
}
