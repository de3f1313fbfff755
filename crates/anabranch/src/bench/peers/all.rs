//! `anabranch bench all`: every family on every server that fits, in a given time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use load::bench::Progress;
use load::plan::{Extent, FAMILIES, Family};
use load::result::Protocol;
use peers::Medium;

use super::budget::{Work, stretched};
use super::lineup::Lineup;
use super::{Measured, What, contest, extent_on, over, ratios, save, verdict};
use crate::bench::arguments::BenchAll;
use crate::bench::{progress, stopping};
use crate::print::{duration, print};
use crate::problem::{Cause, Problem, Result};

/// Minutes that all takes when nothing is said.
const MINUTES: f64 = 60.0;
const QUICK_MINUTES: f64 = 5.0;
/// Seconds for starting and ending servers.
const SERVERS: f64 = 15.0;

/// What is measured of a family, and the work that it makes.
struct Part {
    what: What<'static>,
    work: Work,
}

/// Carries out the command.
///
/// # Errors
/// There is too little time, a server cannot be started, or something went wrong while it was measured.
pub(in crate::bench) fn run(arguments: &BenchAll) -> Result<()> {
    let mut extent = Extent::new(arguments.quick);
    extent.repetitions = arguments.repetitions.unwrap_or(extent.repetitions);
    extent.file_bytes = arguments.file_size.unwrap_or(extent.file_bytes);
    let stop = stopping::flag()?;
    let began = Instant::now();
    let protocols: Vec<Protocol> = arguments.beside.over.iter().map(|over| over.protocol()).collect();
    let lineup = Lineup::start(&arguments.beside, &protocols)?;
    let parts = parts(&lineup, arguments, &extent)?;
    let usual = if arguments.quick { QUICK_MINUTES } else { MINUTES };
    let time = 60.0 * arguments.minutes.unwrap_or(usual) - SERVERS;
    let each = seconds_each(&parts, time)?;
    say(&parts, &extent, each, time);
    let all = All { lineup, parts, extent, deadline: began + Duration::from_secs_f64(time), stop };
    let measured = all.measure(arguments)?;
    print(&format!("\n{} results are in {}\n", measured.len(), arguments.out.display()))?;
    verdict(&measured)
}

fn parts(lineup: &Lineup, arguments: &BenchAll, extent: &Extent) -> Result<Vec<Part>> {
    let part = |family: &'static Family| -> Result<Part> {
        let over = over(family, &arguments.beside.over);
        let what = What { family, over, extent: extent.clone(), rows: None };
        let plans = what.plans(&lineup.contenders(family, &what.over))?;
        let provisioned = Medium::of_family(family) == Medium::Provisioned;
        let work = Work::of(&plans, &extent_on(family, extent), provisioned);
        Ok(Part { what, work })
    };
    let mut parts = FAMILIES.iter().map(part).collect::<Result<Vec<_>>>()?;
    parts.retain(|part| part.work.loads > 0);
    Ok(parts)
}

/// # Errors
/// It is too little time.
fn seconds_each(parts: &[Part], time: f64) -> Result<f64> {
    let work = work(parts);
    work.seconds_each(time, 1.0).ok_or_else(|| {
        let least = ((work.least() + SERVERS) / 60.0).ceil();
        Problem::new(
            Cause::Settings,
            format!("that is not enough time for {} measurements", work.loads),
            format!("Give at least --minutes {least}, or fewer --repetitions, --over or --peers."),
        )
    })
}

fn work(parts: &[Part]) -> Work {
    Work::sum(&parts.iter().map(|part| part.work).collect::<Vec<_>>())
}

/// What is going to happen.
fn say(parts: &[Part], extent: &Extent, each: f64, time: f64) {
    let extent = stretched(extent, each);
    let least = Duration::try_from_secs_f64(time + SERVERS).unwrap_or_default();
    eprintln!(
        "{} families, {} measurements of {:.2} s after {:.2} s of load: {} at most",
        parts.len(),
        work(parts).loads,
        extent.seconds,
        extent.ramp_seconds,
        duration(least.as_secs())
    );
}

struct All<'a> {
    lineup: Lineup,
    parts: Vec<Part>,
    extent: Extent,
    deadline: Instant,
    stop: &'a AtomicBool,
}

impl All<'_> {
    /// One family after the other. What is over, or missing, of its time is the next ones'.
    fn measure(&self, arguments: &BenchAll) -> Result<Vec<Measured>> {
        let mut measured = Vec::new();
        let mut slower = 1.0;
        let loads = work(&self.parts).loads;
        for (at, part) in self.parts.iter().enumerate() {
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            let rest = work(self.parts.get(at..).unwrap_or_default());
            // With no time left the least is measured: a family is not left out.
            let each = rest.seconds_each(self.left().as_secs_f64(), slower).unwrap_or(0.0);
            let extent = stretched(&self.extent, each);
            let began = Instant::now();
            let each = extent.ramp_seconds + extent.seconds;
            let found = self.family(part, extent, loads - rest.loads, loads)?;
            slower = part.work.slower(began.elapsed().as_secs_f64(), each);
            save(&arguments.out, &found)?;
            print(&format!("{}\n", ratios::render(&found)))?;
            measured.extend(found);
        }
        Ok(measured)
    }

    fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    fn family(&self, part: &Part, extent: Extent, before: usize, all: usize) -> Result<Vec<Measured>> {
        let bar = progress::Bar::new();
        let What { family, over, .. } = &part.what;
        let what = What { family, over: over.clone(), extent, rows: None };
        let name = family.name;
        let mut show = |progress: Progress<'_>| {
            let now = format!("{name}: {}", progress.now);
            let seconds_left = self.left().as_secs_f64();
            bar.show(&Progress { now: &now, done: before + progress.done, all, seconds_left });
        };
        let found = contest(&self.lineup, &what, self.stop, &mut show);
        bar.end();
        found
    }
}
