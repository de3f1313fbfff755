//! What one logon with Kerberos costs the server.

use std::process::{Command, ExitCode};

use clap::Args;

use super::{machine, program};
use crate::command::{Chore, output};
use crate::markdown::{reached, table, write_section};
use crate::repository;

const PAGE: &str = "docs/measured/performance.md";
const HEADS: [&str; 5] = ["token", "median", "best - 99th percentile", "goal", "reached"];
/// The greatest median of a token, in microseconds.
const GOALS: [(&str, f64); 2] = [("a domain's user, 7 SIDs", 40.0), ("a domain's user, 153 SIDs", 60.0)];

#[derive(Args)]
pub(super) struct KerberosArguments {
    /// Tokens of each kind
    #[arg(long, default_value_t = 5000)]
    tokens: u32,
    /// Write the section of docs/measured/performance.md
    #[arg(long)]
    write: bool,
}

pub(super) fn run(given: &KerberosArguments) -> Chore {
    let top = repository::top();
    let printed = output(Command::new(program::example("accept_cost")?).arg(given.tokens.to_string()))?;
    let rows =
        printed.lines().map(Row::read).collect::<Option<Vec<_>>>().ok_or("the figures cannot be read")?;
    let section = section(&rows, given.tokens)?;
    if given.write {
        write_section(&top.join(PAGE), &section)?;
    }
    println!("{section}");
    let all = rows.iter().filter_map(Row::is_reached).all(|reached| reached);
    Ok(if all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The times of a kind of token, in microseconds.
struct Row {
    name: String,
    best: f64,
    median: f64,
    slow: f64,
}

impl Row {
    /// A line of the program: the name and three times in nanoseconds, between tabs.
    fn read(line: &str) -> Option<Self> {
        let mut parts = line.split('\t');
        let name = parts.next()?.to_owned();
        let mut time = || Some(parts.next()?.parse::<f64>().ok()? / 1000.0);
        Some(Self { name, best: time()?, median: time()?, slow: time()? })
    }

    fn goal(&self) -> Option<f64> {
        GOALS.iter().find(|(name, _)| *name == self.name).map(|(_, goal)| *goal)
    }

    fn is_reached(&self) -> Option<bool> {
        self.goal().map(|goal| self.median <= goal)
    }

    fn cells(&self) -> [String; 5] {
        let Self { name, best, median, slow } = self;
        let goal = self.goal().map_or(String::new(), |goal| format!("at most {goal:.0} us"));
        let verdict = self.is_reached().map_or("", reached).to_owned();
        [name.clone(), format!("{median:.1} us"), format!("{best:.1} - {slow:.1} us"), goal, verdict]
    }
}

fn section(rows: &[Row], tokens: u32) -> Result<String, String> {
    let cells: Vec<_> = rows.iter().map(Row::cells).collect();
    Ok(format!(
        "# A logon with Kerberos\n\nMade by `cargo xtask bench kerberos`: what accepting one token costs one processor, from its \
         bytes to the reply with mutual\nauthentication; {tokens} tokens of each kind. Those of a domain's users are recorded \
         ones of Samba's domain controller (aes256-sha1); the others\nare made here. The ticket's key and the session key are \
         of the same type.\n\n{}\n\n{}",
        table(&HEADS, &cells),
        machine::measured("release build")?
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_goals_are_those_of_their_rows() {
        let row = |line: &str| Row::read(line).unwrap();
        assert_eq!(row("a domain's user, 7 SIDs\t1\t40000\t3").is_reached(), Some(true));
        assert_eq!(row("a domain's user, 153 SIDs\t1\t60001\t3").is_reached(), Some(false));
        assert_eq!(row("aes256-sha1, no PAC\t1\t2\t3").is_reached(), None);
        assert!(Row::read("aes256-sha1\t1\t2").is_none());
    }
}
