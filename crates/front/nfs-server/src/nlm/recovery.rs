//! What survives a restart: the records of hosts, the grace period, and telling the hosts (Open Group C702, chapter 11).

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use net::Origin;
use nfs_proto::nlm::grace::{Grace, GraceError};
use nfs_wire::nlm::Status;
use nfs_wire::nsm::{self, HostName, StateChange};
use parking_lot::Mutex;
use share::Share;

use super::callback::Callbacks;
use super::locking::NetworkLocks;
use super::records::{HostRecord, HostRecords};
use super::state::{NlmState, shown};
use crate::config::Config;

/// How long a host without locks is remembered.
const IDLE: Duration = Duration::from_secs(600);
/// How often hosts without locks are looked for.
const LOOK: Duration = Duration::from_secs(30);
/// How long it is tried to tell a host that the server has restarted, as sm-notify does.
const NOTIFY: Duration = Duration::from_secs(900);
/// How long after the first attempt the second one comes; the time doubles from then on, to [`NOTIFY_PAUSE_MAX`].
const NOTIFY_PAUSE: Duration = Duration::from_secs(1);
const NOTIFY_PAUSE_MAX: Duration = Duration::from_secs(60);

/// A host for whom a record is kept.
type Key = (Origin, Vec<u8>);

/// The records, and who may take locks.
#[derive(Debug)]
pub(crate) struct Recovery {
    records: Option<Arc<dyn HostRecords>>,
    /// Guards which hosts of this run are recorded. Held while a record is written or removed.
    kept: tokio::sync::Mutex<HashMap<Key, HostRecord>>,
    /// Guards which hosts have reclaimed.
    grace: Mutex<Grace<Key>>,
    /// The hosts of the last run, to be told.
    told: Vec<HostRecord>,
    /// The name of this machine.
    host_name: String,
    /// The state of the status monitor: odd, and larger with each restart.
    pub(crate) state: u32,
}

fn key(record: &HostRecord) -> Key {
    (Origin::from(record.address), record.name.clone())
}

impl Recovery {
    pub(super) fn begin(config: &Config, locks: &NetworkLocks, now: Instant) -> Self {
        let known = locks.records.as_ref().map_or_else(Vec::new, |records| {
            records.all().unwrap_or_else(|error| {
                tracing::error!(
                    "the records of hosts with NFSv3 locks cannot be read, they reclaim nothing: {error}"
                );
                Vec::new()
            })
        });
        let grace = Grace::begin(now, config.lease_times.lease, known.iter().map(key));
        if grace.is_on(now) {
            tracing::info!("{} hosts may reclaim NFSv3 locks; other locks wait until then", known.len());
            config.shares.present().in_order().iter().for_each(|share| share.hold_back_locks(grace.ends()));
        }
        Self {
            records: locks.records.clone(),
            kept: tokio::sync::Mutex::default(),
            grace: Mutex::new(grace),
            told: known,
            host_name: locks.host_name.clone(),
            state: monitor_state(SystemTime::now()),
        }
    }

    /// Holds back locks in a share that was awaited since the start, while hosts reclaim.
    pub(crate) fn await_reclaims(&self, share: &Share, now: Instant) {
        let grace = self.grace.lock();
        if grace.is_on(now) {
            share.hold_back_locks(grace.ends());
        }
    }

    /// Checks whether a host may lock, or reclaim.
    ///
    /// # Errors
    /// [`Status::DeniedGracePeriod`]; [`Status::Denied`] for a reclaim that comes too late, or of a host that held nothing.
    pub(super) fn check(&self, from: Origin, name: &[u8], reclaims: bool) -> Result<(), Status> {
        let checked = self.grace.lock().check(&(from, name.to_vec()), reclaims, Instant::now());
        checked.map_err(|refused| match refused {
            GraceError::Grace => Status::DeniedGracePeriod,
            GraceError::NothingToReclaim => Status::Denied,
        })
    }

    /// Records a host before it learns of its first lock.
    ///
    /// # Errors
    /// [`Status::DeniedNoLocks`] when it is not certain that the host is recorded.
    pub(super) async fn keep(&self, record: HostRecord) -> Result<(), Status> {
        let Some(records) = &self.records else { return Ok(()) };
        let mut kept = self.kept.lock().await;
        let key = key(&record);
        if kept.contains_key(&key) {
            return Ok(());
        }
        let (records, writing) = (Arc::clone(records), record.clone());
        let written = tokio::task::spawn_blocking(move || records.keep(&writing)).await;
        if let Ok(Err(error)) = &written {
            tracing::error!("a host with NFSv3 locks cannot be written down: {error}");
        }
        if !matches!(written, Ok(Ok(()))) {
            return Err(Status::DeniedNoLocks);
        }
        kept.insert(key, record);
        Ok(())
    }

