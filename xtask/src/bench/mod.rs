//! Measurements, by name.
//!
//! This file holds the shared parts: figures of [rounds] and their [arithmetic](figures), the [machine] and commit, the
//! [programs](program), a [server], and runs of [fsload].

mod afterwards;
mod bare_loop;
mod baseline;
mod cephfs;
mod channels;
mod client_cost;
mod figures;
mod fsload;
mod guest;
mod idle;
mod kerberos;
mod known_answers;
mod limits;
mod links;
mod logons;
mod loopback;
mod machine;
mod memory;
mod metadata;
mod nfs_security;
mod program;
mod quotas;
mod realm;
mod rounds;
mod security;
mod server;
mod trunks;

use std::process::ExitCode;

use clap::{Args, Command, Subcommand};

use crate::command::{self, Chore};
use crate::repository;

/// The chosen measurement.
#[derive(Args)]
pub(crate) struct Chosen {
    #[command(subcommand)]
    bench: Option<Bench>,
}

#[derive(Subcommand)]
enum Bench {
    /// What it costs to serve 1 MiB, beside a bare loop that moves the same bytes
    ///
    /// The loop receives a request, reads or writes a file with one call, and sends: 1 MiB at a time, eight requests
    /// under way, over one connection of the loopback, with files in memory. For each row it prints the median of the
    /// ratios of server CPU per operation, with the 95 % interval of that median. Exits 1 if a ratio is above 1.3.
    BareLoop(bare_loop::BareLoopArguments),
    /// Server CPU of this build and of another one, in turns
    ///
    /// Each build serves its own directory with the same configuration (signing left to the client, root not squashed,
    /// as in the suites). The load is `bench job` of PROGRAM for both. For each row it prints the median of the ratios
    /// of server CPU per operation, with the 95 % interval of that median. Exits 1 if an interval lies above 1.03.
    Baseline(baseline::BaselineArguments),
    /// A share in CephFS, beside Samba and NFS-Ganesha on the same cluster
    ///
    /// A Ceph cluster of this machine (tests/lab/ceph-lab), Samba with vfs_ceph, NFS-Ganesha with FSAL_CEPH (Debian's
    /// samba-vfs-modules and nfs-ganesha-ceph): rate and server CPU of reads, writes and metadata, interleaved. --write
    /// writes its section of docs/measured/performance.md. About 8 minutes; root. ANABRANCH names another build than the release one.
    #[command(name = "cephfs")]
    CephFs(cephfs::CephFsArguments),
    /// What one SMB channel of the Linux kernel's client carries and what four carry
    ///
    /// Each channel has its own network interface of 200 Mbit/s. The client is in a guest (tests/lab); rounds are
    /// interleaved. Writes docs/measured/channels.md, and fails if four channels carry less than 3.6 times what one
    /// carries. About 5 minutes; root.
    Channels(channels::ChannelsArguments),
    /// What the load generator costs: CPU of client and server for each read
    ///
    /// 4 KiB random reads, plain, checked; the server on one processor, the client on another. Writes its rows into
    /// docs/bench.md. About 40 s; root (a network namespace). ANABRANCH=PROGRAM COMMIT=COMMIT measures that program,
    /// which is of that commit.
    ClientCost(client_cost::ClientCostArguments),
    /// The load generator beside fio: the same jobs by both, in turns
    Fio(Script),
    /// What each share, connection, session and open costs the server in memory
    ///
    /// tests/hostile/footprint: the growth of the resident set with 2,000 of each (`--count`). Prints the table of
    /// docs/sizing.md. About a minute. ANABRANCH=PROGRAM COMMIT=COMMIT measures that program, which is of that commit.
    Footprint(Script),
    /// How long others wait while a server is attacked
    ///
    /// tests/hostile/run --judge: two ordinary clients with each attack and without it, in turns. Fails if the median of
    /// their latency is more than twice, or the 99th percentile more than three times as long as without the attack.
    /// --markdown docs/measured/hostile.md writes its section. About 20 minutes; root. ANABRANCH=PROGRAM COMMIT=COMMIT
    /// measures that program, which is of that commit.
    Hostile(Script),
    /// What a server costs that nobody uses
    ///
    /// Ten shares: the time from the start to the ready line, resident memory, and the first page of the console, its
    /// bytes and its time over the loopback. --write writes its section of docs/measured/performance.md. ANABRANCH names
    /// another build than the release one.
    Idle(idle::IdleArguments),
    /// What one logon with Kerberos costs the server
    ///
    /// Accepts new tokens with and without a PAC, and refuses others, on one processor. --write writes its section of
    /// docs/measured/performance.md. Exits 1 if a goal is missed.
    Kerberos(kerberos::KerberosArguments),
    /// The load generator against servers whose latency or rate is known
    ///
    /// Each figure must be within 2 %. On a busy machine, neither those servers nor the generator are punctual: the
    /// measurement needs an idle machine. About 2 minutes.
    KnownAnswers,
    /// Whether the limits of plans hold, and what counting costs
    ///
    /// SMB and NFS clients together on one share. Every limit must hold within 2 %, and at least 97 % of it must be
    /// reached. Two greedy clients must have equal parts within 10 %, and a third, light one a p99 latency of at most
    /// three times the one that it has alone. Burst credits must be exact to 0.1 %. Then, interleaved, the server CPU
    /// per 4 KiB read of a share without a plan, with and without counting and limiting: at most 3 % more. ANABRANCH
    /// and FSLOAD name other builds than the release ones. Exits 1 if a check fails.
    Limits(limits::LimitsArguments),
    /// The load generator over one connection and over four, where links are the limit
    ///
    /// `anabranch bench run` between two network namespaces with four links of 200 Mbit/s each (tc), and over one link
    /// on which each connection is limited; then `anabranch advise` for each result. Writes docs/measured/links.md when
    /// all parts are there. About 6 minutes; root.
    Links(links::LinksArguments),
    /// What a whole logon costs the server, with a ticket and with a password
    ///
    /// Server CPU of logons over SMB and NFS, each over a connection of its own, interleaved. The tickets are those of a KDC
    /// in a network namespace (tests/lab/kdc-lab). --write writes its section of docs/measured/performance.md. Exits 1 if one
    /// core lets in fewer than 1,000 a second with a ticket. About a minute; root. ANABRANCH names another build than the
    /// release one.
    Logons(logons::LogonsArguments),
    /// What the server keeps of its memory after load
    ///
    /// Prints the resident set at the start, at its maximum, and 5, 30 and 60 s after the load, as rows of a Markdown
    /// table. The load: SMB clients in growing numbers, names over SMB, reads and writes over NFSv4.1, and 300
    /// connections of NFSv3 that write 1 MiB each. ANABRANCH names another build than the release one.
    Memory(memory::MemoryArguments),
    /// What the metadata cache is worth; a name in a directory of a million
    ///
    /// Opens, lookups and fsload's metadata cycles over SMB, NFSv3 and NFSv4.1 on two shares of one server, one with
    /// the cache and one without, in turns; with some microseconds added to each metadata call of the store, and
    /// without. Then the cost of opening a name in a directory of 1,000,000 entries, compared with Samba on the same
    /// directory if it is installed. Writes its section of docs/measured/performance.md. Root. ANABRANCH and FSLOAD
    /// name other builds than the release ones.
    Metadata(metadata::MetadataArguments),
    /// What Kerberos and TLS cost over NFS
    ///
    /// Server CPU of 64 KiB reads, plain, with krb5, krb5i and krb5p for two encryption types, and with TLS, interleaved;
    /// beside what the bare primitives of the cryptographic library need for the same bytes. The tickets are those of a
    /// KDC in a network namespace (tests/lab/kdc-lab). With --ganesha, in turns with NFS-Ganesha (tests/peers/ganesha.sh).
    /// --write writes its section of docs/measured/performance.md. About 3 minutes, with --ganesha 6; root. ANABRANCH names
    /// another build than the release one.
    NfsSecurity(nfs_security::NfsSecurityArguments),
    /// What quotas cost 4 KiB writes
    ///
    /// Server CPU of writes over SMB, NFSv3 and NFSv4.1 on a share with three quotas and on one without, interleaved. --write
    /// writes its section of docs/measured/profiles.md. Exits 1 if a median is above 1.03. About 2 minutes. ANABRANCH names
    /// another build than the release one.
    Quotas(quotas::QuotasArguments),
    /// What signing and encryption cost
    ///
    /// Plain, signed (AES-128-GMAC) and encrypted (AES-128-GCM) reads and writes of 64 KiB and 1 MiB, interleaved, over
    /// a link and over the loopback, where the processors are the limit. Server and load generator have half of the
    /// processors each. Writes its section of docs/measured/performance.md. 24 rows x RUNS x (SECS + 1) s, about 5
    /// minutes; root. If others use the machine too, take precedence: `setsid -w sh -c 'echo -20 >/proc/self/autogroup;
    /// cargo xtask bench security'`.
    Security(security::SecurityArguments),
    /// How long snapshots take, and what clients wait for
    ///
    /// tests/interop/snapshot-times.sh: `btrfs`, in a file, or `cephfs`, in a cluster of tests/lab. Prints the rows of
    /// docs/measured/snapshots.md. Some minutes; root, and the package index of Python. ANABRANCH names another build than the
    /// release one.
    Snapshots(Script),
    /// What one link carries over NFSv4 and what four trunked links carry
    ///
    /// Each link is a separate network interface of 200 Mbit/s. Also measures four connections over one link
    /// (nconnect). The client is the Linux kernel's in a guest (tests/lab); rounds are interleaved. Writes its section
    /// of docs/measured/performance.md, and fails if four links carry less than 3.6 times what one carries. About 7
    /// minutes; root.
    Trunks(trunks::TrunksArguments),
}

