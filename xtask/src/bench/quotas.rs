//! What quotas cost writes: server CPU with and without them.

use std::path::Path;
use std::process::{Command, ExitCode};

use clap::Args;

use super::figures::{column, interval, median, ratios};
use super::machine;
use super::program::{self, json, number};
use super::rounds::interleaved;
use super::server::{Server, Settings};
use crate::command::Chore;
use crate::markdown::{reached, table, write_section};
use crate::repository;

const PAGE: &str = "docs/measured/profiles.md";
/// A ratio that is above this misses the goal.
const GOAL: f64 = 1.03;
/// The quotas of the share: each write is one of a user, a group and a directory that have one.
const QUOTAS: &str = "quotas = [\"bench hard=1TiB\", \"@1000 hard=1TiB\", \"/ hard=1TiB\"]\n";
const HEADS: [&str; 5] = ["4 KiB writes", "without quotas, CPU us", "with three, CPU us", "ratio", "goal"];

#[derive(Args)]
pub(super) struct QuotasArguments {
    /// Pairs of measurements of each row; one more warms up
    #[arg(long, default_value_t = 15)]
    rounds: usize,
    /// Seconds of each measurement
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Write the section of docs/measured/profiles.md
    #[arg(long)]
    write: bool,
}

pub(super) fn run(given: &QuotasArguments) -> Chore {
    let anabranch = program::anabranch()?;
    // In memory, no blocks are allocated for anything but data, and no disk has a part in it.
    let without = Settings { in_memory: true, ..Settings::default() };
    let with = Settings { share_lines: QUOTAS.to_owned(), in_memory: true, ..Settings::default() };
    let servers = [Server::start(&anabranch, &without)?, Server::start(&anabranch, &with)?];
    let mut rows = Vec::new();
    let mut is_reached = true;
    for (name, over) in [("SMB", "smb"), ("NFSv3", "3"), ("NFSv4.1", "4.1")] {
        let figures = interleaved::<2>(given.rounds + 1, |which| {
            cpu(&anabranch, &servers[which], over, given.seconds)
        })?;
        let figures = figures.get(1..).unwrap_or_default();
        let ratios = ratios(figures);
        let ((low, high), ratio) = (interval(&ratios), median(&ratios));
        let [before, after] = [0, 1].map(|which| format!("{:.1}", median(&column(figures, which))));
        is_reached &= ratio <= GOAL;
        let said = format!("{ratio:.3} ({low:.3} to {high:.3})");
        println!("{name:8} {before:>8} {after:>8}  {said}");
        rows.push([name.to_owned(), before, after, said, format!("{GOAL}: {}", reached(ratio <= GOAL))]);
    }
    if given.write {
        write_section(&repository::top().join(PAGE), &section(given, &rows)?)?;
    }
    for server in servers {
        server.stop()?;
    }
    Ok(if is_reached { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Server CPU per write, in microseconds.
fn cpu(client: &Path, server: &Server, over: &str, seconds: f64) -> Result<f64, String> {
    let target = if over == "smb" { server.smb() } else { server.nfs(over, Some(1000)) };
    let mut command = Command::new(client);
    command.args(["bench", "job", "--target", &target, "--block-size", "4k", "--queue-depth", "16"]);
    command.args(["--reads", "0", "--server-pid", &server.pid().to_string()]);
    command.args(["--seconds", &seconds.to_string(), "--repetitions", "1", "--file-size", "16M", "--json"]);
    Ok(number(&json(&mut command)?["rows"][0]["measure"]["server_cpu_us"]["median"]))
}

fn section(given: &QuotasArguments, rows: &[[String; 5]]) -> Result<String, String> {
    Ok(format!(
        "# What quotas cost\n\nMade by `cargo xtask bench quotas --write`: server CPU per write of 4 KiB into what is there, on a share without quotas and on one with quotas \
         of\nthe user, of its group and of `/`. Two servers of one build, with their shares in memory; one connection with 16 requests under way, {} interleaved \
         rounds of\n{} s. The ratio is the median of the rounds' ratios, with the 95 % interval of that median.\n\n{}\n\n{}\n",
        given.rounds,
        given.seconds,
        table(&HEADS, rows),
        machine::measured("release build")?
    ))
}
