//! Runs the simulation in both build profiles: a seed must have the same history, whatever the compiler does.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::command::{self, Chore};
use crate::repository;

/// Seeds that are simulated in both profiles.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=10;
/// Operations of each seed.
const OPERATIONS: u64 = 20_000;

pub(crate) fn run() -> Chore {
    let [debug, release] = [built(&[], "debug")?, built(&["--release"], "release")?];
    let (mut passed, mut failed) = (0, 0);
    for seed in SEEDS {
        let [debug, release] = [simulated(&debug, seed)?, simulated(&release, seed)?];
        print!("{release}");
        if debug == release {
            passed += 1;
        } else {
            failed += 1;
            print!("FAIL seed {seed} has another history in a debug build: {debug}");
        }
    }
    println!("{passed} passed, {failed} failed");
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Builds the simulation, and returns the path of the program.
fn built(profile: &[&str], folder: &str) -> Result<PathBuf, String> {
    let build = ["build", "--quiet", "--locked", "--package", "anabranch-simulation"];
    command::ran(Command::new("cargo").args(build).args(profile).current_dir(repository::top()))?;
    Ok(repository::target().join(folder).join("anabranch-simulation"))
}

/// Simulates a seed, which must succeed, and returns the output.
fn simulated(program: &Path, seed: u64) -> Result<String, String> {
    let arguments = ["--seed", &seed.to_string(), "--operations", &OPERATIONS.to_string()];
    let done = Command::new(program).args(arguments).output();
    let done = done.map_err(|e| format!("{}: {e}", program.display()))?;
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    if done.status.success() { Ok(said) } else { Err(format!("{}: {said}", program.display())) }
}
