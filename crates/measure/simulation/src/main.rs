//! Simulates from the command line.

use std::process::{Command, ExitCode};

use anabranch_simulation::{Fault, Scenario, simulate};
use clap::Parser;

/// Runs both servers, a store and their clients in one thread on virtual time, from one seed
#[derive(Parser)]
struct Arguments {
    /// The first seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many seeds, one after the other, each in a process of its own
    #[arg(long, default_value_t = 1)]
    seeds: u64,
    /// Operations of clients for each seed
    #[arg(long, default_value_t = 100_000)]
    operations: u64,
    /// A fault to plant in the servers, to see whether the simulation finds it
    #[arg(long, value_name = "FAULT")]
    plant: Option<String>,
    /// Keep the last events, and print them when something is wrong
    #[arg(long)]
    verbose: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let fault = match &arguments.plant {
        None => None,
        Some(name) => match Fault::ALL.iter().find(|fault| fault.name() == name) {
            Some(fault) => Some(*fault),
            None => {
                let names: Vec<_> = Fault::ALL.iter().map(|fault| fault.name()).collect();
                eprintln!("there is no fault {name}; the faults are: {}", names.join(" "));
                return ExitCode::from(2);
            }
        },
    };
    if arguments.seeds <= 1 {
        let Arguments { seed, operations, verbose, .. } = arguments;
        return one(Scenario { seed, operations, fault, verbose });
    }
    let seeds = arguments.seed..arguments.seed.saturating_add(arguments.seeds);
    let failed = seeds.filter(|seed| !apart(*seed, &arguments)).count();
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Simulates in a process of its own: what a process remembers of an earlier simulation would decide about a later one.
fn apart(seed: u64, arguments: &Arguments) -> bool {
    let Ok(program) = std::env::current_exe() else { return false };
    let mut command = Command::new(program);
    command.args(["--seed", &seed.to_string(), "--operations", &arguments.operations.to_string()]);
    command.args(arguments.plant.iter().flat_map(|fault| ["--plant", fault]));
    command.args(arguments.verbose.then_some("--verbose"));
    command.status().is_ok_and(|status| status.success())
}

fn one(scenario: Scenario) -> ExitCode {
    let (seed, outcome) = (scenario.seed, simulate(scenario));
    outcome.events.iter().filter(|_| outcome.failure.is_some()).for_each(|event| println!("{event}"));
    println!(
        "seed {seed}: {} operations in {:.1} s of virtual time, events {:016x}",
        outcome.operations,
        outcome.virtual_time.as_secs_f64(),
        outcome.hash
    );
    let Some(failure) = outcome.failure else { return ExitCode::SUCCESS };
    println!("seed {seed} failed: {failure}");
    ExitCode::FAILURE
}
