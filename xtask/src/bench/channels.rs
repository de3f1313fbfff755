//! The throughput of one SMB channel and of four.

use std::fs;
use std::process::ExitCode;

use clap::Args;

use super::guest::{self, INTERFACES, RATE, Said, WANTED};
use crate::command::Chore;
use crate::markdown::table;
use crate::repository;

const PAGE: &str = "docs/measured/channels.md";

#[derive(Args)]
pub(super) struct ChannelsArguments {
    /// Rounds, each of one channel and of four
    #[arg(default_value_t = 5)]
    rounds: u32,
}

pub(super) fn run(given: &ChannelsArguments) -> Chore {
    let told = [format!("CHANNELS={INTERFACES}"), format!("ROUNDS={}", given.rounds)];
    let said = guest::measure("cifs-rate.sh", 120 + 120 * given.rounds, &told)?;
    let rows = ["read", "write"].map(|operation| Row::read(&said, operation));
    let page = page(given.rounds, &rows)?;
    fs::write(repository::top().join(PAGE), page).map_err(|e| format!("{PAGE}: {e}"))?;
    println!("wrote {PAGE}");
    let mut reached = true;
    for Row { cells, ratio } in rows.iter().filter(|row| row.ratio < WANTED) {
        println!("FAIL {}: {ratio:.2} is less than {WANTED}", cells[0]);
        reached = false;
    }
    Ok(if reached { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

struct Row {
    cells: [String; 4],
    ratio: f64,
}

impl Row {
    fn read(said: &Said, operation: &str) -> Self {
        let (one, one_shown) = said.carried("1", operation);
        let (all, all_shown) = said.carried(&INTERFACES.to_string(), operation);
        let ratio = all / one;
        Self { cells: [operation.to_owned(), one_shown, all_shown, format!("{ratio:.2}")], ratio }
    }
}

fn page(rounds: u32, rows: &[Row]) -> Result<String, String> {
    let channels = format!("{INTERFACES} channels");
    let heads = ["", "1 channel: median (smallest to largest), MB/s", &channels, "ratio"];
    let cells: Vec<_> = rows.iter().map(|row| &row.cells[..]).collect();
    let table = table(&heads, &cells);
    println!("{table}");
    Ok(format!(
        "# What several channels carry\n\n\
         `cargo xtask bench channels` writes this file. The client is the Linux kernel's (6.1, in the guest of `tests/lab`, one CPU), mounted\n\
         with `multichannel,max_channels={INTERFACES}` and once without; everything else is the client's default (no signing, 1 MiB requests here).\n\
         Client and server have {INTERFACES} network interfaces, each limited to {RATE} Mbit/s both ways. The server announces them as its\n\
         kernel describes them (no RSS: one channel each). fio reads and writes one file in requests of 1 MiB past the page cache, 16 in flight,\n\
         160 MiB for each channel; {rounds} rounds, one channel and {INTERFACES} in turn. The server's files are in memory.\n\n\
         {table}\n\n{}\n",
        guest::measured()?,
    ))
}
