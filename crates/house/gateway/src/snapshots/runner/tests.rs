//! Policies on a share in memory, on given times.

use std::io::IoSlice;
use std::path::PathBuf;

use schedule::Policy;
use share::{Settings, ShareId, ShareTable};
use state::{RestoreEnd, RestoreRecord};
use storage::conformance::MAY;
use storage::memory::MemoryStore;
use storage::{Name, NewKind, NewNode, SetAttributes, SnapshotName, Stability, Storage, Timestamp, Wait};
use tempfile::TempDir;

use super::*;
use crate::settings::Hooks;
use crate::snapshots::protection;

/// A server with one share. Its snapshots have the times of the machine; the rules get theirs from the test.
struct Server {
    runner: Runner,
    share: Arc<Share>,
    settings: PolicySettings,
    place: TempDir,
}

fn policy(rules: &[(Period, &str)]) -> PolicySettings {
    let policy = Policy::new("office", rules.iter().copied()).unwrap();
    PolicySettings { policy, hooks: Hooks::default() }
}

fn utc(text: &str) -> Utc {
    text.parse().unwrap()
}

impl Server {
    fn new(rules: &[(Period, &str)]) -> Self {
        Self::with(rules, MemoryStore::new())
    }

    fn with(rules: &[(Period, &str)], store: MemoryStore) -> Self {
        let place = tempfile::tempdir().unwrap();
        let state = Arc::new(State::open(&place.path().join("state")).unwrap());
        let share = Share::new(ShareId(1), Settings::new("data"), Arc::new(store));
        let runner = Runner::new(state, Arc::default());
        Self { runner, share, settings: policy(rules), place }
    }

    /// The server that starts after this one was killed.
    fn restart(self) -> Self {
        let Self { runner, share, settings, place } = self;
        let state = runner.state;
        Self { runner: Runner::new(state, Arc::default()), share, settings, place }
    }

    fn directory() -> PathBuf {
        PathBuf::from("/srv/data")
    }

    fn on(&self, share: Option<&Arc<Share>>) -> OnShare {
        let (name, directory) = ("data".to_owned(), Self::directory());
        OnShare { name, directory, share: share.cloned(), settings: self.settings.clone() }
    }

    fn look_at(&mut self, share: Option<&Arc<Share>>, now: Utc) {
        let on = self.on(share);
        if let Some(due) = self.runner.look(&on, now).unwrap() {
            self.runner.carry_out(&on, due, now).unwrap();
        }
    }

    fn look(&mut self, at: &str) {
        let share = Arc::clone(&self.share);
        self.look_at(Some(&share), utc(at));
    }

    fn listed(&self) -> Vec<Snapshot> {
        asked(&self.share, |snapshots, may| snapshots.list(may)).unwrap()
    }

    fn labels(&self) -> Vec<String> {
        let label = |snapshot: Snapshot| SnapshotName::parse(&snapshot.name).unwrap().label().to_owned();
        self.listed().into_iter().map(label).collect()
    }

    fn take(&self, label: &'static str) -> Snapshot {
        asked(&self.share, move |snapshots, may| snapshots.take(label, may)).unwrap()
    }

    fn figures(&self, at: &str) -> control::snapshots::SnapshotFigures {
        self.runner.snapshotting.notes.figures(utc(at)).pop().unwrap()
    }

    fn problem(&self, at: &str) -> String {
        self.figures(at).problem.unwrap_or_default()
    }
}

const HOURLY: &[(Period, &str)] = &[(Period::Hourly, ":05/3")];

#[test]
fn what_is_due_is_taken_and_what_is_over_is_removed() {
    let mut server = Server::new(HOURLY);
    server.look("2026-11-23T05:04:00Z");
    assert_eq!(server.listed(), [], "what was due before the share had a policy is not made up for");
    for (at, taken) in [("05:05:00", 1), ("05:30:00", 1), ("06:05:01", 2), ("07:10:00", 3), ("08:05:00", 3)] {
        server.look(&format!("2026-11-23T{at}Z"));
        assert_eq!(server.listed().len(), taken, "{at}");
    }
    let figures = server.figures("2026-11-23T08:05:00Z");
    assert_eq!((figures.count, figures.taken, figures.failed, figures.problem), (Some(3), 4, 0, None));
    assert_eq!(server.labels(), ["hourly-office"; 3]);
    let ids: Vec<u32> = server.listed().iter().map(|snapshot| snapshot.id.0).collect();
    assert_eq!(ids, [ids[0], ids[0] + 1, ids[0] + 2], "the oldest was removed");
}

