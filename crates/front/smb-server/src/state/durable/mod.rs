//! Opens that outlive their connection, and replayed CREATEs: the state that the server keeps of them beyond the
//! session.
//! [MS-SMB2] 3.3.1.10, 3.3.5.9.6 to 3.3.5.9.13, 3.3.7.1.
//!
//! The rules are those of [`smb_proto::durable`]. [`DurableOpens`] is the part of GlobalOpenTable that is searched from
//! other sessions; an open in it has a [`Durable`]. When the session of such an open ends and the open is to survive,
//! the open waits there with its locks, its share modes and its caching grant, until the client reclaims it with a new
//! session or its timeout passes.

mod journal;
mod persistent;
mod table;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use acl::Sid;
use parking_lot::Mutex;
use smb_proto::durable::{AppInstanceVersion, Durability, KnownOpen, LeaseName, User};
use smb_wire::create::{CreateAction, ShareAccess};
use smb_wire::{AccessMask, Guid};

pub use journal::{Change, PersistentLease, PersistentLock, PersistentOpen, PersistentOpens};
pub(crate) use table::{Before, DurableOpens, Reservation, is_same_share};

use crate::state::open::Open;

/// The state that an open keeps when it passes from one session to another.
#[derive(Debug)]
pub(crate) struct Durable {
    /// The CREATE that made it.
    pub(crate) origin: Origin,
    /// How the open outlives its connection, if it does. Guards only itself.
    durability: Mutex<Option<Durability>>,
    /// Open.IsReplayEligible
    replayable: AtomicBool,
    table: Weak<DurableOpens>,
}

/// A CREATE that made an open: its sender and its arguments.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    /// Open.CreateGuid; zero without one.
    pub(crate) create_guid: Guid,
    /// Open.ClientGuid
    pub(crate) client_guid: Guid,
    /// Open.DurableOwner: the user's name.
    pub(crate) owner: String,
    /// Open.DurableOwner: the user's SID, if there is one.
    pub(crate) owner_sid: Option<Sid>,
    /// The lease that the open was granted, if any.
    pub(crate) lease: Option<LeaseName>,
    /// Open.AppInstanceId
    pub(crate) app_instance: Option<Guid>,
    /// Open.ApplicationInstanceVersionHigh and Low
    pub(crate) app_instance_version: Option<AppInstanceVersion>,
    /// Open.DesiredAccess
    pub(crate) desired_access: AccessMask,
    /// Open.ShareAccess
    pub(crate) share_access: ShareAccess,
    /// The CreateAction, which a replay returns again.
    pub(crate) action: CreateAction,
    /// For a persistent open: the handle by which the store finds the file again.
    pub(crate) handle: Option<storage::Handle>,
}

impl Durable {
    /// How the open outlives its connection, if it does.
    pub(crate) fn durability(&self) -> Option<Durability> {
        *self.durability.lock()
    }

    /// Changes how the open outlives its connection.
    pub(crate) fn set_durability(&self, durability: Durability) {
        *self.durability.lock() = Some(durability);
    }

    /// Open.IsReplayEligible
    pub(crate) fn is_replayable(&self) -> bool {
        self.replayable.load(Ordering::Relaxed)
    }

    /// Notes that the client has used the open. The client knows the open, and does not send its CREATE again.
    fn used(&self) {
        if self.replayable.load(Ordering::Relaxed) {
            self.replayable.store(false, Ordering::Relaxed);
        }
    }
}

impl Open {
    /// Makes the open visible to other sessions. [`DurableOpens::enter`] must follow.
    pub(crate) fn make_durable(
        &self,
        table: &Arc<DurableOpens>,
        origin: Origin,
        durability: Option<Durability>,
        replayable: bool,
    ) {
        let made = Durable {
            origin,
            durability: Mutex::new(durability),
            replayable: AtomicBool::new(replayable),
            table: Arc::downgrade(table),
        };
        let _ = self.durable.set(Arc::new(made));
    }

    /// The properties of the open for the rules; `None` unless the open was made durable.
    pub(crate) fn known(&self) -> Option<KnownOpen<'_>> {
        let durable = self.durable.get()?;
        Some(KnownOpen {
            durability: durable.durability(),
            create_guid: durable.origin.create_guid,
            client_guid: durable.origin.client_guid,
            owner: User { name: &durable.origin.owner, sid: durable.origin.owner_sid },
            lease: durable.origin.lease,
            keeps_handle: self.keeps_handle(),
            delete_on_close: self.create_options.contains(smb_wire::create::CreateOptions::DELETE_ON_CLOSE),
        })
    }

    /// Notes that a request has named the open.
    pub(crate) fn used(&self) {
        if let Some(durable) = self.durable.get() {
            durable.used();
        }
    }

    /// Takes the open out of the table. Returns false if its client has reclaimed it meanwhile: then the caller must
    /// not close it.
    pub(crate) fn leave_durable(&self) -> bool {
        let durable = self.durable.get();
        durable.and_then(|durable| durable.table.upgrade()).is_none_or(|table| table.leave(self))
    }
}
