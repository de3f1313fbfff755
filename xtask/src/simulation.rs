//! Runs the simulation in a debug build and in an optimized one: a seed must have the same history, whatever the compiler does. Then many
//! operations run in the optimized build, and each fault that can be planted must be found.

use std::ffi::OsStr;
use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::Args;

use crate::command::{self, Chore};
use crate::repository;

/// Operations of each seed that is simulated in both builds.
const OPERATIONS: &str = "5000";
/// Seeds that may be needed until a planted fault is found, and operations of each. With fewer operations, some faults need many more
/// seeds.
const EACH_FAULT: [&str; 5] = ["--plant-each", "--seeds", "100", "--operations", "4000"];

/// How much is simulated. Both forms check the same facts.
#[derive(Args)]
pub(crate) struct Form {
    /// The form of `scripts/test`: three seeds in both builds instead of ten, and 250,000 operations instead of a million
    #[arg(long)]
    short: bool,
}

impl Form {
    /// Seeds that are simulated in both builds.
    const fn seeds(&self) -> RangeInclusive<u64> {
        1..=if self.short { 3 } else { 10 }
    }

    /// The arguments for many operations in the optimized build, of two seeds side by side.
    const fn many(&self) -> [&'static str; 6] {
        let seeds = if self.short { "25" } else { "100" };
        ["--seeds", seeds, "--operations", "10000", "--jobs", "2"]
    }
}

pub(crate) fn run(form: &Form) -> Chore {
    // The seeds come before the optimized build: it would keep the build directory from whoever tests beside this.
    let debug = built_for_tests()?;
    let histories = form.seeds().map(|seed| simulated(&debug, &one(seed))).collect::<Result<Vec<_>, _>>()?;
    let optimized = built_optimized()?;
    let (mut passed, mut failed) = (0, 0);
    for (seed, debug) in form.seeds().zip(histories) {
        let optimized = simulated(&optimized, &one(seed))?;
        print!("{optimized}");
        if debug == optimized {
            passed += 1;
        } else {
            failed += 1;
            print!("FAIL seed {seed} has another history in a debug build: {debug}");
        }
    }
    let many = simulated(&optimized, &form.many())?;
    println!("{}", many.lines().last().unwrap_or_default());
    print!("{}", simulated(&optimized, &EACH_FAULT)?);
    passed += 2;
    println!("{passed} passed, {failed} failed");
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The arguments that simulate one seed.
fn one(seed: u64) -> [String; 4] {
    ["--seed".into(), seed.to_string(), "--operations".into(), OPERATIONS.into()]
}

/// Our own crates optimized, no further than pays: what a higher level costs the compiler is more than the simulation saves. The largest
/// crates are compiled in one piece each, which takes little more than half of the processor time. The crates of others are as in a debug
/// build, and not compiled again.
const OPTIMIZED: [&str; 8] = [
    "--config",
    "profile.dev.opt-level=1",
    "--config",
    "profile.dev.package.anabranch-share.codegen-units=1",
    "--config",
    "profile.dev.package.anabranch-smb-server.codegen-units=1",
    "--config",
    "profile.dev.package.anabranch-nfs-server.codegen-units=1",
];

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
    let mut command = Command::new("cargo");
    command.args(build).args(more).current_dir(repository::top());
    if !more.is_empty() {
        // A driver of lints optimizes less than the compiler.
        command.env_remove("RUSTC_WORKSPACE_WRAPPER");
    }
    command::ran(&mut command)
}

/// Simulates seeds, which must succeed, and returns the output.
fn simulated(program: &Path, arguments: &[impl AsRef<OsStr>]) -> Result<String, String> {
    let done = Command::new(program).args(arguments).output();
    let done = done.map_err(|e| format!("{}: {e}", program.display()))?;
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    if done.status.success() { Ok(said) } else { Err(format!("{}: {said}", program.display())) }
}
