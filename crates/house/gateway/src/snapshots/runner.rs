//! What the policy of a share wants at a moment, done: snapshots taken, and those removed that are no longer kept.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use control::{Refusal, RefusalKind};
use schedule::{Look, OfRule, Period, Rule, Utc, label, surplus};
use share::Share;
use state::{DoneRecord, State};
use storage::Snapshot;

use super::{Kept, Snapshotting, Turn, asked, hook, of_policy};
use crate::settings::PolicySettings;

/// After a failure, the next attempt is made so many seconds later.
const RETRY_SECS: u64 = 300;
/// Between two snapshots that are removed: file systems give their space back by and by.
const PAUSE: Duration = Duration::from_millis(100);

/// A share with a policy.
#[derive(Debug)]
pub(crate) struct OnShare {
    pub(crate) name: String,
    pub(crate) directory: PathBuf,
    /// None: it is not served.
    pub(crate) share: Option<Arc<Share>>,
    pub(crate) settings: PolicySettings,
}

/// What is due on a share, and up to when nothing is missing.
#[derive(Debug)]
pub(crate) struct Due {
    rules: Vec<(Rule, Utc)>,
    record: DoneRecord,
    next: Option<Utc>,
}

/// Carries out the policy of a share. What must last is in the state database; the rest may begin anew with the server.
#[derive(Debug)]
pub(crate) struct Runner {
    state: Arc<State>,
    snapshotting: Arc<Snapshotting>,
    /// When rules that have failed are tried again.
    retries: HashMap<Period, Utc>,
    /// The rules of which it is known that nothing was taken that is not noted.
    begun: HashSet<Period>,
}

impl Runner {
    pub(crate) fn new(state: Arc<State>, snapshotting: Arc<Snapshotting>) -> Self {
        Self { state, snapshotting, retries: HashMap::new(), begun: HashSet::new() }
    }

    /// What the policy of the share wants now; None: nothing.
    ///
    /// # Errors
    /// The state database cannot be used.
    pub(super) fn look(&self, on: &OnShare, now: Utc) -> state::Result<Option<Due>> {
        let policy = &on.settings.policy;
        let known = self.state.snapshots_done(&on.name)?;
        let mut record = known.clone().filter(|record| record.policy == policy.name()).unwrap_or_default();
        policy.name().clone_into(&mut record.policy);
        record.retain(|period| policy.rules().iter().any(|rule| rule.period.name() == period));
        let (mut due, mut next) = (Vec::new(), None);
        for rule in policy.rules() {
            let done = record.of_rule(rule.period, rule.every.to_string(), now.secs());
            let then = match schedule::look(&rule.every, Utc::from_secs(*done), now) {
                Look::Due(at) => {
                    due.push((*rule, at));
                    rule.every.next(now)
                }
                Look::Wait(then) => then,
                Look::Again(at) => {
                    *done = at.secs();
                    rule.every.next(now)
                }
            };
            next = [next, then].into_iter().flatten().min();
        }
        if known.as_ref() != Some(&record) {
            self.state.keep_snapshots_done(&on.name, &record)?;
        }
        self.snapshotting.notes.looked(&on.name, policy, now, !due.is_empty(), next);
        Ok((!due.is_empty()).then_some(Due { rules: due, record, next }))
    }

    /// Does what is due.
    ///
    /// # Errors
    /// The state database cannot be used.
    pub(super) fn carry_out(&mut self, on: &OnShare, due: Due, now: Utc) -> state::Result<()> {
        let Due { rules, mut record, next } = due;
        let is_due = rules.len();
        let mut is_done = 0;
        for (rule, at) in rules {
            is_done += usize::from(self.try_rule(on, &rule, at, now, &mut record)?);
        }
        self.snapshotting.notes.looked(&on.name, &on.settings.policy, now, is_done < is_due, next);
        Ok(())
    }

