//! Shares that become replicas, are broken off, and become replicas again.
//!
//! A replica is served from its last complete snapshot ([`replica::MirrorStore`]). It is broken off by going back to that snapshot: so
//! what a transfer has not completed is not seen by anybody. It becomes a replica again in the same way, and what clients have written
//! meanwhile stays as the snapshot that going back makes.

use std::ops::ControlFlow;
use std::sync::{Arc, Weak};
use std::time::Duration;

use control::replications::{
    NewReplication, Replication, ReplicationAction, ReplicationFigures, SourceShare,
};
use control::{Refusal, RefusalKind};
use replica::FOLDER;
use share::{Share, folded_name};
use state::ReplicationRecord;
use storage::{BEFORE_REVERT, MayWait, Snapshots, StoreThread, View};

use super::revert::{and_served, refused};
use super::{Administration, failed, invalid, reload};
use crate::replication::{
    Mirrors, OWN_LABEL, Patience, Place, Remote, Replications, Unanswered, is_token, json_call, legible,
    open_snapshot, path_part, written,
};
use crate::snapshots::{Snapshotting, asked};

type Result<T> = std::result::Result<T, Refusal>;

/// How often a replica is brought up to date, in seconds: by default, and at least and at most.
const EVERY: u64 = 600;
const EVERY_LEAST: u64 = 60;
const EVERY_MOST: u64 = 7 * 24 * 3600;
/// How long the source may be silent while an administrator waits.
const SOURCE_SILENCE: Duration = Duration::from_secs(10);
/// The least bandwidth, in bytes a second.
const BANDWIDTH_LEAST: u64 = 64 << 10;

impl Administration {
    pub(crate) fn replications(&self) -> &Replications {
        &self.replications
    }

    pub(crate) fn mirrors(&self) -> Arc<Mirrors> {
        Arc::clone(&self.declared().mirrors)
    }

    pub(crate) fn remote(&self) -> Option<Arc<dyn Remote>> {
        self.remote.get().cloned()
    }

    /// This value, for threads that may outlast it.
    pub(crate) fn this(&self) -> Weak<Self> {
        Weak::clone(&self.this)
    }

    pub(crate) fn state(&self) -> &Arc<state::State> {
        &self.state
    }

    pub(crate) fn snapshotting(&self) -> &Arc<Snapshotting> {
        &self.snapshotting
    }

    /// Says who can ask other servers. Only the first call has an effect.
    pub fn set_remote(&self, remote: Arc<dyn Remote>) {
        let _ = self.remote.set(remote);
    }

    /// How the replica is that a share is.
    pub(super) fn look_at_replication(&self, name: &str) -> Result<Replication> {
        Ok(self.tell_replication(&self.replica(name)?))
    }

    fn replica(&self, name: &str) -> Result<ReplicationRecord> {
        let known = self.state.replication_of(name).map_err(failed)?;
        known.ok_or_else(|| {
            let what = format!("the share {name} is no replica");
            Refusal::new(
                RefusalKind::NotFound,
                what,
                "anabranch share replicate NAME --from https://HOST:PORT/SHARE makes it one.",
            )
        })
    }

    pub(super) fn tell_replication(&self, record: &ReplicationRecord) -> Replication {
        let seen = self.replications.of(&record.share).seen();
        let state = match (record.broken, record.resync) {
            (true, _) => "broken",
            (false, true) => "resync",
            (false, false) => "mirrored",
        };
        Replication {
            from: record.from.clone(),
            state: state.to_owned(),
            transferring: seen.is_running,
            every_seconds: record.every,
            bandwidth: record.bandwidth,
            as_of: (!record.of.is_empty()).then_some(record.of_taken),
            transfers: record.transfers,
            failures: seen.failures,
            directories: seen.figures.directories,
            files: seen.figures.files,
            bytes: seen.figures.bytes,
            problem: seen.problem,
        }
    }

