//! Anabranch: one share, many channels. A file service for your own machines.

mod accounts;
mod administration;
mod administrator;
mod advise;
mod ask;
mod bench;
mod burst_credits;
mod cli;
mod client;
mod config;
mod control_access;
mod control_name;
mod demo;
mod descriptors;
mod directories;
mod identities;
mod nfs_clients;
mod opening;
mod password;
mod persistent_opens;
mod ports;
mod print;
mod problem;
mod records;
mod report;
mod serve;
mod servers;
mod settings;
mod shares;
mod state;
mod table;
mod tokens;
mod trace_file;
mod users;

use std::process::ExitCode;

use clap::Parser;
use tracing_subscriber::EnvFilter;

use cli::{Cli, Command};
use problem::{Cause, Problem};
use settings::{Given, LogFormat};

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{problem}");
            problem.exit_code()
        }
    }
}

fn run(command: Command) -> problem::Result<()> {
    match command {
        Command::Demo(demo) => {
            start_log(&Given { log: Some("warn".to_owned()), ..Given::default() })?;
            demo::run(demo.listen)
        }
        Command::Client(command) => client::run(&command),
        Command::Share(command) => shares::run(&command),
        Command::User(command) => users::run(&command),
        Command::Token(command) => tokens::run(&command),
        Command::Bench(command) => bench::run(&command),
        Command::Advise(command) => advise::run(&command),
        Command::Report(command) => report::run(&command),
        Command::Serve(serve) => {
            let given = match &serve.config {
                Some(file) => serve.given.over(config::read(file)?),
                None => serve.given,
            };
            start_log(&given)?;
            serve::run(settings::Settings::new(given)?)
        }
    }
}

/// Logs to standard error; standard output is for the ready line alone.
fn start_log(given: &Given) -> problem::Result<()> {
    let wanted = given.log.as_deref().unwrap_or("info");
    let filter = EnvFilter::try_new(wanted).map_err(|e| {
        let advice =
            "Give a level (error, warn, info, debug, trace), or a filter such as info,smb_server=debug.";
        Problem::new(Cause::Settings, format!("the log filter {wanted:?}: {e}"), advice)
    })?;
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match given.log_format.unwrap_or(LogFormat::Text) {
        LogFormat::Text => log.with_ansi(false).init(),
        LogFormat::Json => log.json().init(),
    }
    Ok(())
}
