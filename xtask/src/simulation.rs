//! Runs the simulation in a debug build and in an optimized one: a seed must have the same history, whatever the compiler does. Then a
//! million operations run in the optimized build, and each fault that can be planted must be found.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::command::{self, Chore};
use crate::repository;

/// Seeds that are simulated in both builds.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=10;
/// Operations of each of these seeds.
const OPERATIONS: &str = "5000";
/// Seeds of the optimized build, operations of each, and how many seeds are simulated side by side.
const MILLION: [&str; 6] = ["--seeds", "100", "--operations", "10000", "--jobs", "2"];
/// Seeds that may be needed until a planted fault is found, and operations of each.
const EACH_FAULT: [&str; 5] = ["--plant-each", "--seeds", "100", "--operations", "10000"];

pub(crate) fn run() -> Chore {
    // The seeds come before the optimized build: it would keep the build directory from whoever tests beside this.
    let debug = built_for_tests()?;
    let histories = SEEDS.map(|seed| simulated(&debug, &one(seed))).collect::<Result<Vec<_>, _>>()?;
    let optimized = built_optimized()?;
    let (mut passed, mut failed) = (0, 0);
    for (seed, debug) in SEEDS.zip(histories) {
        let optimized = simulated(&optimized, &one(seed))?;
        print!("{optimized}");
        if debug == optimized {
            passed += 1;
        } else {
            failed += 1;
            print!("FAIL seed {seed} has another history in a debug build: {debug}");
        }
    }
    let million = simulated(&optimized, &MILLION)?;
    println!("{}", million.lines().last().unwrap_or_default());
    print!("{}", simulated(&optimized, &EACH_FAULT)?);
    passed += 2;
    println!("{passed} passed, {failed} failed");
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The arguments that simulate one seed.
fn one(seed: u64) -> [String; 4] {
    ["--seed".into(), seed.to_string(), "--operations".into(), OPERATIONS.into()]
}

/// Our own crates optimized, no further than pays: what a higher level costs the compiler is more than the simulation saves. The crates
/// of others are as in a debug build, and not compiled again.
const OPTIMIZED: [&str; 2] = ["--config", "profile.dev.opt-level=1"];

/// Builds the simulation as `cargo test --workspace` does, which has usually built it already: other packages would select other
/// features of its dependencies. Returns the path of the program.
fn built_for_tests() -> Result<PathBuf, String> {
    build(&[])?;
    Ok(repository::target().join("debug/anabranch-simulation"))
}

/// Builds the simulation optimized, and returns the path of the program: a second name, because the debug build has the same, and gets
/// it back.
fn built_optimized() -> Result<PathBuf, String> {
    build(&OPTIMIZED)?;
    let program = repository::target().join("debug/anabranch-simulation");
    let kept = program.with_file_name("anabranch-simulation-optimized");
    fs::copy(&program, &kept).map_err(|e| format!("{}: {e}", kept.display()))?;
    built_for_tests()?;
    Ok(kept)
}

fn build(more: &[&str]) -> Result<(), String> {
    let build = ["test", "--quiet", "--locked", "--workspace", "--no-run", "--test", "seeds"];
    command::ran(Command::new("cargo").args(build).args(more).current_dir(repository::top()))
}

/// Simulates seeds, which must succeed, and returns the output.
fn simulated(program: &Path, arguments: &[impl AsRef<OsStr>]) -> Result<String, String> {
    let done = Command::new(program).args(arguments).output();
    let done = done.map_err(|e| format!("{}: {e}", program.display()))?;
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    if done.status.success() { Ok(said) } else { Err(format!("{}: {said}", program.display())) }
}
