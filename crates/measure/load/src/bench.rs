//! A run: a plan on a target, row by row in turns, to a result; and several runs in turns.

mod turns;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::environment::{is_this_machine, this_host, way_to};
use crate::fault::{Fault, Result};
use crate::grounds::Grounds;
use crate::link::resolve;
use crate::plan::{Extent, Plan, PlannedRow};
use crate::result::{
    Comparison, Environment, FORMAT, Key, Method, Mix, Negotiated, Outcome, Problem, ProblemKind, Repetition,
    ResultFile, Row,
};
use crate::site::Access;
use crate::target::Target;
use crate::trace::Replay;
use crate::workload::Workload;

/// Lost connections of a run after which it does not go on.
const LOST_MAX: u32 = 3;

/// What a run is to do.
#[derive(Debug, Clone)]
pub struct Run<'a> {
    /// What is measured on.
    pub target: &'a Target,
    /// How it is spoken to.
    pub access: &'a Access,
    /// What is measured.
    pub plan: &'a Plan,
    /// How long and how often.
    pub extent: &'a Extent,
    /// Operations a second, where a fixed rate is asked for.
    pub rate: Option<f64>,
    /// How long each place rests between two operations.
    pub think: Duration,
    /// What is read is compared with what was written.
    pub check: bool,
    /// A trace that is done in the place of each row of the plan.
    pub replay: Option<Replay>,
    /// The program, for the result.
    pub program: &'a str,
}

/// How far a run has come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress<'a> {
    /// What it does now.
    pub now: &'a str,
    /// Measurements that were made, and how many there are to be.
    pub done: usize,
    /// How many there are to be.
    pub all: usize,
    /// Seconds that are left, as far as one can know.
    pub seconds_left: f64,
}

/// Makes a run. It ends early when `stop` becomes true, or when it cannot go on; what was measured until then is in the
/// result.
pub fn run(run: &Run<'_>, stop: &AtomicBool, progress: &mut dyn FnMut(Progress<'_>)) -> ResultFile {
    let mut bench = [Bench::new(run, stop)];
    turns::take(&mut bench, stop, progress);
    let [bench] = bench;
    bench.end()
}

