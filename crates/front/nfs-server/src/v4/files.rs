//! The opens, locks and delegations of one client, with the share's opens on which they depend.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use nfs_proto::v4::grace::Reclaims;
use nfs_proto::v4::holdings::{DowngradeError, Everything, FreeError, Holdings, UseError};
use nfs_proto::v4::limits::HoldingLimits;
use nfs_proto::v4::offload::{Offloads, Progress};
use nfs_proto::v4::open_state::Opened;
use nfs_proto::v4::stateid::{FileKey, Names, Other, StateidError};
use nfs_wire::v3::types::FileHandle;
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::{ClientId, Stateid};
use parking_lot::Mutex;
use share::{Call, GrantKey, Holder, Identity, Open, Share, ShareId};
use storage::ObjectId;

use super::running::Running;
use crate::credentials::Claimant;
use crate::object::Object;

/// The most locks for which one client waits at a time.
pub(super) const AWAITED_LOCKS_MAX: usize = 256;

/// An open of a share, held by a client.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    pub(crate) share: Arc<Share>,
    pub(crate) open: Arc<Open>,
    /// The user who opened the file. Other users of the client who use the open are checked separately.
    pub(crate) identity: Arc<Identity>,
    /// The claimant for whom the share's rules were checked.
    pub(crate) claimant: Arc<Claimant>,
}

/// A delegation held by a client.
#[derive(Debug, Clone)]
pub(crate) struct Delegated {
    /// An open that reserves nothing against others.
    pub(crate) held: Held,
    /// The filehandle by which the client knows the file.
    pub(crate) handle: FileHandle,
    /// The file's change attribute when the delegation was given. The client returns it as long as it has changed
    /// nothing.
    pub(crate) change: u64,
}

/// Everything that a client holds.
#[derive(Debug)]
pub(crate) struct Files {
    number: u32,
    /// Guards what the client holds. No call to a share is made while it is held.
    holdings: Mutex<Holdings<Held, Delegated>>,
    /// Guards the copies that continue after their replies. Taken under the lock of `holdings`, or alone.
    offloads: Mutex<Offloads<Arc<Running>>>,
    /// Whether the client reports that it has reclaimed everything.
    reports_reclaims: bool,
    reclaims_complete: AtomicBool,
    /// Whether the client is gone. Set under the lock of `holdings`.
    is_over: AtomicBool,
    /// Whether the client is recorded.
    pub(super) is_recorded: AtomicBool,
    pub(super) awaited_locks: AtomicUsize,
}

impl Files {
    /// A client that holds nothing, and reports the end of its reclaims unless `reclaims` says otherwise.
    pub(crate) fn new(ClientId(id): ClientId, reclaims: Reclaims) -> Self {
        let half = |bits: u64| u32::try_from(bits & 0xffff_ffff).unwrap_or(0);
        let (run, number) = (half(id >> 32), half(id));
        Self {
            number,
            holdings: Mutex::new(Holdings::new(HoldingLimits::default(), Names::new(run, number))),
            offloads: Mutex::default(),
            reports_reclaims: reclaims != Reclaims::Unreported,
            reclaims_complete: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            is_recorded: AtomicBool::new(false),
            awaited_locks: AtomicUsize::new(0),
        }
    }

    /// The holder of all caching grants of the client. Its number is the upper half of the numbers of the client's
    /// lock-owners.
    pub(crate) fn holder(&self) -> Holder {
        Holder::Delegation(self.number.into())
    }

    /// Like [`Files::holder`], for an open.
    pub(super) fn grant_key(&self) -> GrantKey {
        GrantKey::Delegation(self.number.into())
    }

    /// The client's number among those of this run of the server.
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// Reads or changes what the client holds.
    pub(super) fn with<T>(&self, look: impl FnOnce(&mut Holdings<Held, Delegated>) -> T) -> T {
        look(&mut self.holdings.lock())
    }

