//! A Samba on the same directory.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::bench::server::scratch;
use crate::command::{ran, said};
use crate::repository;

/// Ends with this value.
pub(super) struct Samba {
    state: TempDir,
    port: u16,
}

impl Samba {
    /// Serves a directory, where Samba is installed.
    pub(super) fn start(directory: &Path) -> Result<Option<Self>, String> {
        let installed = Command::new("smbd").arg("--version").stdout(Stdio::null()).status();
        if !installed.is_ok_and(|status| status.success()) {
            return Ok(None);
        }
        let problem = |e: std::io::Error| format!("Samba: {e}");
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
        let samba = Self { port: free.map_err(problem)?.port(), state: scratch(None).map_err(problem)? };
        ran(samba.script("start").env("SHARE_DIR", directory).env("PORT", samba.port.to_string()))?;
        Ok(Some(samba))
    }

    fn script(&self, what: &str) -> Command {
        let mut command = Command::new(repository::top().join("tests/peers/samba.sh"));
        command.arg(what).env("STATE", self.state());
        command
    }

    fn state(&self) -> PathBuf {
        self.state.path().join("samba")
    }

    /// Where it is, as fsload takes it.
    pub(super) fn fsload(&self) -> String {
        let pid = said(&mut self.script("pid")).unwrap_or_default();
        format!("port={} pid={pid}", self.port)
    }
}

impl Drop for Samba {
    fn drop(&mut self) {
        if let Err(problem) = ran(&mut self.script("stop")) {
            eprintln!("{problem}");
        }
    }
}
