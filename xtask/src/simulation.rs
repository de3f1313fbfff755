//! Runs the simulation in both build profiles: a seed must have the same history, whatever the compiler does. Then a million
//! operations run in the release build.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::command::{self, Chore};
use crate::repository;

/// Seeds that are simulated in both profiles.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=10;
/// Operations of each of these seeds.
const OPERATIONS: &str = "5000";
/// Seeds of the release build, operations of each, and how many seeds are simulated side by side.
const MILLION: [&str; 6] = ["--seeds", "100", "--operations", "10000", "--jobs", "2"];

pub(crate) fn run() -> Chore {
    let [debug, release] = [built(&[], "debug")?, built(&["--release"], "release")?];
    let (mut passed, mut failed) = (0, 0);
    for seed in SEEDS {
        let arguments = ["--seed", &seed.to_string(), "--operations", OPERATIONS];
        let [debug, release] = [simulated(&debug, &arguments)?, simulated(&release, &arguments)?];
        print!("{release}");
        if debug == release {
            passed += 1;
        } else {
            failed += 1;
            print!("FAIL seed {seed} has another history in a debug build: {debug}");
        }
    }
    let million = simulated(&release, &MILLION)?;
    println!("{}", million.lines().last().unwrap_or_default());
    passed += 1;
    println!("{passed} passed, {failed} failed");
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Builds the simulation, and returns the path of the program.
fn built(profile: &[&str], folder: &str) -> Result<PathBuf, String> {
    let build = ["build", "--quiet", "--locked", "--package", "anabranch-simulation"];
    command::ran(Command::new("cargo").args(build).args(profile).current_dir(repository::top()))?;
    Ok(repository::target().join(folder).join("anabranch-simulation"))
}

/// Simulates seeds, which must succeed, and returns the output.
fn simulated(program: &Path, arguments: &[&str]) -> Result<String, String> {
    let done = Command::new(program).args(arguments).output();
    let done = done.map_err(|e| format!("{}: {e}", program.display()))?;
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    if done.status.success() { Ok(said) } else { Err(format!("{}: {said}", program.display())) }
}
