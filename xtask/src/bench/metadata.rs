//! The benefit of the metadata cache, and the cost of a name in a large directory.

mod samba;
mod section;

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};

use self::samba::Samba;
use super::afterwards::Scratch;
use super::fsload::{Column, Figures, Fsload};
use super::rounds::order;
use super::server::{Server, Settings};
use super::{program, words};
use crate::command::Chore;
use crate::markdown::write_section;
use crate::repository;

const PAGE: &str = "docs/measured/performance.md";
/// The number of results of a complete run: the loads with latency and without, and two or three servers with names.
const WHOLE: usize = 16;
const NAMES: u32 = 1_000_000;
const DEPTH: u32 = 16;
/// The loads that are measured with and without the cache: name, protocol, arguments of fsload.
const WORKS: [(&str, &str, &str); 7] = [
    ("SMB create, close, open, close, open to delete, close", "smb", "op=meta"),
    ("SMB create, close, open, close, open to delete, close, 4 connections", "smb", "op=meta conns=4"),
    ("SMB open by a name in capitals, close", "smb", "op=open within=files names=1000"),
    ("NFSv3 create, lookup, remove", "nfs3", "op=meta"),
    ("NFSv3 create, lookup, remove, 4 connections", "nfs3", "op=meta conns=4"),
    ("NFSv4.1 open to create, close, open, close, remove", "nfs41", "op=meta"),
    ("NFSv3 lookup", "nfs3", "op=open within=files names=1000"),
];

#[derive(Args)]
pub(super) struct MetadataArguments {
    /// Runs of each row
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Seconds of each run
    #[arg(long, default_value_t = 2.0)]
    secs: f64,
    /// Microseconds that are added to each metadata call of the store
    #[arg(long, default_value_t = 1000)]
    latency: u32,
    /// Only this part. Nothing is written unless the results that are kept have the other parts too
    #[arg(long)]
    only: Option<Part>,
    /// Add the results to those in this file
    #[arg(long, value_name = "FILE")]
    keep: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Part {
    /// With the latency that is added
    Slow,
    /// Without it
    Local,
    /// A name in a directory of ten and in one of a million
    Names,
}

pub(super) fn run(given: &MetadataArguments) -> Chore {
    let home = Scratch::make(None).map_err(|e| format!("a scratch folder: {e}"))?;
    let results = given.keep.clone().unwrap_or_else(|| home.path().join("results"));
    let bench = Bench { anabranch: program::anabranch()?, fsload: Fsload::build()?, given, results };
    let wanted = |part| given.only.is_none_or(|only| only == part);
    let files = [home.path().join("on"), home.path().join("off")];
    for share in &files {
        fill(&share.join("files"), 1000)?;
        owned(share, 1000)?;
    }
    for (part, added) in [(Part::Slow, given.latency), (Part::Local, 0)] {
        if wanted(part) {
            bench.cache(&files, added)?;
        }
    }
    if wanted(Part::Names) {
        bench.names()?;
    }
    let rows = bench.kept()?;
    let section = section::section(&rows)?;
    println!("{section}");
    if given.only.is_none() || rows.len() >= WHOLE {
        write_section(&repository::top().join(PAGE), &section)?;
        println!("wrote {PAGE}");
    }
    Ok(ExitCode::SUCCESS)
}

struct Bench<'a> {
    anabranch: PathBuf,
    fsload: Fsload,
    given: &'a MetadataArguments,
    results: PathBuf,
}