    pub(super) fn all_replication_figures(&self) -> Option<Vec<ReplicationFigures>> {
        // The thread that begins transfers has told it.
        let records = self.state.replications().ok()?;
        let tell = |record: &ReplicationRecord| ReplicationFigures {
            share: record.share.clone(),
            replication: self.tell_replication(record),
            received: self.replications.of(&record.share).seen().received,
        };
        Some(records.iter().map(tell).collect())
    }

    /// Makes a share a replica.
    pub(super) fn make_replica(&self, name: &str, new: &NewReplication) -> Result<Replication> {
        let mut record = self.check_replication(new)?;
        let serving = self.serving()?;
        // Before the others wait: the source may be silent.
        let source = self.check_source(&record)?;
        let _orders = self.replications.orders.lock();
        let (share, directory) = self.served_with_directory(name)?;
        let name = share.name().to_owned();
        self.check_is_free(&name, new.reverse)?;
        self.end_former_now(&name);
        if new.reverse {
            record.former = Some(self.check_roles(&name, &source)?);
        } else {
            self.check_has_no_destinations(&name)?;
        }
        record.resync = new.reverse;
        let turn = self.snapshotting.turn_at(&share)?;
        self.check_nothing_is_restored(&name)?;
        check_can_go_back(&share)?;
        let snapshots = self.own_snapshots(&share)?;
        let mut idle = self.idle.lock();
        self.check_is_unchanged(&share)?;
        // Its clients can write no more before it is looked at, so nothing of theirs is lost.
        let ended = reload::end(serving, &name).map_err(refused);
        drop(share);
        let begun = ended.and_then(|_| first_state(&name, &snapshots, new.reverse)).and_then(|shown| {
            (record.share, record.directory, record.shown) = (name.clone(), directory, shown);
            self.state.keep_replication(&record).map_err(failed)
        });
        drop(snapshots);
        drop(turn);
        let served = self.serve_again(serving, &name, &mut idle);
        drop(idle);
        and_served(begun, served)?;
        self.end_former_now(&name);
        self.replications.of(&name).starts_anew();
        tracing::info!(share = name, from = record.from, "a share is a replica from now on");
        Ok(self.tell_replication(&record))
    }

    /// Refuses a share that is a replica already. One that was broken off may exchange its role once more.
    fn check_is_free(&self, name: &str, reverse: bool) -> Result<()> {
        match self.state.replication_of(name).map_err(failed)? {
            Some(known) if !(reverse && known.broken) => {
                let what = format!("the share {name} is a replica already");
                Err(Refusal::new(RefusalKind::NameTaken, what, "End that first: --stop"))
            }
            _ => Ok(()),
        }
    }

    /// Refuses to exchange roles with a share that was no replica of this one. Returns as which destination it is known.
    fn check_roles(&self, name: &str, source: &SourceShare) -> Result<u64> {
        let known = self.state.destinations_of(name).map_err(failed)?.unwrap_or_default();
        let is_former = |id: u64| source.was_destination.as_ref() == Some(&written(id));
        let Some(former) = known.destinations.iter().find(|one| is_former(one.id)) else {
            let what =
                format!("{} is no replica of the share {name} that was broken off", legible(&source.share));
            let advice = "Break it off there: anabranch share replicate NAME --break";
            return Err(Refusal::new(RefusalKind::InUse, what, advice));
        };
        match known.destinations.iter().find(|one| !is_former(one.id)) {
            Some(other) => Err(has_destination(name, other.id)),
            None => Ok(former.id),
        }
    }

    /// Ends the destination that has exchanged roles with a share, if that was not done yet: the server was killed, or a snapshot could
    /// not be removed. Returns which destination is still to be ended.
    ///
    /// # Errors
    /// It cannot be read whether there is one.
    pub(crate) fn end_former(&self, share: &str) -> Result<Option<u64>> {
        let Some(record) = self.state.replication_of(share).map_err(failed)? else { return Ok(None) };
        let Some(former) = record.former else { return Ok(None) };
        let Err(why) = self.end_former_of(record, former) else { return Ok(None) };
        tracing::warn!(share, "snapshots for the former replica stay for now: {}", why.what);
        Ok(Some(former))
    }