/// Makes several runs in turns: each row on one target, then on the next, and every other time backwards, so that what
/// changes on this machine meanwhile changes for all of them. A run that cannot go on does not keep the others from it.
/// One result a run.
pub fn run_in_turns(
    runs: &[Run<'_>],
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Vec<ResultFile> {
    let mut benches: Vec<Bench<'_>> = runs.iter().map(|run| Bench::new(run, stop)).collect();
    turns::take(&mut benches, stop, progress);
    benches.into_iter().map(Bench::end).collect()
}

struct Bench<'a> {
    run: &'a Run<'a>,
    stop: &'a AtomicBool,
    began: Instant,
    result: ResultFile,
    /// The rows that can be measured: their places in the plan.
    rows: Vec<usize>,
    /// What is replayed, in operations that the target takes.
    replay: Option<Replay>,
    problems: BTreeMap<ProblemKind, Problem>,
    lost: u32,
    /// Of the lost connections, those that no repetition says yet were made again.
    lost_untold: u64,
    /// The folder on the target, while there is one.
    site: Option<Grounds<'a>>,
    /// Why the run cannot go on.
    failed: Option<Fault>,
}

impl<'a> Bench<'a> {
    fn new(run: &'a Run<'a>, stop: &'a AtomicBool) -> Self {
        let Run { target, plan, extent, .. } = run;
        let method = Method {
            quick: extent.quick,
            repetitions: extent.repetitions,
            first_pass_discarded: true,
            interleaved: plan.rows.len() > 1,
            ramp_seconds: extent.ramp_seconds,
            seconds: extent.seconds,
            data_checked: run.check,
        };
        let mut environment = environment(target);
        environment.settings.clone_from(&run.access.server.settings);
        let result = ResultFile {
            format: FORMAT,
            program: run.program.to_owned(),
            began: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs()),
            family: plan.family.clone(),
            documents: plan.documents.clone(),
            method,
            environment,
            rows: Vec::new(),
            comparisons: Vec::new(),
            outcome: Outcome::Complete,
            problems: Vec::new(),
            not_honoured: plan.not_honoured.clone(),
        };
        Self {
            run,
            stop,
            began: Instant::now(),
            result,
            rows: Vec::new(),
            replay: run.replay.clone(),
            problems: BTreeMap::new(),
            lost: 0,
            lost_untold: 0,
            site: None,
            failed: None,
        }
    }

    fn planned(&self, n: usize) -> &'a PlannedRow {
        &self.run.plan.rows[self.rows[n]]
    }

    /// Makes the folder, chooses the rows, writes the files.
    fn begin(&mut self) {
        self.failed = match Grounds::make(self.run.target, self.run.access) {
            Ok(mut site) => {
                let prepared = self.prepare(&mut site);
                self.site = Some(site);
                prepared.err()
            }
            Err(fault) => Some(fault),
        };
    }

    /// Measures a row of the plan once, if it can be measured here.
    fn step(&mut self, planned: usize, discarded: bool) {
        let Some(row) = self.rows.iter().position(|row| *row == planned) else { return };
        let Some(mut site) = self.site.take() else { return };
        self.failed = self.repetition(&mut site, row, discarded).err();
        self.site = Some(site);
    }

    /// Removes what was made.
    fn remove(&mut self) {
        let Some(site) = self.site.take() else { return };
        let (settings, remark) = site.remarks();
        self.result.environment.settings.extend(settings);
        self.result.not_honoured.extend(remark);
        if let Err(fault) = site.remove() {
            self.problem(fault.into());
        }
    }

    /// Leaves out what this target cannot do, and says so.
    fn choose(&mut self, negotiated: &Negotiated) {
        self.cut(negotiated);
        let signs = negotiated.signing.is_some() || negotiated.cipher.is_some();
        for (n, row) in self.run.plan.rows.iter().enumerate() {
            let limit = match row.key.mix {
                _ if negotiated.read_bytes_max == 0 => u32::MAX,
                Mix::ReadPercent(100) => negotiated.read_bytes_max,
                Mix::ReadPercent(0) => negotiated.write_bytes_max,
                _ => negotiated.read_bytes_max.min(negotiated.write_bytes_max),
            };
            if row.key.block_bytes > limit.into() {
                self.result.not_honoured.push(format!("{}: the server takes {limit} bytes at most", row.key));
            } else if signs && row.security.as_ref().is_some_and(|s| !s.is_asked_for()) {
                let text = format!("{}: the server wants messages signed or encrypted", row.key);
                self.result.not_honoured.push(text);
            } else {
                self.rows.push(n);
                self.result.rows.push(Row::new(row.key.clone(), &row.documents));
            }
        }
    }

    /// Longer reads and writes of a trace than the target takes become several, which is said.
    fn cut(&mut self, negotiated: &Negotiated) {
        let Some(replay) = self.replay.as_mut().filter(|_| negotiated.read_bytes_max > 0) else { return };
        let (read_max, write_max) = (negotiated.read_bytes_max, negotiated.write_bytes_max);
        let (pieces, longer) = replay.trace.in_pieces(read_max, write_max);
        if longer > 0 {
            replay.trace = Arc::new(pieces);
            let text = format!(
                "{longer} reads and writes are replayed in pieces: the server takes {read_max} and {write_max} bytes at most"
            );
            self.result.not_honoured.push(text);
        }
    }

    fn prepare(&mut self, site: &mut Grounds<'_>) -> Result<()> {
        let (round_trip, negotiated) = site.round_trip()?;
        let environment = &mut self.result.environment;
        environment.round_trip_us = round_trip;
        environment.server = self.run.access.server.name.clone().or_else(|| negotiated.server.clone());
        self.choose(&negotiated);
        self.result.environment.negotiated = negotiated;
        self.make_files(site)
    }

    fn make_files(&self, site: &mut Grounds<'_>) -> Result<()> {
        if let Some(Replay { trace, .. }) = &self.replay {
            return site.make_files(trace.sizes(), trace.granule(), self.stop);
        }
        let keys = || (0..self.rows.len()).map(|n| &self.planned(n).key);
        let with_data = || keys().filter(|key| key.mix != Mix::Metadata);
        let largest = with_data().map(|key| key.block_bytes).max().unwrap_or(0);
        if let Some(files) = with_data().map(|key| key.files.max(1)).max() {
            let bytes = self.run.extent.file_bytes.max(largest).next_multiple_of(largest.max(1));
            site.make_files(&vec![bytes; files as usize], self.run.plan.granule(), self.stop)?;
        }
        let threads = keys().filter(|key| key.mix == Mix::Metadata).map(|key| key.threads.max(1)).max();
        site.make_thread_directories(threads.unwrap_or(0))
    }

    /// Measures a row once. A connection that was lost is made again with the next measurement.
    fn repetition(&mut self, site: &mut Grounds<'_>, n: usize, discarded: bool) -> Result<()> {
        let row = self.planned(n);
        let workload = Workload {
            key: row.key.clone(),
            rate: self.run.rate,
            think: self.run.think,
            ramp: Duration::from_secs_f64(self.run.extent.ramp_seconds),
            time: Duration::from_secs_f64(self.run.extent.seconds),
            check: self.run.check && self.replay.as_ref().is_none_or(|replay| replay.trace.can_be_checked()),
            replay: self.replay.clone(),
        };
        let security = row.security.as_ref().unwrap_or(&self.run.access.security);
        if row.key.is_out_of_cache() && !site.empty_caches()? {
            self.not_honoured(format!(
                "{}: the server's cache was not emptied: files must be larger than its memory",
                row.key
            ));
        }
        let began_seconds = self.began.elapsed().as_secs_f64() + self.run.extent.ramp_seconds;
        let (measured, negotiated) = match site.load(&workload, security, self.stop) {
            Ok(loaded) => loaded,
            Err(fault) if row.security.is_some() && fault.kind == ProblemKind::Refused => {
                self.not_honoured(format!("{}: {fault}", row.key));
                return Ok(());
            }
            Err(fault) => return self.lost(fault),
        };
        self.note(&negotiated, &row.key);
        for problem in measured.problems {
            self.problem(problem);
        }
        let repetition = Repetition { began_seconds, reconnects: self.lost_untold, ..measured.repetition };
        if !discarded && repetition.seconds > 0.0 {
            self.lost_untold = 0;
            self.result.rows[n].repetitions.push(repetition);
        }
        match measured.fault {
            Some(fault) => self.lost_after_measuring(fault),
            None => Ok(()),
        }
    }

    fn not_honoured(&mut self, text: String) {
        if !self.result.not_honoured.contains(&text) {
            self.result.not_honoured.push(text);
        }
    }

    fn lost(&mut self, fault: Fault) -> Result<()> {
        if !fault.is_of_connection() || self.lost + 1 >= LOST_MAX {
            return Err(fault);
        }
        self.problem(fault.clone().into());
        self.lost_after_measuring(fault)
    }

    /// The fault is among the problems already.
    fn lost_after_measuring(&mut self, fault: Fault) -> Result<()> {
        self.lost += 1;
        self.lost_untold += 1;
        if fault.is_of_connection() && self.lost < LOST_MAX { Ok(()) } else { Err(fault) }
    }

    fn note(&mut self, negotiated: &Negotiated, key: &Key) {
        let known = &mut self.result.environment.negotiated;
        known.connections = known.connections.max(negotiated.connections);
        if known.server_interfaces.is_empty() {
            known.server_interfaces.clone_from(&negotiated.server_interfaces);
        }
        for address in &negotiated.addresses {
            if !known.addresses.contains(address) {
                known.addresses.push(address.clone());
            }
        }
        if let Some(asked) = negotiated.connections_asked {
            known.connections_asked = known.connections_asked.max(Some(asked));
            self.not_honoured(format!("{key}: the server admitted {} connections", negotiated.connections));
        }
    }

    fn problem(&mut self, problem: Problem) {
        let count = problem.count;
        self.problems.entry(problem.kind).and_modify(|p| p.count += count).or_insert(problem);
    }

    fn end(mut self) -> ResultFile {
        self.result.outcome = match self.failed.take() {
            Some(fault) => {
                self.problems.entry(fault.kind).or_insert_with(|| fault.into());
                Outcome::Failed
            }
            None if self.stop.load(Ordering::Relaxed) => Outcome::Stopped,
            None => Outcome::Complete,
        };
        self.result.rows.iter_mut().for_each(Row::aggregate);
        self.result.rows.retain(|row| row.measure.is_some());
        for (base, other) in &self.run.plan.comparisons {
            let row = |n: usize| self.result.row(&self.run.plan.rows[n].key);
            if let Some((base, other)) = row(*base).zip(row(*other)) {
                self.result.comparisons.push(Comparison::of(base, other));
            }
        }
        self.result.problems = self.problems.into_values().collect();
        note_ways(&mut self.result.environment);
        self.result
    }
}

