//! What [`crate::snapshots::Keeper`] has done again and again.

use std::sync::Arc;

use control::{Refusal, RefusalKind};
use schedule::Utc;
use share::{Share, folded_name};

use super::Administration;
use crate::snapshots::{Notes, OnShare, Runners, glance, now};

impl Administration {
    /// What is known of the snapshots of shares, for those who must not wait.
    pub(crate) fn snapshot_notes(&self) -> &Notes {
        &self.snapshotting.notes
    }

    /// Asks the served shares for their snapshots.
    pub(crate) fn count_snapshots(&self) {
        for share in self.present() {
            if share.store_health().is_stuck {
                continue;
            }
            // One that is late is counted the next time.
            match glance(&share) {
                Err(refusal) if refusal.kind == RefusalKind::Failed => {}
                listed => self.snapshotting.notes.listed(share.name(), listed.ok().as_deref()),
            }
        }
    }

    /// Has done what the policies of the shares want now, unless `is_stopped`. Does not wait until it is done.
    pub(crate) fn run_policies(&self, runners: &mut Runners, is_stopped: impl Fn() -> bool) {
        let shares = match self.policies_of_shares() {
            Ok(shares) => shares,
            Err(refusal) => return tracing::error!("the snapshot policies: {}", refusal.what),
        };
        let present = self.present();
        let is = |one: &str, other: &str| folded_name(one) == folded_name(other);
        self.snapshotting.notes.retain(
            |name| shares.iter().any(|(share, _)| is(share, name)),
            |name| present.iter().any(|share| is(share.name(), name)),
        );
        runners.retain(|name| shares.iter().any(|(share, _)| is(share, name)));
        for (name, policy) in &shares {
            if is_stopped() {
                return;
            }
            if let Err(why) = self.run_policy(runners, name, policy, now()) {
                tracing::error!(share = name, policy, "the snapshot policy: {why}");
                self.snapshotting.notes.missing(name, policy, why);
            }
        }
    }

    fn run_policy(&self, runners: &mut Runners, name: &str, policy: &str, now: Utc) -> Result<(), String> {
        let words = |refusal: Refusal| refusal.what;
        let Some(settings) = self.policy_settings(policy).map_err(words)? else {
            return Err(format!("there is no snapshot policy {policy}"));
        };
        let (share, directory) = match self.served_with_directory(name) {
            Ok((share, directory)) => (Some(share), directory),
            Err(refusal) if refusal.kind == RefusalKind::NotFound => {
                (None, self.directory_of(name).map_err(words)?)
            }
            Err(refusal) => return Err(refusal.what),
        };
        let on = OnShare { name: name.to_owned(), directory, share, settings };
        runners.look(on, now).map_err(|error| error.what)
    }

    fn present(&self) -> Vec<Arc<Share>> {
        self.serving.as_ref().map_or_else(Vec::new, |serving| serving.shares.present().in_order())
    }
}
