//! `anabranch bench`: load on any SMB or NFS server, measured.

mod arguments;
mod delay;
mod hint;
mod model;
mod peers;
pub(crate) mod progress;
mod replay;
pub(crate) mod show;
pub(crate) mod stopping;
mod worker;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use compare::{Error, counts};
use load::bench::{Run, run as measure, went_wrong};
use load::import::{Imported, diskspd, fio_job};
use load::json_plus::Merged;
use load::plan::{Extent, FAMILIES, Family, Plan, PlannedRow, family};
use load::result::{Key, Mix, Outcome, ResultFile};
use load::security::securities;
use load::target::Target;
use load::trace::Replay;
use load::workers::Workers;
use load::{Access, Server, ServerProcess};

pub(crate) use arguments::BenchCommand;
use arguments::{BenchJob, BenchRun, HowLong, Out, Rows, Where};

use crate::control_access;
use crate::print::{json, print};
use crate::problem::{Cause, Problem, Result};
use crate::table;

const PROGRAM: &str = concat!("anabranch ", env!("CARGO_PKG_VERSION"));

/// Carries out the command.
///
/// # Errors
/// The command line is wrong, or something went wrong while it was measured.
pub(crate) fn run(command: &BenchCommand) -> Result<()> {
    match command {
        BenchCommand::Run(run) => run_family(run),
        BenchCommand::Job(job) => run_job(job),
        BenchCommand::Peers(peers) => peers::run(peers),
        BenchCommand::All(all) => peers::all::run(all),
        BenchCommand::Model(command) => model::run(command),
        BenchCommand::Delay(arguments) => delay::run(arguments),
        BenchCommand::Worker(worker) => worker::run(worker),
        BenchCommand::Families => {
            let protocols = |f: &Family| f.protocols.iter().map(|p| p.name()).collect::<Vec<_>>().join(" ");
            let rows: Vec<_> =
                FAMILIES.iter().map(|f| [f.name.to_owned(), protocols(f), f.about.to_owned()]).collect();
            print(&table::render(["FAMILY", "OVER", "SHOWS"], &rows))
        }
    }
}

fn run_family(arguments: &BenchRun) -> Result<()> {
    let family = known_family(&arguments.family)?;
    let protocol = arguments.place.target.protocol();
    if !family.protocols.contains(&protocol) {
        let what = format!("{} cannot be measured on {}", family.name, arguments.place.target);
        return Err(Problem::new(
            Cause::Settings,
            what,
            "`anabranch bench families` lists the protocols of each family.",
        ));
    }
    let workers = worker::of_run(&arguments.clients)?;
    if workers.is_some() && !family.has_clients {
        let what =
            format!("the rows of {} have one client each: they need no further processes", family.name);
        return Err(Problem::new(Cause::Settings, what, "Measure scale-out, or a job with --clients."));
    }
    let extent = extent(&arguments.how_long);
    let mut plan = family.plan(protocol, &extent);
    choose(&mut plan, &arguments.rows)?;
    carry_out(&arguments.place, workers, &arguments.out, &plan, &extent, &Pace::default())
}

/// Leaves out the rows that are not asked for.
///
/// # Errors
/// None is left.
fn choose(plan: &mut Plan, rows: &Rows) -> Result<()> {
    if plan.select(&rows.selection()) {
        return Ok(());
    }
    Err(Error::NoRow { family: plan.family.clone() }.into())
}

/// The family of a name.
///
/// # Errors
/// There is none.
fn known_family(name: &str) -> Result<&'static Family> {
    family(name).ok_or_else(|| {
        let names: Vec<_> = FAMILIES.iter().map(|f| f.name).collect();
        let what = format!("there is no family {name}");
        Problem::new(Cause::Settings, what, format!("Families: {}.", names.join(", ")))
    })
}

/// What a job sets that a family does not.
struct Pace {
    rate: Option<f64>,
    think: Duration,
    check: bool,
    replay: Option<Replay>,
}