/// Which interfaces of client and server connections went over.
fn note_ways(environment: &mut Environment) {
    let addresses = &environment.negotiated.addresses;
    let ways: BTreeSet<String> =
        addresses.iter().filter_map(|address| way_to(address.parse().ok()?)).collect();
    for interface in &mut environment.client.interfaces {
        interface.used = ways.contains(&interface.name);
    }
    for interface in &mut environment.negotiated.server_interfaces {
        interface.used = addresses.contains(&interface.name);
    }
}

fn environment(target: &Target) -> Environment {
    let host = match target {
        Target::Smb(t) => Some((&t.host, t.port)),
        Target::Nfs(t) => Some((&t.host, t.port)),
        Target::Directory(_) => None,
    };
    let loopback = match host {
        Some((host, port)) => resolve(host, port).is_ok_and(|address| is_this_machine(address.ip())),
        None => true,
    };
    Environment {
        target: target.to_string(),
        protocol: target.protocol(),
        client: this_host(),
        loopback,
        round_trip_us: None,
        negotiated: Negotiated::default(),
        server: None,
        settings: BTreeMap::new(),
    }
}

/// What ended wrong, if anything did: the run is no success then.
#[must_use]
pub fn went_wrong(result: &ResultFile) -> bool {
    let kinds: BTreeSet<_> = result.problems.iter().map(|problem| problem.kind).collect();
    result.outcome == Outcome::Failed || !kinds.is_empty()
}
