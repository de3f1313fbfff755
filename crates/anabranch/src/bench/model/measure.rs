//! `anabranch bench model run`: the rows of a model, measured in it.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use load::bench::went_wrong;
use load::plan::{Extent, Plan};
use load::result::{Key, Protocol, ResultFile};
use load::{Access, Server};
use model::{
    Built, Calibration, Finding, Forwarded, Link, Model, Observer, Parameter, RoundTrip, StorageDelay, Which,
};
use serde::Serialize;

use super::{build, find, show};
use crate::bench::arguments::{HowLong, ModelRun, ModelServer};
use crate::bench::{PROGRAM, measure_unpaced, override_extent, show as show_result, stopping};
use crate::print::{json, print};
use crate::problem::{Cause, Problem, Result};

/// Bytes of each file where nothing else is asked for: at their scale, links are slow, and files are written through them.
const FILE_BYTES: u64 = 1 << 20;
/// Seconds of load before a measurement, and of it: what is under way takes long to pass a slow link.
const SECONDS: (f64, f64) = (1.0, 2.0);
const QUICK_SECONDS: (f64, f64) = (0.5, 1.0);
/// Seconds in which what a link carries is counted.
const CALIBRATION: f64 = 1.0;
const QUICK_CALIBRATION: f64 = 0.5;
/// How often the counters of the links are looked at.
const LOOK: Duration = Duration::from_millis(50);

/// What was measured in a model, for `--json`.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Measured {
    model: String,
    scale: u32,
    parameters: Vec<Parameter>,
    /// None where it was not asked for.
    calibration: Option<Vec<Calibration>>,
    /// Of links with a delay or losses; without them, or where it was not asked for, none.
    round_trips: Vec<RoundTrip>,
    /// Of a server whose storage has delays; as above.
    storage_delays: Vec<StorageDelay>,
    unusable: Vec<Unusable>,
    links: Vec<Link>,
    forwarded: Vec<Forwarded>,
    results: Vec<ResultFile>,
}

/// A row that is not measured: it would measure this machine.
#[derive(Serialize)]
pub(super) struct Unusable {
    pub(super) family: String,
    pub(super) over: &'static str,
    pub(super) row: String,
    pub(super) why: String,
}

/// Carries out the command.
///
/// # Errors
/// The model cannot be built, or something went wrong while it was measured.
pub(super) fn run(arguments: &ModelRun) -> Result<()> {
    let (model, _) = find(&arguments.model)?;
    let extent = extent(&arguments.how_long);
    let plans = model.plans(&extent);
    if plans.is_empty() {
        let what = format!("{} has no rows to measure", model.name);
        return Err(Problem::new(
            Cause::Settings,
            what,
            "Add [[rows]] or a [[job]], or use `bench model shell`.",
        ));
    }
    let which = which(arguments.server);
    let plans = served(&model, which, plans)?;
    let stop = stopping::flag()?;
    let (built, program) = build(&model, which)?;
    let calibration = if arguments.uncalibrated {
        None
    } else {
        let window =
            Duration::from_secs_f64(if arguments.how_long.quick { QUICK_CALIBRATION } else { CALIBRATION });
        Some(built.calibrate(&model.calibrations(&plans), window, stop)?)
    };
    let round_trips = if arguments.uncalibrated { Vec::new() } else { built.round_trips(stop)? };
    let storage_delays =
        if arguments.uncalibrated { Vec::new() } else { built.storage_delays(&model, &program, stop)? };
    let found = Found {
        calibrations: calibration.as_deref().unwrap_or_default(),
        round_trips: &round_trips,
        storage_delays: &storage_delays,
    };
    let (plans, unusable) = usable(plans, &found);
    let measurement = Measurement { model: &model, built: &built, program: &program, extent: &extent, stop };
    let (results, links) = measurement.carry_out(&plans, &calibrated(calibration.as_deref()));
    let forwarded = built.forwarded();
    drop(built);
    let (name, scale, parameters) = (model.name.clone(), *model.scale.as_ref(), model.parameters());
    let measured = Measured {
        model: name,
        scale,
        parameters,
        calibration,
        round_trips,
        storage_delays,
        unusable,
        links,
        forwarded,
        results,
    };
    if let Some(directory) = &arguments.out {
        save(directory, &measured.results)?;
    }
    print(&if arguments.json { json(&measured)? } else { render(&model, &measured) })?;
    verdict(&measured.results)
}

