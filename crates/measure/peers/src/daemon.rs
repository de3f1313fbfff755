//! A program that serves, for as long as it is measured: in a session of its own, and ended with all that it has started.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process_group, test_kill_process_group, waitid,
};

use crate::error::{Cause, Error, Result};

/// How long a server may take to answer.
const START_TIME: Duration = Duration::from_secs(20);
/// How long it may take to end when it is asked to; then it is killed.
const END_TIME: Duration = Duration::from_secs(5);
/// How often it is looked at meanwhile.
const LOOK: Duration = Duration::from_millis(20);

/// Those that run: they are ended also when this program ends at once.
static RUNNING: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

/// A server that runs. It ends when this is dropped.
#[derive(Debug)]
pub struct Daemon {
    name: &'static str,
    child: Child,
    pid: Pid,
    /// What it says.
    log: PathBuf,
}

/// A program that a package of Debian has.
///
/// # Errors
/// It is not there.
pub(crate) fn find(program: &str, package: &str) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places =
        std::env::split_paths(&path).chain(["/usr/sbin", "/usr/bin", "/sbin", "/bin"].map(PathBuf::from));
    let found = places.map(|place| place.join(program)).find(|file| file.is_file());
    found.ok_or_else(|| missing(program, package))
}

/// A package is not installed.
pub(crate) fn missing(what: &str, package: &str) -> Error {
    Error::new(
        Cause::Missing,
        format!("{what} is not installed: it is in the package {package}"),
        format!("apt-get install {package}"),
    )
}

/// A port of the loopback that nobody has at present.
///
/// # Errors
/// There is none.
pub(crate) fn free_port() -> Result<u16> {
    let bound =
        std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
    bound
        .map(|address| address.port())
        .map_err(|e| Error::new(Cause::Address, format!("there is no free port: {e}"), ""))
}

