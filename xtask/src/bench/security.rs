//! The cost of signing and encryption.

mod network;
mod section;

use std::process::ExitCode;

use clap::Args;

use self::network::Network;
use super::fsload::{Column, Figures, Fsload};
use super::rounds::rotated;
use super::server::{Server, Settings};
use super::{is_wanted, machine, program, words};
use crate::command::Chore;
use crate::markdown::write_section;
use crate::repository;

const PAGE: &str = "docs/measured/performance.md";

/// A row of the tables.
struct Work {
    name: &'static str,
    words: &'static str,
    /// Blocks in a MiB.
    blocks: f64,
    /// The work of the server on the data when it is encrypted.
    cipher: &'static str,
}

const WORKS: [Work; 4] = [
    Work { name: "64 KiB read, depth 16", words: "op=read bs=64k qd=16", blocks: 16.0, cipher: "seal" },
    Work { name: "64 KiB write, depth 16", words: "op=write bs=64k qd=16", blocks: 16.0, cipher: "open" },
    Work { name: "1 MiB read, depth 8", words: "op=read bs=1m qd=8", blocks: 1.0, cipher: "seal" },
    Work { name: "1 MiB write, depth 8", words: "op=write bs=1m qd=8", blocks: 1.0, cipher: "open" },
];
const MODES: usize = 3;
/// For each mode: its name, its arguments of fsload, and the part of the plain rate that it should reach.
const MODE: [(&str, &str, f64); MODES] =
    [("plain", "", 1.0), ("signed", "sign=1 signing=gmac", 0.90), ("encrypted", "encrypt=1", 0.85)];

#[derive(Args)]
pub(super) struct SecurityArguments {
    /// Interleaved runs of each row
    #[arg(long, default_value_t = 7)]
    runs: usize,
    /// Seconds of each run
    #[arg(long, default_value_t = 1.0)]
    secs: f64,
    /// What the link carries, in Gbit/s
    #[arg(long, default_value_t = 10)]
    gbit: u32,
    /// Only rows whose name contains this, or one of several: `loopback: the processors are the limit 1 MiB write`; then nothing is written
    #[arg(long, default_value = "")]
    only: String,
}

/// The place of the client, and the measurements there.
struct Regime {
    name: String,
    /// The prefix of the client's command.
    before: String,
    rows: Vec<Row>,
}

struct Row {
    work: &'static Work,
    /// The runs of each mode.
    runs: [Vec<Figures>; MODES],
}

pub(super) fn run(given: &SecurityArguments) -> Chore {
    let (anabranch, fsload) = (program::anabranch()?, Fsload::build()?);
    let network = Network::make(given.gbit)?;
    let (ours, theirs) = halves(machine::processors());
    let settings = Settings {
        in_memory: true,
        listen: [network::address(); 2],
        before: words(&network.in_server(&ours)),
        ..Settings::default()
    };
    let server = Server::start(&anabranch, &settings)?;
    let mut regimes = [
        regime(given, format!("Over a link of {} Gbit/s", given.gbit), network.in_client(&theirs)),
        regime(
            given,
            "Over the loopback: the processors are the limit".to_owned(),
            network.in_server(&theirs),
        ),
    ];
    measure(given, &fsload, &server, &mut regimes)?;
    let costs = fsload.crypto(&regimes[1].before)?;
    server.stop()?;
    let section = section::section(given, &regimes, &costs)?;
    println!("{section}");
    if given.only.is_empty() {
        write_section(&repository::top().join(PAGE), &section)?;
        println!("wrote {PAGE}");
    }
    Ok(ExitCode::SUCCESS)
}

fn regime(given: &SecurityArguments, name: String, before: String) -> Regime {
    let wanted = WORKS.iter().filter(|work| is_wanted(&given.only, &format!("{name} {}", work.name)));
    let rows = wanted.map(|work| Row { work, runs: [Vec::new(), Vec::new(), Vec::new()] }).collect();
    Regime { name, before, rows }
}

fn measure(
    given: &SecurityArguments,
    fsload: &Fsload,
    server: &Server,
    regimes: &mut [Regime],
) -> Result<(), String> {
    let at = format!("smb {} server={}", server.fsload("smb", "data"), network::address().ip());
    for run in 0..given.runs {
        for regime in &mut *regimes {
            for Row { work, runs } in &mut regime.rows {
                for mode in rotated::<MODES>(run) {
                    let (name, how, _) = MODE[mode];
                    let load =
                        format!("{at} {} {how} whole=1 secs={} ramp=1 size=256m", work.words, given.secs);
                    let failed =
                        |e| format!("{}, {}, {name}: {e}: nothing is written", regime.name, work.name);
                    let figures = fsload.run(&regime.before, &load).map_err(failed)?;
                    let (place, mib) = (&regime.name[..18], figures.of(Column::Mib));
                    println!("{} {place:18} {:24} {name:10} {mib:8.0} MiB/s", run + 1, work.name);
                    runs[mode].push(figures);
                }
            }
        }
    }
    Ok(())
}

/// taskset for the server and for the client: half of the processors for each.
fn halves(processors: usize) -> (String, String) {
    let half = processors.div_ceil(2);
    (format!("taskset -c 0-{}", half - 1), format!("taskset -c {}-{}", half % processors, processors - 1))
}
