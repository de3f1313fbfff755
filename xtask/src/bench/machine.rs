//! The place, date and commit of a measurement.

use std::process::Command;
use std::{env, fs, thread};

use crate::command::said;
use crate::repository;

/// The commit of the measured program: that of the tree, or the one in COMMIT.
pub(super) fn commit() -> Result<String, String> {
    let of = env::var("COMMIT").unwrap_or_else(|_| "HEAD".to_owned());
    said(Command::new("git").args(["rev-parse", "--short", &of]).current_dir(repository::top()))
}

/// Today, as 2026-11-24 (UTC).
pub(super) fn day() -> Result<String, String> {
    said(Command::new("date").args(["-u", "+%Y-%m-%d"]))
}

/// Processors that this process may use.
pub(super) fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// The processor's name.
pub(super) fn processor() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find(|line| line.starts_with("model name"));
    name.and_then(|line| line.split_once(':')).map_or("?", |(_, name)| name.trim()).to_owned()
}

/// The kernel's release.
pub(super) fn kernel() -> String {
    fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned()
}

/// The load average of the last 1, 5 and 15 minutes.
pub(super) fn load_average() -> String {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}

/// Processors, kernel, load and day.
pub(super) fn described() -> Result<String, String> {
    let (processors, processor, kernel) = (processors(), processor(), kernel());
    Ok(format!("{processors} x {processor}, Linux {kernel}, load {}, {}", load_average(), day()?))
}

/// The last line of a page: day, commit, program and machine.
pub(super) fn measured(program: &str) -> Result<String, String> {
    let (day, commit, processors, kernel) = (day()?, commit()?, processors(), kernel());
    Ok(format!("Measured on {day}, commit {commit}, {program}, {processors} processors, Linux {kernel}."))
}
