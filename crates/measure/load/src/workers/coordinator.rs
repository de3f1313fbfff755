//! The coordinator: it has its workers do the same at the same time, and adds up what they have counted.

use std::collections::BTreeMap;
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::channel::{Sender, Side, plain, sealed};
use super::message::{Begin, Hello, Order, Report, VERSION};
use super::{WorkerPlace, Workers};
use crate::engine::Measured;
use crate::fault::{Fault, Result};
use crate::link::resolve;
use crate::result::{Key, Negotiated, Problem, ProblemKind};
use crate::security::Security;
use crate::site::Access;
use crate::target::Target;
use crate::workload::Workload;

/// How long a worker may take to say who it is: a login over SSH, and a little more.
const HELLO_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a worker that was stopped may take to end its load, beyond the time that its server has for an answer.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);
/// So often it is looked whether the run is to end.
const LOOK: Duration = Duration::from_millis(50);
/// The workers have begun together where all of them did within this part of what is measured.
const TOGETHER: f64 = 0.1;

/// All workers of a run.
pub(crate) struct Coordinator {
    workers: Vec<Worker>,
    timeout: Duration,
    /// The longest time within which all workers of a load have begun.
    spread: Duration,
    late: u32,
}

struct Worker {
    name: String,
    sender: Sender,
    /// What it says, and when it arrived; an error at the end.
    reports: Receiver<Result<(Instant, Report)>>,
    /// The name of its folder, while there is one.
    folder: Option<String>,
    /// The command that it is the other end of.
    child: Option<Child>,
}

impl Coordinator {
    /// Connects to all workers and has each make its folder; the round trip and what was agreed on are those of the first.
    pub(crate) fn make(
        target: &Target,
        access: &Access,
        workers: &Workers,
    ) -> Result<(Self, Option<f64>, Negotiated)> {
        let mut all = Self { workers: Vec::new(), timeout: access.timeout, spread: Duration::ZERO, late: 0 };
        for place in &workers.places {
            all.workers.push(Worker::connect(place, workers, access.timeout)?);
        }
        for worker in &mut all.workers {
            worker.send(&Order::Begin(Begin {
                version: VERSION,
                target: target.clone(),
                addresses: access.addresses.clone(),
                timeout: access.timeout,
                security: access.security.clone(),
            }))?;
        }
        let (mut first, mut failed) = (None, None);
        for worker in &mut all.workers {
            match worker.report(HELLO_TIMEOUT + access.timeout) {
                Ok((_, Report::Begun { folder, round_trip_us, negotiated })) => {
                    worker.folder = Some(folder);
                    first.get_or_insert((round_trip_us, negotiated));
                }
                Ok((_, Report::Failed(fault))) => failed = Some(worker.named(fault)),
                Ok(_) => failed = Some(out_of_turn()),
                Err(fault) => failed = Some(fault),
            }
        }
        match (failed, first) {
            (None, Some((round_trip, negotiated))) => Ok((all, round_trip, negotiated)),
            (failed, _) => {
                let none = || Fault::new(ProblemKind::Worker, "there is no worker");
                let _ = all.remove();
                Err(failed.unwrap_or_else(none))
            }
        }
    }

    /// Has every worker do something that is answered with `Done`.
    fn all_do(&mut self, order: &Order, stop: &AtomicBool) -> Result<()> {
        for worker in &mut self.workers {
            worker.send(order)?;
        }
        let numbers: Vec<usize> = (0..self.workers.len()).collect();
        self.expect(&numbers, Duration::from_secs(86400), stop, |report| matches!(report, Report::Done))?;
        Ok(())
    }

    pub(crate) fn make_files(&mut self, sizes: &[u64], block: u64, stop: &AtomicBool) -> Result<()> {
        self.all_do(&Order::Files { sizes: sizes.to_vec(), block }, stop)
    }

    pub(crate) fn make_thread_directories(&mut self, threads: u32) -> Result<()> {
        self.all_do(&Order::Directories { threads }, &AtomicBool::new(false))
    }

