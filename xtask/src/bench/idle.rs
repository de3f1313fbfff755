//! What a server costs that nobody uses: its start, its memory, and the first page of its console.

use std::collections::{BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

use clap::Args;

use super::afterwards::Scratch;
use super::figures::{ends, median};
use super::memory::resident;
use super::server::{Server, Settings};
use super::{machine, program};
use crate::command::Chore;
use crate::markdown::{reached, table, write_section};
use crate::repository;

const PAGE: &str = "docs/measured/performance.md";
const SHARES: usize = 10;
/// Rest before the memory is read.
const REST: Duration = Duration::from_secs(2);
/// How long one file of the console may take.
const PATIENCE: Duration = Duration::from_secs(10);
const HEADS: [&str; 4] = ["what", "measured", "goal", "reached"];
/// What is measured: its name, its unit, and the goal, below which it must be.
const ROWS: [(&str, &str, f64); 4] = [
    ("from the start to the ready line", "ms", 200.0),
    ("resident memory, idle", "MiB", 20.0),
    ("first page of the console: bytes", "KB", 150.0),
    ("first page of the console: time over loopback, one file after another", "ms", 200.0),
];

#[derive(Args)]
pub(super) struct IdleArguments {
    /// Starts of the server
    #[arg(long, default_value_t = 11)]
    rounds: usize,
    /// Write the section of docs/measured/performance.md
    #[arg(long)]
    write: bool,
}

pub(super) fn run(given: &IdleArguments) -> Chore {
    let anabranch = program::anabranch()?;
    let rounds = (0..given.rounds.max(1)).map(|_| measure(&anabranch)).collect::<Result<Vec<_>, _>>()?;
    let section = section(&rounds)?;
    if given.write {
        write_section(&repository::top().join(PAGE), &section)?;
    }
    println!("{section}");
    Ok(ExitCode::SUCCESS)
}

/// One start: the figures of [`ROWS`].
fn measure(anabranch: &Path) -> Result<[f64; 4], String> {
    let problem = |e: std::io::Error| format!("the directories of the shares: {e}");
    let directories = Scratch::make(None).map_err(problem)?;
    let mut share_lines = String::new();
    for number in 1..SHARES {
        let directory = directories.path().join(format!("more{number}"));
        std::fs::create_dir(&directory).map_err(problem)?;
        let _ = write!(
            share_lines,
            "\n[[share]]\nname = \"more{number}\"\ndirectory = \"{}\"\n",
            directory.display()
        );
    }
    let begun = Instant::now();
    let server = Server::start(anabranch, &Settings { share_lines, ..Settings::default() })?;
    let started = begun.elapsed();
    sleep(REST);
    let memory = resident(server.pid())?;
    let begun = Instant::now();
    let bytes = first_page(server.address("control")).map_err(|e| format!("the console: {e}"))?;
    let loaded = begun.elapsed();
    server.stop()?;
    let milliseconds = |time: Duration| time.as_secs_f64() * 1000.0;
    Ok([milliseconds(started), memory, bytes as f64 / 1000.0, milliseconds(loaded)])
}

/// The bytes of the first page with everything that it loads.
fn first_page(control: SocketAddr) -> std::io::Result<usize> {
    let mut wanted = VecDeque::from(["".to_owned()]);
    let (mut seen, mut bytes) = (BTreeSet::new(), 0);
    while let Some(name) = wanted.pop_front() {
        if !seen.insert(name.clone()) {
            continue;
        }
        let body = get(control, &format!("/console/{name}"))?;
        bytes += body.len();
        wanted.extend(named(&body));
    }
    Ok(bytes)
}

/// The files that a file loads: `href="..."`, `src="..."`, `from './...'`.
fn named(text: &str) -> Vec<String> {
    let of = |mark: &str, end: char| -> Vec<String> {
        let after = text.split(mark).skip(1).filter_map(|rest| rest.split(end).next());
        after.filter(|name| name.contains('.')).map(str::to_owned).collect()
    };
    [of("href=\"", '"'), of("src=\"", '"'), of("from './", '\'')].concat()
}

fn get(control: SocketAddr, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(control)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: {control}\r\n\r\n").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    match answer.split_once("\r\n\r\n") {
        Some((head, body)) if head.contains(" 200 ") => Ok(body.to_owned()),
        _ => Err(std::io::Error::other(format!("{path}: {}", answer.lines().next().unwrap_or_default()))),
    }
}

fn section(rounds: &[[f64; 4]]) -> Result<String, String> {
    let row = |(which, (what, unit, goal)): (usize, (&str, &str, f64))| {
        let figures = super::figures::column(rounds, which);
        let ((least, most), middle) = (ends(&figures), median(&figures));
        let measured = format!("{middle:.0} {unit} ({least:.0} - {most:.0})");
        [what.to_owned(), measured, format!("below {goal:.0} {unit}"), reached(middle < goal).to_owned()]
    };
    let rows: Vec<_> = ROWS.into_iter().enumerate().map(row).collect();
    Ok(format!(
        "# A server that nobody uses\n\nMade by `cargo xtask bench idle`: {SHARES} shares and one user, {} starts; the median, \
         the least and the most.\n\n{}\n\n{}",
        rounds.len(),
        table(&HEADS, &rows),
        machine::measured("release build")?
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_page_loads_is_found() {
        let page = "<link href=\"icon.svg\"><script src=\"main.js\"></script><a href=\"#shares\">";
        assert_eq!(named(page), ["icon.svg", "main.js"]);
        assert_eq!(
            named("import { a } from './dom.js';\nimport * as x from './api.js';"),
            ["dom.js", "api.js"]
        );
    }
}
