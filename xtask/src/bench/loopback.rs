//! A separate loopback for measurements.

use std::env;
use std::process::Command;

use crate::bench::program;
use crate::command::{Chore, passed_on};
use crate::repository;

/// This variable is set if a chore runs in its own network namespace.
const INSIDE: &str = "XTASK_OWN_LOOPBACK";

/// Runs a chore on a separate loopback (`scripts/own-loopback`, as root) by running this program again with the same
/// arguments. The measured program is built before that, because the namespace has no other network.
pub(super) fn inside(chore: impl FnOnce() -> Chore) -> Chore {
    if env::var_os(INSIDE).is_some() {
        return chore();
    }
    let anabranch = program::anabranch()?;
    let this = env::current_exe().map_err(|e| format!("this program: {e}"))?;
    let mut command = Command::new(repository::top().join("scripts/own-loopback"));
    command.arg(this).args(env::args_os().skip(1));
    passed_on(command.env("ANABRANCH", anabranch).env(INSIDE, "1"))
}
