//! Tries one change of a share on a running server: measures with and without the change, and keeps the change only if it
//! surely helps.

use std::sync::atomic::{AtomicBool, Ordering};

use control::shares::{Share, ShareChange};
use control_client::path_part;
use gateway::control_access::Access;
use load::statistics::{Conclusion, Effect, Estimate, Ratio, compare, estimate};
use serde::Serialize;

use crate::change::Change;
use crate::error::{Error, Result};

/// Measurements with the change, and as many without it: the smallest number that gives a 95 % interval without assumptions.
const PAIRS: usize = 6;

/// The outcome of a trial.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrialOutcome {
    /// The rule that asked for the change.
    pub rule: u8,
    /// The name of the share.
    pub share: String,
    /// What changed, such as `metadata-cache: off -> on`.
    pub change: String,
    /// Operations per second without the change.
    pub before: Option<Estimate>,
    /// Operations per second with the change.
    pub after: Option<Estimate>,
    /// The rate with the change divided by the rate without it, over neighbouring measurements.
    pub ratio: Option<Ratio>,
    /// What may be concluded from that.
    pub conclusion: Conclusion,
    /// Whether the change was kept.
    pub kept: bool,
    /// The command that makes the change.
    pub command: String,
}

/// A trial of one change to a share.
pub struct Trial<'a> {
    /// The server.
    pub access: &'a Access,
    /// The name of the share.
    pub share: &'a str,
    /// The change.
    pub change: &'a Change,
    /// Becomes true when the user stops the trial.
    pub stop: &'a AtomicBool,
    /// Called if the change cannot be reverted, and the share stays changed.
    pub not_taken_back: &'a dyn Fn(control_client::Error),
}

/// Reverts the change when it is dropped, unless the change is kept.
struct Undo<'a> {
    trial: &'a Trial<'a>,
    is_changed: bool,
}

impl Undo<'_> {
    fn set(&mut self, changed: bool) -> Result<()> {
        if self.is_changed != changed {
            let Change { forth, back, .. } = self.trial.change;
            // The call may fail and still have changed the share, so the change is reverted in any case.
            self.is_changed = true;
            self.trial.apply(if changed { forth } else { back })?;
            self.is_changed = changed;
        }
        Ok(())
    }
}

impl Drop for Undo<'_> {
    fn drop(&mut self) {
        if self.is_changed
            && let Err(error) = self.trial.apply(&self.trial.change.back)
        {
            (self.trial.not_taken_back)(error);
        }
    }
}

impl Trial<'_> {
    fn apply(&self, change: &ShareChange) -> control_client::Result<Share> {
        let path = format!("/v1/shares/{}", path_part(self.share));
        control_client::call(self.access, "PATCH", &path, Some(change))
    }

    /// Tries the change. `measure` returns a rate in operations per second.
    ///
    /// # Errors
    /// The user stopped the trial, the server refuses the change, or a measurement failed. The change is then reverted.
    pub fn run<E: From<Error>>(
        &self,
        mut measure: impl FnMut() -> std::result::Result<f64, E>,
    ) -> std::result::Result<TrialOutcome, E> {
        let Trial { share, change, stop, .. } = self;
        let mut undo = Undo { trial: self, is_changed: false };
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for pair in 0..PAIRS {
            // Alternating order: a drift of the machine affects both equally.
            let order = if pair % 2 == 0 { [false, true] } else { [true, false] };
            for changed in order {
                undo.set(changed)?;
                let rate = measure()?;
                if stop.load(Ordering::Relaxed) {
                    return Err(Error::Stopped { share: (*share).to_owned() }.into());
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
            share: (*share).to_owned(),
            change: change.what.clone(),
            before: estimate(&before),
            after: estimate(&after),
            ratio,
            conclusion: ratio.map_or(Conclusion::TooNoisy, |ratio| ratio.conclusion()),
            kept,
            command: change.command.clone(),
        })
    }
}
