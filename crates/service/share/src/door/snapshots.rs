//! The snapshots of the store ([`crate::store`]), for administrators.

use std::sync::Arc;
use std::time::Instant;

use storage::{MayWait, NoSnapshots, Snapshots};

use crate::schedule::Work;
use crate::{Result, Share};

impl Share {
    /// The snapshots of the store, for those who have threads of their own that may wait.
    ///
    /// # Errors
    /// Why the store has none.
    pub fn snapshot_provider(&self) -> std::result::Result<Arc<dyn Snapshots>, NoSnapshots> {
        self.store.storage().snapshots()
    }

    /// Clients see at once what was taken or removed by other means than [`Share::with_snapshots`].
    pub fn forget_listed_snapshots(&self) {
        self.versions.forget_listed(Instant::now());
    }

    /// Makes a call to the snapshots of the store, on one of its threads. The call goes on if nobody waits for it any more. Clients see
    /// at once what it has taken or removed. The inner error says why the store has no snapshots.
    ///
    /// # Errors
    /// Those of the call, and [`crate::Error::LimitReached`] when too many requests wait for the store.
    pub async fn with_snapshots<T: Send + 'static>(
        self: &Arc<Self>,
        call: impl FnOnce(&dyn Snapshots, MayWait<'_>) -> storage::Result<T> + Send + 'static,
    ) -> Result<std::result::Result<T, NoSnapshots>> {
        let job = move |share: &Arc<Self>, may: MayWait<'_>| match share.store.storage().snapshots() {
            Ok(snapshots) => {
                let answer = call(&*snapshots, may);
                share.versions.forget_listed(Instant::now());
                Ok(Ok(answer?))
            }
            Err(why) => Ok(Err(why)),
        };
        self.run_unasked(Work::Blocking, job).await
    }
}

#[cfg(test)]
mod tests {
    use storage::memory::MemoryStore;
    use storage_local::{LocalOptions, LocalStore};

    use super::*;
    use crate::{Error, Settings, ShareId};

    #[tokio::test]
    async fn a_share_has_the_snapshots_of_its_store() {
        let share = Share::new(ShareId(1), Settings::new("data"), Arc::new(MemoryStore::new()));
        let asked = std::thread::current().id();
        let taken = share.with_snapshots(move |snapshots, may| {
            assert_ne!(std::thread::current().id(), asked, "no thread that serves connections waits");
            snapshots.take("manual", may)
        });
        let taken = taken.await.unwrap().unwrap();
        let listed = share.with_snapshots(|snapshots, may| snapshots.list(may)).await;
        assert_eq!(listed, Ok(Ok(vec![taken])));
        let bad = share.with_snapshots(|snapshots, may| snapshots.take("a.b", may)).await;
        assert_eq!(bad, Err(Error::Storage(storage::Error::InvalidName)));
    }

    #[tokio::test]
    async fn a_store_without_snapshots_says_why() {
        let place = tempfile::tempdir().unwrap();
        let store = Arc::new(LocalStore::open(place.path(), LocalOptions::default()).unwrap());
        let why = storage::Storage::snapshots(&*store).err();
        let share = Share::new(ShareId(1), Settings::new("data"), store);
        let listed = share.with_snapshots(|snapshots, may| snapshots.list(may)).await.unwrap();
        assert_eq!(listed.err(), why);
    }
}
