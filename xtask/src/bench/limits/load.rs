//! Runs of fsload.

use std::path::PathBuf;
use std::process::{Child, Stdio};

use crate::bench::program::{self, behind};
use crate::bench::server::Server;
use crate::bench::words;

pub(super) struct Programs {
    pub(super) anabranch: PathBuf,
    fsload: PathBuf,
}

impl Programs {
    pub(super) fn build() -> Result<Self, String> {
        Ok(Self { anabranch: program::anabranch()?, fsload: program::fsload()? })
    }

    /// Begins a load, `before` in front of its command.
    pub(super) fn load(
        &self,
        server: &Server,
        protocol: &str,
        work: &str,
        secs: f64,
        before: &str,
    ) -> Result<Load, String> {
        let mut command = behind(&words(before), &self.fsload);
        command.args([protocol, "tsv=1", "size=4M", &format!("secs={secs}")]);
        if !work.contains("file=") {
            command.arg(format!("file={protocol}.dat"));
        }
        command.args(words(&server.fsload(protocol))).args(words(work));
        let process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        Ok(Load { process: process.map_err(|e| format!("{}: {e}", self.fsload.display()))? })
    }
}

/// A load that was begun.
pub(super) struct Load {
    process: Child,
}

/// What a load came to.
pub(super) struct Figures {
    pub(super) ops: f64,
    mib: f64,
    pub(super) p99: f64,
    /// Of the server, for each operation.
    pub(super) cpu: f64,
    requests: f64,
}

impl Load {
    /// Waits for its end.
    pub(super) fn figures(self) -> Result<Figures, String> {
        let done = self.process.wait_with_output().map_err(|e| format!("a load generator: {e}"))?;
        let printed = String::from_utf8_lossy(&done.stdout);
        let fields: Vec<f64> =
            printed.trim_end_matches('\n').split('\t').map(|f| f.parse().unwrap_or(f64::NAN)).collect();
        let &[_, ops, mib, _, p99, cpu, _, _, requests, ..] = fields.as_slice() else {
            return Err("FAIL a load generator failed".to_owned());
        };
        if done.status.success() {
            Ok(Figures { ops, mib, p99, cpu, requests })
        } else {
            Err("FAIL a load generator failed".to_owned())
        }
    }
}

impl Figures {
    /// What a limit names.
    pub(super) fn of(&self, column: &str) -> f64 {
        match column {
            "ops" => self.ops,
            "mib" => self.mib,
            _ => self.requests,
        }
    }
}
