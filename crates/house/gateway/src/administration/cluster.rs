//! The session with the Ceph cluster, which the cluster may end while shares are served: another session of the same gateway began, an
//! administrator has evicted it, or nothing was heard of it for too long. Shares of the gateway itself are opened again; vservers end here,
//! and begin anew as one of the cluster's gateways does its part.

use std::sync::Arc;
use std::time::Duration;

use share::ShareId;

use super::reload::end;
use super::{Administration, Serving};
use crate::cephfs;
use crate::problem::{Result, serving as trouble};

/// How often the session is looked at.
const LOOK: Duration = Duration::from_secs(1);

impl Administration {
    /// Starts a thread that looks whether the session with the cluster is still there, as long as this value is.
    ///
    /// # Errors
    /// The system lacks threads.
    pub(crate) fn watch_cluster(self: &Arc<Self>) -> Result<()> {
        let administration = Arc::downgrade(self);
        let watch = move || loop {
            std::thread::sleep(LOOK);
            let Some(administration) = administration.upgrade() else { return };
            // It is held until its shares have ended, so that none of their clients has to wait for its end.
            let ceph = administration.ceph();
            let ended = ceph.take_if_ended();
            if let Some(serving) = &administration.serving {
                serving.vservers.give_up_before(ceph.session());
            }
            if ended.is_some() {
                administration.open_again();
            }
        };
        let thread = std::thread::Builder::new().name("ceph-session".to_owned()).spawn(watch);
        thread.map(drop).map_err(trouble("cannot start a thread"))
    }

    /// The Ceph cluster in which shares may lie.
    pub(crate) fn ceph(&self) -> Arc<cephfs::Cluster> {
        Arc::clone(&self.declared().ceph)
    }

    /// Ends the session with the Ceph cluster, when no share is served any more.
    pub(crate) fn leave_cluster(&self) {
        self.declared().ceph.leave();
    }

    /// Stops serving the shares in CephFS until they are open again, in another session.
    fn open_again(self: &Arc<Self>) {
        let Some(serving) = &self.serving else { return };
        let one_change = self.idle.lock();
        for name in self.served_in_cephfs(serving) {
            tracing::error!(
                "the Ceph cluster has ended the session of this gateway: the share {name} is opened again"
            );
            let awaited = end(serving, &name).and_then(|_| {
                serving.shares.await_store(ShareId(self.state.server().share_id(&name)?), &name);
                Ok(())
            });
            if let Err(problem) = awaited {
                tracing::error!("the share {name}: {}", problem.what);
            }
        }
        drop(one_change);
        self.await_stores();
    }

    fn served_in_cephfs(&self, serving: &Serving) -> Vec<String> {
        let declared = self.declared();
        let declared =
            declared.shares.iter().map(|share| (share.given.name.clone(), share.directory.clone()));
        let made = self.state.made_shares().unwrap_or_default();
        let made = made.into_iter().map(|record| (record.name, record.directory));
        let present = serving.shares.present();
        let in_cephfs = declared.chain(made).filter(|(_, directory)| cephfs::path_of(directory).is_some());
        in_cephfs.map(|(name, _)| name).filter(|name| present.by_name(name).is_some()).collect()
    }
}
