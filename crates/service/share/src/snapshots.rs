//! The snapshots of a share, and the share at a snapshot.

use std::sync::Arc;
use std::time::Instant;

use storage::{MayWait, Snapshot, SnapshotId, Snapshots, StoreThread};

use crate::schedule::Work;
use crate::versions::has;
use crate::{Call, Result, Share};

impl Share {
    /// The snapshot at which this is a view; None for a share itself.
    #[must_use]
    pub fn snapshot(&self) -> Option<&Snapshot> {
        self.snapshot.as_ref()
    }

    /// Whether the store has snapshots. A view has none.
    #[must_use]
    pub fn has_snapshots(&self) -> bool {
        self.store.storage().snapshots().is_ok()
    }

    /// The snapshots, oldest first, as they were within the last second. Of more than [`VERSIONS_MAX`](crate::VERSIONS_MAX),
    /// the latest.
    ///
    /// # Errors
    /// [`storage::Error::NotSupported`] for a store without snapshots.
    pub async fn snapshots(self: &Arc<Self>, call: &Call) -> Result<Arc<[Snapshot]>> {
        if let Some(listed) = self.versions.listed(Instant::now()) {
            return Ok(listed);
        }
        self.provider()?;
        let _turn = self.versions.listing().await;
        if let Some(listed) = self.versions.listed(Instant::now()) {
            return Ok(listed);
        }
        Box::pin(self.run(call, Work::Blocking, |share, may| {
            let asked = Instant::now();
            let listed = share.versions.set_listed(asked, &share.provider()?.list(may)?);
            drop(share.versions.views.take_idle(asked, |id| !has(&listed, id)));
            Ok(listed)
        }))
        .await
    }

    /// Those of the [`Share::snapshots`] in which a path ([`storage::Node::path`]) leads to something.
    ///
    /// # Errors
    /// As [`Share::snapshots`].
    pub async fn versions(self: &Arc<Self>, call: &Call, path: &[u8]) -> Result<Vec<Snapshot>> {
        let listed = self.snapshots(call).await?;
        let mut leads = self.versions.paths.known(path);
        leads.retain(|id, _| has(&listed, *id));
        let new: Vec<_> = listed.iter().map(|one| one.id).filter(|id| !leads.contains_key(id)).collect();
        if !new.is_empty() {
            let (at, among) = (path.to_vec(), new.clone());
            let ask = move |share: &Arc<Self>, may: MayWait<'_>| {
                Ok(share.provider()?.with_path(&at, &among, may)?)
            };
            let having = Box::pin(self.run(call, Work::Blocking, ask)).await?;
            leads.extend(new.iter().map(|id| (*id, having.contains(id))));
        }
        let leads_there = |snapshot: &&Snapshot| leads.get(&snapshot.id) == Some(&true);
        let versions = listed.iter().filter(leads_there).cloned().collect();
        self.versions.paths.remember(path, leads, Instant::now());
        Ok(versions)
    }

    /// The share as it was when a snapshot was taken: a share of its own that nobody can change. It has the number, the terms,
    /// the rules, the plan, the limits and the accounts of this one, and nothing else of it: numbers of objects are the same in
    /// both, so no file, lock or cache may be.
    ///
    /// # Errors
    /// [`storage::Error::NotFound`] for a snapshot that is not there; as [`Share::snapshots`];
    /// [`Error::LimitReached`](crate::Error::LimitReached).
    pub async fn at(self: &Arc<Self>, call: &Call, id: SnapshotId) -> Result<Arc<Self>> {
        let listed = self.snapshots(call).await?;
        let Some(snapshot) = listed.iter().find(|snapshot| snapshot.id == id) else {
            return Err(storage::Error::NotFound.into());
        };
        if let Some(view) = self.versions.views.find(id, Instant::now()) {
            return Ok(view);
        }
        let snapshot = snapshot.clone();
        Box::pin(self.run(call, Work::Blocking, |share, may| share.open_at(snapshot, may))).await
    }

    /// Whether somebody has something open in a snapshot that is not there any more.
    pub async fn outlives(self: &Arc<Self>, call: &Call, id: SnapshotId) -> bool {
        self.versions.views.is_open(id) && self.snapshots(call).await.is_ok_and(|listed| !has(&listed, id))
    }

    fn open_at(&self, snapshot: Snapshot, may: MayWait<'_>) -> Result<Arc<Self>> {
        let id = snapshot.id;
        let store = self.provider()?.open(id, may)?;
        let view = self.view(snapshot, store);
        let (view, closed) = self.versions.views.enter(id, view, Instant::now())?;
        drop(closed);
        Ok(view)
    }

    /// Closes the views that nobody has used for a minute. To be called every few seconds. Does not wait.
    pub fn close_idle_views(&self) {
        let closed = self.versions.views.take_idle(Instant::now(), |_| false);
        if !closed.is_empty() {
            // That closes descriptors.
            self.store.later(move |_: &StoreThread| drop(closed));
        }
    }

    /// The share and its open views.
    pub(crate) fn with_views(self: &Arc<Self>) -> impl Iterator<Item = Arc<Self>> + use<> {
        std::iter::once(Arc::clone(self)).chain(self.versions.views.all())
    }

    fn provider(&self) -> Result<Arc<dyn Snapshots>> {
        Ok(self.store.storage().snapshots().map_err(|_| storage::Error::NotSupported)?)
    }
}
