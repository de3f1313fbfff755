//! `anabranch bench peers`: Anabranch, Samba and NFS-Ganesha on this machine, started for a measurement and measured in turns.

pub(super) mod all;
mod budget;
mod lineup;
mod own;
mod ratios;
mod section;

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use load::bench::{Progress, Run, run_in_turns, went_wrong};
use load::plan::{Extent, Family, Plan};
use load::result::{Protocol, ResultFile};
use peers::{Contender, Medium};

use super::arguments::{BenchPeers, Over, Rows};
use super::{PROGRAM, choose, extent, known_family, progress, show, stopping};
use crate::print::print;
use crate::problem::{Cause, Problem, Result};
use lineup::Lineup;

/// Seconds of load before a share with a plan is measured, at least: as long as its buckets are full, and longer.
const PROVISIONED_RAMP_SECONDS: f64 = 0.4;

/// What was measured on a server over a protocol.
struct Measured {
    server: &'static str,
    result: ResultFile,
}

/// Carries out the command.
///
/// # Errors
/// The command line is wrong, a server cannot be started, or something went wrong while it was measured.
pub(super) fn run(arguments: &BenchPeers) -> Result<()> {
    let family = known_family(&arguments.family)?;
    let over = over(family, &arguments.beside.over);
    if over.is_empty() {
        let what = format!("{} is not measured over any of the protocols of --over", family.name);
        return Err(Problem::new(
            Cause::Settings,
            what,
            "`anabranch bench families` lists the protocols of each family.",
        ));
    }
    let extent = extent(&arguments.how_long);
    let stop = stopping::flag()?;
    let bar = progress::Bar::new();
    bar.show(&Progress { now: "starting servers", done: 0, all: 0, seconds_left: 0.0 });
    let lineup = Lineup::start(&arguments.beside, &over)?;
    let what = What { family, over, extent, rows: Some(&arguments.rows) };
    let measured = contest(&lineup, &what, stop, &mut |progress| bar.show(&progress))?;
    bar.show(&Progress { now: "ending servers", done: 0, all: 0, seconds_left: 0.0 });
    drop(lineup);
    bar.end();
    if let Some(directory) = &arguments.out {
        save(directory, &measured)?;
    }
    print(&ratios::render(&measured))?;
    verdict(&measured)?;
    arguments.markdown.as_ref().map_or(Ok(()), |document| section::write(document, &measured))
}

/// The protocols that a family is measured over, of those that are asked for.
fn over(family: &Family, asked: &[Over]) -> Vec<Protocol> {
    asked.iter().map(|over| over.protocol()).filter(|protocol| family.protocols.contains(protocol)).collect()
}

/// What is measured on all servers that speak the protocols.
struct What<'a> {
    family: &'static Family,
    over: Vec<Protocol>,
    extent: Extent,
    /// Not all rows of the family.
    rows: Option<&'a Rows>,
}

impl What<'_> {
    /// One plan a contender.
    fn plans(&self, contenders: &[Contender]) -> Result<Vec<Plan>> {
        let plan = |contender: &Contender| {
            let mut plan = self.family.plan(contender.target.protocol(), &self.extent);
            self.rows.map_or(Ok(()), |rows| choose(&mut plan, rows)).map(|()| plan)
        };
        contenders.iter().map(plan).collect()
    }
}

/// Measures a family on all servers that speak its protocols, in turns.
fn contest(
    lineup: &Lineup,
    what: &What<'_>,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Vec<Measured>> {
    let extent = extent_on(what.family, &what.extent);
    let contenders = lineup.contenders(what.family, &what.over);
    let plans = what.plans(&contenders)?;
    lineup.check_space(what.family, &plans, &extent)?;
    let runs: Vec<Run<'_>> = contenders
        .iter()
        .zip(&plans)
        .map(|(contender, plan)| Run {
            target: &contender.target,
            access: &contender.access,
            plan,
            extent: &extent,
            rate: None,
            think: std::time::Duration::ZERO,
            check: true,
            replay: None,
            program: PROGRAM,
        })
        .collect();
    let results = run_in_turns(&runs, stop, progress);
    Ok(contenders.iter().zip(results).map(|(c, result)| Measured { server: c.server, result }).collect())
}

/// A share with a plan takes the files no faster than the plan lets them in: small ones do. And a share that has rested lets
/// through at once what comes in a quarter of a second: that must be over before anything is measured.
fn extent_on(family: &Family, extent: &Extent) -> Extent {
    const PROVISIONED_FILE_BYTES: u64 = 4 << 20;
    let mut extent = extent.clone();
    if Medium::of_family(family) == Medium::Provisioned {
        extent.file_bytes = extent.file_bytes.min(PROVISIONED_FILE_BYTES);
        extent.ramp_seconds = extent.ramp_seconds.max(PROVISIONED_RAMP_SECONDS);
    }
    extent
}

/// A result file for each server and protocol.
fn save(directory: &Path, measured: &[Measured]) -> Result<()> {
    let failed = |path: &Path, e: &dyn std::fmt::Display| {
        let what = format!("the result cannot be written to {}: {e}", path.display());
        Problem::new(Cause::Measuring, what, "")
    };
    fs::create_dir_all(directory).map_err(|e| failed(directory, &e))?;
    for Measured { server, result } in measured {
        let protocol = result.environment.protocol.name();
        let path = directory.join(format!("{}.{server}.{protocol}.json", result.family));
        result.save(&path).map_err(|e| failed(&path, &e))?;
    }
    Ok(())
}

/// Something went wrong: what, and where.
fn verdict(measured: &[Measured]) -> Result<()> {
    let wrong = measured.iter().filter(|measured| went_wrong(&measured.result));
    let lines: Vec<String> = wrong
        .flat_map(|Measured { server, result }| {
            let of = format!("{} on {server} over {}", result.family, result.environment.protocol.name());
            result.problems.iter().map(move |problem| format!("{of}: {}", show::problem(problem)))
        })
        .collect();
    if lines.is_empty() {
        return Ok(());
    }
    Err(Problem::new(Cause::Measuring, lines.join("\n  "), "The other measurements are kept."))
}
