//! Recalls of delegations (CB_RECALL, RFC 8881 20.2), and the treatment of clients that do not answer. Also asks the
//! holder of a write delegation for the attributes of the file (CB_GETATTR, 20.1).

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use nfs_proto::v4::lease::Standing;
use nfs_proto::v4::stateid::{FileKey, StateidError};
use nfs_wire::v4::attr::{Attribute, AttributeSet, Value};
use nfs_wire::v4::callback::{ArgOp, GetAttrArgs, RecallArgs, ResOp};
use nfs_wire::v4::types::{FileHandle, Stateid};
use share::{Asked, Break, Caching, GrantHolder, Unwritten};
use tokio::runtime::Handle;

use super::state::Client;
use crate::server::ServerState;

/// How long to wait before a client that could not take a recall gets it again.
const AGAIN_AFTER: Duration = Duration::from_millis(500);
/// The most times that a recall is sent. The client loses the delegation before that.
const RECALLS_MAX: usize = 240;

/// How a share reaches a client about one file.
#[derive(Debug)]
pub(super) struct Reach {
    server: Weak<ServerState>,
    client: Weak<Client>,
    file: FileKey,
    /// The runtime of the connection over which the file was opened: a share may call from any thread.
    runtime: Handle,
}

impl Reach {
    pub(super) fn new(server: &Arc<ServerState>, client: &Arc<Client>, file: FileKey) -> Arc<Self> {
        let (server, client) = (Arc::downgrade(server), Arc::downgrade(client));
        Arc::new(Self { server, client, file, runtime: Handle::current() })
    }

    /// The runtime of the caller. Outside a runtime, that of the connection of the open, whose shard may have been
    /// given up since.
    fn runtime(&self) -> Handle {
        Handle::try_current().unwrap_or_else(|_| self.runtime.clone())
    }

    fn both(&self) -> Option<(Arc<ServerState>, Arc<Client>)> {
        Some((self.server.upgrade()?, self.client.upgrade()?))
    }
}

impl GrantHolder for Reach {
    fn shrink(&self, _: &Break) {
        let Some((server, client)) = self.both() else { return };
        if self.is_late() {
            return self.evict(); // the client will not answer
        }
        self.runtime().spawn(recall(server, client, self.file));
    }

    fn revoked(&self, _: Caching) {
        let Some((_, client)) = self.both() else { return };
        let revoked = client.files.with(|holdings| {
            let revoked = holdings.revoke_delegation(self.file, StateidError::DelegRevoked);
            client.tell_revoked(holdings.revoked());
            revoked
        });
        if let Some(delegated) = revoked {
            self.runtime().spawn(async move { delegated.held.close_unasked().await });
        }
    }

    fn is_late(&self) -> bool {
        self.both()
            .is_none_or(|(server, client)| server.v4.standing(&client, Instant::now()) != Standing::Current)
    }

    fn ask(&self) -> Option<Asked> {
        let (server, client) = self.both()?;
        let asked = self.runtime().spawn(ask(server, client, self.file));
        Some(Box::pin(async move { asked.await.ok().flatten() }))
    }

    fn evict(&self) {
        let Some((server, client)) = self.both() else { return };
        self.runtime().spawn(async move {
            tracing::info!(client = client.shown(), "a silent NFSv4 client is in the way of others");
            // The client must not reclaim after a restart what another client has had meanwhile (RFC 8881 8.4.3).
            server.v4.expire_client(client.id).leave(&server.v4.recovery).await;
        });
    }
}

/// Recalls the delegation, again as long as the client says that it cannot answer now: it may not have heard of the
/// delegation yet.
async fn recall(server: Arc<ServerState>, client: Arc<Client>, file: FileKey) {
    for _ in 0..RECALLS_MAX {
        let held = client
            .files
            .with(|holdings| holdings.delegation(file).map(|(stateid, held)| (stateid, held.held.handle)));
        let Some((stateid, handle)) = held else { return };
        // RFC 8881 8.2.2: the seqid of a stateid in a callback is zero.
        let stateid = Stateid { seqid: 0, ..stateid };
        let args = RecallArgs { stateid, truncate: false, file: FileHandle(handle.as_bytes()) };
        let answer = server.v4.callbacks.call(&client, &ArgOp::Recall(args)).await;
        match answer.and_then(|answered| answered.ok()) {
            Ok(()) => return,
            Err(error) => tracing::debug!("a recall was not taken: {error}"),
        }
        tokio::time::sleep(AGAIN_AFTER).await;
    }
}

/// Asks the client for the size of a file, and whether it has changed the file. RFC 8881 10.4.3: until it has, it sends
/// the change attribute that it got with the delegation.
async fn ask(server: Arc<ServerState>, client: Arc<Client>, file: FileKey) -> Option<Unwritten> {
    let (handle, change) = client
        .files
        .with(|holdings| holdings.delegation(file).map(|(_, held)| (held.held.handle, held.held.change)))?;
    let request = AttributeSet::of(&[Attribute::Change, Attribute::Size]);
    let args = GetAttrArgs { file: FileHandle(handle.as_bytes()), request };
    let answered = server.v4.callbacks.call(&client, &ArgOp::GetAttr(args)).await;
    let answered = answered.inspect_err(|error| tracing::debug!("CB_GETATTR: {error}")).ok()?;
    let Ok(ResOp::GetAttr(Ok(told))) = answered.result() else { return None };
    let Some(Value::Size(size)) = told.attributes.value(Attribute::Size) else { return None };
    let Some(Value::Change(changed)) = told.attributes.value(Attribute::Change) else { return None };
    Some(Unwritten { size, is_modified: changed != change })
}
