//! Whether a change costs server CPU: this program beside another build of it.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::Args;

use super::figures::{column, interval, median, ratios};
use super::program::{json, number};
use super::rounds::interleaved;
use super::server::{Server, Settings};
use super::{is_wanted, program};
use crate::command::Chore;

/// A ratio of at least this is worse.
const WORSE: f64 = 1.03;
/// Reads and writes of 4 KiB and of 64 KiB, and names; the last two with one request under way.
const SMALL: &[&str] = &["--block-size", "4k", "--queue-depth", "16"];
const LARGE: &[&str] = &["--block-size", "64k", "--queue-depth", "8"];
const NAMES: &[&str] = &["--metadata", "--threads", "8"];
const ONE_SMALL: &[&str] = &["--block-size", "4k", "--queue-depth", "1"];
const ONE_NAME: &[&str] = &["--metadata", "--threads", "1"];
const WRITES: &[&str] = &["--reads", "0"];
/// For each row: its name, its protocol, and its load.
const ROWS: [(&str, &str, [&[&str]; 2]); 16] = [
    ("smb read 4 KiB", "smb", [SMALL, &[]]),
    ("smb write 4 KiB", "smb", [SMALL, WRITES]),
    ("smb read 64 KiB", "smb", [LARGE, &[]]),
    ("smb metadata", "smb", [NAMES, &[]]),
    ("nfs3 read 4 KiB", "3", [SMALL, &[]]),
    ("nfs3 metadata", "3", [NAMES, &[]]),
    ("nfs4.1 read 4 KiB", "4.1", [SMALL, &[]]),
    ("nfs4.1 write 64 KiB", "4.1", [LARGE, WRITES]),
    ("nfs4.1 metadata", "4.1", [NAMES, &[]]),
    ("smb one read", "smb", [ONE_SMALL, &[]]),
    ("nfs3 one read", "3", [ONE_SMALL, &[]]),
    ("nfs3 one write", "3", [ONE_SMALL, WRITES]),
    ("nfs4.1 one read", "4.1", [ONE_SMALL, &[]]),
    ("smb one metadata", "smb", [ONE_NAME, &[]]),
    ("nfs3 one metadata", "3", [ONE_NAME, &[]]),
    ("nfs4.1 one metadata", "4.1", [ONE_NAME, &[]]),
];

#[derive(Args)]
pub(super) struct BaselineArguments {
    /// The build to compare with
    baseline: PathBuf,
    /// The build that is compared [default: the release build of this tree, made first]
    program: Option<PathBuf>,
    /// Pairs of measurements of each row; one more warms up
    #[arg(long, default_value_t = 15)]
    rounds: usize,
    /// Seconds of each measurement
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Only rows whose name contains this, or one of several: `smb|nfs3 read`
    #[arg(long, default_value = "")]
    only: String,
}

pub(super) fn run(given: &BaselineArguments) -> Chore {
    let program = given.program.clone().map_or_else(program::anabranch, Ok)?;
    let settings = Settings::default();
    let servers = [Server::start(&given.baseline, &settings)?, Server::start(&program, &settings)?];
    let rows: Vec<_> = ROWS.iter().filter(|row| is_wanted(&given.only, row.0)).collect();
    let mut worse = 0;
    println!("{:20} {:>11} {:>10}  RATIO", "ROW", "BASELINE US", "PROGRAM US");
    for (name, over, load) in &rows {
        let figures = interleaved::<2>(given.rounds + 1, |which| {
            cpu(&program, &servers[which], over, &load.concat(), given.seconds)
        })?;
        let figures = &figures[1..];
        let ratios = ratios(figures);
        let (low, high) = interval(&ratios);
        let [baseline, program] = [0, 1].map(|which| median(&column(figures, which)));
        let verdict = if low > WORSE { "  WORSE" } else { "" };
        println!(
            "{name:20} {baseline:11.2} {program:10.2}  {:.3} ({low:.3} - {high:.3}){verdict}",
            median(&ratios)
        );
        worse += usize::from(low > WORSE);
    }
    for server in servers {
        server.stop()?;
    }
    println!("{} rows are not measurably worse, {worse} are", rows.len() - worse);
    Ok(if worse == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Server CPU per operation, in microseconds.
fn cpu(client: &Path, server: &Server, over: &str, load: &[&str], seconds: f64) -> Result<f64, String> {
    let target = if over == "smb" { server.smb() } else { server.nfs(over, Some(1000)) };
    let mut command = Command::new(client);
    command.args(["bench", "job", "--target", &target]).args(load);
    command.args(["--server-pid", &server.pid().to_string(), "--seconds", &seconds.to_string()]);
    command.args(["--repetitions", "1", "--file-size", "16M", "--json"]);
    Ok(number(&json(&mut command)?["rows"][0]["measure"]["server_cpu_us"]["median"]))
}
