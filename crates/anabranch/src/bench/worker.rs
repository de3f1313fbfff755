//! `anabranch bench worker`, and where the workers of a run are.

use std::io::Write;
use std::net::TcpListener;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use load::workers::{Token, WorkerPlace, Workers, serve_listener, serve_standard_streams};

use super::arguments::{BenchWorker, Clients};
use super::{PROGRAM, stopping};
use crate::problem::{Cause, Problem, Result};

/// Makes load for coordinators until a signal ends it, or for one over the standard streams.
///
/// # Errors
/// The token cannot be read, the address cannot be listened at, or the one coordinator was lost.
pub(super) fn run(worker: &BenchWorker) -> Result<()> {
    let ended = stopping::flag()?;
    let (false, Some(path)) = (worker.stdio, &worker.token_file) else {
        return serve_standard_streams(PROGRAM, ended)
            .map_err(|fault| Problem::new(Cause::Measuring, fault.to_string(), ""));
    };
    listen(worker, &token(path)?, ended)
}

fn listen(worker: &BenchWorker, token: &Token, ended: &AtomicBool) -> Result<()> {
    let cannot = |e: std::io::Error| {
        Problem::new(
            Cause::Address,
            format!("cannot listen at {}: {e}", worker.listen),
            "Give another one: --listen ADDR:PORT",
        )
    };
    let listener = TcpListener::bind(worker.listen).map_err(cannot)?;
    let address = listener.local_addr().map_err(cannot)?;
    // Who started it may not care.
    let _ = writeln!(std::io::stdout(), "ready worker={address}");
    let lost = |from, why| {
        let _ = writeln!(std::io::stderr(), "{from}: {why}");
    };
    serve_listener(&listener, token, PROGRAM, ended, lost).map_err(cannot)
}

fn token(path: &Path) -> Result<Token> {
    Token::load(path)
        .map_err(|e| Problem::new(Cause::Settings, format!("{} is not a token: {e}", path.display()), ""))
}

/// Where the workers of a run are; `None` where this process makes the load.
///
/// # Errors
/// The token cannot be read, or this program does not know where it is.
pub(super) fn of_run(clients: &Clients) -> Result<Option<Workers>> {
    let command = |name: String, command: Vec<String>| WorkerPlace::Command { name, command };
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    let (places, token) = if let Some(processes) = clients.processes {
        let program = std::env::current_exe()
            .map_err(|e| Problem::new(Cause::Measuring, format!("this program cannot be found: {e}"), ""))?;
        let program = program.to_string_lossy().into_owned();
        let place = |n| command(format!("process {n}"), words(&[&program, "bench", "worker", "--stdio"]));
        ((1..=processes).map(place).collect(), None)
    } else if let Some(path) = &clients.token_file {
        let places = clients.workers.iter().cloned().map(WorkerPlace::Listening).collect();
        (places, Some(token(path)?))
    } else {
        // Nobody is there to be asked for a password.
        let options = clients.ssh_option.iter().flat_map(|option| ["-o", option]);
        let ssh: Vec<&str> = ["ssh", "-o", "BatchMode=yes"].into_iter().chain(options).collect();
        let remote = [clients.remote_program.as_str(), "bench", "worker", "--stdio"];
        let place =
            |host: &String| command(host.clone(), words(&[&ssh, &["--", host][..], &remote].concat()));
        (clients.ssh.iter().map(place).collect::<Vec<_>>(), None)
    };
    Ok((!places.is_empty()).then_some(Workers { places, token }))
}
