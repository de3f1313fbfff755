//! The cost of serving 1 MiB, compared with a bare loop that moves the same bytes: it receives a request, reads or
//! writes the file, and does nothing else.

use std::fs::File;
use std::io::{IoSlice, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;

use super::figures::{column, interval, median, ratios};
use super::program::{json, number};
use super::rounds::interleaved;
use super::server::{Server, Settings};
use super::{is_wanted, program};
use crate::command::Chore;

/// Bytes of an operation.
const BLOCK: usize = 1 << 20;
/// Bytes in front of the data, about as many as in SMB and NFS.
const HEADER: usize = 128;
/// Operations that are under way at a time.
const DEPTH: usize = 8;
/// Blocks of the file.
const BLOCKS: u64 = 16;
/// The ratio of server CPU that a row should not exceed.
const GOAL: f64 = 1.3;
/// For each row: its name, its protocol, and whether it writes.
const ROWS: [(&str, &str, bool); 6] = [
    ("smb read 1 MiB", "smb", false),
    ("smb write 1 MiB", "smb", true),
    ("nfs3 read 1 MiB", "3", false),
    ("nfs3 write 1 MiB", "3", true),
    ("nfs4.1 read 1 MiB", "4.1", false),
    ("nfs4.1 write 1 MiB", "4.1", true),
];

#[derive(Args)]
pub(super) struct BareLoopArguments {
    /// The program that is measured [default: the release build of this tree, made first]
    program: Option<PathBuf>,
    /// Pairs of measurements of each row; one more warms up
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// Seconds of each measurement
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Only rows whose name contains this, or one of several: `smb|nfs3 read`
    #[arg(long, default_value = "")]
    only: String,
}

pub(super) fn run(given: &BareLoopArguments) -> Chore {
    let program = given.program.clone().map_or_else(program::anabranch, Ok)?;
    let server = Server::start(&program, &Settings { in_memory: true, ..Settings::default() })?;
    let rows: Vec<_> = ROWS.iter().filter(|row| is_wanted(&given.only, row.0)).collect();
    let mut missed = 0;
    println!("{:20} {:>8} {:>10}  RATIO", "ROW", "BARE US", "PROGRAM US");
    for (name, over, writes) in &rows {
        let figures = interleaved::<2>(given.rounds + 1, |which| match which {
            0 => bare(&server.directory.join("bare"), *writes, given.seconds)
                .map_err(|e| format!("the bare loop: {e}")),
            _ => served(&program, &server, over, *writes, given.seconds),
        })?;
        let figures = &figures[1..];
        let ratios = ratios(figures);
        let (low, high) = interval(&ratios);
        let [bare, program] = [0, 1].map(|which| median(&column(figures, which)));
        let is_missed = median(&ratios) > GOAL;
        let verdict = if is_missed { "missed" } else { "reached" };
        println!(
            "{name:20} {bare:8.1} {program:10.1}  {:.2} ({low:.2} - {high:.2})  {verdict}",
            median(&ratios)
        );
        missed += usize::from(is_missed);
    }
    server.stop()?;
    println!("{} rows reach the goal of {GOAL}, {missed} miss it", rows.len() - missed);
    Ok(if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Server CPU per operation, in microseconds.
fn served(client: &Path, server: &Server, over: &str, writes: bool, seconds: f64) -> Result<f64, String> {
    let target = if over == "smb" { server.smb() } else { server.nfs(over, Some(1000)) };
    let mut command = Command::new(client);
    command.args(["bench", "job", "--target", &target, "--block-size", "1M"]);
    command.args(["--queue-depth", &DEPTH.to_string(), "--reads", if writes { "0" } else { "100" }]);
    command.args(["--server-pid", &server.pid().to_string(), "--seconds", &seconds.to_string()]);
    command.args(["--repetitions", "1", "--file-size", &format!("{BLOCKS}M"), "--json"]);
    Ok(number(&json(&mut command)?["rows"][0]["measure"]["server_cpu_us"]["median"]))
}

/// CPU of the loop per operation, in microseconds.
fn bare(path: &Path, writes: bool, seconds: f64) -> std::io::Result<f64> {
    let file = File::options().read(true).write(true).create(true).truncate(false).open(path)?;
    file.set_len(BLOCKS * BLOCK as u64)?;
    (0..BLOCKS).try_for_each(|block| file.write_all_at(&[1; BLOCK], block * BLOCK as u64))?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let client = TcpStream::connect(listener.local_addr()?)?;
    let (connection, _) = listener.accept()?;
    let serving = thread::spawn(move || serve(connection, &file, writes));
    load(client, writes, Duration::from_secs_f64(seconds))?;
    let (operations, nanos) =
        serving.join().map_err(|_| std::io::Error::other("its thread has failed"))??;
    let per_operation = |whole: u64| Duration::from_nanos(whole).as_secs_f64() * 1e6 / f64::from(operations);
    Ok(per_operation(nanos))
}

/// Runs the loop. Returns the number of operations, and the CPU time of its thread in nanoseconds.
fn serve(mut connection: TcpStream, file: &File, writes: bool) -> std::io::Result<(u32, u64)> {
    connection.set_nodelay(true)?;
    let (mut header, mut data) = ([0; HEADER], vec![0; BLOCK]);
    let begun = cpu_nanos()?;
    for operation in 0_u32.. {
        if connection.read_exact(&mut header).is_err() {
            return Ok((operation, cpu_nanos()? - begun)); // the client has finished
        }
        let at = u64::from(operation) % BLOCKS * BLOCK as u64;
        if writes {
            connection.read_exact(&mut data)?;
            file.write_all_at(&data, at)?;
            connection.write_all(&header)?;
        } else {
            file.read_exact_at(&mut data, at)?;
            send(&mut connection, &header, &data)?;
        }
    }
    Err(std::io::Error::other("too many operations"))
}

/// Sends a header and data with as few calls as possible.
fn send(connection: &mut TcpStream, header: &[u8], data: &[u8]) -> std::io::Result<()> {
    let sent = connection.write_vectored(&[IoSlice::new(header), IoSlice::new(data)])?;
    let (header_left, data_sent) =
        (header.get(sent..).unwrap_or_default(), sent.saturating_sub(header.len()));
    connection.write_all(header_left)?;
    connection.write_all(&data[data_sent..])
}

/// Keeps the loop busy for this time, then waits for the operations under way.
fn load(mut client: TcpStream, writes: bool, time: Duration) -> std::io::Result<()> {
    client.set_nodelay(true)?;
    let (header, mut data) = ([7; HEADER], vec![7; BLOCK]);
    let ask = |client: &mut TcpStream, data: &[u8]| {
        if writes { send(client, &header, data) } else { client.write_all(&header) }
    };
    let answer = |client: &mut TcpStream, data: &mut [u8]| {
        client.read_exact(&mut [0; HEADER])?;
        if writes { Ok(()) } else { client.read_exact(data) }
    };
    (0..DEPTH).try_for_each(|_| ask(&mut client, &data))?;
    let begun = Instant::now();
    while begun.elapsed() < time {
        answer(&mut client, &mut data)?;
        ask(&mut client, &data)?;
    }
    (0..DEPTH).try_for_each(|_| answer(&mut client, &mut data))
}

/// CPU time of this thread (Documentation/scheduler/sched-stats.rst: the first figure of schedstat, in nanoseconds).
fn cpu_nanos() -> std::io::Result<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanos = text.split_whitespace().next().and_then(|figure| figure.parse().ok());
    nanos.ok_or_else(|| std::io::Error::other("/proc/thread-self/schedstat has no figure"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loop_moves_the_bytes_and_says_what_that_cost() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        for (writes, expected) in [(false, 1), (true, 7)] {
            assert!(bare(&path, writes, 0.01).unwrap() > 0.0);
            let file = std::fs::read(&path).unwrap();
            assert_eq!((file.len() as u64, file[0]), (BLOCKS * BLOCK as u64, expected));
        }
    }
}