    /// Runs load in as many workers as the row has clients, begun together, and adds up what they have counted.
    pub(crate) fn load(
        &mut self,
        workload: &Workload,
        security: &Security,
        stop: &AtomicBool,
    ) -> Result<(Measured, Negotiated)> {
        let parts = parts(workload, self.workers.len());
        let numbers: Vec<usize> = (0..parts.len()).collect();
        for (number, part) in parts.into_iter().enumerate() {
            self.workers[number].send(&Order::Load { workload: part, security: security.clone() })?;
        }
        self.expect(&numbers, 2 * self.timeout, stop, |report| matches!(report, Report::Ready))?;
        let begin = Instant::now();
        for number in &numbers {
            self.workers[*number].send(&Order::Go)?;
        }
        let started =
            self.expect(&numbers, self.timeout, stop, |report| matches!(report, Report::Started))?;
        let spread = started.iter().map(|at| at.saturating_duration_since(begin)).max().unwrap_or_default();
        self.spread = self.spread.max(spread);
        self.late += u32::from(spread > workload.time.mul_f64(TOGETHER));
        let mut sum: Option<(Measured, Negotiated)> = None;
        let mut failed = None;
        let patience = workload.ramp + workload.time + 2 * self.timeout + STOP_TIMEOUT;
        for (_, report) in self.collect(&numbers, patience, stop) {
            match report {
                Ok(Report::Loaded { measured, negotiated }) => match &mut sum {
                    Some((all, _)) => all.add(measured),
                    None => sum = Some((measured, negotiated)),
                },
                Ok(_) => failed = failed.or_else(|| Some(out_of_turn())),
                Err(fault) => failed = failed.or(Some(fault)),
            }
        }
        // What only some have counted is no measurement of all.
        match (failed, sum) {
            (Some(fault), _) => Err(fault),
            (None, Some(sum)) => Ok(sum),
            (None, None) => Err(Fault::new(ProblemKind::Worker, "there is no worker for this load")),
        }
    }

    /// Takes one report of each of these workers, which must be as expected; when each arrived.
    fn expect(
        &mut self,
        numbers: &[usize],
        patience: Duration,
        stop: &AtomicBool,
        is_expected: impl Fn(&Report) -> bool,
    ) -> Result<Vec<Instant>> {
        let (mut arrived, mut failed) = (Vec::new(), None);
        for (at, report) in self.collect(numbers, patience, stop) {
            match report {
                Ok(report) if is_expected(&report) => arrived.push(at),
                Ok(_) => failed = failed.or_else(|| Some(out_of_turn())),
                Err(fault) => failed = failed.or(Some(fault)),
            }
        }
        failed.map_or(Ok(arrived), Err)
    }

    /// One report of each of these workers, and when it arrived. When `stop` becomes true, or one of them is gone,
    /// the others are told to stop.
    fn collect(
        &mut self,
        numbers: &[usize],
        patience: Duration,
        stop: &AtomicBool,
    ) -> Vec<(Instant, Result<Report>)> {
        let deadline = Instant::now() + patience;
        let mut is_stopped = false;
        let mut waiting = numbers.to_vec();
        let mut all = Vec::new();
        while !waiting.is_empty() {
            let mut still = Vec::new();
            for number in std::mem::take(&mut waiting) {
                let worker = &mut self.workers[number];
                match worker.look(LOOK, deadline) {
                    None => still.push(number),
                    Some(Ok((at, report))) => all.push((at, worker.success(report))),
                    Some(Err(fault)) => all.push((Instant::now(), Err(fault))),
                }
            }
            waiting = still;
            let failed = all.iter().any(|(_, report)| report.is_err());
            if !is_stopped && (failed || stop.load(Ordering::Relaxed)) {
                is_stopped = true;
                for number in &waiting {
                    let _ = self.workers[*number].send(&Order::Stop);
                }
            }
        }
        all
    }

