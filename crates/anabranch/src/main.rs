//! Anabranch: one share, many channels. A file service for your own machines.

mod administrator;
mod advise;
mod around;
mod asking;
mod bench;
mod ceph_pools;
mod check;
mod cli;
mod client;
mod clusters;
mod config;
mod config_command;
mod control_name;
mod demo;
mod domain;
mod effective;
mod files;
mod import;
mod log;
mod log_names;
mod manual;
mod password;
mod place;
mod policies;
mod pools;
mod port_mapper;
mod ports;
mod print;
mod problem;
mod process;
mod quotas;
mod reload;
mod remote;
mod report;
mod result_files;
mod rules_given;
#[cfg(test)]
mod sample;
mod serve;
mod settings;
mod shares;
mod snapshots;
mod sources;
mod standby;
mod state_command;
mod state_directory;
mod status;
mod supervised;
mod table;
mod tokens;
mod trace_file;
mod users;

use std::process::ExitCode;

use clap::Parser;
use gateway::control_access;

use cli::{Cli, Command};
use settings::Given;
use sources::Sources;

fn main() -> ExitCode {
    let outcome = run(Cli::parse().command);
    log::finish();
    let status = outcome.map_or_else(
        |problem| {
            log::say(std::io::stderr(), &format!("{problem}\n"));
            problem.status()
        },
        |()| 0,
    );
    gateway::end_process(status);
    ExitCode::from(status)
}

fn run(command: Command) -> problem::Result<()> {
    match command {
        Command::Demo(demo) => {
            log::start(&Given { log: Some("warn".to_owned()), ..Given::default() })?;
            demo::run(&demo)
        }
        Command::Check(check) => check::run(&check),
        Command::Config(command) => config_command::run(&command),
        Command::Reload(asking) => config_command::reload(&asking),
        Command::Client(command) => client::run(&command),
        Command::Share(command) => shares::run(&command),
        Command::Pool(command) => pools::run(&command),
        Command::Cluster(command) => clusters::run(&command),
        Command::Vserver(command) => clusters::run_vserver(&command),
        Command::Policy(command) => policies::run(&command),
        Command::Quota(command) => quotas::run(&command),
        Command::Snapshot(command) => snapshots::run(&command),
        Command::Status(asking) => status::run(&asking),
        Command::File(command) => files::run(&command),
        Command::Lock(command) => files::run_lock(&command),
        Command::User(command) => users::run(&command),
        Command::Token(command) => tokens::run(&command),
        Command::Domain(command) => domain::run(&command),
        Command::State(command) => state_command::run(&command),
        Command::Import(command) => import::run(&command),
        Command::Bench(command) => bench::run(&command),
        Command::Advise(command) => advise::run(&command),
        Command::Report(command) => report::run(&command),
        Command::Completions { shell } => manual::completions(shell),
        Command::ManualPages { folder } => manual::pages(&folder),
        Command::Serve(serve) => {
            let mut sources = Sources::new(serve.given, serve.config);
            sources.drop_passwords = serve.force;
            let given = sources.started_with().clone();
            let settings = match sources.settings(given.clone()) {
                Ok(settings) => settings,
                Err(mistakes) => return place::problem(mistakes).map_or(Ok(()), Err),
            };
            log::start(&given)?;
            given.from.warn();
            serve::run(settings, sources)
        }
    }
}