    /// As [`Self::end_former`], now if that works. Otherwise the next transfer does it.
    fn end_former_now(&self, share: &str) {
        if let Err(why) = self.end_former(share) {
            tracing::warn!(share, "snapshots for a former replica may stay for now: {}", why.what);
        }
    }

    fn end_former_of(&self, record: ReplicationRecord, former: u64) -> Result<()> {
        let known = self.state.destinations_of(&record.share).map_err(failed)?.unwrap_or_default();
        // The record of a destination is the last that goes.
        if known.destinations.iter().any(|one| one.id == former) {
            self.end_destination(&record.share, &written(former))?;
        }
        self.state.keep_replication(&ReplicationRecord { former: None, ..record }).map_err(failed)
    }

    fn check_replication(&self, new: &NewReplication) -> Result<ReplicationRecord> {
        let place = Place::parse(&new.from);
        let place =
            place.map_err(|what| invalid(what, "The control address of the other server is meant."))?;
        if !is_token(&new.token) {
            let advice = "Make one on the other server: anabranch token create NAME --scope replicate";
            return Err(invalid("the token is none", advice));
        }
        place.access(&new.token, &new.certificate).map_err(|what| {
            let advice = "The other server keeps its certificate in the file control-certificate.pem of its state directory.";
            invalid(what, advice)
        })?;
        let every = new.every_seconds.unwrap_or(EVERY);
        if !(EVERY_LEAST..=EVERY_MOST).contains(&every) {
            let what = format!("every {every} seconds: it can be every {EVERY_LEAST} to {EVERY_MOST}");
            return Err(invalid(what, ""));
        }
        if let Some(slow) = new.bandwidth.filter(|bandwidth| *bandwidth < BANDWIDTH_LEAST) {
            return Err(invalid(format!("{slow} bytes a second are too few"), "64 KiB/s is the least."));
        }
        let mut id = [0; 8];
        getrandom::fill(&mut id).map_err(|e| Refusal::new(RefusalKind::Failed, e.to_string(), ""))?;
        Ok(ReplicationRecord {
            from: new.from.clone(),
            certificate: new.certificate.clone(),
            token: new.token.trim().to_owned(),
            id: u64::from_le_bytes(id),
            every,
            bandwidth: new.bandwidth,
            ..ReplicationRecord::default()
        })
    }

    /// Refuses to make a replica of a share that others replicate: of a replica nobody takes snapshots.
    fn check_has_no_destinations(&self, name: &str) -> Result<()> {
        let known = self.state.destinations_of(name).map_err(failed)?.unwrap_or_default();
        known.destinations.first().map_or(Ok(()), |one| Err(has_destination(name, one.id)))
    }

    /// Asks the source whether it has the share.
    fn check_source(&self, record: &ReplicationRecord) -> Result<SourceShare> {
        let Some(remote) = self.remote() else {
            let what = "this program cannot ask other servers";
            return Err(Refusal::new(RefusalKind::Failed, what, ""));
        };
        let place = Place::parse(&record.from).map_err(|what| invalid(what, ""))?;
        let access = place.access(&record.token, &record.certificate).map_err(|what| invalid(what, ""))?;
        let path = format!("/v1/replication/{}", path_part(&place.share));
        let patience = Patience::new(SOURCE_SILENCE);
        let answer = json_call::<SourceShare>(&*remote, &access, ("GET", &path), None::<&()>, &patience);
        let source = answer.map_err(|why: Unanswered| {
            let what = format!("the source {}: {}", record.from, legible(&why.what));
            Refusal::new(why.kind(), what, legible(&why.advice))
        })?;
        if source.version != replica_wire::VERSION {
            let what = format!("the source {} sends in another form", record.from);
            return Err(invalid(what, "Both servers need programs of one version."));
        }
        Ok(source)
    }