    /// Takes the snapshot of a rule that is due, unless that failed a moment ago. Whether nothing is missing now.
    fn try_rule(
        &mut self,
        on: &OnShare,
        rule: &Rule,
        at: Utc,
        now: Utc,
        record: &mut DoneRecord,
    ) -> state::Result<bool> {
        let (Some(share), key) = (&on.share, rule.period) else { return Ok(false) };
        // If the clock was set back, the time of the next attempt is of no use.
        let is_later = |retry: &Utc| now < *retry && *retry <= now.plus(RETRY_SECS);
        if self.retries.get(&key).is_some_and(is_later) {
            return Ok(false);
        }
        let run = Run { on, share, rule, now, state: &self.state, snapshotting: &self.snapshotting };
        let outcome = match self.begun.remove(&key) {
            true => run.take(at, record)?,
            false => run.take_unless_taken(at, record)?,
        };
        let notes = &self.snapshotting.notes;
        match outcome {
            Ok(problem) => {
                self.begun.insert(key);
                self.retries.remove(&key);
                let surplus = run.remove_surplus().err().map(words);
                notes.taken(&on.name, rule.period, problem.or(surplus));
                let listed = asked(share, |snapshots, may| snapshots.list(may));
                notes.listed(&on.name, listed.ok().as_deref());
                Ok(true)
            }
            Err(why) => {
                tracing::error!(share = &on.name, policy = record.policy, "no snapshot was taken: {why}");
                self.retries.insert(key, now.plus(RETRY_SECS));
                notes.failed(&on.name, rule.period, why);
                Ok(false)
            }
        }
    }
}

fn failed(error: state::Error) -> Refusal {
    Refusal::new(RefusalKind::Failed, error.what, error.advice)
}

fn words(Refusal { what, advice, .. }: Refusal) -> String {
    if advice.is_empty() { what } else { format!("{what}: {advice}") }
}

/// One rule that is due on a share that is served.
struct Run<'a> {
    on: &'a OnShare,
    share: &'a Arc<Share>,
    rule: &'a Rule,
    now: Utc,
    state: &'a State,
    snapshotting: &'a Snapshotting,
}

/// What went wrong beside, if a snapshot was taken, otherwise why it was not.
type Outcome = Result<Option<String>, String>;

