//! `--apply`: the changes to a share that the advice comes to, tried one after the other, and the measurements that decide about
//! them. It ends with the first change that helps.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use advise::{Advice, Facts, Profile, Verdict, advise};
use control::shares::Share;
use live_advice::share_facts::{activity, changeable, check_that_it_is_ours, share_of, with_account};
use live_advice::{Change, Trial, TrialOutcome, changes, look, works};
use load::plan::{Extent, advice_extent, alone, settings};
use load::result::Key;
use load::target::Target;
use serde::Serialize;

use super::arguments::Advise;
use super::live::Judged;
use super::show;
use crate::bench::{measure_plan, stopping};
use crate::control_access::{self, Access};
use crate::print::{counted, json, print};
use crate::problem::{Cause, Problem, Result};

/// Bytes of each file that is measured on: a share with narrow limits takes its time to have them written.
const FILE_BYTES: u64 = 1 << 20;
/// For so long a client is watched at least, each time.
const WATCH: Duration = Duration::from_millis(500);
/// Changes that are tried at most: each is measured twelve times.
const STEPS_MAX: usize = 4;
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
    let advised = rows.iter().flat_map(|(key, advice)| {
        changes(advice, &share, &before, &after).into_iter().map(move |change| (key, change))
    });
    let all: Vec<&Advice> = rows.iter().flat_map(|(_, advice)| advice).collect();
    let tries =
        Tries { json: command.asking.json, shares: vec![name.clone()], left: left_alone(&all, &share) };
    let extent = Extent { repetitions: 1, ..extent };
    tries.run(each_once(advised), |key, change| {
        try_out(&access, &name, change, stop, || {
            let measured = measure_plan(target, &alone((*key).clone()), &extent, stop)?;
            Ok(measured.rows.iter().find_map(|row| Some(row.measure.as_ref()?.rate.median)).unwrap_or(0.0))
        })
    })
}

/// Watches a client that works, and tries what the advice on its work comes to.
pub(super) fn on_client(command: &Advise, access: &Access, client: &str, judged: &[Judged]) -> Result<()> {
    let stop = stopping::flag()?;
    let watch = Duration::from_secs(command.seconds).max(WATCH);
    let mut advised = Vec::new();
    let mut tries = Tries { json: command.asking.json, shares: Vec::new(), left: Vec::new() };
    for of in judged {
        let share = changeable(access, &of.share)?;
        let earlier = activity(access, &of.share)?;
        rest(watch, stop)?;
        let later = activity(access, &of.share)?;
        let own = changes(&of.advice, &share, &earlier, &later);
        advised.extend(own.into_iter().map(|change| (of.share.clone(), change)));
        tries.left.extend(left_alone(&of.advice.iter().collect::<Vec<_>>(), &share));
        tries.shares.push(of.share.clone());
    }
    tries.run(each_once(advised.into_iter()), |share, change| {
        try_out(access, share, change, stop, || {
            let before = look(access, client)?;
            rest(watch, stop)?;
            let after = look(access, client)?;
            let of_share = works(&before, &after).into_iter().filter(|work| work.share == *share);
            Ok(of_share.map(|work| work.calls_per_second()).sum())
        })
    })
}

/// The changes, each once: several kinds of work may come to the same.
fn each_once<S>(advised: impl Iterator<Item = (S, Change)>) -> Vec<(S, Change)> {
    let mut all: Vec<(S, Change)> = Vec::new();
    for (of, change) in advised {
        if all.iter().all(|(_, known)| known.command != change.command) {
            all.push((of, change));
        }
    }
    all
}

/// Advice that `--apply` leaves alone, and why.
fn left_alone(advice: &[&Advice], share: &Share) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for of in advice.iter().filter(|of| of.verdict != Verdict::Yellow) {
        let why = match of.rule {
            13 if share.metadata_cache => "the share has its metadata cache".to_owned(),
            15 | 16 if !share.plan.starts_with("custom ") => {
                format!("only limits of a custom plan are tried, this is {}", share.plan)
            }
            13 | 15 | 16 => continue,
            _ if of.commands.is_empty() => continue,
            _ => "it is changed on the client".to_owned(),
        };
        let line = format!("R{}: {why}", of.rule);
        if !all.contains(&line) {
            all.push(line);
        }
    }
    all
}

/// A series of trials.
struct Tries {
    json: bool,
    /// The shares that could be changed.
    shares: Vec<String>,
    /// Advice that is left alone, and why.
    left: Vec<String>,
}

/// What came of a series, for programs: the change that decided, beside all that were tried.
#[derive(Serialize)]
struct Series<'a> {
    #[serde(flatten)]
    outcome: &'a TrialOutcome,
    steps: &'a [TrialOutcome],
    stopped: &'a str,
    not_tried: &'a [String],
}

impl Tries {
    /// Tries changes until one helps, and says after each what it did.
    fn run<S>(
        &self,
        advised: Vec<(S, Change)>,
        mut attempt: impl FnMut(&S, &Change) -> Result<TrialOutcome>,
    ) -> Result<()> {
        if advised.is_empty() {
            return self.nothing();
        }
        let count = advised.len();
        let mut steps: Vec<TrialOutcome> = Vec::new();
        for (of, change) in advised.into_iter().take(STEPS_MAX) {
            let outcome = attempt(&of, &change)?;
            if !self.json {
                print(&show::trial(&outcome))?;
            }
            steps.push(outcome);
            if steps.last().is_some_and(|step| step.kept) {
                break;
            }
        }
        let stopped = stopped_because(&steps, count);
        let Some(outcome) = steps.iter().find(|step| step.kept).or_else(|| steps.first()) else {
            return self.nothing();
        };
        if self.json {
            let series = Series { outcome, steps: &steps, stopped: &stopped, not_tried: &self.left };
            return print(&json(&series)?);
        }
        print(&format!("Stopped: {stopped}\n{}", self.not_tried()))
    }

    fn nothing(&self) -> Result<()> {
        let text = format!(
            "No advised change applies to the share {}.\n{}",
            self.shares.join(", "),
            self.not_tried()
        );
        print(if self.json { "null\n" } else { &text })
    }

    fn not_tried(&self) -> String {
        self.left.iter().map(|line| format!("Not tried: {line}\n")).collect()
    }
}

/// Why a series ended.
fn stopped_because(steps: &[TrialOutcome], count: usize) -> String {
    let tried = steps.len();
    if steps.last().is_some_and(|step| step.kept) {
        let left = match count - tried {
            0 => "there is no other change to try".to_owned(),
            left => format!("not tried yet: {}", counted(left, "change")),
        };
        return format!("the change helps and is kept; {left}");
    }
    match count - tried {
        0 => format!("{} tried, none surely helps; the share is as it was", counted(tried, "change")),
        left => format!(
            "{tried} changes tried, none surely helps; {left} more were not tried; the share is as it was"
        ),
    }
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
