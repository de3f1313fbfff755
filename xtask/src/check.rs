//! What is quick to check before a commit.

use std::process::{Command, ExitCode};

use crate::command::Chore;
use crate::repository;

/// What each check is called, and its command.
const CHECKS: [(&str, &[&str]); 4] = [
    ("fmt", &["cargo", "fmt", "--all", "--check"]),
    ("clippy", &["cargo", "clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]),
    ("layers", &["scripts/check-layers"]),
    ("tidy", &["scripts/tidy"]),
];

/// Runs all checks, whatever the ones before have found, and says at the end which failed.
pub(crate) fn run() -> Chore {
    let mut failed = Vec::new();
    for (name, words) in CHECKS {
        println!("== {name}");
        let status = Command::new(words[0]).args(&words[1..]).current_dir(repository::top()).status();
        if !status.map_err(|e| format!("{}: {e}", words[0]))?.success() {
            failed.push(name);
        }
    }
    if failed.is_empty() {
        println!("nothing failed");
        return Ok(ExitCode::SUCCESS);
    }
    println!("failed: {}", failed.join(", "));
    Ok(ExitCode::FAILURE)
}
