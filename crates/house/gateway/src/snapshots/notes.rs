//! What is known of the snapshots of shares, for those who must not wait.

use std::collections::BTreeMap;

use control::snapshots::SnapshotFigures;
use parking_lot::Mutex;
use schedule::{Period, Policy, Utc};
use share::folded_name;

/// How late a snapshot may be before that is an alarm, in seconds.
const LATE_SECS: u64 = 15 * 60;

/// What is known of all shares.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// By folded name. Guards itself alone.
    shares: Mutex<BTreeMap<String, Note>>,
}

/// What is known of one share.
#[derive(Debug, Clone, Default)]
struct Note {
    name: String,
    /// How many snapshots there are, and when the newest was taken. None: the share has none, or was not asked yet.
    listed: Option<(usize, Option<i64>)>,
    policy: Option<OfPolicy>,
}

/// What is known of the policy of a share.
#[derive(Debug, Clone, Default)]
struct OfPolicy {
    name: String,
    taken: u64,
    failed: u64,
    /// What went wrong with each rule when it was due last.
    problems: BTreeMap<Period, String>,
    /// Why the policy does nothing at all.
    missing: Option<String>,
    /// Since when a snapshot has been due that is not taken, as of the last look.
    due_since: Option<Utc>,
    /// When a snapshot will be due, as of the last look.
    next: Option<Utc>,
}

impl Notes {
    fn change(&self, share: &str, change: impl FnOnce(&mut Note)) {
        let mut shares = self.shares.lock();
        let note = shares.entry(folded_name(share)).or_default();
        share.clone_into(&mut note.name);
        change(note);
    }

    fn change_policy(&self, share: &str, change: impl FnOnce(&mut OfPolicy)) {
        self.change(share, |note| change(note.policy.get_or_insert_default()));
    }

    /// Notes what snapshots a share has.
    pub(crate) fn listed(&self, share: &str, listed: Option<&[storage::Snapshot]>) {
        let newest = |all: &[storage::Snapshot]| all.last().map(|snapshot| snapshot.taken.secs);
        self.change(share, |note| note.listed = listed.map(|all| (all.len(), newest(all))));
    }

    /// Notes what a look at a share's policy has found: whether a snapshot is due, and when the next one will be.
    pub(super) fn looked(&self, share: &str, policy: &Policy, now: Utc, is_due: bool, next: Option<Utc>) {
        self.change(share, |note| {
            let former = note.policy.take().filter(|of| of.name == policy.name());
            let of = note.policy.insert(former.unwrap_or_default());
            policy.name().clone_into(&mut of.name);
            of.problems.retain(|period, _| policy.rule(*period).is_some());
            of.missing = None;
            of.due_since = is_due.then(|| of.due_since.unwrap_or(now));
            of.next = next;
        });
    }

    /// Notes that a share has a policy that cannot be carried out.
    pub(crate) fn missing(&self, share: &str, policy: &str, why: String) {
        self.change_policy(share, |of| {
            policy.clone_into(&mut of.name);
            of.missing = Some(why);
        });
    }

    /// Notes that a snapshot was taken, and what went wrong beside.
    pub(super) fn taken(&self, share: &str, period: Period, problem: Option<String>) {
        self.change_policy(share, |of| {
            of.taken += 1;
            of.failed += u64::from(problem.is_some());
            match problem {
                Some(problem) => of.problems.insert(period, problem),
                None => of.problems.remove(&period),
            };
        });
    }

    /// Notes that no snapshot was taken.
    pub(super) fn failed(&self, share: &str, period: Period, why: String) {
        self.change_policy(share, |of| {
            of.failed += 1;
            of.problems.insert(period, why);
        });
    }

    /// Forgets the policies of shares that have none any more, and shares that are neither served nor have one.
    pub(crate) fn retain(&self, has_policy: impl Fn(&str) -> bool, is_served: impl Fn(&str) -> bool) {
        self.shares.lock().retain(|_, note| {
            note.policy.take_if(|_| !has_policy(&note.name));
            note.policy.is_some() || is_served(&note.name)
        });
    }

    /// When the next snapshot is due, as far as is known.
    pub(super) fn next(&self) -> Option<Utc> {
        self.shares.lock().values().filter_map(|note| note.policy.as_ref()?.next).min()
    }

    /// What metrics and health say at a moment.
    pub(crate) fn figures(&self, now: Utc) -> Vec<SnapshotFigures> {
        self.shares.lock().values().map(|note| figures(note, now)).collect()
    }

    /// Whether the policy of a share fails or is late.
    pub(crate) fn is_failing(&self, share: &str, now: Utc) -> bool {
        let shares = self.shares.lock();
        let policy = shares.get(&folded_name(share)).and_then(|note| note.policy.as_ref());
        policy.is_some_and(|of| problem(of, now).is_some())
    }
}

