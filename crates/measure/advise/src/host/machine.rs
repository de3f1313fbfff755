//! Where what is known of a machine is read.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// A machine: its /proc and /sys, and the few things that only a command tells.
#[derive(Debug, Clone)]
pub struct Machine {
    root: PathBuf,
    /// Whether it is this one: commands are run. Of a captured one their output is among the files.
    is_this: bool,
}

impl Machine {
    /// This machine.
    #[must_use]
    pub fn this() -> Self {
        Self { root: "/".into(), is_this: true }
    }

    /// Another one, of which these files were captured; what `ethtool -k NAME` printed is in `ethtool-k/NAME`.
    #[must_use]
    pub fn captured(root: PathBuf) -> Self {
        Self { root, is_this: false }
    }

    /// The text of a file, without white space around it; `None` where it cannot be read.
    pub(super) fn text(&self, path: &str) -> Option<String> {
        let text = fs::read(self.root.join(path)).ok()?;
        Some(String::from_utf8_lossy(&text).trim().to_owned())
    }

    /// A number that is all of a file.
    pub(super) fn number(&self, path: &str) -> Option<u64> {
        self.text(path)?.parse().ok()
    }

    /// The names in a directory, in order; none where it cannot be read.
    pub(super) fn names(&self, directory: &str) -> BTreeSet<String> {
        let entries = fs::read_dir(self.root.join(directory)).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    /// The last part of what a symbolic link points to.
    pub(super) fn link(&self, path: &str) -> Option<String> {
        let target = fs::read_link(self.root.join(path)).ok()?;
        Some(target.file_name()?.to_string_lossy().into_owned())
    }

    /// Whether something is there: a file, a directory or a link, wherever it leads.
    pub(super) fn has(&self, path: &str) -> bool {
        fs::symlink_metadata(self.root.join(path)).is_ok()
    }

    /// What `ethtool -k` says of an interface: the kernel tells it nowhere else. `None` where there is no ethtool.
    pub(super) fn offloads(&self, interface: &str) -> Option<String> {
        if !self.is_this {
            return self.text(&format!("ethtool-k/{interface}"));
        }
        let output = Command::new("ethtool").args(["-k", interface]).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Processors that are in use.
    pub(super) fn cpus(&self) -> usize {
        let cpuinfo = self.text("proc/cpuinfo").unwrap_or_default();
        cpuinfo.lines().filter(|line| line.starts_with("processor")).count().max(1)
    }

    /// The version of the kernel, such as (6, 1).
    pub(super) fn kernel(&self) -> Option<(u32, u32)> {
        let release = self.text("proc/sys/kernel/osrelease")?;
        let mut parts = release.split(|c: char| !c.is_ascii_digit());
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    }
}
