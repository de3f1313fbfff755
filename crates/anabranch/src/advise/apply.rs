//! `--apply`: which one change to a share the advice comes to, and the measurement that decides about it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use advise::{Advice, Facts, Limits as Rates, Profile, Reached, Verdict, advise};
use control::activity::{LimitWaits, ShareActivity};
use control::shares::{Share, ShareChange};
use control_client::path_part;
use limits::{Limit, Limits, Plan};
use load::plan::{Extent, advice_extent, alone, settings};
use load::result::{Key, ResultFile};
use load::target::Target;

use super::arguments::Advise;
use super::live::{self, Judged};
use super::live_facts::works;
use super::trial::{self, Change, TrialOutcome};
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
    let outcome = trial::run(&access, &name, &change, stop, || {
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
        let outcome = trial::run(access, &of.share, &change, stop, || {
            let before = live::look(access, client)?;
            rest(watch, stop)?;
            let after = live::look(access, client)?;
            let of_share = works(&before, &after).into_iter().filter(|work| work.share == of.share);
            Ok(of_share.map(|work| work.calls_per_second()).sum())
        })?;
        return tell(command, &outcome, &change);
    }
    let shares: Vec<&str> = judged.iter().map(|of| of.share.as_str()).collect();
    nothing(command, &format!("No advised change applies to the share {}.\n", shares.join(", ")))
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
    let mut text = trial::render(outcome);
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

/// The share that a target names.
fn share_of(target: &Target) -> Result<String> {
    let name = match target {
        Target::Smb(smb) => smb.share.clone(),
        Target::Nfs(nfs) => nfs.path.trim_matches('/').split('/').next().unwrap_or_default().to_owned(),
        Target::Directory(_) => String::new(),
    };
    if name.is_empty() {
        let what = format!("{target} names no share of the server that runs here");
        return Err(Problem::new(
            Cause::Settings,
            what,
            "--apply needs smb://...@HOST/SHARE or nfs://HOST/SHARE.",
        ));
    }
    Ok(name)
}

/// The share, if commands may change it.
fn changeable(access: &Access, name: &str) -> Result<Share> {
    let share: Share = control_client::get(access, &format!("/v1/shares/{}", path_part(name)))?;
    match &share.declared_in {
        None => Ok(share),
        Some(place) => {
            let what = format!("the share {name} is declared in {place}: no command changes it");
            Err(Problem::new(Cause::Refused, what, "Change it there, and start the server again."))
        }
    }
}

fn activity(access: &Access, name: &str) -> Result<ShareActivity> {
    Ok(control_client::get(access, &format!("/v1/shares/{}/activity", path_part(name)))?)
}

fn calls(activity: &ShareActivity) -> u64 {
    activity.apis.iter().map(|api| api.calls).sum()
}

/// Another server may have a share of this name.
fn check_that_it_is_ours(
    measured: &ResultFile,
    before: &ShareActivity,
    after: &ShareActivity,
    target: &Target,
) -> Result<()> {
    let repetitions = measured.rows.iter().flat_map(|row| &row.repetitions);
    let done: u64 =
        repetitions.flat_map(|repetition| repetition.operations.values()).map(|tally| tally.count).sum();
    if done > 0 && calls(after).saturating_sub(calls(before)) >= done {
        return Ok(());
    }
    let what = format!(
        "{target} is not the share {} of the server that runs here: that saw nothing of it",
        after.name
    );
    Err(Problem::new(Cause::Refused, what, "Pass the state directory of that server: --state DIR"))
}

/// What the server knows of a measurement beside what the client does.
#[expect(clippy::cast_precision_loss, reason = "counters, for a ratio")]
fn with_account(facts: Facts, before: &ShareActivity, after: &ShareActivity) -> Facts {
    let throttled = |activity: &ShareActivity| activity.apis.iter().map(|api| api.throttled).sum::<u64>();
    let waited = throttled(after).saturating_sub(throttled(before)) as f64;
    let all = calls(after).saturating_sub(calls(before)).max(1) as f64;
    let limit = |name: &str| after.limits.get(name).map(|rate| *rate as f64);
    Facts {
        reached: Reached { throttled_share: Some(waited / all), ..facts.reached },
        limits: Rates { file_iops: limit("file-iops"), file_bytes: limit("file-throughput"), ..facts.limits },
        ..facts
    }
}

/// The first change to the share that the advice comes to and that can be taken back.
fn change(advice: &[Advice], share: &Share, before: &ShareActivity, after: &ShareActivity) -> Option<Change> {
    let asks = |rule: u8, verdict: Verdict| advice.iter().any(|a| a.rule == rule && a.verdict == verdict);
    if asks(15, Verdict::Red) || asks(16, Verdict::Red) {
        let limit = waited_longest(&before.waits, &after.waits)?;
        let plan = doubled(&share.plan, limit)?;
        let of = |plan: &str| ShareChange { plan: Some(plan.to_owned()), ..ShareChange::default() };
        return Some(Change {
            rule: if asks(15, Verdict::Red) { 15 } else { 16 },
            what: format!("plan: {} -> {plan}", share.plan),
            forth: of(&plan),
            back: of(&share.plan),
            command: format!("anabranch share set {} --plan '{plan}'", share.name),
        });
    }
    if asks(13, Verdict::Green) && !share.metadata_cache {
        let of = |on: bool| ShareChange { metadata_cache: Some(on), ..ShareChange::default() };
        return Some(Change {
            rule: 13,
            what: "metadata-cache: off -> on".to_owned(),
            forth: of(true),
            back: of(false),
            command: format!("anabranch share set {} --metadata-cache on", share.name),
        });
    }
    None
}

/// The limit that operations have waited for longest between two looks.
fn waited_longest<'a>(before: &[LimitWaits], after: &'a [LimitWaits]) -> Option<&'a str> {
    let since = |waits: &LimitWaits| {
        let earlier = before.iter().find(|earlier| earlier.limit == waits.limit);
        waits.seconds - earlier.map_or(0.0, |earlier| earlier.seconds)
    };
    let longest = after.iter().max_by(|one, other| since(one).total_cmp(&since(other)))?;
    (since(longest) > 0.0).then_some(&longest.limit)
}

