//! The grace period after a restart, and the records of clients that make it possible (RFC 8881 8.4.2.1).

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use nfs_proto::v4::grace::{Grace, GraceError, Reclaims};
use nfs_proto::v4::recovery::ClientRecord;
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::ClientId;
use parking_lot::Mutex;
use share::{Share, ShareTable};

use super::client_records::ClientRecords;
use super::state::Client;
use crate::config::Config;

/// Decides who may reclaim, and who has to wait.
#[derive(Debug)]
pub(crate) struct Recovery {
    records: Option<Arc<dyn ClientRecords>>,
    /// Guards which clients of this run are recorded, by the names in their records. Held while a record is written or removed.
    kept: tokio::sync::Mutex<HashMap<Vec<u8>, ClientId>>,
    /// Guards which clients have completed their reclaims, and until when others are held back. The shares learn of
    /// that while the lock is held.
    grace: Mutex<Grace>,
    /// The shares in which other clients are held back until the grace period is over.
    shares: Arc<ShareTable>,
}

impl Recovery {
    /// At the start: recorded clients may reclaim what they held before other clients are admitted.
    pub(crate) fn begin(config: &Config, now: Instant) -> Self {
        let records = config.client_records.clone();
        let known = records.as_ref().map_or_else(Vec::new, |records| {
            records.all().unwrap_or_else(|error| {
                tracing::error!("the records of NFSv4 clients cannot be read, they reclaim nothing: {error}");
                Vec::new()
            })
        });
        let count = known.len();
        let grace = Grace::begin(now, config.lease_times.lease, known);
        let shares = Arc::clone(&config.shares);
        if grace.is_on(now) {
            tracing::info!("{count} NFSv4 clients may reclaim what they held");
            shares.present().in_order().iter().for_each(|share| share.hold_back(grace.ends()));
        }
        Self { records, kept: tokio::sync::Mutex::default(), grace: Mutex::new(grace), shares }
    }

    /// Holds back other clients in a share that was awaited since the start, while clients reclaim.
    pub(crate) fn await_reclaims(&self, share: &Share, now: Instant) {
        let grace = self.grace.lock();
        if grace.is_on(now) {
            share.hold_back(grace.ends());
        }
    }

    /// Notes that a client has completed its reclaims.
    pub(super) fn complete(&self, owner: &[u8]) {
        let mut grace = self.grace.lock();
        if grace.complete(owner) {
            tracing::info!("all NFSv4 clients have reclaimed what they held");
            self.shares.present().in_order().iter().for_each(|share| share.let_in());
        }
    }

    /// Checks whether an operation without an open is allowed, since others may still reclaim.
    ///
    /// # Errors
    /// [`Status::Grace`].
    pub(super) fn check_stateless(&self, now: Instant) -> Result<(), Status> {
        if self.grace.lock().is_on(now) { Err(Status::Grace) } else { Ok(()) }
    }

    /// Checks whether a client may open or lock, either as a reclaim or newly.
    ///
    /// # Errors
    /// [`Status::Grace`], [`Status::NoGrace`], [`Status::ReclaimBad`].
    pub(super) async fn check_locking(
        &self,
        client: &Client,
        reclaim: bool,
        now: Instant,
    ) -> Result<(), Status> {
        let (answer, void) = {
            let mut grace = self.grace.lock();
            let reclaims = client.files.reclaims();
            let answer = if reclaim {
                self.check_reclaim(&mut grace, &client.recorded_as, reclaims, now)
            } else {
                grace.check_new(reclaims, now)
            };
            (answer, grace.end(now))
        };
        if !void.is_empty() {
            self.strike_out_absent(void).await;
        }
        answer.map_err(|refused| match refused {
            GraceError::Grace => Status::Grace,
            GraceError::NoGrace => Status::NoGrace,
            GraceError::ReclaimBad => Status::ReclaimBad,
        })
    }

    /// Whether the client may reclaim. If so, others are held back for longer, if necessary.
    fn check_reclaim(
        &self,
        grace: &mut Grace,
        owner: &[u8],
        reclaims: Reclaims,
        now: Instant,
    ) -> Result<(), GraceError> {
        let ended = grace.ends();
        grace.check_reclaim(owner, reclaims, now)?;
        let ends = grace.ends();
        if ends > ended {
            self.shares.present().in_order().iter().for_each(|share| share.hold_back(ends));
        }
        Ok(())
    }

    /// Records the client before it first learns that it holds something.
    ///
    /// # Errors
    /// [`Status::Delay`] when it is not certain that the client is recorded.
    pub(super) async fn keep(&self, client: &Client) -> Result<(), Status> {
        let Some(records) = &self.records else { return Ok(()) };
        if client.files.is_recorded.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut kept = self.kept.lock().await;
        let record = ClientRecord { owner: client.recorded_as.to_vec() };
        if let Err(error) = call(records, move |records| records.keep(&record)).await? {
            tracing::error!("an NFSv4 client cannot be written down: {error}");
            return Err(Status::Delay);
        }
        kept.insert(client.recorded_as.to_vec(), client.id);
        client.files.is_recorded.store(true, Ordering::Release);
        Ok(())
    }

    /// Removes the records of clients that have not completed their reclaims. Clients that have reclaimed something
    /// keep their records: they are recorded in this run too, and will have something to reclaim after the next
    /// restart.
    async fn strike_out_absent(&self, void: Vec<ClientRecord>) {
        let kept = self.kept.lock().await;
        let absent = void.into_iter().filter(|record| !kept.contains_key(&record.owner)).collect();
        strike_out(self.records.clone(), absent).await;
    }

    /// Removes the record of a client, unless the client has returned and holds something else.
    pub(super) async fn forget(&self, client: &Client) {
        let mut kept = self.kept.lock().await;
        if kept.get(&*client.recorded_as) == Some(&client.id) {
            kept.remove(&*client.recorded_as);
            let record = ClientRecord { owner: client.recorded_as.to_vec() };
            strike_out(self.records.clone(), vec![record]).await;
        }
    }
}

async fn strike_out(records: Option<Arc<dyn ClientRecords>>, gone: Vec<ClientRecord>) {
    let Some(records) = records.filter(|_| !gone.is_empty()) else { return };
    if let Ok(Err(error)) = call(&records, move |records| records.forget(&gone)).await {
        tracing::error!("NFSv4 clients cannot be struck out: {error}");
    }
}

/// Calls the store of the records, on a thread that may wait if the store may.
async fn call<T: Send + 'static>(
    records: &Arc<dyn ClientRecords>,
    call: impl FnOnce(&dyn ClientRecords) -> T + Send + 'static,
) -> Result<T, Status> {
    if records.answers_at_once() {
        return Ok(call(&**records));
    }
    let records = Arc::clone(records);
    tokio::task::spawn_blocking(move || call(&*records)).await.map_err(|_| Status::ServerFault)
}