#[test]
fn a_policy_is_changed_in_place_and_goes_on() {
    let mut server = Server::new(&[(Period::Hourly, ":05/3"), (Period::Daily, "01:10/14")]);
    server.look("2026-11-23T01:00:00Z");
    for at in ["01:05", "01:10", "02:05", "03:05"] {
        server.look(&format!("2026-11-23T{at}:00Z"));
    }
    assert_eq!(server.labels(), ["hourly-office", "daily-office", "hourly-office", "hourly-office"]);
    // With other times, it begins with the next one. The other rule is what it was.
    server.settings =
        policy(&[(Period::Hourly, ":15/3"), (Period::Daily, "01:10/14"), (Period::Weekly, "sun/4")]);
    server.look("2026-11-23T03:20:00Z");
    assert_eq!(server.listed().len(), 4);
    let mut server = server.restart();
    server.look("2026-11-24T04:15:00Z");
    let of_day = |server: &Server| server.labels().iter().filter(|label| *label == "daily-office").count();
    assert_eq!((server.listed().len(), of_day(&server)), (5, 2));
    // It keeps fewer from its next time on, also of those taken before.
    server.settings = policy(&[(Period::Hourly, ":15/1"), (Period::Daily, "01:10/14")]);
    server.look("2026-11-24T04:20:00Z");
    assert_eq!(server.listed().len(), 5);
    server.look("2026-11-24T05:15:00Z");
    let kept = server.listed();
    assert_eq!((kept.len(), of_day(&server)), (3, 2));
    // Without the rule, nothing is taken or removed; when it comes back, nothing is made up for.
    server.settings = policy(&[(Period::Daily, "01:10/14")]);
    server.look("2026-11-24T09:20:00Z");
    server.settings = policy(&[(Period::Hourly, ":15/1"), (Period::Daily, "01:10/14")]);
    server.look("2026-11-24T12:00:00Z");
    assert_eq!(server.listed(), kept);
}

#[test]
fn downtime_is_made_up_for_once_with_each_rule() {
    let mut server =
        Server::new(&[(Period::Hourly, ":05/24"), (Period::Daily, "01:10/14"), (Period::Monthly, "31/2")]);
    server.look("2026-11-23T05:04:00Z");
    let mut server = server.restart();
    server.look("2026-11-26T12:00:00Z");
    assert_eq!(server.labels(), ["hourly-office", "daily-office"], "November has no day 31");
    server.look("2026-11-26T12:04:00Z");
    assert_eq!(server.listed().len(), 2);
    let mut server = server.restart();
    server.look("2027-03-01T00:00:00Z");
    assert_eq!(server.labels()[2..], ["hourly-office", "daily-office", "monthly-office"]);
}

#[test]
fn only_snapshots_of_the_rule_are_removed_and_none_that_is_protected() {
    let mut server = Server::new(&[(Period::Hourly, ":05/1")]);
    server.look("2026-11-23T05:04:00Z");
    for label in ["manual", "hourly-other", "daily-office"] {
        server.take(label);
    }
    server.look("2026-11-23T05:05:00Z");
    let first = server.listed().pop().unwrap();
    let until = utc("2026-11-23T08:00:00Z").secs_since_1970();
    let protected = protection(&Server::directory(), &first, until);
    server.runner.state.protect_snapshot(&protected).unwrap();
    server.look("2026-11-23T06:05:00Z");
    server.look("2026-11-23T07:05:00Z");
    let kept = ["manual", "hourly-other", "daily-office", "hourly-office", "hourly-office"];
    assert_eq!(server.labels(), kept);
    assert!(server.listed().contains(&first));
    server.look("2026-11-23T08:05:00Z");
    assert_eq!(server.labels(), ["manual", "hourly-other", "daily-office", "hourly-office"]);
    assert!(!server.listed().contains(&first), "its time was over");
    let known = server.runner.state.protected_snapshots(&Server::directory()).unwrap();
    assert_eq!(known, [], "nothing is known of a snapshot that is gone");
}