impl Default for Pace {
    fn default() -> Self {
        Self { rate: None, think: Duration::ZERO, check: true, replay: None }
    }
}

fn run_job(job: &BenchJob) -> Result<()> {
    let workers = worker::of_run(&job.client_processes)?;
    let processes =
        workers.as_ref().map_or(1, |workers| u32::try_from(workers.places.len()).unwrap_or(u32::MAX));
    let clients = job.clients.unwrap_or(processes);
    if clients < processes {
        let what = format!("{clients} clients are fewer than {processes} client processes");
        return Err(Problem::new(Cause::Settings, what, "Give as many --clients, or none."));
    }
    if let Some(mut imported) = imported(job)? {
        for row in &mut imported.plan.rows {
            (row.key.clients, row.key.threads) = (clients, row.key.threads.max(clients));
        }
        let mut extent = imported.extent;
        // What the command line says goes before what was written for another tool.
        override_extent(&mut extent, &job.how_long);
        let pace = Pace { rate: imported.rate, think: imported.think, check: !job.no_check, replay: None };
        return carry_out(&job.place, workers, &job.out, &imported.plan, &extent, &pace);
    }
    if let Some((plan, replay)) = replay::of_job(job)? {
        let extent = Extent { ramp_seconds: 0.0, seconds: replay.seconds(), ..extent(&job.how_long) };
        let pace = Pace { check: !job.no_check, replay: Some(replay), ..Pace::default() };
        return carry_out(&job.place, None, &job.out, &plan, &extent, &pace);
    }
    let key = Key {
        connections: job.connections,
        block_bytes: if job.metadata { 0 } else { job.block_size },
        mix: if job.metadata { Mix::Metadata } else { Mix::ReadPercent(job.reads) },
        random: !job.sequential && !job.metadata,
        files: job.files,
        threads: job.threads.max(clients),
        queue_depth: job.queue_depth.unwrap_or(1),
        clients,
        settings: BTreeMap::new(),
    };
    let rows = vec![PlannedRow { key, documents: Vec::new(), security: None }];
    let plan = Plan {
        family: "job".to_owned(),
        documents: Vec::new(),
        rows,
        comparisons: Vec::new(),
        not_honoured: Vec::new(),
    };
    let think = Duration::from_millis(job.think);
    let pace = Pace { rate: job.rate, think, check: !job.no_check, replay: None };
    carry_out(&job.place, workers, &job.out, &plan, &extent(&job.how_long), &pace)
}

/// The loads of another tool, where they are asked for.
fn imported(job: &BenchJob) -> Result<Option<Imported>> {
    let extent = Extent::new(job.how_long.quick);
    let read = if let Some(path) = &job.fio_job {
        let text = std::fs::read_to_string(path).map_err(|e| {
            Problem::new(Cause::Settings, format!("{} cannot be read: {e}", path.display()), "")
        })?;
        fio_job::read(&text, job.connections, extent)
    } else if let Some(line) = &job.fio {
        fio_job::read_command_line(line, job.connections, extent)
    } else if let Some(line) = &job.diskspd {
        diskspd::read(line, job.connections, extent)
    } else {
        return Ok(None);
    };
    read.map(Some).map_err(|e| Problem::new(Cause::Settings, e.to_string(), ""))
}

fn extent(how_long: &HowLong) -> Extent {
    let mut extent = Extent::new(how_long.quick);
    override_extent(&mut extent, how_long);
    extent
}

fn override_extent(extent: &mut Extent, how_long: &HowLong) {
    extent.seconds = how_long.seconds.unwrap_or(extent.seconds);
    extent.ramp_seconds = how_long.ramp.unwrap_or(extent.ramp_seconds);
    extent.repetitions = how_long.repetitions.unwrap_or(extent.repetitions);
    extent.file_bytes = how_long.file_size.unwrap_or(extent.file_bytes);
}

