//! How much memory the server keeps after load.

mod large_writes;

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, sleep};
use std::time::Duration;
use std::{fs, os};

use clap::Args;

use super::program;
use super::server::{Server, Settings};
use crate::command::{Chore, ran};
use crate::markdown::table;

/// The load: SMB clients in growing numbers, names over SMB, reads and writes over NFSv4.1. Large writes follow.
const FAMILIES: [(&str, bool, &[&str]); 3] =
    [("scale-out", true, &[]), ("metadata", true, &[]), ("nfs-nconnect", false, &["--connections", "4"])];
/// Seconds of rest before each look after the load.
const RESTS: [u64; 3] = [5, 25, 30];
const HEADS: [&str; 6] = ["environment", "at start", "at most", "5 s after", "30 s after", "60 s after"];

#[derive(Args)]
pub(super) struct MemoryArguments {
    /// Seconds of each measurement of a family
    #[arg(long, default_value_t = 0.4)]
    seconds: f64,
    /// The environment of the server, such as MALLOC_ARENA_MAX=2, several settings with commas between; - is no setting
    #[arg(default_value = "-")]
    variant: Vec<String>,
}

pub(super) fn run(given: &MemoryArguments) -> Chore {
    let anabranch = program::anabranch()?;
    for (index, variant) in given.variant.iter().enumerate() {
        let figures = measure(&anabranch, variant, given.seconds)?;
        let name = format!("`{variant}`");
        let cells: Vec<_> =
            [name].into_iter().chain(figures.iter().map(|figure| format!("{figure:.0} MiB"))).collect();
        let printed = table(&HEADS, &[cells]);
        // The heading only once, and each row as soon as it is ready.
        println!("{}", printed.lines().skip(if index == 0 { 0 } else { 2 }).collect::<Vec<_>>().join("\n"));
    }
    Ok(ExitCode::SUCCESS)
}

/// The resident set in MiB at the start, at its maximum, and after each rest.
fn measure(anabranch: &Path, variant: &str, seconds: f64) -> Result<Vec<f64>, String> {
    let settings = variant.split(',').filter_map(|setting| setting.split_once('='));
    let environment = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let lines = "log = \"error\"\nnfs-squash = \"none\"\nconnections-per-address = 2000\n".to_owned();
    let server = Server::start(anabranch, &Settings { lines, environment, ..Settings::default() })?;
    let file = server.directory.join("large");
    let made = fs::write(&file, []).and_then(|()| os::unix::fs::chown(&file, Some(1000), Some(1000)));
    made.map_err(|e| format!("{}: {e}", file.display()))?;
    fs::set_permissions(&file, os::unix::fs::PermissionsExt::from_mode(0o666)).map_err(|e| e.to_string())?;
    fs::set_permissions(&server.directory, os::unix::fs::PermissionsExt::from_mode(0o777))
        .map_err(|e| e.to_string())?;
    sleep(Duration::from_secs(1));
    let mut figures = vec![resident(server.pid())?];
    let ended = AtomicBool::new(false);
    let most = thread::scope(|scope| {
        let watched = scope.spawn(|| watch(server.pid(), &ended));
        let loaded = load(anabranch, &server, seconds);
        ended.store(true, Ordering::Relaxed);
        let most = watched.join().map_err(|_| "the resident set could not be watched".to_owned())?;
        loaded.and(most)
    })?;
    figures.push(most);
    for rest in RESTS {
        sleep(Duration::from_secs(rest));
        figures.push(resident(server.pid())?);
    }
    server.stop()?;
    Ok(figures)
}

fn load(anabranch: &Path, server: &Server, seconds: f64) -> Result<(), String> {
    for (family, smb, options) in FAMILIES {
        let target = if smb { server.smb() } else { server.nfs("4.1", None) };
        let mut command = Command::new(anabranch);
        command.args([
            "bench",
            "run",
            family,
            "--quick",
            "--seconds",
            &seconds.to_string(),
            "--repetitions",
            "1",
        ]);
        ran(command.args(options).args(["--target", &target]).stdout(Stdio::null()))?;
    }
    large_writes::run(server.address("nfs")).map_err(|e| format!("large writes: {e}"))
}

/// The maximum of the resident set until the load has ended.
fn watch(pid: u32, ended: &AtomicBool) -> Result<f64, String> {
    let mut most: f64 = 0.0;
    while !ended.load(Ordering::Relaxed) {
        most = most.max(resident(pid)?);
        sleep(Duration::from_millis(50));
    }
    Ok(most)
}

/// The resident set in MiB (proc_pid_status(5), VmRSS).
pub(super) fn resident(pid: u32) -> Result<f64, String> {
    let path = format!("/proc/{pid}/status");
    let status = fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()).and_then(|kib| kib.parse::<f64>().ok());
    kib.map(|kib| kib / 1024.0).ok_or_else(|| format!("{path} has no VmRSS"))
}