impl Bench<'_> {
    /// Serves two directories, the first with the metadata cache.
    fn serve(&self, [on, off]: &[PathBuf; 2], owner: u32, added: u32) -> Result<Server, String> {
        let latency = if added > 0 { format!("bench-metadata-latency = {added}\n") } else { String::new() };
        let off = off.display();
        let settings = Settings {
            share: "on",
            owner,
            lines: Settings::default().lines + "log = \"warn\"\n" + &latency,
            share_lines: format!(
                "\n[[share]]\nname = \"off\"\ndirectory = \"{off}\"\nmetadata-cache = false\n"
            ),
            directory: Some(on.clone()),
            // Its own session, like the peers have: the scheduler divides the processors among sessions first.
            before: words("setsid"),
            ..Settings::default()
        };
        Server::start(&self.anabranch, &settings)
    }

    fn cache(&self, directories: &[PathBuf; 2], added: u32) -> Result<(), String> {
        let server = self.serve(directories, 1000, added)?;
        for (work, protocol, load) in WORKS {
            let targets = ["off", "on"].map(|share| {
                let load = format!("{protocol} {} {load} qd={DEPTH}", server.fsload(protocol, share));
                (share, load)
            });
            let figures =
                self.in_turns(&format!("+{added} us, {work}"), &targets, self.given.runs, self.given.secs)?;
            let row = json!({"what": "cache", "added": added, "depth": DEPTH, "runs": self.given.runs, "secs": self.given.secs, "work": work});
            self.keep(row, &targets, &figures)?;
        }
        server.stop()
    }

    fn names(&self) -> Result<(), String> {
        let many = Scratch::make(Some("/dev/shm")).map_err(|e| format!("a folder in memory: {e}"))?;
        let [on, off] = ["on", "off"].map(|share| many.path().join(share));
        fill(&on.join("ten"), 10)?;
        fill(&on.join("million"), NAMES)?;
        fill(&off, 0)?;
        for directory in [&on, &off, &on.join("ten"), &on.join("million")] {
            chown(directory, Some(1000), Some(1000)).map_err(|e| format!("{}: {e}", directory.display()))?;
        }
        let samba = Samba::start(&on)?;
        // Samba makes its user the owner of the directory. The files of one server's client must belong to the other
        // server's client too.
        let owner = std::os::unix::fs::MetadataExt::uid(&fs::metadata(&on).map_err(|e| e.to_string())?);
        let server = self.serve(&[on, off], owner, 0)?;
        let MetadataArguments { runs, secs, .. } = *self.given;
        self.names_of("Anabranch, SMB", &format!("smb {}", server.fsload("smb", "on")), runs, secs)?;
        self.names_of("Anabranch, NFSv3", &format!("nfs3 {}", server.fsload("nfs3", "on")), runs, secs)?;
        if let Some(samba) = &samba {
            self.names_of("Samba, SMB", &format!("smb {}", samba.fsload()), 1, 10.0)?;
        }
        server.stop()
    }

    fn names_of(&self, server: &str, at: &str, runs: usize, secs: f64) -> Result<(), String> {
        let targets = [("ten", 10), ("million", NAMES)]
            .map(|(size, count)| (size, format!("{at} op=open within={size} names={count} qd=1")));
        let figures = self.in_turns(server, &targets, runs, secs)?;
        self.keep(json!({"what": "names", "runs": runs, "secs": secs, "work": server}), &targets, &figures)
    }

    /// The figures of each target. The runs of the targets alternate.
    fn in_turns(
        &self,
        name: &str,
        targets: &[(&str, String); 2],
        runs: usize,
        secs: f64,
    ) -> Result<[Vec<Figures>; 2], String> {
        let mut figures = [Vec::new(), Vec::new()];
        for run in 0..runs {
            for which in order::<2>(run) {
                let (target, load) = &targets[which];
                let load = format!("{load} secs={secs} ramp=1 size=1m");
                let one = self.fsload.run("", &load).map_err(|e| format!("{name}, {target}: {e}"))?;
                let [rate, p50, cpu] = [Column::Rate, Column::P50, Column::Cpu].map(|column| one.of(column));
                println!(
                    "{} {name:64} {target:8} {rate:9.0} /s  p50 {p50:9.0} us  CPU {cpu:8.1} us",
                    run + 1
                );
                figures[which].push(one);
            }
        }
        Ok(figures)
    }

    /// Adds a row to the results.
    fn keep(
        &self,
        row: Value,
        targets: &[(&str, String); 2],
        figures: &[Vec<Figures>; 2],
    ) -> Result<(), String> {
        let Value::Object(mut row) = row else { return Err("a row that is no object".to_owned()) };
        for ((target, _), runs) in targets.iter().zip(figures) {
            row.insert((*target).to_owned(), runs.iter().map(Figures::to_json).collect());
        }
        let opened = OpenOptions::new().append(true).create(true).open(&self.results);
        let written = opened.and_then(|mut file| writeln!(file, "{}", Value::Object(row)));
        written.map_err(|e| format!("{}: {e}", self.results.display()))
    }

    /// All results that are kept.
    fn kept(&self) -> Result<Vec<Map<String, Value>>, String> {
        let text =
            fs::read_to_string(&self.results).map_err(|e| format!("{}: {e}", self.results.display()))?;
        let rows = text.lines().map(serde_json::from_str).collect::<Result<_, _>>();
        rows.map_err(|e| format!("{}: {e}", self.results.display()))
    }
}

/// Fills a directory with this many files for `op=open` of fsload.
fn fill(directory: &Path, count: u32) -> Result<(), String> {
    let files = (0..count).map(|number| directory.join(format!("File {number:07}.txt")));
    let made = fs::create_dir_all(directory)
        .and_then(|()| files.map(File::create).try_for_each(|file| file.map(drop)));
    made.map_err(|e| format!("{}: {e}", directory.display()))
}

/// Makes a user the owner of a directory, its directories and their files.
fn owned(directory: &Path, uid: u32) -> Result<(), String> {
    let problem = |e| format!("{}: {e}", directory.display());
    for entry in fs::read_dir(directory).map_err(problem)? {
        let path = entry.map_err(problem)?.path();
        if path.is_dir() {
            owned(&path, uid)?;
        } else {
            chown(&path, Some(uid), Some(uid)).map_err(problem)?;
        }
    }
    chown(directory, Some(uid), Some(uid)).map_err(problem)
}