impl Run<'_> {
    /// The same as [`Run::take`], after a start of the server or a failure: a snapshot may have been taken, and that not noted yet.
    fn take_unless_taken(&self, at: Utc, record: &mut DoneRecord) -> state::Result<Outcome> {
        let listed = match asked(self.share, |snapshots, may| snapshots.list(may)) {
            Ok(listed) => listed,
            Err(refusal) => return Ok(Err(words(refusal))),
        };
        let times = at.secs()..=self.now.secs();
        if listed.iter().any(|snapshot| self.is_of_rule(snapshot) && times.contains(&snapshot.taken.secs)) {
            self.note_done(at, record)?;
            return Ok(Ok(None));
        }
        self.take(at, record)
    }

    /// Takes the snapshot that is due at `at`. If the hook before it fails, the snapshot is taken nevertheless: one that is as after a
    /// power cut is better than none. The hooks run outside the turn, so others need not wait for them: what they hold up waits for no
    /// more than the snapshots of others that are being taken in this file system.
    fn take(&self, at: Utc, record: &mut DoneRecord) -> state::Result<Outcome> {
        let hooks = &self.on.settings.hooks;
        let label = label(self.on.settings.policy.name(), self.rule.period);
        let before = self.run_hook("before", &hooks.before, "");
        let (taken, fewer) = match self.turn() {
            Ok(_turn) => self.take_within_limit(&label),
            Err(refusal) => (Err(refusal), None),
        };
        let noted = taken.as_ref().map_or(Ok(()), |_| self.note_done(at, record));
        let name = taken.as_ref().map_or("", |snapshot| snapshot.name.as_str());
        let after = self.run_hook("after", &hooks.after, name);
        let problem = [before.err(), after.err(), fewer]
            .into_iter()
            .flatten()
            .reduce(|one, other| format!("{one}; {other}"));
        if let Some(problem) = &problem {
            tracing::error!(share = &self.on.name, policy = record.policy, "{problem}");
        }
        noted?;
        Ok(match taken {
            Ok(snapshot) => {
                let (share, policy) = (&self.on.name, &record.policy);
                tracing::info!(share, policy, snapshot = snapshot.name, "a snapshot was taken");
                Ok(problem)
            }
            Err(refusal) => Err(words(refusal)),
        })
    }

    /// Takes a snapshot. Where the file system keeps no more of them, the oldest of the rule makes room. The other value says that the
    /// rule keeps fewer than it wants. The caller has the turn.
    fn take_within_limit(&self, label: &str) -> (Result<Snapshot, Refusal>, Option<String>) {
        let take = || {
            let label = label.to_owned();
            asked(self.share, move |snapshots, may| snapshots.take(&label, may))
        };
        let limit = match take() {
            Err(refusal) if refusal.kind == RefusalKind::TooMany => refusal,
            taken => return (taken, None),
        };
        match self.make_room() {
            Ok(Some(kept)) => {
                let (period, keep) = (self.rule.period.name(), self.rule.keep);
                let taken = take().map_err(|Refusal { kind, what, advice }| {
                    Refusal::new(
                        kind,
                        format!("{what}; the rule's oldest snapshot was removed to make room"),
                        advice,
                    )
                });
                (taken, Some(format!("{}: the rule {period} keeps {kept} instead of {keep}", limit.what)))
            }
            Ok(None) => (Err(limit), None),
            Err(refusal) => (Err(refusal), None),
        }
    }

    /// Removes the oldest snapshot of the rule that is neither protected nor being restored from, if there is one. Returns how many
    /// it had.
    fn make_room(&self) -> Result<Option<usize>, Refusal> {
        let kept = self.kept()?;
        let listed = asked(self.share, |snapshots, may| snapshots.list(may))?;
        let of_rule: Vec<_> = listed.iter().filter(|snapshot| self.is_of_rule(snapshot)).collect();
        let removable = of_rule.iter().filter(|snapshot| !kept.contains(snapshot));
        let Some(oldest) = removable.min_by_key(|snapshot| snapshot.id) else { return Ok(None) };
        self.remove(oldest, &kept)?;
        Ok(Some(of_rule.len()))
    }

    fn note_done(&self, at: Utc, record: &mut DoneRecord) -> state::Result<()> {
        record.done.insert(self.rule.period.name().to_owned(), at.secs());
        self.state.keep_snapshots_done(&self.on.name, record)
    }

    fn run_hook(&self, which: &str, program: &[String], snapshot: &str) -> Result<(), String> {
        let directory = self.on.directory.to_string_lossy();
        let variables = [
            ("ANABRANCH_SHARE", self.on.name.as_str()),
            ("ANABRANCH_DIRECTORY", &*directory),
            ("ANABRANCH_POLICY", self.on.settings.policy.name()),
            ("ANABRANCH_PERIOD", self.rule.period.name()),
            ("ANABRANCH_SNAPSHOT", snapshot),
        ];
        hook::run(program, &variables, self.on.settings.hooks.time)
            .map_err(|why| format!("the hook {which} the snapshot: {why}"))
    }

    /// Removes the snapshots that the rule no longer keeps, one by one. Only its own are looked at.
    fn remove_surplus(&self) -> Result<(), Refusal> {
        let kept = self.kept()?;
        let listed = asked(self.share, |snapshots, may| snapshots.list(may))?;
        let of_rule: Vec<_> = listed.iter().filter(|snapshot| self.is_of_rule(snapshot)).collect();
        let kept_by = |one: &Snapshot| OfRule { id: one.id.0, is_protected: kept.contains(one) };
        let over = surplus(&of_rule.iter().map(|one| kept_by(one)).collect::<Vec<_>>(), self.rule.keep);
        let by_id = |id: &u32| of_rule.iter().find(|snapshot| snapshot.id.0 == *id);
        for snapshot in over.iter().filter_map(by_id) {
            self.remove_in_turn(snapshot)?;
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Removes a snapshot, unless it is gone, was protected while others had their turn, or is being restored from.
    fn remove_in_turn(&self, snapshot: &Snapshot) -> Result<(), Refusal> {
        let _turn = self.turn()?;
        let kept = self.kept()?;
        if kept.contains(snapshot) { Ok(()) } else { self.remove(snapshot, &kept) }
    }

    /// Removes a snapshot, unless it is gone, and forgets that it was protected once. The caller has the turn.
    fn remove(&self, snapshot: &Snapshot, kept: &Kept) -> Result<(), Refusal> {
        let id = snapshot.id;
        asked(self.share, move |snapshots, may| match snapshots.remove(id, may) {
            Err(storage::Error::NotFound) => Ok(()),
            removed => removed,
        })?;
        kept.forget(self.state, snapshot);
        Ok(())
    }

    /// The turn to take or remove a snapshot of the share, which may have been changed before it came: then another store is in its place.
    fn turn(&self) -> Result<Turn<'_>, Refusal> {
        let turn = self.snapshotting.turn_at(self.share)?;
        if self.share.is_withdrawn() {
            let what = format!("the share {} was changed meanwhile", self.on.name);
            return Err(Refusal::new(RefusalKind::Busy, what, ""));
        }
        Ok(turn)
    }

    /// Which snapshots stay now, whatever the rule says.
    fn kept(&self) -> Result<Kept, Refusal> {
        Kept::of(self.state, &self.on.name, &self.on.directory, self.now).map_err(failed)
    }

    fn is_of_rule(&self, snapshot: &Snapshot) -> bool {
        let policy = self.on.settings.policy.name();
        snapshot.is_own
            && of_policy(&snapshot.name).is_some_and(|of| of == (policy.to_owned(), self.rule.period))
    }
}

#[cfg(test)]
mod tests;