    /// Has every worker remove what it has made.
    pub(crate) fn remove(self) -> Result<()> {
        let mut left = Vec::new();
        for mut worker in self.workers {
            let asked = worker.send(&Order::Stop).and_then(|()| worker.send(&Order::End));
            let is_removed = asked.is_ok() && worker.has_removed(self.timeout + STOP_TIMEOUT);
            if let Some(folder) = worker.folder.take().filter(|_| !is_removed) {
                left.push(format!("{folder} of the worker {}", worker.name));
            }
            worker.end();
        }
        if left.is_empty() {
            return Ok(());
        }
        Err(Fault::new(
            ProblemKind::NotRemoved,
            format!("it may be that these were not removed: {}", left.join(", ")),
        ))
    }

    /// What belongs beside the figures, by name.
    pub(crate) fn settings(&self) -> BTreeMap<String, String> {
        let names: Vec<&str> = self.workers.iter().map(|worker| worker.name.as_str()).collect();
        let spread = format!("{:.1}", self.spread.as_secs_f64() * 1000.0);
        BTreeMap::from([
            ("workers".to_owned(), names.join(", ")),
            ("workers-began-within-ms".to_owned(), spread),
        ])
    }

    /// What was not as it should be, in words.
    pub(crate) fn not_honoured(&self) -> Option<String> {
        let text = format!(
            "{} measurements: the workers did not begin together, but within up to {:.0} ms",
            self.late,
            self.spread.as_secs_f64() * 1000.0
        );
        (self.late > 0).then_some(text)
    }
}

fn out_of_turn() -> Fault {
    Fault::new(ProblemKind::Worker, "a worker says something that is not due")
}

/// What each worker does of a load: clients, threads and the rate are dealt out. Workers without a client are left out.
fn parts(workload: &Workload, workers: usize) -> Vec<Workload> {
    let workers = u32::try_from(workers).unwrap_or(u32::MAX).max(1);
    let Key { clients, threads, .. } = workload.key;
    let share = |all: u32, n: u32, of: u32| {
        let up_to = |n: u32| u64::from(all) * u64::from(n) / u64::from(of.max(1));
        u32::try_from(up_to(n + 1) - up_to(n)).unwrap_or(u32::MAX)
    };
    let with_clients = workers.min(clients.max(1));
    (0..with_clients)
        .map(|n| {
            let mut part = workload.clone();
            part.key.clients = share(clients.max(1), n, with_clients);
            part.key.threads = share(threads, n, with_clients).max(1);
            part.rate =
                workload.rate.map(|rate| rate * f64::from(part.key.threads) / f64::from(threads.max(1)));
            part
        })
        .collect()
}

impl Measured {
    /// Adds what another worker has counted in the same time.
    fn add(&mut self, other: Self) {
        let (mine, theirs) = (&mut self.repetition, other.repetition);
        for (operation, tally) in theirs.operations {
            let sum = mine.operations.entry(operation).or_default();
            sum.count += tally.count;
            sum.bytes += tally.bytes;
            sum.latency.merge(&tally.latency);
        }
        mine.seconds = mine.seconds.max(theirs.seconds);
        mine.errors += theirs.errors;
        mine.wrong_blocks += theirs.wrong_blocks;
        mine.reconnects += theirs.reconnects;
        mine.client_cpu_seconds = mine.client_cpu_seconds.zip(theirs.client_cpu_seconds).map(|(a, b)| a + b);
        mine.connections += theirs.connections;
        mine.connection_bytes.extend(theirs.connection_bytes);
        for problem in other.problems {
            match self.problems.iter_mut().find(|known: &&mut Problem| known.kind == problem.kind) {
                Some(known) => known.count += problem.count,
                None => self.problems.push(problem),
            }
        }
        if self.fault.is_none() {
            self.fault = other.fault;
        }
    }
}

