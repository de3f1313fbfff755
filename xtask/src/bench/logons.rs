//! What a whole logon costs a server.

use std::process::{Command, ExitCode};

use clap::Args;

use super::figures::{column, interval, median, thousands};
use super::realm::{Realm, SHA1};
use super::rounds::interleaved;
use super::server::{PASSWORD, Server};
use super::{machine, program};
use crate::command::{Chore, output};
use crate::markdown::{reached, table, write_section};
use crate::repository;

const PAGE: &str = "docs/measured/performance.md";
const HEADS: [&str; 5] = ["logon", "server CPU", "on one core, each second", "goal", "reached"];
/// One core lets in at least so many a second with a ticket.
const GOAL: f64 = 1000.0;

/// A way to log on.
struct Way {
    name: &'static str,
    has_ticket: bool,
    target: fn(&Server) -> String,
}

const WAYS: [Way; 4] = [
    Way { name: "SMB, ticket", has_ticket: true, target: |server| smb(server, "", "?sec=krb5") },
    Way {
        name: "SMB, password (NTLMv2)",
        has_ticket: false,
        target: |server| smb(server, &format!("bench:{PASSWORD}@"), ""),
    },
    Way { name: "NFSv3, ticket", has_ticket: true, target: |server| nfs(server, "3") },
    Way { name: "NFSv4.1, ticket", has_ticket: true, target: |server| nfs(server, "4.1") },
];

fn smb(server: &Server, user: &str, how: &str) -> String {
    format!("smb://{user}files.lab.test:{}/data{how}", server.address("smb").port())
}

fn nfs(server: &Server, version: &str) -> String {
    format!("nfs://files.lab.test:{}/data?vers={version}&sec=krb5", server.address("nfs").port())
}

#[derive(Args)]
pub(super) struct LogonsArguments {
    /// Interleaved rounds
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// Logons of each kind in a round
    #[arg(long, default_value_t = 500)]
    logons: u32,
    /// Write the section of docs/measured/performance.md
    #[arg(long)]
    write: bool,
}

pub(super) fn run(given: &LogonsArguments) -> Chore {
    let anabranch = program::anabranch()?;
    let client = program::example("logons")?;
    let realm = Realm::make()?;
    let server = realm.serve(&anabranch)?;
    let cpu = interleaved::<{ WAYS.len() }>(given.rounds, |way| {
        cpu_of_logon(&mut realm.client(&client, SHA1), &server, &WAYS[way], given.logons)
    })?;
    server.stop()?;
    let rows: Vec<_> =
        WAYS.iter().enumerate().map(|(number, way)| Row { way, cpu: column(&cpu, number) }).collect();
    let section = section(given, &rows)?;
    println!("{section}");
    if given.write {
        write_section(&repository::top().join(PAGE), &section)?;
    }
    let all = rows.iter().filter_map(Row::is_reached).all(|reached| reached);
    Ok(if all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The server's CPU for one logon, in microseconds.
fn cpu_of_logon(client: &mut Command, server: &Server, way: &Way, logons: u32) -> Result<f64, String> {
    client.args([(way.target)(server), logons.to_string(), server.pid().to_string()]);
    let printed = output(client).map_err(|e| format!("{}: {e}", way.name))?;
    let cpu = printed.trim_end().split_once('\t').and_then(|(_, cpu)| cpu.parse().ok());
    cpu.ok_or_else(|| format!("{}: the figures cannot be read: {printed}", way.name))
}

/// The server's CPU for one logon in each round, in microseconds.
struct Row<'w> {
    way: &'w Way,
    cpu: Vec<f64>,
}

impl Row<'_> {
    fn each_second(&self) -> f64 {
        1e6 / median(&self.cpu)
    }

    fn is_reached(&self) -> Option<bool> {
        self.way.has_ticket.then(|| self.each_second() >= GOAL)
    }

    fn cells(&self) -> [String; 5] {
        let (low, high) = interval(&self.cpu);
        let verdict = self.is_reached();
        [
            self.way.name.to_owned(),
            format!("{:.0} us ({low:.0} - {high:.0})", median(&self.cpu)),
            thousands(self.each_second()),
            verdict.map_or(String::new(), |_| format!("at least {}", thousands(GOAL))),
            verdict.map_or("", reached).to_owned(),
        ]
    }
}

fn section(given: &LogonsArguments, rows: &[Row<'_>]) -> Result<String, String> {
    let cells: Vec<_> = rows.iter().map(Row::cells).collect();
    Ok(format!(
        "# Logons\n\nMade by `cargo xtask bench logons`: server CPU from the connection to the share: TCP, negotiation, logon, \
         share, and the end of the\nconnection. {} interleaved rounds of {} logons, one after the other; the tickets are those of \
         an MIT KDC\n(aes256-sha1, no PAC).\n\n{}\n\n{}",
        given.rounds,
        given.logons,
        table(&HEADS, &cells),
        machine::measured("release build")?
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_goal_is_that_of_tickets() {
        let row = |way: &'static Way, cpu| Row { way, cpu: vec![cpu] };
        assert_eq!(row(&WAYS[0], 1000.0).is_reached(), Some(true));
        assert_eq!(row(&WAYS[0], 1001.0).is_reached(), Some(false));
        assert_eq!(row(&WAYS[1], 5000.0).is_reached(), None);
    }
}
