//! The chores of this repository: `cargo xtask --help`.

mod bench;
mod check;
mod command;
mod dist;
mod fuzz;
mod layers;
mod markdown;
mod report;
mod repository;
mod simulation;
mod tidy;
mod words;

use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use command::Chore;

/// The chores of this repository.
#[derive(Parser)]
#[command(name = "xtask", bin_name = "cargo xtask", disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    chore: Chosen,
}

#[derive(Subcommand)]
enum Chosen {
    /// Format, clippy, layers, tidy, a dry run of publishing: what takes a minute before a commit
    Check,
    /// All that CI runs, or the steps that are named; `list` names them (scripts/test)
    Test(ScriptArguments),
    /// Imports go up the table of ARCHITECTURE.md, and no circle of files crosses a folder
    Layers(layers::Chosen),
    /// What no other tool looks at: lengths, names, words, links of sources and pages
    Tidy,
    /// All of smbtorture, or the suites that are named; `nfs` in front: all of pynfs, or the tests that are named
    Conformance(ScriptArguments),
    /// The Linux kernel's clients in a guest (tests/interop/lab.sh); `long` in front: their long runs
    Lab(ScriptArguments),
    /// A measurement; without a name: the list of all measurements
    Bench(bench::Chosen),
    /// The fuzz targets for SECONDS each, or those with PART in their name
    ///
    /// With cargo-bolero and a nightly compiler through libFuzzer, otherwise with random input through the test
    /// harness. An input that fails belongs in the crate's corpus, in the commit that fixes the fault.
    Fuzz(fuzz::FuzzArguments),
    /// The simulation in a debug and in an optimized build: the same seeds must have the same histories
    ///
    /// Then a million operations, and each planted fault must be found.
    Simulation(simulation::Form),
    /// One page of a report of `anabranch report`, on standard output
    ///
    /// Lists the statements of the documents that were reproduced, those that were not, and why the rest could not be
    /// tested: `anabranch bench all --out results/ && anabranch report results/ --out report/ && cargo xtask report
    /// report/report.json >docs/measured/report.md`.
    Report(report::ReportArguments),
    /// The program as .deb, .rpm, tarball and image for containers; debug symbols, an inventory of its parts, checksums
    Dist(dist::DistArguments),
}

/// The arguments of a chore, in the form that its script takes.
#[derive(Args)]
struct ScriptArguments {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    arguments: Vec<String>,
}

impl ScriptArguments {
    /// Runs `usual` with the arguments, or `other` with those after `word` if the arguments begin with it.
    fn either(&self, usual: &str, word: &str, other: &str) -> Chore {
        match self.arguments.split_first() {
            Some((first, rest)) if first == word => command::script(other, rest),
            _ => command::script(usual, &self.arguments),
        }
    }
}

fn main() -> ExitCode {
    let done = match Cli::parse().chore {
        Chosen::Check => check::run(),
        Chosen::Test(given) => command::script("scripts/test", &given.arguments),
        Chosen::Layers(chosen) => layers::run(&chosen),
        Chosen::Tidy => tidy::run(),
        Chosen::Conformance(given) => given.either("scripts/conformance", "nfs", "scripts/conformance-nfs"),
        Chosen::Lab(given) => given.either("tests/interop/lab.sh", "long", "scripts/lab-long"),
        Chosen::Bench(chosen) => bench::run(&chosen),
        Chosen::Fuzz(given) => fuzz::run(&given),
        Chosen::Simulation(form) => simulation::run(&form),
        Chosen::Report(given) => report::run(&given),
        Chosen::Dist(given) => dist::run(&given),
    };
    done.unwrap_or_else(|problem| {
        eprintln!("cargo xtask: {problem}");
        ExitCode::FAILURE
    })
}
