//! The simulation in both build profiles: one seed has one history, whatever the compiler makes of it.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::command::{self, Chore};
use crate::repository;

/// Seeds that are simulated in both profiles.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=10;
/// Operations of each.
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

/// Builds the simulation; where its program is.
fn built(profile: &[&str], folder: &str) -> Result<PathBuf, String> {
    let build = ["build", "--quiet", "--locked", "--package", "anabranch-simulation"];
    command::ran(Command::new("cargo").args(build).args(profile).current_dir(repository::top()))?;
    Ok(repository::target().join(folder).join("anabranch-simulation"))
}

/// What the simulation of a seed prints; it must go well.
fn simulated(program: &Path, seed: u64) -> Result<String, String> {
    let arguments = ["--seed", &seed.to_string(), "--operations", &OPERATIONS.to_string()];
    let done = Command::new(program).args(arguments).output();
    let done = done.map_err(|e| format!("{}: {e}", program.display()))?;
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    if done.status.success() { Ok(said) } else { Err(format!("{}: {said}", program.display())) }
}
