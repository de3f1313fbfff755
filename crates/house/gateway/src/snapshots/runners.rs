//! The policies of all shares, each carried out on a thread of its own, so that a hook or a storage that hangs holds up one share.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use schedule::Utc;
use share::folded_name;
use state::State;

use super::crew::Crew;
use super::{OnShare, Runner, Snapshotting};

/// Who carries out the policies.
#[derive(Debug)]
pub(crate) struct Runners {
    state: Arc<State>,
    snapshotting: Arc<Snapshotting>,
    /// By folded name. The lock of one is held while its share's policy is carried out, and no job of the share waits then.
    by_share: HashMap<String, Arc<Mutex<Runner>>>,
    crew: Crew,
}

impl Runners {
    pub(crate) fn new(state: Arc<State>, snapshotting: Arc<Snapshotting>) -> Self {
        Self { state, snapshotting, by_share: HashMap::new(), crew: Crew::new("policy") }
    }

    /// Has done what the policy of a share wants now. Does not wait until it is done: before that, the share is not looked at again.
    ///
    /// # Errors
    /// The state database cannot be used.
    pub(crate) fn look(&mut self, on: OnShare, now: Utc) -> state::Result<()> {
        let share = folded_name(&on.name);
        if self.crew.is_busy(&share) {
            return Ok(());
        }
        let (state, snapshotting) = (&self.state, &self.snapshotting);
        let new = || Arc::new(Mutex::new(Runner::new(Arc::clone(state), Arc::clone(snapshotting))));
        let runner = Arc::clone(self.by_share.entry(share.clone()).or_insert_with(new));
        let Some(due) = runner.lock().look(&on, now)? else { return Ok(()) };
        let snapshotting = Arc::clone(snapshotting);
        let carry_out = move || {
            if let Err(error) = runner.lock().carry_out(&on, due, now) {
                let (share, policy) = (&on.name, on.settings.policy.name());
                tracing::error!(share, policy, "the snapshot policy: {}", error.what);
                snapshotting.notes.missing(share, policy, error.what);
            }
        };
        self.crew.give(share, Box::new(carry_out));
        Ok(())
    }

    /// Forgets the shares that have no policy any more.
    pub(crate) fn retain(&mut self, has_policy: impl Fn(&str) -> bool) {
        self.by_share.retain(|share, _| has_policy(share));
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::time::{Duration, Instant};

    use schedule::{Period, Policy};
    use share::{Settings, Share, ShareId};
    use storage::memory::MemoryStore;

    use super::*;
    use crate::settings::{Hooks, PolicySettings};
    use crate::snapshots::asked;

    #[test]
    fn a_hook_that_hangs_holds_up_no_other_share_of_the_file_system() {
        let place = tempfile::tempdir().unwrap();
        let state = Arc::new(State::open(&place.path().join("state")).unwrap());
        let mut runners = Runners::new(state, Arc::default());
        let store = Arc::new(MemoryStore::new());
        let (begun, may_end) = (place.path().join("begun"), place.path().join("may-end"));
        let script = format!(
            "touch '{}'; while ! test -e '{}'; do sleep 0.01; done",
            begun.display(),
            may_end.display()
        );
        let on = |number: u32, name: &str, before: &[&str]| {
            let policy = Policy::new("office", [(Period::Hourly, ":05/24")]).unwrap();
            let before = before.iter().map(|part| (*part).to_owned()).collect();
            let hooks = Hooks { before, time: Duration::from_secs(600), ..Hooks::default() };
            let share = Share::new(ShareId(number), Settings::new(name), Arc::clone(&store) as _);
            OnShare {
                name: name.to_owned(),
                directory: PathBuf::from("/srv").join(name),
                share: Some(share),
                settings: PolicySettings { policy, hooks },
            }
        };
        let slow = || on(1, "slow", &["/bin/sh", "-c", &script]);
        let quick = || on(2, "quick", &[]);
        let taken =
            || asked(quick().share.as_ref().unwrap(), |snapshots, may| snapshots.list(may)).unwrap().len();
        let (before, due) = (Utc::from_secs(0), Utc::from_secs(300));
        for on in [slow(), quick()] {
            runners.look(on, before).unwrap();
        }
        let deadline = Instant::now() + Duration::from_secs(60);
        let until = |what: &str, is: &dyn Fn() -> bool| {
            while !is() {
                assert!(Instant::now() < deadline, "{what}");
                std::thread::sleep(Duration::from_millis(5));
            }
        };
        runners.look(slow(), due).unwrap();
        until("the hook runs", &|| begun.exists());
        runners.look(quick(), due).unwrap();
        until("the other share's snapshot", &|| taken() == 1);
        // It is not begun a second time.
        runners.look(slow(), due.plus(3600)).unwrap();
        std::fs::write(&may_end, "").unwrap();
        until("both", &|| taken() == 2);
        drop(runners);
        assert_eq!(taken(), 2);
    }
}
