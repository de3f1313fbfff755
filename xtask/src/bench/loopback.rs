//! A loopback of one's own.

use std::env;
use std::process::Command;

use crate::bench::program;
use crate::command::{Chore, passed_on};
use crate::repository;

/// Set where a chore runs in a network namespace of its own.
const INSIDE: &str = "XTASK_OWN_LOOPBACK";

/// Does a chore on a loopback of its own (`scripts/own-loopback`, as root): this program once more with the same words. What is
/// measured is built before: there is no other network inside.
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
