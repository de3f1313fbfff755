//! One change to a share of the server that runs, measured with and without it, and kept only if it surely helps.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

use control::shares::{Share, ShareChange};
use control_client::path_part;
use load::statistics::{Effect, Estimate, Ratio, compare, estimate};
use serde::Serialize;

use crate::control_access::Access;
use crate::problem::{Cause, Problem, Result};

/// Measurements with the change, and as many without: the fewest that have a 95 % interval without assumptions.
const PAIRS: usize = 6;

/// A change, and what takes it back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    /// The rule that asks for it.
    pub(super) rule: u8,
    /// What changes, such as `metadata-cache: off -> on`.
    pub(super) what: String,
    pub(super) forth: ShareChange,
    pub(super) back: ShareChange,
    /// The command that does the same.
    pub(super) command: String,
}

/// What came of a trial.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct TrialOutcome {
    rule: u8,
    share: String,
    change: String,
    /// Operations a second without it.
    before: Option<Estimate>,
    /// Operations a second with it.
    after: Option<Estimate>,
    /// The one by the other, in turns.
    ratio: Option<Ratio>,
    pub(super) kept: bool,
}

/// The share is as it was when this is dropped, unless it is kept so.
struct Undo<'a> {
    access: &'a Access,
    share: &'a str,
    change: &'a Change,
    is_changed: bool,
}

impl Undo<'_> {
    fn set(&mut self, changed: bool) -> Result<()> {
        if self.is_changed != changed {
            // Whatever comes of the call, it is taken back.
            self.is_changed = true;
            apply(self.access, self.share, if changed { &self.change.forth } else { &self.change.back })?;
            self.is_changed = changed;
        }
        Ok(())
    }
}

impl Drop for Undo<'_> {
    fn drop(&mut self) {
        if self.is_changed
            && let Err(problem) = apply(self.access, self.share, &self.change.back)
        {
            eprintln!("{problem}\n  The share {} is still changed ({}).", self.share, self.change.what);
        }
    }
}

fn apply(access: &Access, share: &str, change: &ShareChange) -> Result<Share> {
    Ok(control_client::call(access, "PATCH", &format!("/v1/shares/{}", path_part(share)), Some(change))?)
}

/// Tries a change: `measure` gives a rate of operations each time.
///
/// # Errors
/// It was asked to stop, the server refuses the change, or something went wrong while it was measured: the share is as it was.
pub(super) fn run(
    access: &Access,
    share: &str,
    change: &Change,
    stop: &AtomicBool,
    mut measure: impl FnMut() -> Result<f64>,
) -> Result<TrialOutcome> {
    let mut undo = Undo { access, share, change, is_changed: false };
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for pair in 0..PAIRS {
        // What becomes slower or quicker by itself meanwhile does so for both.
        let order = if pair % 2 == 0 { [false, true] } else { [true, false] };
        for changed in order {
            undo.set(changed)?;
            let rate = measure()?;
            if stop.load(Ordering::Relaxed) {
                let what = format!("stopped: the share {share} is unchanged");
                return Err(Problem::new(Cause::Measuring, what, ""));
            }
            if changed { after.push(rate) } else { before.push(rate) }
        }
    }
    let ratio = compare(&before, &after);
    let kept = ratio.is_some_and(|ratio| ratio.effect == Effect::Higher);
    undo.set(kept)?;
    undo.is_changed = false;
    Ok(TrialOutcome {
        rule: change.rule,
        share: share.to_owned(),
        change: change.what.clone(),
        before: estimate(&before),
        after: estimate(&after),
        ratio,
        kept,
    })
}

/// What came of it, for people.
pub(super) fn render(outcome: &TrialOutcome) -> String {
    let mut text = format!("R{}  {} on the share {}\n", outcome.rule, outcome.change, outcome.share);
    for (name, rate) in [("before", &outcome.before), ("after", &outcome.after)] {
        let rate = rate.as_ref().map_or_else(
            || "nothing was done".to_owned(),
            |rate| {
                let interval = rate
                    .interval
                    .map_or_else(String::new, |[low, high]| format!("  (95 %: {low:.0} to {high:.0})"));
                format!("{:.0} operations/s{interval}", rate.median)
            },
        );
        let _ = writeln!(text, "  {name:<7} {rate}");
    }
    let effect = outcome.ratio.map_or_else(|| "no measurable effect".to_owned(), |ratio| ratio.to_string());
    let then = if outcome.kept { "kept" } else { "reverted" };
    let _ = writeln!(text, "  effect  {effect}: {then}");
    text
}
