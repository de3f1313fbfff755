//! Anabranch: one share, many channels. A file service for your own machines.

mod accounts;
mod administration;
mod administrator;
mod advise;
mod apart;
mod ask;
mod bench;
mod cli;
mod client;
mod config;
mod control_access;
mod control_name;
mod control_tls;
mod declared;
mod demo;
mod descriptors;
mod directories;
mod gateway;
mod gateway_settings;
mod held_up;
mod identities;
mod in_time;
mod known_server;
mod log;
mod log_filter;
mod name_service;
mod names;
mod opening;
mod password;
mod ports;
mod prepared;
mod print;
mod problem;
mod reload;
mod report;
mod rules_given;
mod serve;
mod servers;
mod settings;
mod shares;
mod sockets;
mod sources;
mod state_command;
mod state_directory;
mod table;
mod tokens;
mod trace_file;
mod upkeep;
mod users;
mod waiting;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};
use settings::Given;
use sources::Sources;

fn main() -> ExitCode {
    let outcome = run(Cli::parse().command);
    log::finish();
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            log::say(std::io::stderr(), &format!("{problem}\n"));
            problem.exit_code()
        }
    }
}

fn run(command: Command) -> problem::Result<()> {
    match command {
        Command::Demo(demo) => {
            log::start(&Given { log: Some("warn".to_owned()), ..Given::default() })?;
            demo::run(&demo)
        }
        Command::Client(command) => client::run(&command),
        Command::Share(command) => shares::run(&command),
        Command::User(command) => users::run(&command),
        Command::Token(command) => tokens::run(&command),
        Command::State(command) => state_command::run(&command),
        Command::Bench(command) => bench::run(&command),
        Command::Advise(command) => advise::run(&command),
        Command::Report(command) => report::run(&command),
        Command::Serve(serve) => {
            let mut sources = Sources::new(serve.given, serve.config)?;
            let given = sources.started_with().clone();
            log::start(&given)?;
            given.from.warn();
            serve::run(&sources.settings(given)?, sources)
        }
    }
}
