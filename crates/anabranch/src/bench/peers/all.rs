//! `anabranch bench all`: every family on every server that fits, in a given time.

use std::time::{Duration, Instant};

use compare::{Lineup, Measured, Series, save};
use load::plan::Extent;

use super::{beside, protocols, verdict, wanted};
use crate::bench::arguments::BenchAll;
use crate::bench::{PROGRAM, progress, stopping};
use crate::print::{duration, print};
use crate::problem::Result;

/// Minutes that all takes when nothing is said.
const MINUTES: f64 = 60.0;
const QUICK_MINUTES: f64 = 5.0;

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
    let protocols = protocols(&arguments.beside);
    let lineup = Lineup::start(&wanted(&arguments.beside)?, &protocols)?;
    let usual = if arguments.quick { QUICK_MINUTES } else { MINUTES };
    let seconds = 60.0 * arguments.minutes.unwrap_or(usual);
    let series = Series::new(&lineup, &protocols, extent, began, seconds)?;
    say(&series);
    let bar = progress::Bar::new();
    let mut measured = Vec::new();
    series.measure(&lineup, PROGRAM, stop, &mut |progress| bar.show(&progress), &mut |found| {
        bar.end();
        let found: Vec<Measured> = found?;
        save(&arguments.out, &found)?;
        print(&format!("{}\n", beside::render(&found)))?;
        measured.extend(found);
        Result::Ok(())
    })?;
    print(&format!("\n{} results are in {}\n", measured.len(), arguments.out.display()))?;
    verdict(&measured)
}

/// What is going to happen.
fn say(series: &Series) {
    let extent = series.extent();
    let most = Duration::try_from_secs_f64(series.seconds_max()).unwrap_or_default();
    eprintln!(
        "{} families, {} measurements of {:.2} s after {:.2} s of load: {} at most",
        series.families(),
        series.loads(),
        extent.seconds,
        extent.ramp_seconds,
        duration(most.as_secs())
    );
}