impl Daemon {
    /// Starts a program. It has a session of its own, so that Ctrl-C does not reach it, and the scheduler treats all servers
    /// alike; and it is asked to end when this program is killed. What it says goes into `log`.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(
        name: &'static str,
        program: &Path,
        arguments: &[&OsStr],
        environment: &[(&str, &OsStr)],
        log: PathBuf,
    ) -> Result<Self> {
        let failed = |e: std::io::Error| {
            Error::new(Cause::Serving, format!("{} cannot be started: {e}", program.display()), "")
        };
        let out = File::create(&log).map_err(failed)?;
        let mut command = Command::new("setsid");
        command.args(["setpriv", "--pdeathsig", "TERM"]).arg(program).args(arguments);
        command.envs(environment.iter().copied()).stdin(Stdio::null());
        command.stdout(out.try_clone().map_err(failed)?).stderr(out);
        let child = command.spawn().map_err(failed)?;
        let pid = Pid::from_child(&child);
        RUNNING.lock().push(pid);
        Ok(Self { name, child, pid, log })
    }

    /// Its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until a port is listened at in its network.
    ///
    /// # Errors
    /// It has ended, or does not listen.
    pub fn wait_for(&self, port: u16) -> Result<()> {
        let sockets = format!("/proc/{}/net/tcp", self.pid());
        let listens = || is_listened_at(&fs::read_to_string(&sockets).unwrap_or_default(), port);
        self.wait_until(|_| listens().then_some(()))
    }

    /// Waits until `ready` finds in what it has said that it is.
    ///
    /// # Errors
    /// It has ended, or did not become ready.
    pub fn wait_until<T>(&self, ready: impl Fn(&str) -> Option<T>) -> Result<T> {
        let begin = Instant::now();
        loop {
            if let Some(found) = ready(&self.said()) {
                return Ok(found);
            }
            let ended = self.has_ended();
            if ended || begin.elapsed() > START_TIME {
                let how = if ended { "has ended at once" } else { "does not answer" };
                return Err(Error::new(
                    Cause::Serving,
                    format!("{} {how}", self.name),
                    format!("It said:\n  {}", last_lines(&self.said())),
                ));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// What it has said.
    fn said(&self) -> String {
        fs::read(&self.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    /// It has, and nobody has taken note of it yet: its number is still its own.
    fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(waitid(WaitId::Pid(self.pid), options), Ok(None))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = kill_process_group(self.pid, Signal::TERM);
        let begin = Instant::now();
        while !self.has_ended() && begin.elapsed() < END_TIME {
            std::thread::sleep(LOOK);
        }
        // What it has started and left, too. The number is not anybody else's before it was waited for.
        let _ = kill_process_group(self.pid, Signal::KILL);
        let _ = self.child.wait();
        // Killed is not gone: what a directory is removed under must be.
        let begin = Instant::now();
        while test_kill_process_group(self.pid).is_ok() && begin.elapsed() < END_TIME {
            std::thread::sleep(LOOK);
        }
        RUNNING.lock().retain(|pid| *pid != self.pid);
    }
}

/// Ends all servers that run, at once.
pub fn kill_all() {
    for pid in RUNNING.lock().iter() {
        let _ = kill_process_group(*pid, Signal::KILL);
    }
}

/// The version that a program tells.
pub(crate) fn version(program: &Path, flag: &str) -> String {
    let said = Command::new(program).arg(flag).output().map(|output| output.stdout).unwrap_or_default();
    let said = String::from_utf8_lossy(&said).into_owned();
    let starts_with_digit =
        |word: &&str| word.trim_start_matches('V').starts_with(|c: char| c.is_ascii_digit());
    let word = said.split_whitespace().find(starts_with_digit).unwrap_or("of unknown version");
    word.trim_start_matches('V').trim_end_matches(',').to_owned()
}

/// Whether a socket of `/proc/PID/net/tcp` (proc_pid_net(5)) listens at a port: its state is 0A (TCP_LISTEN of linux/tcp_states.h).
fn is_listened_at(sockets: &str, port: u16) -> bool {
    let end = format!(":{port:04X}");
    sockets.lines().any(|line| {
        let mut fields = line.split_whitespace().skip(1);
        fields.next().is_some_and(|local| local.ends_with(&end)) && fields.nth(1) == Some("0A")
    })
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines.get(lines.len().saturating_sub(5)..).unwrap_or_default().join("\n  ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_has_started_ends_with_it() {
        let directory = tempfile::tempdir().unwrap();
        let shell = find("sh", "dash").unwrap();
        // One that hears nothing, and has started another one.
        let script = OsStr::new("trap '' TERM; sleep 600 & echo begun $!; wait; wait");
        let log = directory.path().join("log");
        let daemon = Daemon::start("sh", &shell, &[OsStr::new("-c"), script], &[], log).unwrap();
        let number = |said: &str| said.strip_prefix("begun ")?.strip_suffix('\n')?.parse::<u32>().ok();
        let started = daemon.wait_until(number).unwrap();
        let pid = daemon.pid;
        drop(daemon);
        let state = fs::read_to_string(format!("/proc/{started}/stat")).unwrap_or_default();
        assert!(state.is_empty() || state.contains(") Z "), "{state}");
        assert!(!RUNNING.lock().contains(&pid));
    }

    #[test]
    fn a_listener_is_found_by_its_port() {
        let sockets = "  sl  local_address rem_address   st\n   0: 0100007F:01BD 00000000:0000 0A 0\n   1: 0100007F:0801 0100007F:01BE 01 0\n";
        assert!(is_listened_at(sockets, 445));
        assert!(!is_listened_at(sockets, 2049) && !is_listened_at(sockets, 446) && !is_listened_at("", 445));
    }

    #[test]
    fn one_that_ends_says_why() {
        let directory = tempfile::tempdir().unwrap();
        let shell = find("sh", "dash").unwrap();
        let script = OsStr::new("echo no such thing; exit 3");
        let log = directory.path().join("log");
        let daemon = Daemon::start("sh", &shell, &[OsStr::new("-c"), script], &[], log).unwrap();
        let problem = daemon.wait_for(1).unwrap_err();
        assert!(
            problem.what == "sh has ended at once" && problem.advice.contains("no such thing"),
            "{problem}"
        );
    }

    #[test]
    fn what_is_missing_is_named_with_its_package() {
        let problem = find("no-such-program", "its-package").unwrap_err();
        assert!(problem.advice.starts_with("apt-get install its-package"), "{problem}");
    }
}
