//! Goes back to a snapshot: a share becomes what it was, under a new number.
//!
//! The share is withdrawn meanwhile, so its clients lose what they have open. What it held until now becomes a snapshot, which the store
//! makes. A server that is killed meanwhile finds the one state or the other when it opens the directory again.

use std::sync::Arc;

use control::snapshots::{Snapshot, SnapshotRevert};
use control::{Refusal, RefusalKind};
use share::{Share, ShareId, folded_name};

use super::snapshots::{find, tell};
use super::{Administration, Serving, failed, reload};
use crate::declared::Idle;
use crate::descriptors::Allotment;
use crate::opening::Opener;
use crate::problem::{self, Cause, Problem};
use crate::snapshots::{asked, asked_to_the_end};
use crate::{directories, in_time};

type Result<T> = std::result::Result<T, Refusal>;

impl Administration {
    /// Goes back to a snapshot. Returns the one of what the share held until now.
    pub(super) fn revert(&self, name: &str, SnapshotRevert { to }: &SnapshotRevert) -> Result<Snapshot> {
        let share = self.served(name)?;
        let serving = self.serving()?;
        let name = share.name().to_owned();
        let turn = self.snapshotting.turn_at(&share)?;
        self.check_nothing_is_restored(&name)?;
        let snapshot = find(&share, to)?;
        if let Err(why) = asked(&share, |snapshots, may| Ok(snapshots.can_revert(may)))? {
            let what = format!("the share {name} cannot go back to a snapshot");
            return Err(Refusal::new(RefusalKind::NoSnapshots, what, why.to_string()));
        }
        // Other changes wait from here on, and not for these questions.
        let mut idle = self.idle.lock();
        self.check_is_unchanged(&share)?;
        let reverted = self.revert_withdrawn(serving, &share, snapshot.id);
        drop(turn);
        drop(share);
        let served = self.serve_again(serving, &name, &mut idle);
        drop(idle);
        let before = and_served(reverted, served)?;
        tracing::info!(share = name, to, before = before.name, "a share went back to a snapshot");
        Ok(tell(before, &[]))
    }

    /// Refuses to go on with a share in whose place another one is served. Nobody changes shares meanwhile.
    pub(super) fn check_is_unchanged(&self, share: &Arc<Share>) -> Result<()> {
        if self.served(share.name()).is_ok_and(|now| Arc::ptr_eq(&now, share)) {
            return Ok(());
        }
        let what = format!("the share {} was changed meanwhile", share.name());
        Err(Refusal::new(RefusalKind::Busy, what, "Look at it, and try again."))
    }

    /// Withdraws a share, also if this fails, and goes back. As long as that takes, nobody may open the directory: neither may any
    /// share be changed.
    fn revert_withdrawn(
        &self,
        serving: &Serving,
        share: &Arc<Share>,
        to: storage::SnapshotId,
    ) -> Result<storage::Snapshot> {
        reload::end(serving, share.name()).map_err(refused)?;
        // Filehandles of before are not those of what is there then, also if the server is killed meanwhile.
        self.state.forget_share_number(share.name()).map_err(failed)?;
        asked_to_the_end(share, move |snapshots, may| snapshots.revert(to, may))
    }

    /// Serves a share again that was withdrawn. If it cannot be served, the reason is kept; if its storage does not answer, it is
    /// awaited.
    pub(super) fn serve_again(&self, serving: &Serving, name: &str, idle: &mut Idle) -> Result<()> {
        let Err(problem) = self.enter_again(serving, name) else { return Ok(()) };
        tracing::error!("the share {name} is not served: {}", problem.what);
        match self.state.server().share_id(name) {
            Ok(id) if problem.cause == Cause::Silent => {
                serving.shares.await_store(ShareId(id), name);
                self.await_stores();
            }
            _ => _ = idle.insert(folded_name(name), problem.what.clone()),
        }
        Err(refused(problem))
    }

    /// Opens a share that was withdrawn, as it is declared or recorded now.
    fn enter_again(&self, serving: &Serving, name: &str) -> problem::Result<()> {
        let of_state = |refusal: Refusal| Problem::new(Cause::State, refusal.what, refusal.advice);
        let declared = self.declared();
        let opens_max = Allotment::of(serving.descriptors, serving.shares.present().len() + 1).opens;
        let opener = Opener::new(&declared, &self.state, opens_max, &serving.access_log);
        let opened: Arc<Share> = match declared.share(name) {
            Some(share) => {
                let no_answer = directories::no_answer(name, &share.directory);
                let share = share.clone();
                in_time::answer(move || opener.declared(&share)).unwrap_or(Err(no_answer))
            }
            None => opener.made_in_time(&self.made_share(name).map_err(of_state)?),
        }?;
        serving.shares.enter(&opened).map_err(|e| Problem::new(Cause::Serving, e.to_string(), ""))?;
        self.allot_opens();
        serving.names.look_again();
        // It is served, whatever becomes of these.
        let _ = self.keep_credits().inspect_err(|refusal| tracing::error!("{}", refusal.what));
        Ok(())
    }
}

/// What became of a share that was withdrawn, and whether it is served again.
pub(super) fn and_served<T>(done: Result<T>, served: Result<()>) -> Result<T> {
    match (done, served) {
        (done, Ok(())) => done,
        (Ok(_), Err(refusal)) => Err(refusal),
        (Err(why), Err(Refusal { what, advice, .. })) => {
            let what = format!("{}; and now the share is not served: {what}", why.what);
            Err(Refusal::new(why.kind, what, advice))
        }
    }
}

pub(super) fn refused(problem: Problem) -> Refusal {
    Refusal::new(RefusalKind::Failed, problem.what, problem.advice)
}
