//! Persistent opens: what is recorded of them, and how they are restored when the server starts. [MS-SMB2] 3.3.1.10
//! (Open.IsPersistent).

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use acl::Sid;
use share::{
    Access, ByteRange, Caching, GrantRequest, Holding, LockKind, Opener, Share, ShareId, Sharing, Terms,
};
use smb_proto::durable::{Durability, Kind, LeaseName};
use smb_wire::create::{CreateOptions, ShareAccess};
use smb_wire::create_context::{Lease, LeaseFlags, LeaseV2};
use smb_wire::{AccessMask, FileId, Guid, NtStatus};
use storage::{Handle, MayWait, ObjectId};

use super::journal::{Change, Journal, PersistentLease, PersistentLock, PersistentOpen, PersistentOpens};
use super::{Durable, Origin};
use crate::admission::TreeAdmission;
use crate::server::Server;
use crate::state::lease::LeaseId;
use crate::state::open::{Grant, Open, OpenTarget};
use crate::state::oplock::{GrantTarget, Oplock};
use crate::status::Failure;
use crate::tree::{self, Tree};

impl Open {
    /// Whether the open outlives the server.
    pub(crate) fn is_persistent(&self) -> bool {
        let durability = self.durable.get().and_then(|durable| durable.durability());
        durability.is_some_and(|durability| durability.kind == Kind::Persistent)
    }

    /// The lease of the open, if the open is persistent and has one.
    pub(super) fn persistent_lease(&self) -> Option<LeaseId> {
        let origin = &self.durable.get().filter(|_| self.is_persistent())?.origin;
        Some(LeaseId { client: origin.client_guid, key: origin.lease?.key })
    }

    /// Records the current state of a persistent open, and returns when it is on stable storage. Does nothing for other
    /// opens.
    ///
    /// # Errors
    /// STATUS_UNEXPECTED_IO_ERROR when it is not certain that the state is stored.
    pub(crate) async fn write_down(&self) -> Result<(), Failure> {
        let Some((durable, journal)) = self.journal() else { return Ok(()) };
        let table = durable.table.upgrade();
        let is_open = || table.as_ref().is_some_and(|table| table.get(self.id.persistent).is_some());
        let change = || Some(Change::Keep(Box::new(self.record(&durable)?)));
        journal.write(|| if is_open() { change() } else { None }).await
    }

    /// Removes the record of a persistent open that is closed.
    pub(crate) async fn forget(&self) {
        if let Some((_, journal)) = self.journal()
            && let Err(failure) = journal.write(|| Some(Change::Forget(self.id.persistent))).await
        {
            tracing::error!(
                path = self.path,
                "an open is closed, but still written down: {}",
                failure.status
            );
        }
    }

    fn journal(&self) -> Option<(Arc<Durable>, Arc<Journal>)> {
        if !self.is_persistent() {
            return None;
        }
        let durable = self.durable.get()?;
        Some((Arc::clone(durable), durable.table.upgrade()?.journal()?))
    }

    fn record(&self, durable: &Durable) -> Option<PersistentOpen> {
        let (share, file) = self.on_share()?;
        let holding = share.holding(file)?;
        let lock = |(range, kind): &(ByteRange, LockKind)| PersistentLock {
            offset: range.offset(),
            length: range.length(),
            exclusive: *kind == LockKind::Exclusive,
        };
        let lease = match &*self.grant.lock() {
            Some(Grant::Lease(hold)) => Some(hold.lease().record()),
            _ => None,
        };
        let origin = &durable.origin;
        let timeout = durable.durability()?.timeout;
        Some(PersistentOpen {
            id: self.id.persistent,
            share: share.id().0,
            handle: origin.handle?.as_bytes().to_vec(),
            access: holding.access.bits(),
            sharing: holding.sharing.bits(),
            delete_on_close: holding.delete_on_close,
            delete_pending: holding.delete_pending,
            locks: holding.locks.iter().map(lock).collect(),
            caching: holding.caching.bits(),
            lease,
            timeout_ms: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
            path: self.path.clone(),
            granted_access: self.granted_access.bits(),
            create_options: self.create_options.bits(),
            desired_access: origin.desired_access.bits(),
            share_access: origin.share_access.bits(),
            action: origin.action.into(),
            create_guid: origin.create_guid.0,
            client_guid: origin.client_guid.0,
            owner: origin.owner.clone(),
            owner_sid: origin.owner_sid.map(|sid| sid.to_string()),
            app_instance: origin.app_instance.map(|guid| guid.0),
            app_instance_version: origin.app_instance_version,
            lock_sequence: self.state.lock().lock_sequence.clone(),
        })
    }
}

