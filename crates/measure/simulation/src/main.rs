//! Simulates from the command line.

mod record;

use std::io;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use anabranch_simulation::{Fault, Scenario, simulate};
use clap::Parser;
use parking_lot::Mutex;

use record::Record;

/// Runs both servers, a store and their clients in one thread on virtual time, from one seed
#[derive(Parser)]
struct Arguments {
    /// The first seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many seeds, each in a process of its own
    #[arg(long, default_value_t = 1)]
    seeds: u64,
    /// Operations of clients for each seed
    #[arg(long, default_value_t = 100_000)]
    operations: u64,
    /// A fault to plant in the servers, to see whether the simulation finds it
    #[arg(long, value_name = "FAULT")]
    plant: Option<String>,
    /// Plant each fault in turn, and fail unless one of the seeds finds it
    #[arg(long, conflicts_with_all = ["plant", "record"])]
    plant_each: bool,
    /// How many seeds at a time
    #[arg(long, default_value_t = 1)]
    jobs: usize,
    /// Write down the seeds that went well, and skip those that are already written down, so that an interrupted run
    /// continues
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Keep the last events, and print them when something is wrong
    #[arg(long)]
    verbose: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if !planted::CAN_BE_PLANTED && (arguments.plant_each || arguments.plant.is_some()) {
        eprintln!("faults can be planted only in a build with debug assertions, for example `cargo run`");
        return ExitCode::from(2);
    }
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
    let done = if arguments.plant_each {
        each_fault(&arguments)
    } else if arguments.seeds > 1 || arguments.record.is_some() {
        many(&arguments)
    } else {
        let Arguments { seed, operations, verbose, .. } = arguments;
        Ok(one(Scenario { seed, operations, fault, verbose }))
    };
    done.unwrap_or_else(|problem| {
        eprintln!("the run of several seeds: {problem}");
        ExitCode::from(2)
    })
}

/// Simulates all seeds that are not in the record, several at a time.
fn many(arguments: &Arguments) -> io::Result<ExitCode> {
    let record = arguments.record.as_deref().map_or_else(|| Ok(Record::default()), Record::kept_in)?;
    let (record, failed) = (Mutex::new(record), AtomicU64::new(0));
    let seeds = arguments.seed..arguments.seed.saturating_add(arguments.seeds);
    let left = Mutex::new(seeds);
    let next = || left.lock().next();
    let work = || {
        while let Some(seed) = next() {
            if record.lock().has(seed, arguments.operations) {
                continue;
            }
            let (is_well, said) = apart(seed, arguments, arguments.plant.as_deref())?;
            print!("{said}");
            if is_well {
                record.lock().add(said.trim_end())?;
            } else {
                failed.fetch_add(1, Ordering::Relaxed);
            }
        }
        io::Result::Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..arguments.jobs.max(1)).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("no thread has panicked"))
    })?;
    let failed = failed.into_inner();
    let operations = record.into_inner().operations();
    println!("{operations} operations went well, {failed} seeds failed");
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Plants each fault in turn, until a client notices it.
fn each_fault(arguments: &Arguments) -> io::Result<ExitCode> {
    let seeds = arguments.seed..arguments.seed.saturating_add(arguments.seeds);
    let mut are_found = true;
    for fault in Fault::ALL {
        let mut finder = None;
        for seed in seeds.clone() {
            let (is_well, said) = apart(seed, arguments, Some(fault.name()))?;
            if !is_well && said.contains("failed: client") {
                finder = Some(seed);
                break;
            }
        }
        match finder {
            Some(seed) => println!("{}: found with seed {seed}", fault.name()),
            None => println!("{}: not found", fault.name()),
        }
        are_found &= finder.is_some();
    }
    Ok(if are_found { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Simulates in a separate process, because state that a process keeps from an earlier simulation would influence a
/// later one. Returns whether the simulation went well, and its output.
fn apart(seed: u64, arguments: &Arguments, plant: Option<&str>) -> io::Result<(bool, String)> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--seed", &seed.to_string(), "--operations", &arguments.operations.to_string()]);
    command.args(plant.iter().flat_map(|fault| ["--plant", fault]));
    command.args(arguments.verbose.then_some("--verbose"));
    let output = command.stderr(Stdio::inherit()).output()?;
    Ok((output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned()))
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