fn extent(how_long: &HowLong) -> Extent {
    let (ramp_seconds, seconds) = if how_long.quick { QUICK_SECONDS } else { SECONDS };
    let mut extent = Extent { file_bytes: FILE_BYTES, ramp_seconds, seconds, ..Extent::new(how_long.quick) };
    override_extent(&mut extent, how_long);
    extent
}

fn which(server: ModelServer) -> Which {
    match server {
        ModelServer::Anabranch => Which::Anabranch,
        ModelServer::Samba => Which::Samba,
        ModelServer::Ganesha => Which::Ganesha,
    }
}

/// The rows that a server can have: over its protocols, and without a plan, which only Anabranch enforces.
fn served(model: &Model, which: Which, mut plans: Vec<(Protocol, Plan)>) -> Result<Vec<(Protocol, Plan)>> {
    plans.retain(|(protocol, _)| which.serves(*protocol));
    let why = if plans.is_empty() {
        "over its protocol"
    } else if which != Which::Anabranch && model.server.plan.is_some() {
        "that it can have: the model has a plan, which only Anabranch enforces"
    } else {
        return Ok(plans);
    };
    let what = format!("{} has no rows for {} {why}", model.name, which.name());
    Err(Problem::new(Cause::Settings, what, "Choose another model, or another --server."))
}

/// What was found out about a built model before its rows are measured.
struct Found<'a> {
    calibrations: &'a [Calibration],
    round_trips: &'a [RoundTrip],
    storage_delays: &'a [StorageDelay],
}

/// The rows whose rates this machine carries, and the others.
fn usable(plans: Vec<(Protocol, Plan)>, found: &Found<'_>) -> (Vec<(Protocol, Plan)>, Vec<Unusable>) {
    let Found { calibrations, round_trips, storage_delays } = found;
    let slow_storage = storage_delays.iter().find(|delay| !delay.is_usable).map(show::slow_storage);
    let against = |key: &Key| {
        let too_slow = calibrations.iter().find(|calibration| calibration.excludes(key)).map(show::too_slow);
        let late = || round_trips.iter().find(|trip| trip.excludes(key)).map(show::late);
        too_slow.or_else(late).or_else(|| slow_storage.clone())
    };
    let (mut kept, mut unusable) = (Vec::new(), Vec::new());
    for (protocol, mut plan) in plans {
        let excluded = plan.rows.iter().filter_map(|row| Some((row.key.to_string(), against(&row.key)?)));
        unusable.extend(excluded.map(|(row, why)| Unusable {
            family: plan.family.clone(),
            over: protocol.name(),
            row,
            why,
        }));
        plan.retain(|key| against(key).is_none());
        if !plan.rows.is_empty() {
            kept.push((protocol, plan));
        }
    }
    (kept, unusable)
}

/// What the settings of a result say about the calibration.
fn calibrated(calibration: Option<&[Calibration]>) -> String {
    let Some(calibration) = calibration else { return "no".to_owned() };
    let usable = calibration.iter().filter(|calibration| calibration.finding == Finding::Usable);
    match usable.map(Calibration::share).min_by(f64::total_cmp) {
        Some(least) => format!("links carry at least {:.1} % of their rates", least * 100.0),
        None => "no link of these rows has a limit".to_owned(),
    }
}

/// A built model, and how it is measured.
struct Measurement<'a> {
    model: &'a Model,
    built: &'a Built,
    program: &'a Path,
    extent: &'a Extent,
    stop: &'a AtomicBool,
}

