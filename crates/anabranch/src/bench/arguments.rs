//! The command line of `anabranch bench`.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use load::result::Protocol;
use load::target::Target;

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Measure a family of rows, as the documents do
    Run(Box<BenchRun>),
    /// Measure one load of your own
    Job(Box<BenchJob>),
    /// Measure a family on Anabranch beside Samba and NFS-Ganesha, started for it on this machine, in turns (as root)
    Peers(Box<BenchPeers>),
    /// Measure all families, beside Samba and NFS-Ganesha, in a given time: what a report is made from (as root)
    All(Box<BenchAll>),
    /// Make load for a run on another machine, or in another process
    Worker(BenchWorker),
    /// List the families
    Families,
}

/// The client processes of a run, where it is not this one alone. Each has a folder and files of its own.
#[derive(Debug, Args)]
pub(crate) struct Clients {
    /// So many client processes, on this machine
    #[arg(long, value_name = "N", conflicts_with_all = ["workers", "ssh"], value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) processes: Option<u32>,
    /// The workers that listen at these addresses (`anabranch bench worker`)
    #[arg(
        long,
        value_name = "HOST:PORT,...",
        value_delimiter = ',',
        requires = "token_file",
        conflicts_with = "ssh"
    )]
    pub(crate) workers: Vec<String>,
    /// The token that they have, too
    #[arg(long, value_name = "FILE", requires = "workers")]
    pub(crate) token_file: Option<PathBuf>,
    /// A client process on each of these machines, over SSH; a machine named twice has two
    #[arg(long, value_name = "HOST,...", value_delimiter = ',')]
    pub(crate) ssh: Vec<String>,
    /// An option for ssh, as in ssh -o, such as Port=2222; may be given again
    #[arg(long, value_name = "OPTION", requires = "ssh")]
    pub(crate) ssh_option: Vec<String>,
    /// This program on those machines
    #[arg(long, value_name = "PATH", default_value = "anabranch", requires = "ssh")]
    pub(crate) remote_program: String,
}

#[derive(Debug, Args)]
pub(crate) struct BenchWorker {
    /// Where it listens for coordinators, one at a time
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:7420")]
    pub(crate) listen: SocketAddr,
    /// A file with at least 16 characters that the coordinator has, too, and nobody else may read
    #[arg(long, value_name = "FILE", required_unless_present = "stdio")]
    pub(crate) token_file: Option<PathBuf>,
    /// Speak over standard input and output instead: what `--ssh` starts
    #[arg(long, conflicts_with_all = ["listen", "token_file"])]
    pub(crate) stdio: bool,
}

/// What is measured on, and how it is spoken to.
#[derive(Debug, Args)]
pub(crate) struct Where {
    /// smb://USER@HOST[:PORT]/SHARE (password in ANABRANCH_PASSWORD), nfs://HOST[:PORT]/PATH[?vers=3|4.1], or dir:/PATH
    #[arg(long)]
    pub(crate) target: Target,
    /// A further address of the server, for further channels or connections; may be given again
    #[arg(long, value_name = "ADDR")]
    pub(crate) address: Vec<IpAddr>,
    /// The server's process, where it runs on this machine: its CPU time is measured, too
    #[arg(long, value_name = "PID", conflicts_with_all = ["processes", "workers", "ssh"])]
    pub(crate) server_pid: Option<u32>,
    /// The state directory of the server, where it is an Anabranch that runs on this machine: what it counts itself is noted
    #[arg(long, value_name = "DIR", conflicts_with_all = ["processes", "workers", "ssh"])]
    pub(crate) server_state: Option<PathBuf>,
    /// Seconds after which a reply counts as lost
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) timeout: u64,
    /// SMB: how messages are protected [default: as the server wants it]
    #[arg(long, value_enum)]
    pub(crate) security: Option<Protection>,
    /// What else figures depend on, for the result (link=200Mbit, metadata-cache=off); may be given again
    #[arg(long, value_name = "NAME=VALUE", value_parser = note)]
    pub(crate) note: Vec<(String, String)>,
}

