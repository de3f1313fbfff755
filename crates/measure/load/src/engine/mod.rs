//! Load on a server: one loop a thread drives some connections, none of which it ever waits for alone.

pub(crate) mod directory;
mod lane;
mod meter;
mod place;
mod replay;
mod worker;

pub(crate) use place::{CYCLE_NAMES, cycle_name};
pub(crate) use worker::FIRST_THREAD_DIRECTORY;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::fault::Fault;
use crate::files::Files;
use crate::link::Link;
use crate::pattern::mixed;
use crate::result::{Problem, Repetition};
use crate::server::{Moment, Server};
use crate::workload::Workload;

use meter::Meter;
use replay::Replaying;
use worker::Worker;

/// What all threads of a run share.
pub(crate) struct Shared<'a> {
    pub(crate) files: &'a Files,
    pub(crate) workload: &'a Workload,
    /// Writes each block of all files once, and ends.
    pub(crate) fill: bool,
    /// Somebody wants it to end.
    pub(crate) stop: &'a AtomicBool,
    /// After this long without an answer a reply counts as lost.
    pub(crate) timeout: Duration,
    /// Which run of load this is: names of the metadata workload have it.
    pub(crate) round: u32,
    /// Where each thread of the workload is, in blocks.
    cursors: Vec<AtomicU64>,
    /// What is done in the place of what the workload's key says.
    replaying: Option<Replaying<'a>>,
    begin: Instant,
    end: Instant,
}

/// What a run of load gave.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) repetition: Repetition,
    pub(crate) problems: Vec<Problem>,
    /// Why it ended before its time.
    pub(crate) fault: Option<Fault>,
}

/// What to load, and with what.
pub(crate) struct Load<'a> {
    pub(crate) links: &'a mut [Link],
    pub(crate) files: &'a Files,
    pub(crate) workload: &'a Workload,
    pub(crate) fill: bool,
    pub(crate) stop: &'a AtomicBool,
    pub(crate) timeout: Duration,
    pub(crate) server: &'a Server,
    pub(crate) round: u32,
}

/// Runs load and measures it.
pub(crate) fn run(load: Load<'_>) -> Measured {
    let Load { links, files, workload, fill, stop, timeout, server, round } = load;
    let workers = workers(links.len(), workload);
    let shared = Shared::new(files, workload, fill, stop, timeout, round);
    let mut meters = Vec::new();
    let mut moments = (Moment::default(), Moment::default());
    thread::scope(|scope| {
        let (ended, all_ended) = mpsc::channel::<()>();
        let mut running = Vec::new();
        for (number, links) in split(links, workers).into_iter().enumerate() {
            let (shared, ended) = (&shared, ended.clone());
            let places: Vec<usize> =
                (0..workload.places()).filter(|place| place % workers == number).collect();
            running.push(scope.spawn(move || {
                let meter = Worker::new(shared, links, &places).run();
                drop(ended);
                meter
            }));
        }
        drop(ended);
        moments = watch(&all_ended, &shared, server);
        meters.extend(running.into_iter().filter_map(|worker| worker.join().ok()));
    });
    let mut measured = Meter::merged(meters);
    moments.0.until(&moments.1, &mut measured.repetition);
    measured
}

/// Threads of this machine: no more than connections, CPUs and places under way.
fn workers(connections: usize, workload: &Workload) -> usize {
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    connections.min(cpus).min(workload.places()).max(1)
}

/// Parts of about the same size.
fn split(mut links: &mut [Link], parts: usize) -> Vec<&mut [Link]> {
    let mut out = Vec::new();
    for left in (1..=parts).rev() {
        let (part, rest) = links.split_at_mut(links.len() / left);
        out.push(part);
        links = rest;
    }
    out
}

/// Reads the clocks of client and server when the measurement begins and when it ends.
fn watch(ended: &mpsc::Receiver<()>, shared: &Shared<'_>, server: &Server) -> (Moment, Moment) {
    let wait = |until: Instant| {
        let timeout = until.saturating_duration_since(Instant::now());
        matches!(ended.recv_timeout(timeout), Err(mpsc::RecvTimeoutError::Timeout))
    };
    if !wait(shared.begin) {
        return Default::default();
    }
    let before = server.moment();
    wait(shared.end);
    (before, server.moment())
}

/// A block of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) file: usize,
    pub(crate) offset: u64,
    pub(crate) length: u32,
}

impl<'a> Shared<'a> {
    fn new(
        files: &'a Files,
        workload: &'a Workload,
        fill: bool,
        stop: &'a AtomicBool,
        timeout: Duration,
        round: u32,
    ) -> Self {
        let begin = Instant::now() + if fill { Duration::ZERO } else { workload.ramp };
        let ends_itself = fill || workload.replay.is_some();
        let end = begin + if ends_itself { Duration::from_secs(7 * 86400) } else { workload.time };
        let threads = workload.key.threads.max(1);
        let cursors = (0..=threads).map(|_| AtomicU64::new(0)).collect();
        let replaying =
            workload.replay.as_ref().filter(|_| !fill).map(|replay| Replaying::new(replay, begin));
        Self { files, workload, fill, stop, timeout, round, cursors, replaying, begin, end }
    }
}

impl Shared<'_> {
    fn block_bytes(&self) -> u64 {
        self.workload.key.block_bytes.max(1)
    }

    /// The next block of a thread, if there is one. `random` is a random number.
    pub(crate) fn next_block(&self, thread: usize, random: u64) -> Option<Block> {
        let blocks = (self.files.bytes / self.block_bytes()).max(1);
        let files = u64::from(self.workload.key.files.max(1)).min(self.files.count() as u64);
        let at = |file: u64, block: u64| Block {
            file: usize::try_from(file).unwrap_or(0),
            offset: block * self.block_bytes(),
            length: u32::try_from(self.block_bytes()).unwrap_or(u32::MAX),
        };
        if self.fill {
            let n = self.cursors.last()?.fetch_add(1, Ordering::Relaxed);
            return self.files.nth(n, self.block_bytes()).map(|(file, block)| at(file as u64, block));
        }
        let (thread, threads) = (thread as u64, u64::from(self.workload.key.threads.max(1)));
        // With more threads than files, several work on one file, each beginning at a place of its own.
        let own = if threads >= files { 1 } else { (files - thread).div_ceil(threads) };
        let file = |n: u64| (thread + n * threads) % files;
        if self.workload.key.random {
            let number = mixed(random);
            return Some(at(file(number % own.max(1)), (number >> 16) % blocks));
        }
        let n = self.cursors.get(usize::try_from(thread).unwrap_or(0))?.fetch_add(1, Ordering::Relaxed);
        let beside = threads.div_ceil(files);
        let start = if threads >= files { blocks * (thread / files) / beside } else { 0 };
        Some(at(file(n % own.max(1)), (start + n / own.max(1)) % blocks))
    }
}