fn figures(note: &Note, now: Utc) -> SnapshotFigures {
    let of = note.policy.as_ref();
    SnapshotFigures {
        share: note.name.clone(),
        count: note.listed.map(|(count, _)| count as u64),
        newest: note.listed.and_then(|(_, newest)| newest),
        policy: of.map(|of| of.name.clone()),
        taken: of.map_or(0, |of| of.taken),
        failed: of.map_or(0, |of| of.failed),
        problem: of.and_then(|of| problem(of, now)),
    }
}

/// What is wrong with a policy, in words.
fn problem(of: &OfPolicy, now: Utc) -> Option<String> {
    let name = &of.name;
    if let Some(why) = &of.missing {
        return Some(why.clone());
    }
    if let Some((period, why)) = of.problems.iter().next() {
        return Some(format!("the snapshot policy {name} ({}): {why}", period.name()));
    }
    let since = of.due_since.or(of.next).filter(|since| now > since.plus(LATE_SECS))?;
    Some(format!("the snapshot policy {name} is behind: a snapshot has been due since {since}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: i64) -> Utc {
        Utc::from_secs(secs)
    }

    fn policy(name: &str) -> Policy {
        Policy::new(name, [(Period::Hourly, ":05/24"), (Period::Daily, "01:10/14")]).unwrap()
    }

    fn problem_at(notes: &Notes, now: Utc) -> Option<String> {
        notes.figures(now).pop().and_then(|figures| figures.problem)
    }

    #[test]
    fn a_policy_that_fails_is_told_until_the_same_rule_has_taken_a_snapshot() {
        let notes = Notes::default();
        notes.looked("Data", &policy("office"), at(100), true, Some(at(3700)));
        notes.failed("DATA", Period::Hourly, "it is full".to_owned());
        notes.taken("data", Period::Daily, None);
        let said = "the snapshot policy office (hourly): it is full";
        assert_eq!(problem_at(&notes, at(100)).as_deref(), Some(said));
        assert!(notes.is_failing("data", at(100)) && !notes.is_failing("other", at(100)));
        notes.taken("data", Period::Hourly, Some("a hook failed".to_owned()));
        assert!(problem_at(&notes, at(100)).unwrap().ends_with("a hook failed"));
        // The rule is removed, and comes back.
        let daily = Policy::new("office", [(Period::Daily, "01:10/14")]).unwrap();
        notes.looked("data", &daily, at(100), false, Some(at(3700)));
        assert_eq!(problem_at(&notes, at(100)), None);
        notes.taken("data", Period::Hourly, None);
        let figures = notes.figures(at(100)).pop().unwrap();
        assert_eq!((figures.taken, figures.failed, figures.problem), (3, 2, None));
    }

    #[test]
    fn a_policy_is_behind_when_nothing_was_taken_for_a_quarter_of_an_hour() {
        let notes = Notes::default();
        notes.looked("data", &policy("office"), at(100), true, Some(at(3700)));
        notes.looked("data", &policy("office"), at(500), true, Some(at(3700)));
        assert_eq!(problem_at(&notes, at(1000)), None);
        let said = problem_at(&notes, at(1001)).unwrap();
        assert_eq!(
            said,
            "the snapshot policy office is behind: a snapshot has been due since 1970-01-01T00:01:40Z"
        );
        // Nobody has looked for an hour.
        notes.looked("data", &policy("office"), at(1001), false, Some(at(3700)));
        assert_eq!((problem_at(&notes, at(1001)), problem_at(&notes, at(4600))), (None, None));
        assert!(problem_at(&notes, at(4601)).unwrap().contains("due since 1970-01-01T01:01:40Z"));
    }

    #[test]
    fn what_belongs_to_another_policy_or_to_none_is_forgotten() {
        let notes = Notes::default();
        notes.looked("data", &policy("office"), at(0), false, None);
        notes.failed("data", Period::Hourly, "no".to_owned());
        notes.looked("data", &policy("other"), at(0), false, None);
        assert_eq!(problem_at(&notes, at(0)), None);
        notes.missing("data", "gone", "there is no policy gone".to_owned());
        assert_eq!(problem_at(&notes, at(0)).as_deref(), Some("there is no policy gone"));
        notes.listed("data", Some(&[]));
        notes.retain(|_| false, |_| true);
        let figures = notes.figures(at(0)).pop().unwrap();
        assert_eq!((figures.policy, figures.count, figures.problem), (None, Some(0), None));
        notes.retain(|_| false, |_| false);
        assert_eq!(notes.figures(at(0)), []);
    }
}