    /// Whether the client holds anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.holdings.lock().is_empty() && !self.offloads.lock().is_running()
    }

    /// Whether the client holds anything of a share.
    pub(crate) fn has_of(&self, share: ShareId) -> bool {
        self.with(|holdings| holdings.has_of_share(share.0))
    }

    /// Whether the client is gone.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Enters a copy that continues after its reply; None if there are too many, or the client is gone.
    pub(super) fn begin_offload(&self, file: FileKey, running: &Arc<Running>) -> Option<Stateid> {
        let mut holdings = self.holdings.lock();
        let other = holdings.name().filter(|_| !self.is_over())?;
        self.offloads.lock().begin(other, file, Arc::clone(running)).ok()
    }

    /// The progress of a copy to this file.
    ///
    /// # Errors
    /// [`Status::BadStateId`].
    pub(super) fn offload(&self, sent: Stateid, file: FileKey) -> Result<Progress<Arc<Running>>, Status> {
        self.offloads.lock().progress(sent, file).cloned().map_err(refused)
    }

    /// Removes a copy to this file.
    ///
    /// # Errors
    /// [`Status::BadStateId`].
    pub(super) fn cancel_offload(
        &self,
        sent: Stateid,
        file: FileKey,
    ) -> Result<Progress<Arc<Running>>, Status> {
        self.offloads.lock().cancel(sent, file).map_err(refused)
    }

    /// Notes the end of a copy. Returns whether the client must be told.
    pub(super) fn offload_ended(&self, other: Other, copied: u64, outcome: Result<(), Status>) -> bool {
        self.offloads.lock().ended(other, copied, outcome)
    }

    /// Notes that the client has acknowledged the end of a copy.
    pub(super) fn offload_acknowledged(&self, other: Other) {
        self.offloads.lock().acknowledged(other);
    }

    /// What the client has reported about its reclaims.
    pub(super) fn reclaims(&self) -> Reclaims {
        match self.reclaims_complete.load(Ordering::Acquire) {
            _ if !self.reports_reclaims => Reclaims::Unreported,
            true => Reclaims::Complete,
            false => Reclaims::Incomplete,
        }
    }

    /// RECLAIM_COMPLETE. Returns whether it is the first.
    pub(super) fn complete_reclaims(&self) -> bool {
        !self.reclaims_complete.swap(true, Ordering::AcqRel)
    }

    /// Enters an OPEN that was admitted; see [`Holdings::open`].
    ///
    /// # Errors
    /// The open itself, if the client has too many or is gone.
    pub(super) fn open(
        &self,
        file: FileKey,
        owner: &[u8],
        new: Opened<Held>,
    ) -> Result<(Stateid, Option<Held>), Held> {
        let mut holdings = self.holdings.lock();
        if self.is_over.load(Ordering::Acquire) { Err(new.held) } else { holdings.open(file, owner, new) }
    }

    /// Gives up everything, and accepts nothing more, because the client is gone.
    pub(crate) async fn end(&self) {
        let all = self.with(|holdings| {
            self.is_over.store(true, Ordering::Release);
            holdings.end()
        });
        let copies = self.offloads.lock().end();
        copies.iter().for_each(|copy| copy.stop());
        give_up(all).await;
    }

    /// Gives up everything of a share that was withdrawn.
    pub(crate) async fn end_share(&self, share: &Share) {
        let copies = self.offloads.lock().end_share(share.id().0);
        copies.iter().for_each(|copy| copy.stop());
        give_up(self.with(|holdings| holdings.end_share(share.id().0))).await;
    }
}

/// Releases the locks, and closes the opens, including those of the delegations.
pub(super) async fn give_up(all: Everything<Held, Delegated>) {
    let Everything { opens, lock_owners, delegations } = all;
    let delegated = delegations.into_iter().map(|delegation| delegation.held);
    let opens: Vec<Held> = opens.into_iter().chain(delegated).collect();
    for (file, owner) in lock_owners {
        if let Some(held) = opens.iter().find(|held| held.file() == file) {
            held.share.release_locks(held.open.node().id(), owner);
        }
    }
    for held in &opens {
        held.close_unasked().await;
    }
}

impl Held {
    /// The file of the open.
    pub(super) fn file(&self) -> FileKey {
        key(&self.share, self.open.node().id())
    }

    /// Closes the open. A file that clients of another protocol have marked for deletion may be deleted with it.
    pub(super) async fn close(&self, call: &Call) {
        note_kept(self.share.close(call, &self.open).await);
    }

    /// Like [`Held::close`], for a client that has gone or has lost the open.
    pub(super) async fn close_unasked(&self) {
        note_kept(self.share.close_unasked(&self.open).await);
    }
}

fn note_kept(closed: share::Result<()>) {
    if let Err(error) = closed {
        tracing::debug!("a file that was to be deleted stays: {error}");
    }
}

fn key(share: &Share, file: ObjectId) -> FileKey {
    let ObjectId { fs, number, snapshot } = file;
    // Numbers are the same in all views of the share.
    let snapshot = share.snapshot().map_or(snapshot, |of| of.id.0);
    FileKey { share: share.id().0, fs, number, snapshot }
}

/// The key of an object's file among those of all shares.
pub(super) fn file_of(object: &Object) -> FileKey {
    key(&object.share, object.node.id())
}

/// The status for a stateid that is refused.
pub(super) fn refused(error: StateidError) -> Status {
    match error {
        StateidError::Bad => Status::BadStateId,
        StateidError::Old => Status::OldStateId,
        StateidError::Expired => Status::Expired,
        StateidError::AdminRevoked => Status::AdminRevoked,
        StateidError::DelegRevoked => Status::DelegRevoked,
    }
}

/// The status for an open that does not allow the operation.
pub(super) fn unusable(error: UseError) -> Status {
    match error {
        UseError::Stateid(error) => refused(error),
        UseError::OpenMode => Status::OpenMode,
    }
}

/// The status for an OPEN_DOWNGRADE that is refused.
pub(super) fn not_downgraded(error: DowngradeError) -> Status {
    match error {
        DowngradeError::Stateid(error) => refused(error),
        DowngradeError::NoSuchUnion(_) => Status::Inval,
    }
}

/// The status for a stateid that cannot be freed.
pub(super) fn not_freed(error: FreeError) -> Status {
    match error {
        FreeError::Stateid(error) => refused(error),
        FreeError::Held => Status::LocksHeld,
    }
}