#[test]
fn a_protection_that_is_given_before_the_turn_to_remove_holds() {
    let mut server = Server::new(&[(Period::Hourly, ":05/1")]);
    server.look("2026-11-23T05:04:00Z");
    server.look("2026-11-23T05:05:00Z");
    let [chosen] = &server.listed()[..] else { panic!("one was taken") };
    let now = utc("2026-11-23T06:05:00Z");
    let (share, settings, Runner { state, snapshotting, .. }) =
        (&server.share, &server.settings, &server.runner);
    let on = server.on(Some(share));
    let [rule] = settings.policy.rules() else { panic!("it has one rule") };
    let run = Run { on: &on, share, rule, now, state, snapshotting };
    let until = now.secs_since_1970() + 1;
    let protected = protection(&Server::directory(), chosen, until);
    state.protect_snapshot(&protected).unwrap();
    run.remove_in_turn(chosen).unwrap();
    assert_eq!(server.listed(), std::slice::from_ref(chosen));
    let run = Run { now: now.plus(1), ..run };
    run.remove_in_turn(chosen).unwrap();
    run.remove_in_turn(chosen).unwrap();
    assert_eq!(server.listed(), []);
}

#[test]
fn a_snapshot_stays_as_long_as_it_is_restored_from() {
    let mut server = Server::new(&[(Period::Hourly, ":05/1")]);
    server.look("2026-11-23T05:04:00Z");
    server.look("2026-11-23T05:05:00Z");
    let first = server.listed().pop().unwrap();
    let restore =
        RestoreRecord { share: "Data".into(), snapshot: first.name.clone(), ..RestoreRecord::default() };
    server.runner.state.keep_restore(&restore).unwrap();
    server.look("2026-11-23T06:05:00Z");
    assert_eq!(server.listed().len(), 2);
    let ended = Some(RestoreEnd::default());
    server.runner.state.keep_restore(&RestoreRecord { ended, ..restore }).unwrap();
    server.look("2026-11-23T07:05:00Z");
    assert_eq!(server.listed().len(), 1);
    assert!(!server.listed().contains(&first));
}

#[test]
fn nothing_is_taken_of_a_share_that_was_withdrawn_before_the_turn() {
    let mut server = Server::new(HOURLY);
    server.look("2026-11-23T05:04:00Z");
    let table = ShareTable::default();
    table.enter(&server.share).unwrap();
    table.withdraw(server.share.id()).unwrap();
    server.look("2026-11-23T05:05:00Z");
    assert!(server.problem("2026-11-23T05:05:00Z").contains("the share data was changed meanwhile"));
    assert_eq!(server.listed(), []);
}

#[test]
fn a_clock_that_is_set_back_takes_nothing_twice_and_loses_nothing() {
    let mut server = Server::new(HOURLY);
    server.look("2026-11-23T09:00:00Z");
    server.look("2026-11-23T10:05:00Z");
    for back in ["09:05:00", "09:59:00", "10:05:00", "10:59:00"] {
        server.look(&format!("2026-11-23T{back}Z"));
        assert_eq!(server.listed().len(), 1, "{back}");
    }
    server.look("2026-11-23T11:05:00Z");
    assert_eq!(server.listed().len(), 2);
    // Far back: it goes on with the next time there.
    server.look("2025-01-01T00:00:00Z");
    assert_eq!(server.listed().len(), 2);
    server.look("2025-01-01T00:05:00Z");
    assert_eq!(server.listed().len(), 3);
    // The new one is the newest, whatever its time: an older one goes.
    let last = server.listed().iter().map(|snapshot| snapshot.id).max();
    server.look("2025-01-01T01:05:00Z");
    assert_eq!(server.listed().len(), 3);
    assert!(server.listed().iter().any(|snapshot| Some(snapshot.id) == last));
}

