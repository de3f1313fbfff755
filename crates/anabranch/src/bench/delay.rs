//! `anabranch bench delay`: a directory whose storage is slow.

use std::io::{self, ErrorKind};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use storage_delay::{Delayed, Delays};

use super::arguments::BenchDelay;
use super::stopping;
use crate::print::print;
use crate::problem::{Cause, Problem, Result};

/// How often this looks whether it is to end.
const LOOK: Duration = Duration::from_millis(20);

/// Delays accesses to the directory until a signal asks to end.
///
/// # Errors
/// It cannot be shown with delays, or is in use when this is to end.
pub(super) fn run(arguments: &BenchDelay) -> Result<()> {
    let BenchDelay { directory, at, data, metadata } = arguments;
    let at = at.as_ref().unwrap_or(directory);
    let delays = Delays { data: data.duration(), metadata: metadata.duration() };
    let stop = stopping::flag()?;
    // Each open file has a descriptor here; with fewer, opens fail sooner.
    let _ = storage_local::raise_descriptor_limit();
    let delayed = Delayed::mount(directory, at, delays).map_err(|e| {
        Problem::new(
            Cause::Serving,
            format!("{} cannot be shown with delays: {e}", directory.display()),
            advice(&e),
        )
    })?;
    print(&format!("ready {}\n", at.display()))?;
    while !stop.load(Ordering::Relaxed) {
        thread::sleep(LOOK);
    }
    delayed.end().map_err(|e| {
        let advice = format!("Whoever has files open there gets errors now. umount -l {}", at.display());
        Problem::new(Cause::Serving, format!("{} is in use: {e}", at.display()), advice)
    })
}

fn advice(e: &io::Error) -> &'static str {
    match e.kind() {
        ErrorKind::NotFound => "It needs /dev/fuse, and directories that exist.",
        ErrorKind::PermissionDenied => "Use sudo.",
        ErrorKind::Unsupported => {
            "Use a directory of a file system with handles, such as ext4, XFS, Btrfs or tmpfs."
        }
        _ => "",
    }
}
