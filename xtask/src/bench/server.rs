//! A server that runs during a measurement.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::afterwards::Scratch;
use crate::command::ran;

pub(super) const PASSWORD: &str = "bench-Pass1";
/// How long the server may take to end.
const END_MAX: Duration = Duration::from_secs(60);

/// The settings of a server. It has one share, which one user, `bench`, owns.
pub(super) struct Settings {
    pub(super) share: &'static str,
    /// The uid and gid of the user.
    pub(super) owner: u32,
    /// Further lines of its configuration.
    pub(super) lines: String,
    /// Further lines of its share.
    pub(super) share_lines: String,
    /// Whether the share lies in memory.
    pub(super) in_memory: bool,
    /// The directory to serve, if it exists already.
    pub(super) directory: Option<PathBuf>,
    /// The addresses on which the server listens for SMB and NFS.
    pub(super) listen: [SocketAddr; 2],
    /// The address by which clients reach the server if it listens on all.
    pub(super) reached_at: Option<IpAddr>,
    /// The prefix of the server's command.
    pub(super) before: Vec<String>,
    pub(super) environment: Vec<(String, String)>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            share: "data",
            owner: 1000,
            lines: "smb-signing = \"enabled\"\nnfs-squash = \"none\"\n".to_owned(),
            share_lines: String::new(),
            in_memory: false,
            directory: None,
            listen: [SocketAddr::from((Ipv4Addr::LOCALHOST, 0)); 2],
            reached_at: None,
            before: Vec::new(),
            environment: Vec::new(),
        }
    }
}

impl Settings {
    fn configuration(&self, home: &Path, directory: &Path) -> String {
        let (home, directory) = (home.display(), directory.display());
        let Self { share, owner, lines, share_lines, listen: [smb, nfs], .. } = self;
        format!(
            "smb = \"{smb}\"\nnfs = \"{nfs}\"\ncontrol = \"127.0.0.1:0\"\nstate = \"{home}/state\"\n{lines}\n\
             [[share]]\nname = \"{share}\"\ndirectory = \"{directory}\"\n{share_lines}\n\
             [[user]]\nname = \"bench\"\npassword = \"{PASSWORD}\"\nuid = {owner}\ngid = {owner}\n"
        )
    }
}

/// A running server. Dropping this value ends it.
pub(super) struct Server {
    process: Child,
    share: &'static str,
    reached_at: Option<IpAddr>,
    ready: BTreeMap<String, SocketAddr>,
    /// The directory that is served.
    pub(super) directory: PathBuf,
    home: Scratch,
    /// The place of the share, if it is another one.
    _memory: Option<Scratch>,
}

impl Server {
    /// Starts a program and waits until it is ready.
    pub(super) fn start(program: &Path, settings: &Settings) -> Result<Self, String> {
        let problem = |e: std::io::Error| format!("a server's scratch folder: {e}");
        let home = Scratch::make(None).map_err(problem)?;
        let memory =
            settings.in_memory.then(|| Scratch::make(Some("/dev/shm"))).transpose().map_err(problem)?;
        let made = memory.as_ref().unwrap_or(&home).path().join("share");
        let directory = settings.directory.clone().unwrap_or(made);
        if settings.directory.is_none() {
            DirBuilder::new().mode(0o755).create(&directory).map_err(problem)?;
            chown(&directory, Some(settings.owner), Some(settings.owner)).map_err(problem)?;
        }
        let file = home.path().join("anabranch.toml");
        let written = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file);
        let text = settings.configuration(home.path(), &directory);
        written.and_then(|mut file| file.write_all(text.as_bytes())).map_err(problem)?;
        let log = fs::File::create(home.path().join("log")).map_err(problem)?;
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).args(&settings.before).arg(program);
        command.args(["serve", "--config"]).arg(&file).envs(settings.environment.iter().map(|(k, v)| (k, v)));
        let process =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn().map_err(problem)?;
        let (share, reached_at) = (settings.share, settings.reached_at);
        let ready = BTreeMap::new();
        let mut server = Self { process, share, reached_at, ready, directory, home, _memory: memory };
        server.ready =
            server.read_ready().ok_or_else(|| format!("no ready line; its log:\n{}", server.log()))?;
        Ok(server)
    }

    fn read_ready(&mut self) -> Option<BTreeMap<String, SocketAddr>> {
        let mut line = String::new();
        BufReader::new(self.process.stdout.take()?).read_line(&mut line).ok()?;
        let words = line.strip_prefix("ready ")?.split_whitespace().filter_map(|word| word.split_once('='));
        words.map(|(name, at)| Some((name.to_owned(), at.parse().ok()?))).collect()
    }

    pub(super) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// The address for clients of `smb` or `nfs`.
    pub(super) fn address(&self, of: &str) -> SocketAddr {
        let listens = self.ready[of];
        SocketAddr::new(self.reached_at.unwrap_or_else(|| listens.ip()), listens.port())
    }

    pub(super) fn state(&self) -> PathBuf {
        self.home.path().join("state")
    }

    /// The share as a target of `anabranch bench` over SMB.
    pub(super) fn smb(&self) -> String {
        format!("smb://bench:{PASSWORD}@{}/{}", self.address("smb"), self.share)
    }

    /// The share as a target of `anabranch bench` over a version of NFS, as the user `uid`.
    pub(super) fn nfs(&self, version: &str, uid: Option<u32>) -> String {
        let user = uid.map_or_else(String::new, |uid| format!("&uid={uid}&gid={uid}"));
        format!("nfs://{}/{}?vers={version}{user}", self.address("nfs"), self.share)
    }

    /// A share in the form that fsload takes, over `smb` or a version of NFS.
    pub(super) fn fsload(&self, protocol: &str, share: &str) -> String {
        let port = self.address(if protocol == "smb" { "smb" } else { "nfs" }).port();
        let pid = self.pid();
        if protocol == "smb" {
            format!("port={port} pid={pid} share={share} user=bench pass={PASSWORD}")
        } else {
            format!("port={port} mount_port={port} pid={pid} share=/{share}")
        }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.home.path().join("log")).unwrap_or_default()
    }

    /// Stops the server: within a minute, without an error, and with a log that has neither a panic nor a password.
    pub(super) fn stop(mut self) -> Result<(), String> {
        ran(Command::new("kill").args(["-TERM", &self.pid().to_string()]))?;
        let begun = Instant::now();
        let status = loop {
            match self.process.try_wait().map_err(|e| e.to_string())? {
                Some(status) => break status,
                None if begun.elapsed() > END_MAX => {
                    return Err("the server is still there a minute after SIGTERM".to_owned());
                }
                None => sleep(Duration::from_millis(20)),
            }
        };
        let log = self.log();
        let bad = log.lines().find(|line| line.contains("panicked") || line.contains(PASSWORD));
        match bad {
            Some(line) => Err(format!("the server's log: {line}")),
            None if status.success() => Ok(()),
            None => Err(format!("the server ended with {status}")),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The process has already ended, or its exit status does not matter.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}