impl Worker {
    fn connect(place: &WorkerPlace, workers: &Workers, timeout: Duration) -> Result<Self> {
        let name = place.to_string();
        let named = |fault: Fault| Fault { text: format!("the worker {name}: {fault}"), ..fault };
        let (sender, mut receiver, child) = match place {
            WorkerPlace::Listening(at) => {
                let token = workers.token.as_ref().ok_or_else(|| {
                    named(Fault::new(ProblemKind::Worker, "a worker that listens needs a token"))
                })?;
                let (sender, receiver) =
                    sealed(reach(at, timeout).map_err(named)?, token, Side::Coordinator).map_err(named)?;
                (sender, receiver, None)
            }
            WorkerPlace::Command { command, .. } => {
                let (sender, receiver, child) = start(command).map_err(named)?;
                (sender, receiver, Some(child))
            }
        };
        let (said, reports) = channel();
        let (hello_said, hello) = channel();
        thread::spawn(move || {
            if hello_said.send(receiver.receive::<Hello>()).is_err() {
                return;
            }
            loop {
                let (report, is_last) = match receiver.receive::<Report>() {
                    Ok(Some(report)) => (Ok((Instant::now(), report)), false),
                    Ok(None) => (Err(gone()), true),
                    Err(fault) => (Err(fault), true),
                };
                if said.send(report).is_err() || is_last {
                    return;
                }
            }
        });
        let worker = Self { name: name.clone(), sender, reports, folder: None, child };
        match hello.recv_timeout(HELLO_TIMEOUT) {
            Ok(Ok(Some(Hello { version: VERSION, .. }))) => Ok(worker),
            Ok(Ok(Some(Hello { version, program }))) => {
                let text =
                    format!("it is {program} and speaks version {version} of the messages, not {VERSION}");
                Err(named(Fault::new(ProblemKind::Worker, text)))
            }
            Ok(Ok(None)) => Err(named(gone())),
            Ok(Err(fault)) => Err(named(fault)),
            Err(_) => Err(named(Fault::new(ProblemKind::Worker, "it does not say who it is"))),
        }
    }

    fn named(&self, fault: Fault) -> Fault {
        Fault { text: format!("the worker {}: {fault}", self.name), ..fault }
    }

    /// A report that is no failure. After a failure the workers are no longer in step: the run does not go on.
    fn success(&self, report: Report) -> Result<Report> {
        match report {
            Report::Failed(fault) if fault.is_of_connection() => {
                Err(self.named(Fault { kind: ProblemKind::Worker, ..fault }))
            }
            Report::Failed(fault) => Err(self.named(fault)),
            report => Ok(report),
        }
    }

    fn send(&mut self, order: &Order) -> Result<()> {
        let name = &self.name;
        self.sender
            .send(order)
            .map_err(|fault| Fault { text: format!("the worker {name}: {fault}"), ..fault })
    }

    /// What it says within `wait`; an error once `deadline` is over, or when it is gone.
    fn look(&self, wait: Duration, deadline: Instant) -> Option<Result<(Instant, Report)>> {
        match self.reports.recv_timeout(wait) {
            Ok(report) => Some(report.map_err(|fault| self.named(fault))),
            Err(RecvTimeoutError::Disconnected) => Some(Err(self.named(gone()))),
            Err(RecvTimeoutError::Timeout) if Instant::now() < deadline => None,
            Err(RecvTimeoutError::Timeout) => {
                Some(Err(self.named(Fault::new(ProblemKind::Worker, "it does not answer"))))
            }
        }
    }