/// Why a recorded open cannot be restored.
#[derive(Debug, thiserror::Error)]
enum Lost {
    #[error("its share is not served, or not continuously available, any more")]
    Share,
    #[error("{0}")]
    File(#[from] share::Error),
    #[error("what is written down of it makes no sense")]
    Damaged,
}

/// A restored open whose client may not cache anything yet.
struct Restored {
    open: Arc<Open>,
    share: Arc<Share>,
    grant: GrantRequest,
    holding: Holding,
}

impl Server {
    /// Records persistent opens in `store`, and restores those that are recorded there: from now on they wait for their
    /// clients. The records of a share whose store is still awaited stay unchanged. To be called before any client is
    /// served, over any protocol.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub fn keep_persistent_opens(&self, store: Arc<dyn PersistentOpens>, may: MayWait<'_>) -> io::Result<()> {
        let shares = self.shares.present();
        let mut records = store.all()?;
        records.retain(|record| !shares.is_awaited(ShareId(record.share)));
        let restored = self.restore_all(&records, &*store, |id| shares.by_id(id), may)?;
        self.durable.set_journal(Journal::new(store));
        self.enter_restored(restored);
        Ok(())
    }

    /// Restores the persistent opens of a share that was awaited, before the share is entered.
    ///
    /// # Errors
    /// As [`Server::keep_persistent_opens`].
    pub fn restore_persistent_opens(&self, share: &Arc<Share>, may: MayWait<'_>) -> io::Result<()> {
        let Some(journal) = self.durable.journal() else { return Ok(()) };
        let store = journal.store();
        let mut records = store.all()?;
        records.retain(|record| record.share == share.id().0);
        let restored = self.restore_all(&records, store, |_| Some(share), may)?;
        self.enter_restored(restored);
        Ok(())
    }

    /// Restores opens. The records of opens that cannot be restored are removed.
    fn restore_all<'a>(
        &self,
        records: &[PersistentOpen],
        store: &dyn PersistentOpens,
        share_of: impl Fn(ShareId) -> Option<&'a Arc<Share>>,
        may: MayWait<'_>,
    ) -> io::Result<Vec<Restored>> {
        let (mut restored, mut lost) = (Vec::new(), Vec::new());
        for record in records {
            let share = share_of(ShareId(record.share)).ok_or(Lost::Share);
            match share.and_then(|share| self.restore(record, share, may)) {
                Ok(open) => restored.push(open),
                Err(reason) => {
                    tracing::warn!(path = ?record.path, owner = ?record.owner, "a persistent open is lost: {reason}");
                    lost.push(Change::Forget(record.id));
                }
            }
        }
        if !lost.is_empty() {
            store.write(&lost)?;
        }
        Ok(restored)
    }

    fn enter_restored(&self, restored: Vec<Restored>) {
        let now = Instant::now();
        for Restored { open, share, grant, holding } in restored {
            if let Some(file) = open.local_open() {
                share.settle_restored(file, grant.key, &holding);
            }
            self.durable.enter_disconnected(&open, now);
        }
    }

    fn restore(
        &self,
        record: &PersistentOpen,
        share: &Arc<Share>,
        may: MayWait<'_>,
    ) -> Result<Restored, Lost> {
        if !share.terms().contains(Terms::CONTINUOUSLY_AVAILABLE) {
            return Err(Lost::Share);
        }
        let (handle, holding, owner_sid) = (handle(record)?, holding(record)?, owner_sid(record)?);
        let id = FileId { persistent: record.id, volatile: self.file_id().volatile };
        let (request, grant) = self.restored_grant(share, id, share.file_of(&handle, may)?, record)?;
        let owner = Opener::named(("user", &record.owner));
        let file = share.restore(&handle, &holding, request.clone(), [None, Some(owner)], may)?;
        let target = tree::TreeTarget::Disk(Arc::clone(share));
        let encrypts = share.terms().contains(Terms::ENCRYPTED);
        let tree = Tree::new(0, target, AccessMask::empty(), encrypts, TreeAdmission::of_nobody(), None);
        let open = Open::new(
            id,
            Arc::new(tree),
            OpenTarget::File(file),
            AccessMask::from_bits_retain(record.granted_access),
            record.path.clone(),
            CreateOptions::from_bits_retain(record.create_options),
            false,
        );
        open.state.lock().lock_sequence.clone_from(&record.lock_sequence);
        *open.grant.lock() = Some(grant);
        let timeout = Duration::from_millis(record.timeout_ms);
        let durability = Durability { kind: Kind::Persistent, timeout };
        open.make_durable(&self.durable, origin(record, handle, owner_sid), Some(durability), true);
        Ok(Restored { open, share: Arc::clone(share), grant: request, holding })
    }

    /// The grant under which the open works. It is still empty.
    fn restored_grant(
        &self,
        share: &Arc<Share>,
        id: FileId,
        file: ObjectId,
        record: &PersistentOpen,
    ) -> Result<(GrantRequest, Grant), Lost> {
        let share_encrypts = share.terms().contains(Terms::ENCRYPTED);
        // Opens of directories are never persistent.
        let place = GrantTarget { share, file, is_directory: false, share_encrypts, durable: &self.durable };
        let no_session = std::sync::Weak::new();
        let Some(lease) = record.lease else {
            let oplock = Oplock::new(id, no_session, &place);
            let client = Arc::clone(&oplock) as _;
            let request = GrantRequest { key: share::GrantKey::Open, wanted: Caching::empty(), client };
            return Ok((request, Grant::Oplock(oplock)));
        };
        let lease_id = LeaseId { client: Guid(record.client_guid), key: lease.key };
        let held = self.leases.hold(lease_id, place, &lease_context(lease), no_session);
        let hold = held.map_err(|_: NtStatus| Lost::Damaged)?;
        let client = Arc::clone(hold.lease()) as _;
        let request = GrantRequest { key: lease_id.grant_key(), wanted: Caching::empty(), client };
        Ok((request, Grant::Lease(hold)))
    }
}