/// # Errors
/// The server whose state directory was named does not run.
fn access(place: &Where) -> Result<Access> {
    let process = place.server_pid.map(|pid| ServerProcess { pid });
    let mut access = Access {
        addresses: place.address.clone(),
        timeout: Duration::from_secs(place.timeout),
        server: Server { process, ..Server::default() },
        ..Access::default()
    };
    if let Some((state, share)) = place.server_state.as_ref().zip(place.target.share()) {
        access.server.counts = Some(counts::of_share(control_access::find(state, None)?, share));
    }
    let asked = place.security.map(arguments::Protection::name);
    if let Some((_, security)) = securities().into_iter().find(|(name, _)| Some(*name) == asked) {
        access.security = security;
    }
    Ok(access)
}

fn carry_out(
    place: &Where,
    workers: Option<Workers>,
    out: &Out,
    plan: &Plan,
    extent: &Extent,
    pace: &Pace,
) -> Result<()> {
    let access = Access { workers, ..access(place)? };
    let target: &Target = &place.target;
    let what = Run {
        target,
        access: &access,
        plan,
        extent,
        rate: pace.rate,
        think: pace.think,
        check: pace.check,
        replay: pace.replay.clone(),
        program: PROGRAM,
    };
    let mut result = measure_with_bar(&what, stopping::flag()?);
    result.environment.settings.extend(place.note.iter().cloned());
    write(out, &result)?;
    print(&if out.json { json(&result)? } else { show::render(&result) })?;
    verdict(&result, target)
}

/// Writes the files that were asked for.
fn write(out: &Out, result: &ResultFile) -> Result<()> {
    let failed = |path: &Path, e: &dyn std::fmt::Display| {
        let what = format!("the result cannot be written to {}: {e}", path.display());
        Problem::new(Cause::Measuring, what, "")
    };
    if let Some(path) = &out.out {
        result.save(path).map_err(|e| failed(path, &e))?;
    }
    if let Some(path) = &out.json_plus {
        let text = json(&Merged::of(result).output())?;
        std::fs::write(path, text).map_err(|e| failed(path, &e))?;
    }
    Ok(())
}

/// Makes a run, with a bar where there is a terminal.
fn measure_with_bar(what: &Run<'_>, stop: &AtomicBool) -> ResultFile {
    let bar = progress::Bar::new();
    let result = measure(what, stop, &mut |progress| bar.show(&progress));
    bar.end();
    result
}

/// Measures a plan on a target, as advice needs it: what goes wrong ends it.
///
/// # Errors
/// Something went wrong, or nothing was measured.
pub(crate) fn measure_plan(
    target: &Target,
    plan: &Plan,
    extent: &Extent,
    stop: &AtomicBool,
) -> Result<ResultFile> {
    let result = measure_unpaced(target, &Access::default(), plan, extent, stop);
    verdict(&result, target)?;
    Ok(result)
}

/// Measures a plan as fast as the clients can.
pub(crate) fn measure_unpaced(
    target: &Target,
    access: &Access,
    plan: &Plan,
    extent: &Extent,
    stop: &AtomicBool,
) -> ResultFile {
    let what = Run {
        target,
        access,
        plan,
        extent,
        rate: None,
        think: Duration::ZERO,
        check: true,
        replay: None,
        program: PROGRAM,
    };
    measure_with_bar(&what, stop)
}

/// Something went wrong: what, and that the rest holds.
fn verdict(result: &ResultFile, target: &Target) -> Result<()> {
    if !went_wrong(result) {
        return Ok(());
    }
    let lines: Vec<_> = result.problems.iter().map(show::problem).collect();
    let kept = match (result.outcome, result.rows.is_empty()) {
        (Outcome::Failed, true) => {
            let hint = result.problems.first().and_then(|problem| hint::hint(problem.kind, target));
            ["Nothing was measured.", hint.as_deref().unwrap_or_default()].join(" ").trim_end().to_owned()
        }
        (Outcome::Failed, false) => "The run ended there; the earlier measurements are kept.".to_owned(),
        _ => "The run continued; the figures do not include what failed.".to_owned(),
    };
    Err(Problem::new(Cause::Measuring, lines.join("\n  "), kept))
}
