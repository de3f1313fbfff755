//! Several families, one after the other, in a given time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use load::bench::Progress;
use load::plan::{Extent, FAMILIES, Family};
use load::result::Protocol;
use peers::Medium;

use crate::budget::{Work, stretched};
use crate::contest::{Contest, Measured, extent_on, over};
use crate::error::{Error, Result};
use crate::lineup::Lineup;

/// Seconds for starting and ending servers.
const SERVERS: f64 = 15.0;

/// A family's measurement, and its amount of work.
#[derive(Debug)]
struct Part {
    contest: Contest,
    work: Work,
}

/// The measurements of all families that some servers allow, and the time for them.
#[derive(Debug)]
pub struct Series {
    parts: Vec<Part>,
    extent: Extent,
    /// Seconds for all families.
    seconds: f64,
    /// Seconds for each measurement.
    each: f64,
    deadline: Instant,
}

impl Series {
    /// Plans all families that the servers of a line-up allow over these protocols. Everything together takes `seconds` since
    /// `began`, including the start and the end of the servers.
    ///
    /// # Errors
    /// There is not enough time.
    pub fn new(
        lineup: &Lineup,
        asked: &[Protocol],
        extent: Extent,
        began: Instant,
        seconds: f64,
    ) -> Result<Self> {
        let parts = parts(lineup, asked, &extent)?;
        let seconds = seconds - SERVERS;
        let each = seconds_each(&parts, seconds)?;
        Ok(Self { parts, extent, seconds, each, deadline: began + Duration::from_secs_f64(seconds) })
    }

    /// The number of families.
    #[must_use]
    pub fn families(&self) -> usize {
        self.parts.len()
    }

    /// The number of measurements, including discarded ones.
    #[must_use]
    pub fn loads(&self) -> usize {
        work(&self.parts).loads
    }

    /// The expected duration and number of measurements of each row.
    #[must_use]
    pub fn extent(&self) -> Extent {
        stretched(&self.extent, self.each)
    }

    /// The most time for everything, in seconds.
    #[must_use]
    pub fn seconds_max(&self) -> f64 {
        self.seconds + SERVERS
    }

    /// Measures one family after the other, until `stop` becomes true, and passes each result to `tell`. Time that a family does
    /// not use, or uses in excess, changes the time of the next families. `program` names the measuring program in the results.
    ///
    /// # Errors
    /// Those of `tell`. The next families are then not measured.
    pub fn measure<E>(
        &self,
        lineup: &Lineup,
        program: &str,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(Progress<'_>),
        tell: &mut dyn FnMut(Result<Vec<Measured>>) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let mut slower = 1.0;
        let loads = self.loads();
        for (at, part) in self.parts.iter().enumerate() {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let rest = work(self.parts.get(at..).unwrap_or_default());
            // With no time left the least is measured: a family is not left out.
            let each = rest.seconds_each(self.left().as_secs_f64(), slower).unwrap_or(0.0);
            let extent = stretched(&self.extent, each);
            let began = Instant::now();
            let each = extent.ramp_seconds + extent.seconds;
            let contest = Contest { extent, ..part.contest.clone() };
            let (name, before) = (contest.family.name, loads - rest.loads);
            let found = contest.measure(lineup, program, stop, &mut |of_family| {
                let now = format!("{name}: {}", of_family.now);
                let seconds_left = self.left().as_secs_f64();
                progress(Progress { now: &now, done: before + of_family.done, all: loads, seconds_left });
            });
            slower = part.work.slower(began.elapsed().as_secs_f64(), each);
            tell(found)?;
        }
        Ok(())
    }

    fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}

fn parts(lineup: &Lineup, asked: &[Protocol], extent: &Extent) -> Result<Vec<Part>> {
    let part = |family: &'static Family| -> Result<Part> {
        let over = over(family, asked);
        let contest = Contest { family, over, extent: extent.clone(), selection: None };
        let plans = contest.plans(&lineup.contenders(family, &contest.over))?;
        let provisioned = Medium::of_family(family) == Medium::Provisioned;
        let work = Work::of(&plans, &extent_on(family, extent), provisioned);
        Ok(Part { contest, work })
    };
    let mut parts = FAMILIES.iter().map(part).collect::<Result<Vec<_>>>()?;
    parts.retain(|part| part.work.loads > 0);
    Ok(parts)
}

/// # Errors
/// There is not enough time.
fn seconds_each(parts: &[Part], seconds: f64) -> Result<f64> {
    let work = work(parts);
    work.seconds_each(seconds, 1.0).ok_or_else(|| Error::TooLittleTime {
        measurements: work.loads,
        minutes_min: ((work.least() + SERVERS) / 60.0).ceil(),
    })
}

fn work(parts: &[Part]) -> Work {
    Work::sum(&parts.iter().map(|part| part.work).collect::<Vec<_>>())
}