    /// Removes the records of such hosts of this run.
    pub(super) fn forget(&self, is_meant: impl Fn(&HostRecord) -> bool) {
        // A host that locks at this very moment keeps its record. It does no harm.
        let Ok(mut kept) = self.kept.try_lock() else { return };
        let gone: Vec<_> = kept.extract_if(|_, record| is_meant(record)).map(|(_, record)| record).collect();
        drop(kept);
        self.strike_out(gone);
    }

    fn strike_out(&self, gone: Vec<HostRecord>) {
        let Some(records) = self.records.clone().filter(|_| !gone.is_empty()) else { return };
        tokio::task::spawn_blocking(move || {
            if let Err(error) = records.forget(&gone) {
                tracing::error!("hosts with NFSv3 locks cannot be struck out: {error}");
            }
        });
    }

    /// Ends the grace period when its time has come: the records of hosts that have not returned are void.
    async fn end_grace(&self) {
        let absent = self.grace.lock().end(Instant::now());
        if absent.is_empty() {
            return;
        }
        tracing::info!("{} hosts have not reclaimed their NFSv3 locks", absent.len());
        let kept = self.kept.lock().await;
        let is_void =
            |record: &&HostRecord| absent.contains(&key(record)) && !kept.contains_key(&key(record));
        let gone = self.told.iter().filter(is_void).cloned().collect();
        drop(kept);
        self.strike_out(gone);
    }
}

/// The state of the monitor of a server that starts now. It need not be kept: time does not go back.
fn monitor_state(now: SystemTime) -> u32 {
    let seconds = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    u32::try_from(seconds & 0x7fff_ffff).unwrap_or(0) | 1
}

impl NlmState {
    /// Holds back locks in a share that was awaited since the start, while hosts reclaim.
    pub(crate) fn await_reclaims(&self, share: &Share) {
        self.recovery.await_reclaims(share, Instant::now());
    }

    /// Tells the hosts of the last run that the server has restarted, and forgets hosts that hold nothing, for ever.
    pub(crate) async fn look_after_hosts(self: &Arc<Self>) {
        for record in self.recovery.told.clone() {
            let nlm = Arc::clone(self);
            tokio::spawn(async move { nlm.notify(&record).await });
        }
        loop {
            tokio::time::sleep(LOOK).await;
            self.recovery.end_grace().await;
            let idle = self.with(|hosts| hosts.forget_idle(Instant::now(), IDLE));
            if !idle.is_empty() {
                let is_idle = |record: &HostRecord| {
                    let (origin, name) = key(record);
                    idle.iter().any(|(place, idle)| *place == origin && **idle == *name)
                };
                self.recovery.forget(is_idle);
            }
        }
    }

    /// Tells one host that the server has restarted, until it has heard it. The host knows the server by the address that it
    /// has mounted from, or by the server's name.
    async fn notify(&self, record: &HostRecord) {
        let began = Instant::now();
        let (address, name) = (record.server.to_string(), self.recovery.host_name.as_str());
        let (mut unheard, mut pause) = (vec![address.as_str(), name], NOTIFY_PAUSE);
        unheard.retain(|name| !name.is_empty());
        while began.elapsed() < NOTIFY {
            let mut still = Vec::new();
            for name in unheard {
                let args = StateChange { host: HostName(name.as_bytes()), state: self.recovery.state };
                if let Err(error) = notify_once(&self.callbacks, record, &args).await {
                    tracing::debug!(host = shown(&record.name), "not told of the restart: {error}");
                    still.push(name);
                }
            }
            unheard = still;
            if unheard.is_empty() {
                tracing::info!(host = shown(&record.name), address = %record.address, "told of the restart");
                return;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(NOTIFY_PAUSE_MAX);
        }
        tracing::warn!(
            host = shown(&record.name),
            address = %record.address,
            "a host with NFSv3 locks could not be told that the server has restarted"
        );
    }
}

async fn notify_once(
    callbacks: &Callbacks,
    record: &HostRecord,
    args: &StateChange<'_>,
) -> Result<(), super::callback::CallbackError> {
    let to = SocketAddr::new(record.address, 0);
    let procedure = nsm::Procedure::Notify as u32;
    callbacks.call((record.server, to), (nsm::PROGRAM, nsm::VERSION, procedure), args, |_| Some(())).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_the_monitor_is_odd_and_grows() {
        let at = |seconds| monitor_state(UNIX_EPOCH + Duration::from_secs(seconds));
        assert!(at(1_800_000_000) % 2 == 1 && at(1_800_000_002) > at(1_800_000_000));
        assert!(at(u64::from(u32::MAX)) <= i32::MAX.unsigned_abs(), "it is a signed number for others");
    }
}
