//! `anabranch bench model run`: the rows of a model, measured in it.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use load::bench::went_wrong;
use load::plan::{Extent, Plan};
use load::result::{Protocol, ResultFile};
use load::{Access, Server};
use model::{Built, Link, Model, Observer, Parameter};
use serde::Serialize;

use super::{build, find, show};
use crate::bench::arguments::{HowLong, ModelRun};
use crate::bench::{PROGRAM, measure_unpaced, override_extent, show as show_result, stopping};
use crate::print::{json, print};
use crate::problem::{Cause, Problem, Result};

/// Bytes of each file where nothing else is asked for: at their scale, links are slow, and files are written through them.
const FILE_BYTES: u64 = 1 << 20;
/// Seconds of load before a measurement, and of it: what is under way takes long to pass a slow link.
const SECONDS: (f64, f64) = (1.0, 2.0);
const QUICK_SECONDS: (f64, f64) = (0.5, 1.0);
/// How often the counters of the links are looked at.
const LOOK: Duration = Duration::from_millis(50);

/// What was measured in a model, for `--json`.
#[derive(Serialize)]
struct Measured {
    model: String,
    scale: u32,
    parameters: Vec<Parameter>,
    links: Vec<Link>,
    results: Vec<ResultFile>,
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
    let stop = stopping::flag()?;
    let (built, program) = build(&model)?;
    let measured = measure(&model, &built, &program, &plans, &extent, stop);
    drop(built);
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

/// Measures all plans, and looks at the links meanwhile.
fn measure(
    model: &Model,
    built: &Built,
    program: &Path,
    plans: &[(Protocol, Plan)],
    extent: &Extent,
    stop: &AtomicBool,
) -> Measured {
    let ended = AtomicBool::new(false);
    let (results, links) = thread::scope(|scope| {
        let observer = scope.spawn(|| observe(built, &ended));
        let mut results = Vec::new();
        for (protocol, plan) in plans {
            if !stop.load(Ordering::Relaxed) {
                results.push(measure_plan(model, built, program, (*protocol, plan), extent, stop));
            }
        }
        ended.store(true, Ordering::Relaxed);
        (results, observer.join().unwrap_or_default())
    });
    let (name, scale) = (model.name.clone(), *model.scale.as_ref());
    Measured { model: name, scale, parameters: model.parameters(), links, results }
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

fn measure_plan(
    model: &Model,
    built: &Built,
    program: &Path,
    (protocol, plan): (Protocol, &Plan),
    extent: &Extent,
    stop: &AtomicBool,
) -> ResultFile {
    let settings = [("model".to_owned(), model.name.clone()), ("model scale".to_owned(), show::scale(model))];
    let limits = model
        .parameters()
        .into_iter()
        .map(|p| (format!("model {} {}", p.of, p.name), format!("{} (published: {})", p.built, p.published)));
    let server = Server {
        name: Some(PROGRAM.to_owned()),
        settings: settings.into_iter().chain(limits).collect(),
        ..Server::default()
    };
    let access = Access { workers: Some(built.workers(program)), server, ..Access::default() };
    measure_unpaced(&built.target(protocol), &access, plan, extent, stop)
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
    for result in &measured.results {
        text.push('\n');
        text.push_str(&show_result::render(result));
    }
    text.push('\n');
    text.push_str(&show::links(&measured.links));
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
