//! Whether the load generator measures what is so.

use std::process::Command;

use crate::command::{Chore, passed_on};
use crate::repository;

/// Runs the tests that `scripts/test` runs too, with limits for figures: there they check only what no stall of the machine can change.
pub(super) fn run() -> Chore {
    let arguments = ["test", "--locked", "-p", "anabranch", "--test", "bench", "known_"];
    let mut command = Command::new("cargo");
    command.args(arguments).args(["--", "--nocapture", "--test-threads", "1"]);
    passed_on(command.current_dir(repository::top()).env("ANABRANCH_PUNCTUAL", "1"))
}