/// A plan of one's own with twice of one limit. Those of Azure and of pools have rules about becoming less again: they are not tried.
fn doubled(plan: &str, limit: &str) -> Option<String> {
    let Plan::Custom(limits) = plan.parse().ok()? else { return None };
    let mut limits: Box<Limits> = limits;
    let rate = limits.rate_mut(*Limit::ALL.iter().find(|known| known.name() == limit)?);
    *rate = Some(rate.as_ref()?.checked_mul(2)?);
    let more = Plan::Custom(limits).to_string();
    more.parse::<Plan>().is_ok().then_some(more)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plans_that_can_be_taken_back_are_tried() {
        assert_eq!(
            doubled("custom iops=100 throughput=1MiB/s", "iops").unwrap(),
            "custom iops=200 throughput=1MiB/s"
        );
        assert_eq!(
            doubled("custom file-throughput=3MiB/s", "file-throughput").unwrap(),
            "custom file-throughput=6MiB/s"
        );
        for (plan, limit) in [
            ("unlimited", "iops"),
            ("azure-files-v1 capacity=1TiB", "iops"),
            ("anf-ultra capacity=1TiB", "throughput"),
            ("custom iops=100", "throughput"),
            ("custom iops=100", "luck"),
            ("custom iops=18446744073709551615", "iops"),
        ] {
            assert_eq!(doubled(plan, limit), None, "{plan}");
        }
    }

    #[test]
    fn the_limit_that_was_waited_for_since_the_first_look_counts() {
        let waits = |limit: &str, seconds| LimitWaits { limit: limit.to_owned(), operations: 1, seconds };
        let before = [waits("iops", 900.0), waits("read", 1.0)];
        let after = [waits("iops", 901.0), waits("read", 5.0), waits("write", 3.0)];
        assert_eq!(waited_longest(&before, &after), Some("read"));
        assert_eq!(waited_longest(&after, &after), None);
        assert_eq!(waited_longest(&[], &[]), None);
    }
}
