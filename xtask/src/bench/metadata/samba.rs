//! A Samba on the same directory.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::bench::afterwards::Scratch;
use crate::command::{ran, said};
use crate::repository;

const SCRIPT: &str = "tests/peers/samba.sh";

/// A running Samba. Dropping this value ends it and removes the files of its state.
pub(super) struct Samba {
    state: Scratch,
    port: u16,
}

impl Samba {
    /// Serves a directory, if Samba is installed.
    pub(super) fn start(directory: &Path) -> Result<Option<Self>, String> {
        let installed = Command::new("smbd").arg("--version").stdout(Stdio::null()).status();
        if !installed.is_ok_and(|status| status.success()) {
            return Ok(None);
        }
        let problem = |e: std::io::Error| format!("Samba: {e}");
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
        let script = repository::top().join(SCRIPT);
        let stop = |state: &str| format!("STATE={state}/samba '{}' stop;", script.display());
        let state = Scratch::ended_by(None, stop).map_err(problem)?;
        let samba = Self { port: free.map_err(problem)?.port(), state };
        ran(samba.script("start").env("SHARE_DIR", directory).env("PORT", samba.port.to_string()))?;
        Ok(Some(samba))
    }

    fn script(&self, what: &str) -> Command {
        let mut command = Command::new(repository::top().join(SCRIPT));
        command.arg(what).env("STATE", self.state());
        command
    }

    fn state(&self) -> PathBuf {
        self.state.path().join("samba")
    }

    /// The address in the form that fsload takes.
    pub(super) fn fsload(&self) -> String {
        let pid = said(&mut self.script("pid")).unwrap_or_default();
        format!("port={} pid={pid}", self.port)
    }
}
