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

/// The minimum load before a share with a plan is measured, in seconds: longer than its buckets stay full.
pub(crate) const PROVISIONED_RAMP_SECONDS: f64 = 0.4;

/// The result of one server over one protocol.
#[derive(Debug)]
pub struct Measured {
    /// The short name of the server: `anabranch`, `samba` or `ganesha`.
    pub server: &'static str,
    /// The result.
    pub result: ResultFile,
}

/// A measurement of one family on all servers that have the protocols.
#[derive(Debug, Clone)]
pub struct Contest {
    /// The family of rows.
    pub family: &'static Family,
    /// The protocols, which the family has.
    pub over: Vec<Protocol>,
    /// The duration and number of measurements, and the amount of data.
    pub extent: Extent,
    /// The rows of the family; None: all rows.
    pub selection: Option<Selection>,
}

impl Contest {
    /// A plan for each contender.
    ///
    /// # Errors
    /// The selection leaves no row.
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

    /// Measures the family on all servers that have its protocols, in turns, until `stop` becomes true. `program` names the
    /// measuring program in the results.
    ///
    /// # Errors
    /// The selection leaves no row, or there is not enough space for the files.
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

/// The requested protocols over which a family is measured.
#[must_use]
pub fn over(family: &Family, asked: &[Protocol]) -> Vec<Protocol> {
    asked.iter().copied().filter(|protocol| family.protocols.contains(protocol)).collect()
}

/// Adapts the extent to shares with a plan. Such a share receives its files at the rate of the plan, so the files are small. A
/// share that was idle admits the operations of a quarter of a second at once, so the load begins earlier.
pub(crate) fn extent_on(family: &Family, extent: &Extent) -> Extent {
    const PROVISIONED_FILE_BYTES: u64 = 4 << 20;
    let mut extent = extent.clone();
    if Medium::of_family(family) == Medium::Provisioned {
        extent.file_bytes = extent.file_bytes.min(PROVISIONED_FILE_BYTES);
        extent.ramp_seconds = extent.ramp_seconds.max(PROVISIONED_RAMP_SECONDS);
    }
    extent
}

/// Writes a result file for each server and protocol into a directory, which is created if it does not exist.
///
/// # Errors
/// A file or the directory cannot be created.
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