    /// Carries out an order.
    pub(super) fn order_replication(&self, name: &str, action: ReplicationAction) -> Result<Replication> {
        if action == ReplicationAction::Now {
            return self.bring_up_to_date(name);
        }
        let _orders = self.replications.orders.lock();
        let record = self.replica(name)?;
        let left = match (action, record.broken) {
            (ReplicationAction::Break, false) => self.leave_mirror(name, |record| record.broken = true)?,
            (ReplicationAction::Resync, true) => {
                self.end_former_now(&record.share);
                self.check_has_no_destinations(&record.share)?;
                self.leave_mirror(name, |record| (record.broken, record.resync) = (false, true))?
            }
            (_, true) => return Err(is_broken(&record)),
            (_, false) => {
                let what = format!("the share {} is a replica, and was not broken off", record.share);
                return Err(Refusal::new(RefusalKind::Busy, what, "--now brings it up to date."));
            }
        };
        Ok(self.tell_replication(&left))
    }

    fn bring_up_to_date(&self, name: &str) -> Result<Replication> {
        let record = self.replica(name)?;
        if record.broken {
            return Err(is_broken(&record));
        }
        self.replications.of(&record.share).hurry();
        Ok(self.tell_replication(&record))
    }

    /// Has a share go back to what was complete, and be served as what it is from now on. The orders are held.
    fn leave_mirror(
        &self,
        name: &str,
        change: impl FnOnce(&mut ReplicationRecord),
    ) -> Result<ReplicationRecord> {
        let serving = self.serving()?;
        self.stop_transfer(name)?;
        // What the transfer has noted last.
        let mut record = self.replica(name)?;
        let share = self.served(&record.share)?;
        let turn = self.snapshotting.turn_at(&share)?;
        self.check_nothing_is_restored(&record.share)?;
        let was_broken = record.broken;
        let snapshots = self.own_snapshots(&share)?;
        let mut idle = self.idle.lock();
        self.check_is_unchanged(&share)?;
        let ended = reload::end(serving, &record.share).map_err(refused);
        drop(share);
        let reverted = ended.and_then(|_| go_back(&snapshots, &record.shown, was_broken));
        drop(snapshots);
        drop(turn);
        let kept = reverted.and_then(|()| {
            change(&mut record);
            self.state.keep_replication(&record).map_err(failed)
        });
        let served = self.serve_again(serving, &record.share, &mut idle);
        and_served(kept, served)?;
        self.replications.of(&record.share).starts_anew();
        tracing::info!(share = record.share, broken = record.broken, "a replica has another state");
        Ok(record)
    }

    fn stop_transfer(&self, name: &str) -> Result<()> {
        if self.replications.stop(name) {
            return Ok(());
        }
        let what = format!("the transfer to {name} does not stop");
        Err(Refusal::new(
            RefusalKind::Busy,
            what,
            "A storage or the source does not answer. Try again later.",
        ))
    }

    /// The snapshots of a share, as its store has them.
    fn own_snapshots(&self, share: &Arc<Share>) -> Result<Arc<dyn Snapshots>> {
        if let Some(shown) = self.mirrors().of(share.name()) {
            return shown
                .live()
                .snapshots()
                .map_err(|why| Refusal::new(RefusalKind::NoSnapshots, why.to_string(), ""));
        }
        share.snapshot_provider().map_err(|why| Refusal::new(RefusalKind::NoSnapshots, why.to_string(), ""))
    }

    /// Makes a replica an ordinary share. If it cannot go back to what was complete, because it is not served as a replica or the
    /// snapshot is gone, it stays as the last transfer has left it.
    pub(super) fn leave_replication(&self, name: &str) -> Result<Replication> {
        let orders = self.replications.orders.lock();
        let mut record = self.replica(name)?;
        if !record.broken {
            self.serving()?;
            self.stop_transfer(name)?;
            record = self.replica(name)?;
            if self.can_go_back(&record)? {
                record = self.leave_mirror(name, |record| record.broken = true)?;
            } else {
                tracing::warn!(share = record.share, "a replica cannot go back to what was complete");
            }
        }
        // What cannot be ended now is a destination for `--forget`.
        self.end_former_now(&record.share);
        self.state.forget_replication(&record.share).map_err(failed)?;
        let told = self.tell_replication(&record);
        self.replications.forget(&record.share);
        self.serve_what_was_replica(&record.share);
        drop(orders);
        // The source keeps snapshots until it hears of it.
        if let Err(why) = self.say_goodbye(&record) {
            tracing::warn!(
                share = record.share,
                from = record.from,
                "the source was not told that this is no replica: {why}"
            );
        }
        tracing::info!(share = record.share, "a share is no replica any more");
        Ok(told)
    }

