//! A machine with a share whose directory is a subvolume, on a Btrfs of its own, and a server.

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::disk::Disk;
use crate::server::{Server, flags, path, program};

/// A server with the shares `live`, which has snapshots, and `data`, which has none.
pub(crate) struct Machine {
    // In this order they are let go of.
    pub(crate) server: Option<Server>,
    _disk: Disk,
    pub(crate) directory: TempDir,
}

impl Machine {
    /// Without a server. None, which is said, where this user may not mount, or Btrfs is missing.
    pub(crate) fn new() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let (image, top) = (directory.path().join("image"), directory.path().join("top"));
        let disk = Disk::mount_btrfs(&image, &top)?;
        let made = Self { server: None, _disk: disk, directory };
        btrfs(&["subvolume", "create"], &[&made.at("live")]);
        std::fs::write(made.at("live/file"), "first").unwrap();
        Some(made)
    }

    /// With a server.
    pub(crate) fn serving() -> Option<Self> {
        let mut machine = Self::new()?;
        machine.start(&[]);
        Some(machine)
    }

    pub(crate) fn start(&mut self, more: &[&str]) {
        let mut flags = flags(&self.directory);
        flags.extend(["--share".to_owned(), format!("live={}", self.at("live").display())]);
        let flags: Vec<&str> = flags.iter().map(String::as_str).chain(more.iter().copied()).collect();
        self.start_with(&flags);
    }

    /// A server with these arguments.
    pub(crate) fn start_with(&mut self, arguments: &[&str]) {
        let log =
            std::fs::OpenOptions::new().create(true).append(true).open(self.directory.path().join("log"));
        self.server = Some(Server::start_logging(arguments, log.unwrap().into()));
    }

    pub(crate) fn stop(&mut self) {
        assert_eq!(self.server.take().unwrap().end_with("TERM"), Some(0));
    }

    /// What is on the Btrfs.
    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join("top").join(name)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        program(arguments).args(["--state", &path(&self.directory, "state")]).output().unwrap()
    }

    pub(crate) fn done(&self, arguments: &[&str]) -> String {
        let Output { status, stdout, stderr } = self.run(arguments);
        assert!(status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&stderr));
        String::from_utf8(stdout).unwrap()
    }

    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let arguments: Vec<&str> = arguments.iter().copied().chain(["--json"]).collect();
        serde_json::from_str(&self.done(&arguments)).unwrap()
    }

    /// It is refused, with these words in what is said.
    pub(crate) fn refused(&self, arguments: &[&str], words: &[&str]) {
        let Output { status, stdout, stderr } = self.run(arguments);
        let said = String::from_utf8(stderr).unwrap();
        assert!(status.code() == Some(7) && stdout.is_empty(), "{arguments:?}: {status} {said}");
        for word in words {
            assert!(said.contains(word), "{arguments:?}: {word:?} is not in: {said}");
        }
    }

    /// The snapshots of a share.
    pub(crate) fn snapshots(&self, share: &str) -> Vec<Value> {
        self.json(&["snapshot", "list", share])["snapshots"].as_array().unwrap().clone()
    }

    /// The names of the snapshots of `live`.
    pub(crate) fn names(&self) -> Vec<String> {
        self.snapshots("live").iter().map(|snapshot| text(&snapshot["name"])).collect()
    }
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// What another program does.
pub(crate) fn btrfs(what: &[&str], at: &[&PathBuf]) {
    let output = Command::new("btrfs").args(what).args(at).output().unwrap();
    assert!(output.status.success(), "btrfs {what:?}: {}", String::from_utf8_lossy(&output.stderr));
}