#[test]
fn a_policy_keeps_within_what_the_file_system_keeps() {
    const RULES: &[(Period, &str)] = &[(Period::Hourly, ":05/4"), (Period::Daily, "06:10/2")];
    let mut server = Server::with(RULES, MemoryStore::new().with_snapshots_max(4));
    server.look("2026-11-23T04:06:00Z");
    let by_command = server.take("manual");
    for at in ["05:05", "06:05", "06:10"] {
        server.look(&format!("2026-11-23T{at}:00Z"));
        assert_eq!(server.problem(&format!("2026-11-23T{at}:00Z")), "");
    }
    let before = server.listed();
    assert_eq!(server.labels(), ["manual", "hourly-office", "hourly-office", "daily-office"]);
    server.look("2026-11-23T07:05:00Z");
    let after = server.listed();
    let ids = |listed: &[Snapshot]| listed.iter().map(|snapshot| snapshot.id).collect::<HashSet<_>>();
    assert_eq!(
        &ids(&before) - &ids(&after),
        HashSet::from([before[1].id]),
        "the oldest of the rule made room"
    );
    assert_eq!(after.len(), 4);
    let problem = server.problem("2026-11-23T07:05:00Z");
    assert!(problem.ends_with("the rule hourly keeps 2 instead of 4"), "{problem}");
    // What is protected stays, also if nothing can be taken then.
    for kept in server.listed() {
        let kept = protection(&Server::directory(), &kept, u64::MAX);
        server.runner.state.protect_snapshot(&kept).unwrap();
    }
    let before = server.listed();
    server.look("2026-11-23T08:05:00Z");
    assert_eq!(server.listed(), before);
    let problem = server.problem("2026-11-23T08:05:00Z");
    assert!(problem.contains("has 4 snapshots") && problem.contains("mds_max_snaps_per_dir"), "{problem}");
    asked(&server.share, move |snapshots, may| snapshots.remove(by_command.id, may)).unwrap();
    server.look("2026-11-23T08:10:00Z");
    assert_eq!((server.listed().len(), server.problem("2026-11-23T08:10:00Z")), (4, String::new()));
}

#[test]
fn a_server_killed_before_it_noted_what_it_took_does_not_take_it_again() {
    let clock = || Timestamp { secs: utc("2026-11-23T06:05:03Z").secs(), nanos: 0 };
    let mut server = Server::with(HOURLY, MemoryStore::with_clock(clock));
    server.look("2026-11-23T05:04:00Z");
    // This is what it has done before it was killed.
    server.take("hourly-office");
    let mut server = server.restart();
    server.look("2026-11-23T06:06:00Z");
    assert_eq!(server.listed().len(), 1);
    server.look("2026-11-23T07:05:00Z");
    assert_eq!(server.listed().len(), 2);
    // The snapshot of a time before is no reason to leave one out.
    let mut server = server.restart();
    server.look("2026-11-23T08:05:00Z");
    assert_eq!(server.listed().len(), 3);
}

#[test]
fn a_failure_is_told_and_tried_again_after_five_minutes() {
    let store = MemoryStore::with_capacity(64 << 10);
    let new = NewNode { kind: NewKind::Regular, mode: 0o644, uid: 0, gid: 0 };
    let made = store.root().create(Name::new(b"f").unwrap(), &new, MAY).unwrap();
    let data = [7; 48 << 10];
    made.write(0, &[IoSlice::new(&data)], Stability::Unstable, Wait::May(MAY)).unwrap();
    let mut server = Server::with(HOURLY, store);
    server.look("2026-11-23T05:04:00Z");
    server.look("2026-11-23T05:05:00Z");
    assert_eq!(server.listed(), []);
    assert!(
        server.problem("2026-11-23T05:05:00Z").contains("is full"),
        "{}",
        server.problem("2026-11-23T05:05:00Z")
    );
    made.set_attributes(&SetAttributes { size: Some(0), ..SetAttributes::default() }, MAY).unwrap();
    server.look("2026-11-23T05:09:59Z");
    assert_eq!(server.listed(), []);
    server.look("2026-11-23T05:10:00Z");
    assert_eq!((server.listed().len(), server.problem("2026-11-23T05:10:00Z")), (1, String::new()));
    assert_eq!(server.figures("2026-11-23T05:10:00Z").failed, 1);
}

#[test]
fn a_share_that_is_not_served_is_behind_until_it_is() {
    let mut server = Server::new(HOURLY);
    server.look_at(None, utc("2026-11-23T05:04:00Z"));
    server.look_at(None, utc("2026-11-23T05:05:00Z"));
    assert_eq!(server.problem("2026-11-23T05:20:00Z"), "");
    assert!(server.problem("2026-11-23T05:20:01Z").contains("is behind"));
    server.look("2026-11-23T05:20:01Z");
    assert_eq!((server.listed().len(), server.problem("2026-11-23T05:20:01Z")), (1, String::new()));
}

