//! The measured programs, and those that measure.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use serde_json::Value;

use crate::command::{output, ran};
use crate::repository;

/// The release build of this tree, which is made first, or the program in ANABRANCH.
pub(super) fn anabranch() -> Result<PathBuf, String> {
    if let Some(given) = env::var_os("ANABRANCH") {
        return Ok(given.into());
    }
    let top = repository::top();
    let arguments = ["build", "-q", "--release", "--locked", "--bin", "anabranch"];
    ran(Command::new("cargo").args(arguments).current_dir(&top))?;
    Ok(repository::target().join("release/anabranch"))
}

/// The release build of an example of a crate, which is made first.
pub(super) fn example(name: &str) -> Result<PathBuf, String> {
    let build = ["build", "-q", "--release", "--locked", "--workspace", "--example", name];
    ran(Command::new("cargo").args(build).current_dir(repository::top()))?;
    Ok(repository::target().join("release/examples").join(name))
}

/// The load generator of tests/peers, which is built first, or the program in FSLOAD.
pub(super) fn fsload() -> Result<PathBuf, String> {
    if let Some(given) = env::var_os("FSLOAD") {
        return Ok(given.into());
    }
    let target = env::temp_dir().join("anabranch-fsload");
    let mut build = Command::new("cargo");
    build.args(["build", "-q", "--release", "--locked", "--manifest-path", "tests/peers/fsload/Cargo.toml"]);
    ran(build.env("CARGO_TARGET_DIR", &target).current_dir(repository::top()))?;
    Ok(target.join("release/fsload"))
}

/// The output of a command as JSON.
pub(super) fn json(command: &mut Command) -> Result<Value, String> {
    let printed = output(command)?;
    serde_json::from_str(&printed).map_err(|e| format!("{}: {e}", command.get_program().display()))
}

/// The content of a file as JSON.
pub(super) fn read_json(path: &Path) -> Result<Value, String> {
    let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    serde_json::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))
}

/// A command behind a prefix, such as `taskset -c 1`.
pub(super) fn behind(before: &[String], program: &Path) -> Command {
    match before.split_first() {
        Some((first, rest)) => {
            let mut command = Command::new(first);
            command.args(rest).arg(program);
            command
        }
        None => Command::new(program),
    }
}

/// A number of a JSON value; NaN if it is missing.
pub(super) fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}
