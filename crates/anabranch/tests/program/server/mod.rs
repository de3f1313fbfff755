//! A server of the program, for the length of a test.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// The program with these arguments.
pub(crate) fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// A server that is killed when the test ends.
pub(crate) struct Server {
    pub(crate) child: Child,
    /// What it printed first.
    pub(crate) ready: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::start_logging(arguments, Stdio::null())
    }

    /// The same, with its log there.
    pub(crate) fn start_logging(arguments: &[&str], log: Stdio) -> Self {
        let mut child = program(arguments).stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut ready = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut ready).unwrap();
        Self { child, ready }
    }

    /// Where it listens: `smb`, `nfs` or `control`.
    pub(crate) fn address(&self, name: &str) -> &str {
        let words = self.ready.trim_end().split(' ');
        words.filter_map(|word| word.split_once('=')).find(|(key, _)| *key == name).unwrap().1
    }

    /// Sends a signal (by name) and waits for the end; the exit status.
    pub(crate) fn end_with(&mut self, signal: &str) -> Option<i32> {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &pid]).status().unwrap().success());
        let deadline = Instant::now() + Duration::from_secs(60);
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("it did not end within 60 s of {signal}");
    }
}

/// The path of a name in a directory.
pub(crate) fn path(directory: &TempDir, name: &str) -> String {
    directory.path().join(name).to_str().unwrap().to_owned()
}

/// The flags of a server on free ports with one share.
pub(crate) fn flags(directory: &TempDir) -> Vec<String> {
    std::fs::create_dir_all(directory.path().join("data")).unwrap();
    let share = format!("data={}", path(directory, "data"));
    let state = path(directory, "state");
    let any = "127.0.0.1:0";
    [
        "serve",
        "--share",
        &share,
        "--user",
        "anna=0:hush-hush",
        "--smb",
        any,
        "--nfs",
        any,
        "--control",
        any,
        "--state",
        &state,
        // The tests' NFS clients are root, as the tests are.
        "--nfs-squash",
        "none",
    ]
    .map(str::to_owned)
    .to_vec()
}

/// The same, with a share that has a plan: what the server is asked for at full speed keeps no processor busy.
pub(crate) fn flags_with_plan(directory: &TempDir, plan: &str) -> Vec<String> {
    let flags = flags(directory);
    let config = path(directory, "server.toml");
    let share = format!(
        "[[share]]\nname = \"data\"\ndirectory = \"{}\"\nplan = \"{plan}\"\n",
        path(directory, "data")
    );
    std::fs::write(&config, share).unwrap();
    let at = flags.iter().position(|flag| flag == "--share").unwrap();
    [&flags[..at], &["--config".to_owned(), config], &flags[at + 2..]].concat()
}