fn handle(record: &PersistentOpen) -> Result<Handle, Lost> {
    Handle::new(&record.handle).map_err(|_| Lost::Damaged)
}

fn holding(record: &PersistentOpen) -> Result<Holding, Lost> {
    let lock = |lock: &PersistentLock| {
        let kind = if lock.exclusive { LockKind::Exclusive } else { LockKind::Shared };
        ByteRange::new(lock.offset, lock.length).map(|range| (range, kind)).map_err(|_| Lost::Damaged)
    };
    Ok(Holding {
        access: Access::from_bits_truncate(record.access),
        sharing: Sharing::from_bits_truncate(record.sharing),
        delete_on_close: record.delete_on_close,
        delete_pending: record.delete_pending,
        locks: record.locks.iter().map(lock).collect::<Result<_, _>>()?,
        caching: Caching::from_bits_truncate(record.caching),
    })
}

fn lease_context(lease: PersistentLease) -> Lease {
    let mut flags = LeaseFlags::empty();
    flags.set(LeaseFlags::PARENT_LEASE_KEY_SET, lease.parent_key.is_some());
    let v2 = LeaseV2 { parent_key: lease.parent_key.unwrap_or_default(), epoch: lease.epoch };
    let state = smb_wire::create_context::LeaseState::empty();
    Lease { key: lease.key, state, flags, v2: (lease.version == 2).then_some(v2) }
}

fn owner_sid(record: &PersistentOpen) -> Result<Option<Sid>, Lost> {
    record.owner_sid.as_deref().map(|sid| sid.parse().map_err(|_| Lost::Damaged)).transpose()
}

fn origin(record: &PersistentOpen, handle: Handle, owner_sid: Option<Sid>) -> Origin {
    Origin {
        create_guid: Guid(record.create_guid),
        client_guid: Guid(record.client_guid),
        owner: record.owner.clone(),
        owner_sid,
        lease: record.lease.map(|lease| LeaseName { key: lease.key, version: lease.version }),
        app_instance: record.app_instance.map(Guid),
        app_instance_version: record.app_instance_version,
        desired_access: AccessMask::from_bits_retain(record.desired_access),
        share_access: ShareAccess::from_bits_retain(record.share_access),
        action: record.action.into(),
        handle: Some(handle),
    }
}