/// The arguments of a script.
#[derive(Args)]
struct Script {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    arguments: Vec<String>,
}

pub(crate) fn run(chosen: &Chosen) -> Chore {
    match &chosen.bench {
        None => list(),
        Some(Bench::BareLoop(given)) => bare_loop::run(given),
        Some(Bench::Baseline(given)) => baseline::run(given),
        Some(Bench::CephFs(given)) => cephfs::run(given),
        Some(Bench::Channels(given)) => channels::run(given),
        Some(Bench::ClientCost(given)) => client_cost::run(given),
        Some(Bench::Fio(script)) => command::script("scripts/bench-fio", &script.arguments),
        Some(Bench::Footprint(script)) => of_program("tests/hostile/footprint", &[], script),
        Some(Bench::Hostile(script)) => of_program("tests/hostile/run", &["--judge"], script),
        Some(Bench::Idle(given)) => idle::run(given),
        Some(Bench::Kerberos(given)) => kerberos::run(given),
        Some(Bench::KnownAnswers) => known_answers::run(),
        Some(Bench::Limits(given)) => limits::run(given),
        Some(Bench::Links(given)) => links::run(given),
        Some(Bench::Logons(given)) => logons::run(given),
        Some(Bench::Memory(given)) => memory::run(given),
        Some(Bench::Metadata(given)) => metadata::run(given),
        Some(Bench::NfsSecurity(given)) => nfs_security::run(given),
        Some(Bench::Quotas(given)) => quotas::run(given),
        Some(Bench::Snapshots(script)) => of_program("tests/interop/snapshot-times.sh", &[], script),
        Some(Bench::Security(given)) => security::run(given),
        Some(Bench::Trunks(given)) => trunks::run(given),
    }
}

/// Runs a script that measures the program.
fn of_program(path: &str, first: &[&str], script: &Script) -> Chore {
    let mut run = std::process::Command::new(repository::top().join(path));
    run.env("ANABRANCH", program::anabranch()?).args(first).args(&script.arguments);
    command::passed_on(&mut run)
}

/// Prints the measurements, one per line.
fn list() -> Chore {
    for bench in Bench::augment_subcommands(Command::new("bench")).get_subcommands() {
        let about = bench.get_about().map(ToString::to_string).unwrap_or_default();
        println!("{:14} {about}", bench.get_name());
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether a name contains `only`, or one of several parts separated by `|`.
fn is_wanted(only: &str, name: &str) -> bool {
    only.split('|').any(|part| name.contains(part))
}

/// Splits a command into its words.
fn words(command: &str) -> Vec<String> {
    command.split_whitespace().map(str::to_owned).collect()
}
