//! The command line of `anabranch bench`.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use load::plan::Selection;
use load::result::Protocol;
use load::target::Target;
use model::Delay;

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Measure a family of rows, as the vendors' documents do
    Run(Box<BenchRun>),
    /// Measure a load of your own
    Job(Box<BenchJob>),
    /// Measure a family on Anabranch, Samba and NFS-Ganesha in turns, all started on this machine (needs root)
    Peers(Box<BenchPeers>),
    /// Measure all families on Anabranch, Samba and NFS-Ganesha in a given time, for a report (needs root)
    All(Box<BenchAll>),
    /// Measure in a scale model: machines, links and limits of the vendors' documents, built on this machine
    #[command(subcommand)]
    Model(ModelCommand),
    /// Delay each access to a directory, as a slow storage does, until this is ended (needs root)
    Delay(BenchDelay),
    /// Generate load on behalf of a run on another machine or in another process
    Worker(BenchWorker),
    /// List the families
    Families,
}

#[derive(Debug, Args)]
pub(crate) struct BenchDelay {
    /// The directory
    pub(crate) directory: PathBuf,
    /// Where to show it with the delays: an empty directory [default: in its own place]
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) at: Option<PathBuf>,
    /// How long each read and write of at most 1 MiB takes, and each flush, from 0ms to 1000ms, in ms or us
    #[arg(long, value_name = "1ms", default_value = "0ms")]
    pub(crate) data: Delay,
    /// How long each lookup of a name takes, and each look at attributes and change of them
    #[arg(long, value_name = "1ms", default_value = "0ms")]
    pub(crate) metadata: Delay,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ModelCommand {
    /// List the models that come with the program
    List,
    /// Show a model: its limits, where they are published, and what it speaks to
    Show(ModelShow),
    /// Build a model, start Anabranch in it, and measure its rows (needs root)
    Run(ModelRun),
    /// Build a model, start Anabranch in it, and run a shell or a command on a client's machine (needs root)
    Shell(ModelShell),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModelServer {
    /// This program
    Anabranch,
    /// Samba, over SMB (apt-get install samba)
    Samba,
    /// NFS-Ganesha, over NFS (apt-get install nfs-ganesha nfs-ganesha-vfs gcc)
    Ganesha,
}

#[derive(Debug, Args)]
pub(crate) struct ModelRun {
    /// The model: its name, or a file with a description (.toml)
    pub(crate) model: String,
    #[command(flatten)]
    pub(crate) how_long: HowLong,
    /// The server of the model
    #[arg(long, value_enum, default_value_t = ModelServer::Anabranch)]
    pub(crate) server: ModelServer,
    /// Measure also rows whose rates this machine does not carry, and do not find out which these are
    #[arg(long)]
    pub(crate) uncalibrated: bool,
    /// Write the results into this directory, one file for each table
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print the results, the calibration and what passed the links as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ModelShell {
    /// The model: its name, or a file with a description (.toml)
    pub(crate) model: String,
    /// The client's machine, such as vm-2 [default: the first]
    #[arg(long, value_name = "NAME")]
    pub(crate) client: Option<String>,
    /// The command and its arguments [default: the shell of SHELL]
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ModelShow {
    /// The model: its name, or a file with a description (.toml)
    pub(crate) model: String,
    /// Print it as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The client processes of a run, where it is not this one alone. Each has a folder and files of its own.
#[derive(Debug, Args)]
pub(crate) struct Clients {
    /// The number of client processes on this machine
    #[arg(long, value_name = "N", conflicts_with_all = ["workers", "ssh"], value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) processes: Option<u32>,
    /// The addresses of workers (`anabranch bench worker`)
    #[arg(
        long,
        value_name = "HOST:PORT,...",
        value_delimiter = ',',
        requires = "token_file",
        conflicts_with = "ssh"
    )]
    pub(crate) workers: Vec<String>,
    /// The file with the workers' token
    #[arg(long, value_name = "FILE", requires = "workers")]
    pub(crate) token_file: Option<PathBuf>,
    /// Machines on which to start a client process over SSH; name a machine twice for two processes
    #[arg(long, value_name = "HOST,...", value_delimiter = ',')]
    pub(crate) ssh: Vec<String>,
    /// An option for ssh -o, such as Port=2222; repeatable
    #[arg(long, value_name = "OPTION", requires = "ssh")]
    pub(crate) ssh_option: Vec<String>,
    /// The path of this program on those machines
    #[arg(long, value_name = "PATH", default_value = "anabranch", requires = "ssh")]
    pub(crate) remote_program: String,
}

#[derive(Debug, Args)]
pub(crate) struct BenchWorker {
    /// The address on which to wait for a coordinator, one at a time
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:7420")]
    pub(crate) listen: SocketAddr,
    /// The token file: at least 16 characters, the same as the coordinator's, readable by its owner only
    #[arg(long, value_name = "FILE", required_unless_present = "stdio")]
    pub(crate) token_file: Option<PathBuf>,
    /// Use standard input and output instead of a socket, as `--ssh` does
    #[arg(long, conflicts_with_all = ["listen", "token_file"])]
    pub(crate) stdio: bool,
}

/// What is measured on, and how it is spoken to.
#[derive(Debug, Args)]
pub(crate) struct Where {
    /// smb://USER@HOST[:PORT]/SHARE (password in ANABRANCH_PASSWORD), smb://HOST[:PORT]/SHARE?sec=krb5 (with a Kerberos ticket), nfs://HOST[:PORT]/PATH[?vers=3|4.1], or dir:/PATH
    #[arg(long)]
    pub(crate) target: Target,
    /// A further address of the server for channels or connections; repeatable
    #[arg(long, value_name = "ADDR")]
    pub(crate) address: Vec<IpAddr>,
    /// The process ID of a server on this machine, to measure its CPU time
    #[arg(long, value_name = "PID", conflicts_with_all = ["processes", "workers", "ssh"])]
    pub(crate) server_pid: Option<u32>,
    /// The state directory of an Anabranch server on this machine, to record its own counters
    #[arg(long, value_name = "DIR", conflicts_with_all = ["processes", "workers", "ssh"])]
    pub(crate) server_state: Option<PathBuf>,
    /// The reply timeout in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) timeout: u64,
    /// The SMB signing or encryption algorithm [default: the server's choice]
    #[arg(long, value_enum)]
    pub(crate) security: Option<Protection>,
    /// A note for the result on what else the figures depend on (link=200Mbit, metadata-cache=off); repeatable
    #[arg(long, value_name = "NAME=VALUE", value_parser = note)]
    pub(crate) note: Vec<(String, String)>,
}

/// What comes out of it.
#[derive(Debug, Args)]
pub(crate) struct Out {
    /// Write the result, with every repetition, to this file
    #[arg(long, value_name = "FILE.json")]
    pub(crate) out: Option<PathBuf>,
    /// Also write the reads and writes to this file in fio's json+ format
    #[arg(long, value_name = "FILE.json")]
    pub(crate) json_plus: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// How long and how often.
#[derive(Debug, Args)]
pub(crate) struct HowLong {
    /// A short run with fewer rows and repetitions, for a rough idea only
    #[arg(long)]
    pub(crate) quick: bool,
    /// Seconds of each measurement [default: 1; quick: 0.4; in a model 2 and 1]
    #[arg(long, value_parser = positive)]
    pub(crate) seconds: Option<f64>,
    /// Seconds of load before each measurement [default: 0.3; quick: 0.1; in a model 1 and 0.5]
    #[arg(long, value_name = "SECONDS", value_parser = positive)]
    pub(crate) ramp: Option<f64>,
    /// Repetitions of each row, after a warm-up that is discarded [default: 6; quick: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) repetitions: Option<u32>,
    /// The size of each file, such as 1G [default: 64M; quick: 16M; in a model 1M]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) file_size: Option<u64>,
}

/// Which rows of a family.
#[derive(Debug, Args)]
pub(crate) struct Rows {
    /// Only rows with these numbers of channels or connections, such as 1,4
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    pub(crate) connections: Vec<u32>,
    /// Only rows with these block sizes, such as 4k,64k
    #[arg(long, value_name = "SIZE,...", value_delimiter = ',', value_parser = size)]
    pub(crate) block_size: Vec<u64>,
}

impl Rows {
    pub(crate) fn selection(&self) -> Selection {
        Selection { connections: self.connections.clone(), block_bytes: self.block_size.clone() }
    }
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
    /// The servers to compare with
    #[arg(long, value_enum, value_name = "PEER", value_delimiter = ',', default_value = "samba,ganesha")]
    pub(crate) peers: Vec<PeerName>,
    /// The protocols to measure, as far as the family has them
    #[arg(long, value_enum, value_name = "PROTOCOL", value_delimiter = ',', default_value = "smb,nfs4.1")]
    pub(crate) over: Vec<Over>,
    /// The directory for the servers' files during the measurement [default: /dev/shm, and /var/tmp for cache-out]
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
    /// Write the results into this directory, one file for each server and protocol
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Write the table into this document as a section, replacing one with the same heading
    #[arg(long, value_name = "FILE.md")]
    pub(crate) markdown: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct BenchAll {
    #[command(flatten)]
    pub(crate) beside: Beside,
    /// A short run with fewer rows and three repetitions, for a rough idea only
    #[arg(long)]
    pub(crate) quick: bool,
    /// The total time in minutes; less time shortens each measurement [default: 60; quick: 5]
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) minutes: Option<f64>,
    /// Repetitions of each row, after a warm-up that is discarded [default: 6; quick: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) repetitions: Option<u32>,
    /// The size of each file, such as 1G [default: 64M; quick: 16M]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) file_size: Option<u64>,
    /// Write the results into this directory, one file for each family, server and protocol
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
    /// The percentage of reads; the others are writes
    #[arg(long, value_name = "PERCENT", default_value_t = 100, value_parser = clap::value_parser!(u8).range(0..=100))]
    pub(crate) reads: u8,
    /// Access blocks in order, not at random
    #[arg(long)]
    pub(crate) sequential: bool,
    /// Create, open, close, stat, list and delete files instead of reading and writing
    #[arg(long)]
    pub(crate) metadata: bool,
    /// The number of files
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) files: u32,
    /// The number of threads
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) threads: u32,
    /// Outstanding operations of each thread [default: 1; with --trace: at most 32]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) queue_depth: Option<u32>,
    /// Channels of an SMB session or connections of an NFS client
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=32))]
    pub(crate) connections: u32,
    /// The number of clients, each with its own session [default: 1, or one for each client process]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) clients: Option<u32>,
    /// Operations per second, evenly spaced [default: as fast as replies arrive]
    #[arg(long, value_name = "OPERATIONS", value_parser = positive)]
    pub(crate) rate: Option<f64>,
    /// Think time between a reply and the next operation, in milliseconds
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 0)]
    pub(crate) think: u64,
    /// Do not verify the data read
    #[arg(long)]
    pub(crate) no_check: bool,
    /// Take the loads from a fio job file; options that cannot be honoured are reported
    #[arg(long, value_name = "FILE", conflicts_with_all = LOAD_FLAGS)]
    pub(crate) fio_job: Option<PathBuf>,
    /// Take the load from a fio command line ("fio --rw=randread ...")
    #[arg(long, value_name = "LINE", conflicts_with_all = LOAD_FLAGS)]
    pub(crate) fio: Option<String>,
    /// Take the load from a diskspd command line ("diskspd -b4k -r -t8 -o8 ...")
    #[arg(long, value_name = "LINE", conflicts_with_all = LOAD_FLAGS)]
    pub(crate) diskspd: Option<String>,
    /// Replay the reads and writes of a file written by `anabranch share record`, at their recorded times
    #[arg(long, value_name = "FILE", conflicts_with_all = SHAPE_FLAGS, conflicts_with_all = ["processes", "workers", "ssh"])]
    pub(crate) trace: Option<PathBuf>,
    /// With --trace: the replay speed, as a multiple of the recorded one
    #[arg(long, value_name = "N", default_value_t = 1.0, value_parser = positive, requires = "trace")]
    pub(crate) speed: f64,
    /// With --trace: replay as fast as replies arrive
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
    let number: f64 = text.parse().map_err(|_| format!("{text} is not a number"))?;
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
        _ => return Err(format!("{unit} is not a unit: give k, M, G or T")),
    };
    let number: u64 = number.parse().map_err(|_| format!("{text} is not a size"))?;
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
