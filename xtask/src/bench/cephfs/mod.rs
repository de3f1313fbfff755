//! Shares in CephFS beside Samba and NFS-Ganesha, which serve directories of the same cluster.

mod section;
mod servers;

use std::path::Path;
use std::process::{Command, ExitCode};

use clap::Args;

use self::section::section;
use self::servers::{Cluster, Peer, Served};
use super::memory::resident;
use super::program::{self, json, number};
use super::rounds::order;
use super::server::{Server, Settings};
use crate::command::Chore;
use crate::markdown::write_section;
use crate::repository;

const PAGE: &str = "docs/measured/performance.md";
const SMALL: &[&str] = &["--block-size", "4k", "--queue-depth", "16"];
const MEDIUM: &[&str] = &["--block-size", "64k", "--queue-depth", "8"];
const LARGE: &[&str] = &["--block-size", "1M", "--queue-depth", "8"];
const NAMES: &[&str] = &["--metadata", "--threads", "8"];
const WRITES: &[&str] = &["--reads", "0"];
/// For each kind of work: its name, its load, and the least ratio of rates that is a goal.
const WORK: [(&str, [&[&str]; 2], f64); 5] = [
    ("4 KiB reads", [SMALL, &[]], 1.0),
    ("4 KiB writes", [SMALL, WRITES], 1.0),
    ("64 KiB reads", [MEDIUM, &[]], 0.95),
    ("1 MiB writes", [LARGE, WRITES], 0.95),
    ("metadata", [NAMES, &[]], 1.0),
];

#[derive(Args)]
pub(super) struct CephFsArguments {
    /// Pairs of measurements of each row; one more warms up
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Seconds of each measurement
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Only rows whose name contains this, or one of several: `smb|nfs3 metadata`
    #[arg(long, default_value = "")]
    only: String,
    /// Write the section of docs/measured/performance.md
    #[arg(long)]
    write: bool,
}

/// What one run has found.
#[derive(Clone, Copy)]
struct Run {
    /// Operations a second.
    rate: f64,
    /// The server's CPU for one operation, in microseconds.
    cpu: f64,
}

/// A row: a kind of work over a protocol, with the least ratio of rates that is a goal, and pairs of runs: of Anabranch, and of
/// the peer in the same round.
struct Row {
    name: String,
    peer: &'static str,
    rate_min: f64,
    pairs: Vec<[Run; 2]>,
}

pub(super) fn run(given: &CephFsArguments) -> Chore {
    let anabranch = program::anabranch()?;
    let cluster = Cluster::start()?;
    cluster.make_directories(&["/anabranch", "/samba", "/ganesha"])?;
    let settings = Settings {
        lines: format!("{}{}", Settings::default().lines, cluster.lines()),
        directory: Some("cephfs:/anabranch".into()),
        ..Settings::default()
    };
    let server = Server::start(&anabranch, &settings)?;
    let (samba, ganesha) = (Peer::samba(&cluster, "/samba")?, Peer::ganesha(&cluster, "/ganesha")?);
    let of_server = |over: &str| Served {
        target: if over == "smb" { server.smb() } else { server.nfs(over, Some(1000)) },
        pid: server.pid(),
    };
    let mut rows = Vec::new();
    for (protocol, over, peer) in
        [("smb", "smb", &samba), ("nfs3", "3", &ganesha), ("nfs4.1", "4.1", &ganesha)]
    {
        let servers = [of_server(over), peer.served(over)?];
        for (work, load, rate_min) in WORK {
            let name = format!("{protocol} {work}");
            if !super::is_wanted(&given.only, &name) {
                continue;
            }
            let mut pairs = Vec::new();
            for round in 0..=given.rounds {
                let mut pair = [Run { rate: f64::NAN, cpu: f64::NAN }; 2];
                for which in order::<2>(round) {
                    pair[which] = one(&anabranch, &servers[which], &load.concat(), given.seconds)
                        .map_err(|e| format!("{name}: {e}"))?;
                }
                pairs.push(pair);
            }
            pairs.remove(0);
            let row = Row { name, peer: peer.name, rate_min, pairs };
            println!("{}", section::line(&row));
            rows.push(row);
        }
    }
    let memory = resident(server.pid())?;
    server.stop()?;
    let section = section(given, &rows, memory)?;
    println!("\n{section}");
    if given.write {
        write_section(&repository::top().join(PAGE), &section)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs a load on a server.
fn one(client: &Path, server: &Served, load: &[&str], seconds: f64) -> Result<Run, String> {
    let mut command = Command::new(client);
    command.args(["bench", "job", "--target", &server.target]).args(load);
    command.args(["--server-pid", &server.pid.to_string(), "--seconds", &seconds.to_string()]);
    command.args(["--repetitions", "1", "--file-size", "16M", "--json"]);
    let measure = &json(&mut command)?["rows"][0]["measure"];
    Ok(Run { rate: number(&measure["rate"]["median"]), cpu: number(&measure["server_cpu_us"]["median"]) })
}