/// What comes out of it.
#[derive(Debug, Args)]
pub(crate) struct Out {
    /// Write the result, with every repetition, to this file
    #[arg(long, value_name = "FILE.json")]
    pub(crate) out: Option<PathBuf>,
    /// Write the reads and writes to this file, too, in the form of fio's json+ output
    #[arg(long, value_name = "FILE.json")]
    pub(crate) json_plus: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// How long and how often.
#[derive(Debug, Args)]
pub(crate) struct HowLong {
    /// A short run: fewer rows, fewer repetitions, less time. It shows a direction, no more
    #[arg(long)]
    pub(crate) quick: bool,
    /// Seconds of each measurement [default: 1; quick: 0.4]
    #[arg(long, value_parser = positive)]
    pub(crate) seconds: Option<f64>,
    /// Seconds of load before each measurement [default: 0.3; quick: 0.1]
    #[arg(long, value_name = "SECONDS", value_parser = positive)]
    pub(crate) ramp: Option<f64>,
    /// Repetitions of each row; one more goes before them and is thrown away [default: 6; quick: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) repetitions: Option<u32>,
    /// Bytes of each file, such as 1G [default: 64M; quick: 16M]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) file_size: Option<u64>,
}

/// Which rows of a family.
#[derive(Debug, Args)]
pub(crate) struct Rows {
    /// Only the rows with so many channels or connections, such as 1,4
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    pub(crate) connections: Vec<u32>,
    /// Only the rows with blocks of these sizes, such as 4k,64k
    #[arg(long, value_name = "SIZE,...", value_delimiter = ',', value_parser = size)]
    pub(crate) block_size: Vec<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct BenchRun {
    /// The family: `anabranch bench families` lists them
    pub(crate) family: String,
    #[command(flatten)]
    pub(crate) place: Where,
    #[command(flatten)]
    pub(crate) clients: Clients,
    #[command(flatten)]
    pub(crate) how_long: HowLong,
    #[command(flatten)]
    pub(crate) rows: Rows,
    #[command(flatten)]
    pub(crate) out: Out,
}

/// Which servers are measured in turns, and how they are spoken to.
#[derive(Debug, Args)]
pub(crate) struct Beside {
    /// Servers beside Anabranch: those that speak the protocol are started
    #[arg(long, value_enum, value_name = "PEER", value_delimiter = ',', default_value = "samba,ganesha")]
    pub(crate) peers: Vec<PeerName>,
    /// Protocols: those of the family are measured
    #[arg(long, value_enum, value_name = "PROTOCOL", value_delimiter = ',', default_value = "smb,nfs4.1")]
    pub(crate) over: Vec<Over>,
    /// Where the servers' files are for as long as it takes [default: /dev/shm, and /var/tmp for cache-out]
    #[arg(long, value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
}

/// A server beside Anabranch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PeerName {
    Samba,
    Ganesha,
    /// Anabranch alone
    None,
}

/// A protocol to measure over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Over {
    Smb,
    Nfs3,
    #[value(name = "nfs4.1")]
    Nfs41,
}

impl Over {
    pub(crate) fn protocol(self) -> Protocol {
        match self {
            Self::Smb => Protocol::Smb,
            Self::Nfs3 => Protocol::Nfs3,
            Self::Nfs41 => Protocol::Nfs41,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct BenchPeers {
    /// The family: `anabranch bench families` lists them
    pub(crate) family: String,
    #[command(flatten)]
    pub(crate) beside: Beside,
    #[command(flatten)]
    pub(crate) how_long: HowLong,
    #[command(flatten)]
    pub(crate) rows: Rows,
    /// Write the results, one a server and protocol, into this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Put the table into this document, as a section of its own; a section of the same heading is replaced
    #[arg(long, value_name = "FILE.md")]
    pub(crate) markdown: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct BenchAll {
    #[command(flatten)]
    pub(crate) beside: Beside,
    /// A short run: fewer rows, three repetitions. It shows a direction, no more
    #[arg(long)]
    pub(crate) quick: bool,
    /// Minutes for all of it: less time makes each measurement shorter [default: 60; quick: 5]
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) minutes: Option<f64>,
    /// Repetitions of each row; one more goes before them and is thrown away [default: 6; quick: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) repetitions: Option<u32>,
    /// Bytes of each file, such as 1G [default: 64M; quick: 16M]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) file_size: Option<u64>,
    /// Write the results, one a family, server and protocol, into this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct BenchJob {
    #[command(flatten)]
    pub(crate) place: Where,
    #[command(flatten)]
    pub(crate) client_processes: Clients,
    #[command(flatten)]
    pub(crate) how_long: HowLong,
    #[command(flatten)]
    pub(crate) out: Out,
    /// Bytes of each read or write
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "4k")]
    pub(crate) block_size: u64,
    /// Reads of a hundred operations; the others are writes
    #[arg(long, value_name = "PERCENT", default_value_t = 100, value_parser = clap::value_parser!(u8).range(0..=100))]
    pub(crate) reads: u8,
    /// One block after the other, not at random places
    #[arg(long)]
    pub(crate) sequential: bool,
    /// Create, open, close, stat, list and delete files instead of reading and writing
    #[arg(long)]
    pub(crate) metadata: bool,
    /// Files that the load is spread over
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) files: u32,
    /// Threads, as an application has them
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) threads: u32,
    /// Operations that each thread has under way [default: 1; with --trace: 32 at most]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) queue_depth: Option<u32>,
    /// Channels of an SMB session or connections of an NFS client
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=32))]
    pub(crate) connections: u32,
    /// Clients, each with a session of its own [default: 1, or one in each client process]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) clients: Option<u32>,
    /// Operations a second, at even distances [default: as fast as answers come]
    #[arg(long, value_name = "OPERATIONS", value_parser = positive)]
    pub(crate) rate: Option<f64>,
    /// Milliseconds that each place rests between an answer and its next operation
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 0)]
    pub(crate) think: u64,
    /// What is read is not compared with what was written
    #[arg(long)]
    pub(crate) no_check: bool,
    /// Take the loads from a job file of fio instead; what cannot be honoured is said
    #[arg(long, value_name = "FILE", conflicts_with_all = LOAD_FLAGS)]
    pub(crate) fio_job: Option<PathBuf>,
    /// Take the load from a command line of fio ("fio --rw=randread ...")
    #[arg(long, value_name = "LINE", conflicts_with_all = LOAD_FLAGS)]
    pub(crate) fio: Option<String>,
    /// Take the load from a command line of diskspd ("diskspd -b4k -r -t8 -o8 ...")
    #[arg(long, value_name = "LINE", conflicts_with_all = LOAD_FLAGS)]
    pub(crate) diskspd: Option<String>,
    /// Do again what `anabranch share record` has recorded: the same reads and writes at the same times
    #[arg(long, value_name = "FILE", conflicts_with_all = SHAPE_FLAGS, conflicts_with_all = ["processes", "workers", "ssh"])]
    pub(crate) trace: Option<PathBuf>,
    /// With --trace: so many times as fast as it was recorded
    #[arg(long, value_name = "N", default_value_t = 1.0, value_parser = positive, requires = "trace")]
    pub(crate) speed: f64,
    /// With --trace: not at the recorded times, but as fast as answers come
    #[arg(long, requires = "trace", conflicts_with = "speed")]
    pub(crate) as_fast_as_possible: bool,
}

