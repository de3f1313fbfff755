//! Checks that the load generator measures correctly.

use std::process::Command;

use crate::command::{Chore, passed_on};
use crate::repository;

/// Runs tests that `scripts/test` also runs, with limits on the figures. There the tests check only facts that no stall
/// of the machine can change.
pub(super) fn run() -> Chore {
    let arguments = ["test", "--locked", "-p", "anabranch", "--test", "bench", "known_"];
    let mut command = Command::new("cargo");
    command.args(arguments).args(["--", "--nocapture", "--test-threads", "1"]);
    passed_on(command.current_dir(repository::top()).env("ANABRANCH_PUNCTUAL", "1"))
}