    /// Whether a share is served as the replica of which this is the record, with the snapshot that it shows.
    fn can_go_back(&self, record: &ReplicationRecord) -> Result<bool> {
        let is_of_it = self.directory_of(&record.share).is_ok_and(|now| now == record.directory);
        let (true, true, Ok(share)) =
            (is_of_it, self.mirrors().of(&record.share).is_some(), self.served(&record.share))
        else {
            return Ok(false);
        };
        let shown = record.shown.clone();
        asked(&share, move |snapshots, may| Ok(snapshots.list(may)?.iter().any(|one| one.name == shown)))
    }

    /// Serves a share that could not be served as a replica, if there still is one.
    fn serve_what_was_replica(&self, name: &str) {
        let Some(serving) = &self.serving else { return };
        let mut idle = self.idle.lock();
        if idle.remove(&folded_name(name)).is_some() && self.directory_of(name).is_ok() {
            // Why it is not served is kept, and told with the share.
            let _ = self.serve_again(serving, name, &mut idle);
        }
    }

    fn say_goodbye(&self, record: &ReplicationRecord) -> std::result::Result<(), String> {
        let remote = self.remote().ok_or("this program cannot ask other servers")?;
        let place = Place::parse(&record.from)?;
        let access = place.access(&record.token, &record.certificate)?;
        let path = format!("/v1/replication/{}/transfers/{}", path_part(&place.share), written(record.id));
        let answer = remote.call(&access, ("DELETE", &path), &[], &Patience::new(SOURCE_SILENCE));
        answer.map(drop).map_err(|why| why.what)
    }

    /// Refuses what would leave a replica as no snapshot ever was.
    pub(super) fn check_is_no_replica(&self, name: &str) -> Result<()> {
        let known = self.state.replication_of(name).map_err(failed)?;
        if known.is_some_and(|record| !record.broken) {
            let what = format!("the share {name} is a replica");
            return Err(Refusal::new(
                RefusalKind::InUse,
                what,
                "End that first: anabranch share replicate NAME --stop",
            ));
        }
        Ok(())
    }

    /// Refuses to remove a snapshot that replication needs.
    pub(super) fn check_not_replicated(&self, name: &str, snapshot: &str) -> Result<()> {
        let replica = self.state.replication_of(name).map_err(failed)?;
        let destinations = self.state.destinations_of(name).map_err(failed)?.unwrap_or_default().destinations;
        let is_shown = replica.is_some_and(|record| record.shown == snapshot);
        let is_needed = destinations.iter().any(|one| one.completed == snapshot || one.pending == snapshot);
        if is_shown || is_needed {
            let what = format!("the snapshot {snapshot} is needed for replication");
            return Err(Refusal::new(RefusalKind::InUse, what, "It is removed when it is needed no more."));
        }
        Ok(())
    }
}

/// What the store of a share is like that is to be a replica.
enum Looked {
    Empty,
    Holds(String),
    NoHandles,
}

