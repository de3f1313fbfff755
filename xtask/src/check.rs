//! The quick checks before a commit.

use std::process::{Command, ExitCode};

use crate::command::Chore;
use crate::{layers, repository, tidy};

/// Runs all checks, even after a failure, and reports at the end which failed.
pub(crate) fn run() -> Chore {
    let mut failed = Vec::new();
    for (name, check) in CHECKS {
        println!("== {name}");
        match check() {
            Ok(ExitCode::SUCCESS) => continue,
            Ok(_) => {}
            Err(problem) => println!("{problem}"),
        }
        failed.push(name);
    }
    if failed.is_empty() {
        println!("nothing failed");
        return Ok(ExitCode::SUCCESS);
    }
    println!("failed: {}", failed.join(", "));
    Ok(ExitCode::FAILURE)
}

type Check = (&'static str, fn() -> Chore);

const CHECKS: [Check; 6] = [
    ("fmt", || cargo(&["fmt", "--all", "--check"])),
    ("clippy", || cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"])),
    ("without QUIC", || cargo(&["check", "--quiet", "--locked", "-p", "anabranch", "--no-default-features"])),
    ("layers", || layers::run(&layers::Chosen::default())),
    ("tidy", tidy::run),
    ("publish", || cargo(&["publish", "--quiet", "--workspace", "--dry-run", "--locked", "--allow-dirty"])),
];

fn cargo(arguments: &[&str]) -> Chore {
    let mut command = Command::new("cargo");
    let status = command.args(arguments).current_dir(repository::top()).status();
    let status = status.map_err(|e| format!("cargo: {e}"))?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
