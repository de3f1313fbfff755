//! A short measurement of a target, to advise from.

use load::plan::{advice, advice_extent};
use load::result::{Outcome, Protocol, ResultFile};
use load::target::Target;

use crate::bench::{measure_plan, show, stopping};
use crate::problem::{Cause, Problem, Result};

/// What would be measured, for who has not asked for it.
pub(super) fn offer(target: &Target) -> String {
    let plan = advice(target.protocol());
    let extent = advice_extent();
    let rows: String = plan.rows.iter().map(|row| format!("  {}\n", row.key)).collect();
    format!(
        "Nothing is known about {target} yet. With --measure, the program measures these rows there, {} times each, in half a minute, on files of {} MiB \
         in a folder that is removed afterwards:\n\n{rows}",
        extent.repetitions,
        extent.file_bytes >> 20
    )
}

/// Measures, and shows the figures on standard error: what is advised stands apart.
pub(super) fn run(target: &Target) -> Result<ResultFile> {
    if target.protocol() == Protocol::Directory {
        let what = format!("{target} is not a server: there are no connections to advise on");
        return Err(Problem::new(Cause::Settings, what, "Give smb://... or nfs://..."));
    }
    let measured = measure_plan(target, &advice(target.protocol()), &advice_extent(), stopping::flag()?)?;
    if measured.outcome == Outcome::Stopped {
        return Err(Problem::new(
            Cause::Measuring,
            "stopped: too little was measured to conclude anything",
            "",
        ));
    }
    eprintln!("{}", show::render(&measured));
    Ok(measured)
}