/// What says what the load is; not beside a load of another tool's.
const LOAD_FLAGS: [&str; 9] =
    ["block_size", "reads", "sequential", "metadata", "files", "threads", "queue_depth", "rate", "think"];

/// What a recording says itself.
const SHAPE_FLAGS: [&str; 11] = [
    "block_size",
    "reads",
    "sequential",
    "metadata",
    "files",
    "threads",
    "rate",
    "think",
    "fio_job",
    "fio",
    "diskspd",
];

/// How messages of SMB are protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Protection {
    HmacSha256,
    Aes128Cmac,
    Aes128Gmac,
    Aes128Ccm,
    Aes128Gcm,
    Aes256Ccm,
    Aes256Gcm,
}

impl Protection {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::HmacSha256 => "HMAC-SHA256",
            Self::Aes128Cmac => "AES-128-CMAC",
            Self::Aes128Gmac => "AES-128-GMAC",
            Self::Aes128Ccm => "AES-128-CCM",
            Self::Aes128Gcm => "AES-128-GCM",
            Self::Aes256Ccm => "AES-256-CCM",
            Self::Aes256Gcm => "AES-256-GCM",
        }
    }
}

fn note(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("give a name and a value, as in metadata-cache=off".to_owned()),
    }
}

fn positive(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| format!("{text} is no number"))?;
    if number > 0.0 && number <= 1e9 {
        Ok(number)
    } else {
        Err("it must be more than 0 and at most 1000000000".to_owned())
    }
}

/// Bytes: `4096`, `4k`, `64KiB`, `1M`, `2G`; a multiple of 512.
fn size(text: &str) -> Result<u64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let shift = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kib" => 10,
        "m" | "mib" => 20,
        "g" | "gib" => 30,
        "t" | "tib" => 40,
        _ => return Err(format!("{unit} is no unit: give k, M, G or T")),
    };
    let number: u64 = number.parse().map_err(|_| format!("{text} is no size"))?;
    let bytes = number.checked_mul(1 << shift).filter(|bytes| *bytes > 0).ok_or("it is out of range")?;
    if bytes % 512 == 0 { Ok(bytes) } else { Err("it must be a multiple of 512".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_have_a_name_and_a_value() {
        assert_eq!(note("link=a=b").unwrap(), ("link".to_owned(), "a=b".to_owned()));
        assert!(note("link").is_err() && note("=x").is_err());
    }

    #[test]
    fn sizes_have_units() {
        let sizes = ["512", "4k", "64KiB", "1M", "2GiB"].map(|text| size(text).unwrap());
        assert_eq!(sizes, [512, 4096, 65536, 1 << 20, 2 << 30]);
        for wrong in ["", "k", "100", "4x", "0", "99999999999T", "-4k"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
