//! Goes back to a snapshot: a share becomes what it was, under a new number.
//!
//! The share is withdrawn meanwhile, so its clients lose what they have open. What it held until now becomes a snapshot, which the store
//! makes. A server that is killed meanwhile finds the one state or the other when it opens the directory again.

use std::sync::Arc;

use control::snapshots::{Snapshot, SnapshotRevert};
use control::{Refusal, RefusalKind};
use share::{Share, folded_name};

use super::snapshots::{find, tell};
use super::{Administration, Serving, failed, reload};
use crate::descriptors::Allotment;
use crate::directories;
use crate::in_time;
use crate::opening::Opener;
use crate::problem::Problem;
use crate::snapshots::asked;

type Result<T> = std::result::Result<T, Refusal>;

impl Administration {
    /// Goes back to a snapshot. Returns the one of what the share held until now.
    pub(super) fn revert(&self, name: &str, SnapshotRevert { to }: &SnapshotRevert) -> Result<Snapshot> {
        let mut idle = self.idle.lock();
        let share = self.served(name)?;
        let serving = self.serving()?;
        let name = share.name().to_owned();
        let snapshot = find(&share, to)?;
        if let Err(why) = asked(&share, |snapshots, may| Ok(snapshots.can_revert(may)))? {
            let what = format!("the share {name} cannot go back to a snapshot");
            return Err(Refusal::new(RefusalKind::NoSnapshots, what, why.to_string()));
        }
        let turn = self.snapshotting.turn()?;
        reload::end(serving, &name).map_err(refused)?;
        let reverted = asked(&share, move |snapshots, may| snapshots.revert(snapshot.id, may));
        drop(turn);
        drop(share);
        if reverted.is_ok() {
            // Filehandles of before are not those of what is there now.
            self.state.forget_share_number(&name).map_err(failed)?;
        }
        let served = self.serve_again(serving, &name);
        if let Err(refusal) = &served {
            idle.insert(folded_name(&name), refusal.what.clone());
        }
        drop(idle);
        let before = match (reverted, served) {
            (Ok(before), Ok(())) => before,
            (Ok(_), Err(refusal)) | (Err(refusal), Ok(())) => return Err(refusal),
            (Err(why), Err(Refusal { what, advice, .. })) => {
                let what = format!("{}; and now the share is not served: {what}", why.what);
                return Err(Refusal::new(why.kind, what, advice));
            }
        };
        tracing::info!(share = name, to, before = before.name, "a share went back to a snapshot");
        Ok(tell(before, &[]))
    }

    /// Opens a share that was withdrawn, as it is declared or recorded now.
    fn serve_again(&self, serving: &Serving, name: &str) -> Result<()> {
        let declared = self.declared();
        let opens_max = Allotment::of(serving.descriptors, serving.shares.present().len() + 1).opens;
        let opener = Opener::new(&declared, &self.state, opens_max, &serving.access_log);
        let opened: Arc<Share> = match declared.share(name) {
            Some(share) => {
                let no_answer = directories::no_answer(name, &share.directory);
                let share = share.clone();
                in_time::answer(move || opener.declared(&share)).unwrap_or(Err(no_answer))
            }
            None => opener.made_in_time(&self.made_share(name)?),
        }
        .map_err(refused)?;
        let taken = |e: share::NotEntered| Refusal::new(RefusalKind::NameTaken, e.to_string(), "");
        serving.shares.enter(&opened).map_err(taken)?;
        self.allot_opens();
        serving.names.look_again();
        self.keep_credits()
    }
}

fn refused(problem: Problem) -> Refusal {
    Refusal::new(RefusalKind::Failed, problem.what, problem.advice)
}