impl Measurement<'_> {
    /// Measures all plans, and looks at the links meanwhile.
    fn carry_out(&self, plans: &[(Protocol, Plan)], calibrated: &str) -> (Vec<ResultFile>, Vec<Link>) {
        let ended = AtomicBool::new(false);
        thread::scope(|scope| {
            let observer = scope.spawn(|| observe(self.built, &ended));
            let mut results = Vec::new();
            for (protocol, plan) in plans {
                if !self.stop.load(Ordering::Relaxed) {
                    results.push(self.carry_out_one(*protocol, plan, calibrated));
                }
            }
            ended.store(true, Ordering::Relaxed);
            (results, observer.join().unwrap_or_default())
        })
    }

    fn carry_out_one(&self, protocol: Protocol, plan: &Plan, calibrated: &str) -> ResultFile {
        let model = self.model;
        let settings = [
            ("model".to_owned(), model.name.clone()),
            ("model scale".to_owned(), show::scale(model)),
            ("model calibrated".to_owned(), calibrated.to_owned()),
        ];
        let cache = model.server.metadata_cache.map(|is_on| if is_on { "on" } else { "off" });
        let cache = cache.map(|cache| ("metadata-cache".to_owned(), cache.to_owned()));
        let limits = model.parameters().into_iter().map(|p| {
            (format!("model {} {}", p.of, p.name), format!("{} (published: {})", p.built, p.published))
        });
        let server = Server {
            name: Some(self.built.server_name(protocol).unwrap_or_else(|| PROGRAM.to_owned())),
            settings: settings.into_iter().chain(cache).chain(limits).collect(),
            ..Server::default()
        };
        let access = Access { workers: Some(self.built.workers(self.program)), server, ..Access::default() };
        measure_unpaced(&self.built.target(protocol), &access, plan, self.extent, self.stop)
    }
}

fn observe(built: &Built, ended: &AtomicBool) -> Vec<Link> {
    let mut observer = Observer::new(built.links());
    loop {
        let is_last = ended.load(Ordering::Relaxed);
        let began = Instant::now();
        let counters = built.counters();
        observer.look(began, Instant::now(), counters);
        if is_last {
            return observer.end();
        }
        thread::sleep(LOOK);
    }
}

fn save(directory: &Path, results: &[ResultFile]) -> Result<()> {
    let failed = |path: &Path, e: &dyn std::fmt::Display| {
        Problem::new(Cause::Measuring, format!("{} cannot be written: {e}", path.display()), "")
    };
    std::fs::create_dir_all(directory).map_err(|e| failed(directory, &e))?;
    for (number, result) in (1..).zip(results) {
        let name = format!("{number}-{}-{}.json", result.family, result.environment.protocol.name());
        let path = directory.join(name);
        result.save(&path).map_err(|e| failed(&path, &e))?;
    }
    Ok(())
}

/// The model, each table, and what passed the links.
fn render(model: &Model, measured: &Measured) -> String {
    let mut text = format!("{}, {}: {}\n\n", model.name, show::scale(model), model.about);
    text.push_str(&show::parameters(&measured.parameters));
    for calibration in measured.calibration.iter().filter(|calibration| !calibration.is_empty()) {
        text.push('\n');
        text.push_str(&show::calibrations(calibration));
    }
    if !measured.round_trips.is_empty() {
        text.push('\n');
        text.push_str(&show::round_trips(&measured.round_trips));
    }
    if !measured.storage_delays.is_empty() {
        text.push('\n');
        text.push_str(&show::storage_delays(&measured.storage_delays));
    }
    if !measured.unusable.is_empty() {
        text.push('\n');
        text.push_str(&show::unusable(&measured.unusable));
    }
    for result in &measured.results {
        text.push('\n');
        text.push_str(&show_result::render(result));
    }
    text.push('\n');
    text.push_str(&show::links(&measured.links));
    if !measured.forwarded.is_empty() {
        text.push('\n');
        text.push_str(&show::forwarded(&measured.forwarded));
    }
    text
}

/// Something went wrong: what, and where.
fn verdict(results: &[ResultFile]) -> Result<()> {
    let wrong = results.iter().filter(|result| went_wrong(result));
    let lines: Vec<String> = wrong
        .flat_map(|result| {
            let of = format!("{} over {}", result.family, result.environment.protocol.name());
            result.problems.iter().map(move |problem| format!("{of}: {}", show_result::problem(problem)))
        })
        .collect();
    if lines.is_empty() {
        return Ok(());
    }
    Err(Problem::new(Cause::Measuring, lines.join("\n  "), "The other measurements are kept."))
}