/// The snapshot that a replica begins with: of an empty share, whose clients could be shown complete states only, or of what it has,
/// which then is kept in another snapshot for good.
fn first_state(share: &str, snapshots: &Arc<dyn Snapshots>, keeps: bool) -> Result<String> {
    let looked = withdrawn(snapshots, move |snapshots, may| {
        if keeps {
            snapshots.take(BEFORE_REVERT, may)?;
        }
        let taken = snapshots.take(OWN_LABEL, may)?;
        let looked = look_at(&**snapshots, taken.id, may).map(|looked| match looked {
            Looked::Holds(_) if keeps => Looked::Empty,
            looked => looked,
        });
        if !matches!(looked, Ok(Looked::Empty)) {
            snapshots.remove(taken.id, may)?;
        }
        looked.map(|looked| (looked, taken.name))
    });
    let cannot = |why: &str| format!("the share {share} cannot be a replica: {why}");
    match looked {
        Ok((Looked::Empty, taken)) => Ok(taken),
        Ok((Looked::Holds(first), _)) => {
            let what = format!("the share {share} holds something: {first}");
            Err(Refusal::new(RefusalKind::InUse, what, "A replica begins with an empty share."))
        }
        Ok((Looked::NoHandles, _)) => {
            let what = cannot("the server may not open files by filehandle");
            Err(Refusal::new(
                RefusalKind::NoSnapshots,
                what,
                "It needs CAP_DAC_READ_SEARCH (docs/service.md).",
            ))
        }
        Err(why) => Err(Refusal::new(RefusalKind::Failed, cannot(&why), "")),
    }
}

/// Refuses a share that could not go back to what was complete.
fn check_can_go_back(share: &Arc<Share>) -> Result<()> {
    asked(share, |snapshots, may| Ok(snapshots.can_revert(may)))?.map_err(|why| {
        let what = format!(
            "the share {} cannot be a replica: it could not go back to what was complete",
            share.name()
        );
        Refusal::new(RefusalKind::NoSnapshots, what, why.to_string())
    })
}

fn has_destination(name: &str, id: u64) -> Refusal {
    let what = format!("the share {name} has the destination {}, and a replica can have none", written(id));
    Refusal::new(
        RefusalKind::InUse,
        what,
        "End that first: --stop there, or here anabranch share replicate NAME --forget DESTINATION",
    )
}

fn is_broken(record: &ReplicationRecord) -> Refusal {
    let what = format!("the replica {} is broken off", record.share);
    Refusal::new(RefusalKind::Busy, what, "--resync makes it a replica again.")
}

fn look_at(snapshots: &dyn Snapshots, id: storage::SnapshotId, may: MayWait<'_>) -> storage::Result<Looked> {
    let root = snapshots.open(id, may)?.root();
    let mut first = None;
    root.survey(may, &mut |entry| {
        if entry.name == FOLDER.as_bytes() {
            return ControlFlow::Continue(());
        }
        first = Some(String::from_utf8_lossy(entry.name).into_owned());
        ControlFlow::Break(())
    })?;
    if root.handle().and_then(|handle| snapshots.live_handle(&handle, id)).is_err() {
        return Ok(Looked::NoHandles);
    }
    Ok(first.map_or(Looked::Empty, Looked::Holds))
}

/// Goes back to a snapshot. What there was stays as a snapshot if clients could write to it.
fn go_back(snapshots: &Arc<dyn Snapshots>, to: &str, keeps: bool) -> Result<()> {
    let to = to.to_owned();
    let gone = withdrawn(snapshots, move |snapshots, may| {
        let snapshot = open_snapshot(snapshots, &to, may)?;
        let before = snapshots.revert(snapshot.id, may)?;
        if !keeps {
            // It is removed with the next transfer, or by an administrator.
            let _ = snapshots.remove(before.id, may);
        }
        Ok(())
    });
    gone.map_err(|why| {
        let what = format!("the share cannot go back to what was complete: {why}");
        Refusal::new(RefusalKind::Failed, what, "")
    })
}

/// Makes calls to the snapshots of a share that is withdrawn, and waits until they have ended. If they fail, the reason.
fn withdrawn<T: Send + 'static>(
    snapshots: &Arc<dyn Snapshots>,
    calls: impl FnOnce(&Arc<dyn Snapshots>, MayWait<'_>) -> storage::Result<T> + Send + 'static,
) -> std::result::Result<T, String> {
    let snapshots = Arc::clone(snapshots);
    let made = StoreThread::spawn("replica", move |thread| calls(&snapshots, thread.may_wait(View::FRESH)));
    let made = made.map_err(|e| e.to_string())?;
    let made = made.join().map_err(|_| "a thread has failed".to_owned())?;
    made.map_err(|e| e.to_string())
}