#[test]
fn hooks_run_around_the_snapshot_and_their_failure_keeps_it_from_nothing() {
    let mut server = Server::new(HOURLY);
    let trace = server.place.path().join("trace");
    let note = |word: &str, end: &str| {
        let script = format!(
            "echo {word} $ANABRANCH_SHARE $ANABRANCH_DIRECTORY $ANABRANCH_POLICY $ANABRANCH_PERIOD $ANABRANCH_SNAPSHOT >>'{}'; {end}",
            trace.display()
        );
        ["/bin/sh", "-c", script.as_str()].map(str::to_owned).to_vec()
    };
    server.settings.hooks.before = note("before", "exit 1");
    server.settings.hooks.after = note("after", "exit 0");
    server.look("2026-11-23T05:04:00Z");
    server.look("2026-11-23T05:05:00Z");
    let [taken] = &server.listed()[..] else { panic!("one was taken") };
    let expected =
        format!("before data /srv/data office hourly\nafter data /srv/data office hourly {}\n", taken.name);
    assert_eq!(std::fs::read_to_string(&trace).unwrap(), expected);
    assert!(server.problem("2026-11-23T05:05:00Z").contains("the hook before the snapshot: /bin/sh failed"));
    server.settings.hooks.before = note("before", "exit 0");
    server.look("2026-11-23T06:05:00Z");
    assert_eq!((server.listed().len(), server.problem("2026-11-23T06:05:00Z")), (2, String::new()));
}

#[test]
fn a_hook_does_not_run_in_the_turn_of_the_snapshot() {
    let mut server = Server::new(HOURLY);
    let (begun, may_end) = (server.place.path().join("begun"), server.place.path().join("may-end"));
    let script =
        format!("touch '{}'; while ! test -e '{}'; do sleep 0.01; done", begun.display(), may_end.display());
    server.settings.hooks.before = ["/bin/sh", "-c", script.as_str()].map(str::to_owned).to_vec();
    server.look("2026-11-23T05:04:00Z");
    let snapshotting = Arc::clone(&server.runner.snapshotting);
    let file_system = server.share.snapshot_provider().unwrap().file_system();
    let is_taken = || snapshotting.turns.take(file_system.clone(), Duration::ZERO).is_none();
    std::thread::scope(|scope| {
        let looking = scope.spawn(|| server.look("2026-11-23T05:05:00Z"));
        while !begun.exists() && !looking.is_finished() {
            std::thread::yield_now();
        }
        assert!(begun.exists() && !is_taken());
        std::fs::write(&may_end, "").unwrap();
    });
    assert!(!is_taken());
    assert_eq!((server.listed().len(), server.problem("2026-11-23T05:05:00Z")), (1, String::new()));
}

#[test]
fn a_hook_that_fails_keeps_nothing_from_being_removed() {
    let mut server = Server::new(&[(Period::Hourly, ":05/1")]);
    server.settings.hooks.after = ["/bin/sh", "-c", "exit 1"].map(str::to_owned).to_vec();
    for at in ["2026-11-23T05:04:00Z", "2026-11-23T05:05:00Z", "2026-11-23T06:05:00Z", "2026-11-23T07:05:00Z"]
    {
        server.look(at);
    }
    let last = "2026-11-23T07:05:00Z";
    assert_eq!((server.listed().len(), server.figures(last).taken), (1, 3));
    assert!(server.problem(last).contains("the hook after the snapshot: /bin/sh failed"));
}

#[test]
fn another_policy_begins_anew() {
    let mut server = Server::new(HOURLY);
    server.look("2026-11-23T05:04:00Z");
    server.look("2026-11-23T05:05:00Z");
    server.settings.policy = Policy::new("other", [(Period::Daily, "01:10/1")]).unwrap();
    server.look("2026-11-24T00:00:00Z");
    server.look("2026-11-24T01:10:00Z");
    assert_eq!(server.labels(), ["hourly-office", "daily-other"], "the former policy's snapshots stay");
}
