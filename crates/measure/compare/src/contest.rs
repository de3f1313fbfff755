//! A family of rows, measured on several servers in turns.

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use load::bench::{Progress, Run, run_in_turns};
use load::plan::{Extent, Family, Plan, Selection};
use load::result::{FileError, Protocol, ResultFile};
use peers::{Contender, Medium};

use crate::error::{Error, Result};
use crate::lineup::Lineup;

/// Seconds of load before a share with a plan is measured, at least: as long as its buckets are full, and longer.
pub(crate) const PROVISIONED_RAMP_SECONDS: f64 = 0.4;

/// What was measured on a server over a protocol.
#[derive(Debug)]
pub struct Measured {
    /// The short name of the server: `anabranch`, `samba` or `ganesha`.
    pub server: &'static str,
    /// What was measured.
    pub result: ResultFile,
}

/// What is measured on all servers that speak the protocols.
#[derive(Debug, Clone)]
pub struct Contest {
    /// The family of rows.
    pub family: &'static Family,
    /// The protocols: those of the family.
    pub over: Vec<Protocol>,
    /// How long and how often, and on how much data.
    pub extent: Extent,
    /// Which rows of the family; all where there is none.
    pub selection: Option<Selection>,
}

impl Contest {
    /// One plan a contender.
    ///
    /// # Errors
    /// No row is wanted.
    pub fn plans(&self, contenders: &[Contender]) -> Result<Vec<Plan>> {
        let plan = |contender: &Contender| {
            let mut plan = self.family.plan(contender.target.protocol(), &self.extent);
            match &self.selection {
                Some(selection) if !plan.select(selection) => Err(Error::NoRow { family: plan.family }),
                _ => Ok(plan),
            }
        };
        contenders.iter().map(plan).collect()
    }

    /// Measures the family on all servers that speak its protocols, in turns, until `stop` becomes true. `program` is who
    /// measures, for the results.
    ///
    /// # Errors
    /// No row is wanted, or the files have no room.
    pub fn measure(
        &self,
        lineup: &Lineup,
        program: &str,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Vec<Measured>> {
        let extent = extent_on(self.family, &self.extent);
        let contenders = lineup.contenders(self.family, &self.over);
        let plans = self.plans(&contenders)?;
        lineup.check_space(self.family, &plans, &extent)?;
        let runs: Vec<Run<'_>> = contenders
            .iter()
            .zip(&plans)
            .map(|(contender, plan)| Run {
                target: &contender.target,
                access: &contender.access,
                plan,
                extent: &extent,
                rate: None,
                think: Duration::ZERO,
                check: true,
                replay: None,
                program,
            })
            .collect();
        let results = run_in_turns(&runs, stop, progress);
        Ok(contenders.iter().zip(results).map(|(c, result)| Measured { server: c.server, result }).collect())
    }
}

/// The protocols that a family is measured over, of those that are asked for.
#[must_use]
pub fn over(family: &Family, asked: &[Protocol]) -> Vec<Protocol> {
    asked.iter().copied().filter(|protocol| family.protocols.contains(protocol)).collect()
}

/// A share with a plan takes the files no faster than the plan lets them in: small ones do. And a share that has rested lets
/// through at once what comes in a quarter of a second: that must be over before anything is measured.
pub(crate) fn extent_on(family: &Family, extent: &Extent) -> Extent {
    const PROVISIONED_FILE_BYTES: u64 = 4 << 20;
    let mut extent = extent.clone();
    if Medium::of_family(family) == Medium::Provisioned {
        extent.file_bytes = extent.file_bytes.min(PROVISIONED_FILE_BYTES);
        extent.ramp_seconds = extent.ramp_seconds.max(PROVISIONED_RAMP_SECONDS);
    }
    extent
}

/// Writes a result file for each server and protocol into a directory, which is made where there is none.
///
/// # Errors
/// A file or the directory cannot be made.
pub fn save(directory: &Path, measured: &[Measured]) -> Result<()> {
    let failed = |path: &Path, error: FileError| Error::NotSaved { path: path.to_owned(), error };
    fs::create_dir_all(directory).map_err(|e| failed(directory, e.into()))?;
    for Measured { server, result } in measured {
        let protocol = result.environment.protocol.name();
        let path = directory.join(format!("{}.{server}.{protocol}.json", result.family));
        result.save(&path).map_err(|e| failed(&path, e))?;
    }
    Ok(())
}