    fn report(&self, patience: Duration) -> Result<(Instant, Report)> {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(report) = self.look(LOOK, deadline) {
                return report;
            }
        }
    }

    /// Whether it says that it has removed what it had made. What it says of a load that was stopped comes before that.
    fn has_removed(&self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        loop {
            match self.report(deadline.saturating_duration_since(Instant::now())) {
                Ok((_, Report::Removed(fault))) => return fault.is_none(),
                Ok(_) => {}
                Err(_) => return false,
            }
        }
    }

    /// Waits for the end of its command, which is near: its input is closed.
    fn end(self) {
        drop(self.sender);
        if let Some(mut child) = self.child {
            let deadline = Instant::now() + STOP_TIMEOUT;
            while matches!(child.try_wait(), Ok(None)) && Instant::now() < deadline {
                thread::sleep(LOOK);
            }
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn gone() -> Fault {
    Fault::new(ProblemKind::Worker, "it is gone")
}

fn reach(at: &str, timeout: Duration) -> Result<TcpStream> {
    let unreachable = |why: String| Fault::new(ProblemKind::Worker, format!("it cannot be reached: {why}"));
    let (host, port) = at.rsplit_once(':').ok_or_else(|| unreachable(format!("{at} is not HOST:PORT")))?;
    let port = port.parse().map_err(|_| unreachable(format!("{port} is not a port")))?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let address = resolve(host, port).map_err(|fault| unreachable(fault.to_string()))?;
    TcpStream::connect_timeout(&address, timeout).map_err(|e| unreachable(e.to_string()))
}

/// Starts a command that becomes a worker. What it writes to standard error is for people.
fn start(command: &[String]) -> Result<(Sender, super::channel::Receiver, Child)> {
    let cannot = |why: String| {
        Fault::new(ProblemKind::Worker, format!("{} cannot be started: {why}", command.join(" ")))
    };
    let (program, arguments) =
        command.split_first().ok_or_else(|| cannot("there is no command".to_owned()))?;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // Ctrl-C is for the coordinator, which then tells its workers to stop.
        .process_group(0)
        .spawn()
        .map_err(|e| cannot(e.to_string()))?;
    let streams = child.stdin.take().zip(child.stdout.take());
    let (input, output) = streams.ok_or_else(|| cannot("it has no streams".to_owned()))?;
    let (sender, receiver) = plain(output, input);
    Ok((sender, receiver, child))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::Histogram;
    use crate::plan::key;
    use crate::result::{Operation, Repetition, Tally};

    #[test]
    fn clients_threads_and_the_rate_are_dealt_out() {
        let load = |clients, threads| {
            let key = Key { clients, threads, ..key(1, 4096, 100) };
            let mut workload = Workload::new(key, Duration::ZERO, Duration::from_secs(1));
            workload.rate = Some(100.0);
            workload
        };
        let of = |clients, threads, workers| -> Vec<(u32, u32)> {
            parts(&load(clients, threads), workers).iter().map(|p| (p.key.clients, p.key.threads)).collect()
        };
        assert_eq!(of(1, 4, 2), [(1, 4)]);
        assert_eq!(of(2, 8, 2), [(1, 4), (1, 4)]);
        assert_eq!(of(5, 20, 3), [(1, 6), (2, 7), (2, 7)]);
        let rates: f64 = parts(&load(5, 20), 3).iter().filter_map(|part| part.rate).sum();
        assert!((rates - 100.0).abs() < 1e-9, "{rates}");
    }

    #[test]
    fn counts_and_bins_are_added() {
        let measured = |count: u64, us: u64, seconds| {
            let mut latency = Histogram::default();
            (0..count).for_each(|_| latency.add(us * 1000));
            let tally = Tally { count, bytes: count * 4096, latency };
            let repetition = Repetition {
                seconds,
                operations: BTreeMap::from([(Operation::Read, tally)]),
                connections: 1,
                connection_bytes: vec![count],
                ..Repetition::default()
            };
            Measured { repetition, ..Measured::default() }
        };
        let mut sum = measured(900, 100, 1.0);
        sum.add(measured(100, 10_000, 1.1));
        let repetition = &sum.repetition;
        let read = &repetition.operations[&Operation::Read];
        assert_eq!((read.count, read.bytes, repetition.connections), (1000, 4_096_000, 2));
        assert!((repetition.seconds - 1.1).abs() < 1e-9);
        // The mean of the workers' 95th percentiles would be 5050 us.
        let at = |percent| read.latency.percentile(percent).unwrap() / 1000.0;
        assert!((at(95.0) / 10_000.0 - 1.0).abs() < 0.01 && (at(90.0) / 100.0 - 1.0).abs() < 0.01);
    }
}
