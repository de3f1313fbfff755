//! The throughput of one link over NFSv4 and of four trunked links.

use std::process::ExitCode;

use clap::Args;

use super::guest::{self, INTERFACES, RATE, Said, WANTED};
use crate::command::Chore;
use crate::markdown::{table, write_section};
use crate::repository;

const PAGE: &str = "docs/measured/performance.md";
const VERSION: &str = "4.2";
/// Four connections over one link are nconnect. The last two ways have all links.
const WAYS: [&str; 4] = ["one", "nconnect", "discovered", "trunked"];

#[derive(Args)]
pub(super) struct TrunksArguments {
    /// Rounds, each of the four ways
    #[arg(default_value_t = 5)]
    rounds: u32,
}

pub(super) fn run(given: &TrunksArguments) -> Chore {
    let told = [
        format!("VERSION={VERSION}"),
        format!("WAYS={}", WAYS.join(" ")),
        format!("ROUNDS={}", given.rounds),
    ];
    let said = guest::measure("nfs-rate.sh", 120 + 150 * given.rounds, &told)?;
    let rows = ["read", "write"].map(|operation| Row::read(&said, operation));
    write_section(&repository::top().join(PAGE), &section(given.rounds, &said, &rows)?)?;
    println!("wrote {PAGE}");
    let mut reached = true;
    for row in &rows {
        for ratio in row.trunked.iter().filter(|ratio| **ratio < WANTED) {
            println!("FAIL {}: {ratio:.2} is less than {WANTED}", row.cells[0]);
            reached = false;
        }
    }
    Ok(if reached { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

struct Row {
    cells: Vec<String>,
    /// The ratios of the ways with all links to one link.
    trunked: [f64; 2],
}

impl Row {
    fn read(said: &Said, operation: &str) -> Self {
        let [one, others @ ..] = WAYS.map(|way| said.carried(way, operation));
        let mut cells = vec![operation.to_owned(), one.1];
        let mut ratios = [f64::NAN; 3];
        for ((carried, shown), ratio) in others.into_iter().zip(&mut ratios) {
            *ratio = carried / one.0;
            cells.extend([shown, format!("{ratio:.2}")]);
        }
        let [_, trunked @ ..] = ratios;
        Self { cells, trunked }
    }
}

fn section(rounds: u32, said: &Said, rows: &[Row]) -> Result<String, String> {
    let [discovered, mounted] = ["discovered", "mounted"].map(|how| format!("{INTERFACES} links, {how}"));
    let heads = [
        "",
        "one link: median (smallest to largest), MB/s",
        "4 connections, one link",
        "ratio",
        &discovered,
        "ratio",
        &mounted,
        "ratio",
    ];
    let cells: Vec<_> = rows.iter().map(|row| &row.cells[..]).collect();
    let table = table(&heads, &cells);
    println!("{table}");
    Ok(format!(
        "# What trunked NFS links carry\n\n\
         Made by `cargo xtask bench trunks`: the Linux kernel's NFSv{VERSION} client (6.1, in the guest of `tests/lab`, one CPU). Client and server have\n\
         {INTERFACES} network interfaces, each limited to {RATE} Mbit/s both ways. fio reads and writes one file in requests of 1 MiB past the page cache,\n\
         16 in flight, 160 MiB for each link; {rounds} rounds, the four ways in turn. The server's files are in memory.\n\n\
         * one link: `mount -t nfs -o vers={VERSION} 10.0.2.2:/data`; four connections over it: the same with `nconnect=4`\n\
         * discovered: the same with `trunkdiscovery,max_connect={INTERFACES}`. The client asks for `fs_locations` and learns all addresses of the server. It\n  \
           sends EXCHANGE_ID to each address. Where the reply names the same server owner and scope, the connection joins the client's session:\n  \
           {}\n\
         * mounted: the server mounted by each of its addresses with `max_connect={INTERFACES}`, which has the same effect with servers that announce no\n  \
           addresses: {}\n\n\
         {table}\n\n{}\n",
        said.note("discovered"),
        said.note("trunked"),
        guest::measured()?,
    ))
}
