//! `--apply`: the one change to a share that the advice comes to, and the measurement that decides about it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use advise::{Advice, Facts, Profile, advise};
use control::shares::Share;
use live_advice::share_facts::{activity, changeable, check_that_it_is_ours, share_of, with_account};
use live_advice::{Change, Trial, TrialOutcome, change, look, works};
use load::plan::{Extent, advice_extent, alone, settings};
use load::result::Key;
use load::target::Target;

use super::arguments::Advise;
use super::live::Judged;
use super::show;
use crate::bench::{measure_plan, stopping};
use crate::control_access::{self, Access};
use crate::print::{json, print};
use crate::problem::{Cause, Problem, Result};

/// Bytes of each file that is measured on: a share with narrow limits takes its time to have them written.
const FILE_BYTES: u64 = 1 << 20;
/// For so long a client is watched at least, each time.
const WATCH: Duration = Duration::from_millis(500);
/// How often it is looked whether somebody wants to stop.
const STEP: Duration = Duration::from_millis(50);

/// Measures a target that is a share of the server that runs here, and tries what the advice comes to.
pub(super) fn on_target(command: &Advise, target: &Target, profile: Profile) -> Result<()> {
    let access = control_access::find(&command.asking.state(), command.asking.control)?;
    let name = share_of(target)?;
    let share = changeable(&access, &name)?;
    let stop = stopping::flag()?;
    let extent = Extent { repetitions: 2, seconds: 0.5, file_bytes: FILE_BYTES, ..advice_extent() };
    let before = activity(&access, &name)?;
    let measured = measure_plan(target, &settings(), &extent, stop)?;
    let after = activity(&access, &name)?;
    stopped(stop)?;
    check_that_it_is_ours(&measured, &before, &after, target)?;
    let of_row = |row: &load::result::Row| {
        let facts = Facts { profile, ..Facts::of_row(&measured, row) };
        (row.key.clone(), advise(&with_account(facts, &before, &after)))
    };
    let rows: Vec<(Key, Vec<Advice>)> = measured.rows.iter().map(of_row).collect();
    let found = rows.iter().find_map(|(key, advice)| Some((key, change(advice, &share, &before, &after)?)));
    let Some((key, change)) = found else { return nothing_to_change(command, &share) };
    let extent = Extent { repetitions: 1, ..extent };
    let outcome = try_out(&access, &name, &change, stop, || {
        let measured = measure_plan(target, &alone(key.clone()), &extent, stop)?;
        Ok(measured.rows.iter().find_map(|row| Some(row.measure.as_ref()?.rate.median)).unwrap_or(0.0))
    })?;
    tell(command, &outcome, &change)
}

/// Watches a client that works, and tries what the advice on its work comes to.
pub(super) fn on_client(command: &Advise, access: &Access, client: &str, judged: &[Judged]) -> Result<()> {
    let stop = stopping::flag()?;
    let watch = Duration::from_secs(command.seconds).max(WATCH);
    for of in judged {
        let share = changeable(access, &of.share)?;
        let earlier = activity(access, &of.share)?;
        rest(watch, stop)?;
        let Some(change) = change(&of.advice, &share, &earlier, &activity(access, &of.share)?) else {
            continue;
        };
        let outcome = try_out(access, &of.share, &change, stop, || {
            let before = look(access, client)?;
            rest(watch, stop)?;
            let after = look(access, client)?;
            let of_share = works(&before, &after).into_iter().filter(|work| work.share == of.share);
            Ok(of_share.map(|work| work.calls_per_second()).sum())
        })?;
        return tell(command, &outcome, &change);
    }
    let shares: Vec<&str> = judged.iter().map(|of| of.share.as_str()).collect();
    nothing(command, &format!("No advised change applies to the share {}.\n", shares.join(", ")))
}

/// Tries a change. Where it cannot be taken back, people are told so at once.
fn try_out(
    access: &Access,
    share: &str,
    change: &Change,
    stop: &AtomicBool,
    measure: impl FnMut() -> Result<f64>,
) -> Result<TrialOutcome> {
    let not_taken_back = |error| {
        let problem = Problem::from(error);
        eprintln!("{problem}\n  The share {share} is still changed ({}).", change.what);
    };
    Trial { access, share, change, stop, not_taken_back: &not_taken_back }.run(measure)
}

fn nothing_to_change(command: &Advise, share: &Share) -> Result<()> {
    nothing(command, &format!("No advised change applies to the share {}.\n", share.name))
}

fn nothing(command: &Advise, text: &str) -> Result<()> {
    print(if command.asking.json { "null\n" } else { text })
}

fn tell(command: &Advise, outcome: &TrialOutcome, change: &Change) -> Result<()> {
    if command.asking.json {
        return print(&json(outcome)?);
    }
    let mut text = show::trial(outcome);
    if outcome.kept {
        text.push_str(&format!("  The same by hand: {}\n", change.command));
    }
    print(&text)
}

/// Waits, unless somebody wants to stop.
fn rest(time: Duration, stop: &AtomicBool) -> Result<()> {
    let end = Instant::now() + time;
    while Instant::now() < end {
        stopped(stop)?;
        std::thread::sleep(STEP.min(end.saturating_duration_since(Instant::now())));
    }
    Ok(())
}

fn stopped(stop: &AtomicBool) -> Result<()> {
    let asked = stop.load(Ordering::Relaxed);
    if asked { Err(Problem::new(Cause::Measuring, "stopped: the share is unchanged", "")) } else { Ok(()) }
}
