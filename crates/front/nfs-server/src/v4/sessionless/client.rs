//! What a client of NFSv4.0 has in place of sessions.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nfs_proto::v4::limits::HoldingLimits;
use nfs_proto::v4::session::{Associations, ConnectionNumber, SessionLimits};
use nfs_proto::v4::state_owner::{OwnerName, StateOwners};
use nfs_proto::v4::stateid::Other;
use nfs_wire::v3::types::FileHandle as SignedHandle;
use nfs_wire::v4::status::Status;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::v4::state::Client;

/// The result of an operation, kept for a repetition.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    /// The operation, its status and the rest of its result.
    pub(super) result: Arc<[u8]>,
    pub(super) status: Result<(), Status>,
    /// The current filehandle after an OPEN: operations that follow in the COMPOUND use it.
    pub(super) file: Option<SignedHandle>,
}

/// The state-owners and the connections of a client.
#[derive(Debug)]
pub(in crate::v4) struct ClientState {
    /// Guards the sequences of the state-owners. Taken alone.
    pub(super) owners: Mutex<StateOwners<Kept>>,
    /// Notified when an operation ends for whose result a repetition may wait.
    pub(super) ended: Arc<Notify>,
    /// Guards the connections over which the client has sent operations.
    connections: Mutex<Associations>,
}

impl ClientState {
    pub(in crate::v4) fn new() -> Self {
        Self {
            owners: Mutex::new(StateOwners::new(HoldingLimits::default().state_owners_max)),
            ended: Arc::default(),
            connections: Mutex::default(),
        }
    }

    /// Notes that the client has sent an operation over a connection.
    pub(in crate::v4) fn associate(&self, connection: ConnectionNumber, limits: &SessionLimits) {
        let _ = self.connections.lock().used(connection, limits);
    }

    /// Notes the end of a connection.
    pub(in crate::v4) fn disassociate(&self, connection: ConnectionNumber) {
        self.connections.lock().ended(connection);
    }

    /// The client's connections.
    pub(in crate::v4) fn connections(&self) -> Vec<ConnectionNumber> {
        self.connections.lock().all().collect()
    }
}

impl Client {
    /// Forgets state-owners that hold nothing and have not been used for a lease time, and ends the opens that were not
    /// confirmed in that time (RFC 7530 16.18.5).
    pub(in crate::v4) async fn forget_idle_owners(&self, now: Instant, lease: Duration) {
        let Some(sessionless) = &self.sessionless else { return };
        let cancelled = self.files.with(|holdings| {
            let opens = holdings.open_owners();
            let holds = |name: &OwnerName| match name {
                OwnerName::Open(name) => opens.contains(&**name),
                OwnerName::Lock(name) => holdings.lock_owners().number(name).is_some(),
            };
            sessionless.owners.lock().forget_idle(now, lease, holds)
        });
        self.cancel(&cancelled).await;
    }

    /// Forgets a lock-owner that the client no longer uses.
    pub(in crate::v4) fn forget_lock_owner(&self, name: &[u8]) {
        if let Some(sessionless) = &self.sessionless {
            sessionless.owners.lock().forget(&OwnerName::Lock(name.into()));
        }
    }

    /// Ends opens that were not confirmed.
    pub(super) async fn cancel(&self, opens: &[Other]) {
        for open in opens {
            let cancelled = self.files.with(|holdings| holdings.cancel(*open));
            let Some((_, ended)) = cancelled else { continue };
            for held in &ended.opens {
                for owner in &ended.lock_owners {
                    held.share.release_locks(held.open.node().id(), *owner);
                }
                held.close_unasked().await;
            }
        }
    }
}
