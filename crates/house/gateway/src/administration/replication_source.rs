//! What servers that replicate a share ask of this one.
//!
//! For each of them, two snapshots are kept at most: the one that it has, and the one that it is about to have. Nobody can remove them.

use std::io::Write as _;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use control::replications::{Contents, Destination, Destinations, NewTransfer, SourceShare, Transfer};
use control::{Refusal, RefusalKind};
use replica::{Compared, Failure, changes, write_objects};
use replica_wire::{Record, Wanted};
use share::Share;
use state::{DestinationRecord, DestinationsRecord};
use storage::{
    Error, MayWait, Name, Snapshot, SnapshotId, SnapshotName, Snapshots, StoreThread, View, Wait, not_before,
};

use super::{Administration, failed, invalid};
use crate::replication::{LABEL, Walk, read, written};
use crate::snapshots::{Kept, Turn, asked, now};

type Result<T> = std::result::Result<T, Refusal>;

/// After how many seconds it is told that a destination was not heard of.
const LOST_SECS: u64 = 24 * 3600;
/// How often a destination hears that there is more to come: so this side learns that it is gone.
const ALIVE_EVERY: Duration = Duration::from_secs(5);
/// How many destinations a share can have, as Azure NetApp Files has it.
const DESTINATIONS_MAX: usize = 2;

/// What is kept for the destinations of a share, with the turn for its snapshots.
pub(super) struct KeptForDestinations<'a> {
    share: Arc<Share>,
    directory: PathBuf,
    known: DestinationsRecord,
    turn: Turn<'a>,
}

impl Administration {
    pub(super) fn all_destinations(&self, share: &str) -> Result<Destinations> {
        let name = self.one_share(share)?.name;
        let known = self.state.destinations_of(&name).map_err(failed)?.unwrap_or_default();
        Ok(Destinations { destinations: known.destinations.iter().map(tell).collect() })
    }

    /// Forgets a destination, with the snapshots that are kept for it. The record goes last: as long as there is one, somebody can have
    /// the rest removed.
    pub(super) fn end_destination(&self, share: &str, id: &str) -> Result<Destination> {
        let id = read_id(id)?;
        let _turn = self.turn_of(share)?;
        let (share, directory) = self.served_with_directory(share)?;
        let mut known = self.state.destinations_of(share.name()).map_err(failed)?.unwrap_or_default();
        let at = known.destinations.iter().position(|one| one.id == id);
        self.replications.walks.end(id);
        let Some(at) = at else { return Err(no_destination(share.name())) };
        self.remove_others(&share, &directory, id, &[])?;
        let gone = known.destinations.remove(at);
        self.state.keep_destinations(&known).map_err(failed)?;
        tracing::info!(share = share.name(), destination = written(id), "a destination is forgotten");
        Ok(tell(&gone))
    }

    /// What is kept for the destinations of a share that is to be removed. None: nothing, or nobody can reach it now, and it stays.
    pub(super) fn kept_for_destinations(&self, name: &str) -> Option<KeptForDestinations<'_>> {
        let known = self.state.destinations_of(name).ok()??;
        let turn = self.turn_of(name).ok()?;
        let (share, directory) = self.served_with_directory(name).ok()?;
        Some(KeptForDestinations { share, directory, known, turn })
    }

    /// Removes what is kept for the destinations of a share that was removed. What cannot be removed now stays. Not before the state
    /// database says that the share is removed: destinations of a share that stays can go on from what they have.
    pub(super) fn end_destinations(&self, kept: KeptForDestinations<'_>) {
        let KeptForDestinations { share, directory, known, turn: _turn } = kept;
        let name = share.name();
        for one in known.destinations {
            self.replications.walks.end(one.id);
            if let Err(why) = self.remove_others(&share, &directory, one.id, &[]) {
                tracing::warn!(share = name, "a snapshot for a replica stays: {}", why.what);
            }
        }
    }

    /// Says which destinations have not been heard of for long: what is kept for them takes space.
    pub(crate) fn tell_lost_destinations(&self) {
        let known = self.state.destinations().unwrap_or_default();
        let now = now().secs_since_1970();
        for of_share in known {
            for one in of_share.destinations.iter().filter(|one| is_lost(one, now)) {
                tracing::warn!(
                    share = of_share.share,
                    destination = written(one.id),
                    hours = now.saturating_sub(one.seen) / 3600,
                    "a destination was not heard of for long, and its snapshots stay until it is forgotten"
                );
            }
        }
    }

    pub(super) fn tell_source(&self, share: &str) -> Result<SourceShare> {
        let share = self.served(share)?;
        self.check_is_source(&share)?;
        asked(&share, |_, _| Ok(()))?;
        let was_replica = self.state.replication_of(share.name()).map_err(failed)?;
        let was_destination = was_replica.map(|record| written(record.id));
        Ok(SourceShare { share: share.name().to_owned(), version: replica_wire::VERSION, was_destination })
    }

    /// A replica shows states of its source only, of which nobody may take snapshots.
    fn check_is_source(&self, share: &Arc<Share>) -> Result<()> {
        let known = self.state.replication_of(share.name()).map_err(failed)?;
        if known.is_some_and(|record| !record.broken) {
            let what = format!("the share {} is a replica itself", share.name());
            return Err(Refusal::new(
                RefusalKind::InUse,
                what,
                "Replicate the share that it is a replica of.",
            ));
        }
        Ok(())
    }

    /// Takes the snapshot that a destination is to have, or goes on with the one that it is about to have.
    pub(super) fn enter_transfer(&self, share: &str, new: &NewTransfer) -> Result<Transfer> {
        let id = read_id(&new.destination)?;
        let _turn = self.turn_of(share)?;
        let (share, directory) = self.served_with_directory(share)?;
        self.check_is_source(&share)?;
        let kept = self.state.destinations_of(share.name()).map_err(failed)?;
        let mut kept = kept.filter(|kept| kept.directory == directory).unwrap_or_else(|| {
            let (share, directory) = (share.name().to_owned(), directory.clone());
            DestinationsRecord { share, directory, destinations: Vec::new() }
        });
        let listed = asked(&share, |snapshots, may| snapshots.list(may))?;
        let at = enter(&mut kept, id, share.name())?;
        let Some(destination) = kept.destinations.get_mut(at) else {
            return Err(no_destination(share.name()));
        };
        use_completed(destination, new, &listed);
        destination.seen = now().secs_since_1970();
        let pending = listed.into_iter().find(|one| one.name == destination.pending);
        let snapshot = match pending {
            Some(pending) => pending,
            None => {
                let taken = take(&share, id)?;
                destination.pending.clone_from(&taken.name);
                taken
            }
        };
        let (completed, pending) = (destination.completed.clone(), destination.pending.clone());
        self.state.keep_destinations(&kept).map_err(failed)?;
        self.remove_others(&share, &directory, id, &[&completed, &pending])?;
        tracing::debug!(
            share = share.name(),
            destination = written(id),
            snapshot = snapshot.name,
            "a transfer begins"
        );
        Ok(Transfer {
            snapshot: snapshot.name,
            taken: snapshot.taken.secs,
            from: Some(completed).filter(|completed| !completed.is_empty()),
        })
    }

    /// Removes the snapshots of a destination other than these. What is protected, or being restored from, is removed the next time.
    fn remove_others(&self, share: &Arc<Share>, directory: &Path, id: u64, needed: &[&str]) -> Result<()> {
        let kept = Kept::of(&self.state, share.name(), directory, now()).map_err(failed)?;
        let label = label(id);
        for one in asked(share, |snapshots, may| snapshots.list(may))? {
            let is_of_it = SnapshotName::parse(&one.name).is_some_and(|name| name.label() == label);
            let is_needed = needed.contains(&one.name.as_str()) || kept.contains(&one);
            if one.is_own && is_of_it && !is_needed {
                asked(share, move |snapshots, may| snapshots.remove(one.id, may))?;
                kept.forget(&self.state, &one);
            }
        }
        Ok(())
    }

    /// The snapshots of a share, and what a destination has and is about to have.
    fn transfer_of(&self, share: &str, id: &str) -> Result<(Arc<dyn Snapshots>, DestinationRecord)> {
        let id = read_id(id)?;
        let (share, directory) = self.served_with_directory(share)?;
        let known = self.state.destinations_of(share.name()).map_err(failed)?;
        let known = known.filter(|known| known.directory == directory).unwrap_or_default();
        let destination = known.destinations.into_iter().find(|one| one.id == id && !one.pending.is_empty());
        let destination = destination.ok_or_else(|| no_destination(share.name()))?;
        let snapshots = share.snapshot_provider();
        let why = |why: storage::NoSnapshots| Refusal::new(RefusalKind::NoSnapshots, why.to_string(), "");
        Ok((snapshots.map_err(why)?, destination))
    }

    pub(super) fn changes_for(&self, share: &str, id: &str) -> Result<Contents> {
        let (snapshots, destination) = self.transfer_of(share, id)?;
        Ok(contents(self.replications.walks.begin(destination.id), move |may, say| {
            changes(&compared(&snapshots, &destination, may)?.where_touched(may, say)?, may, say)
        }))
    }

    pub(super) fn objects_for(&self, share: &str, id: &str, wanted: &[u8]) -> Result<Contents> {
        let (snapshots, destination) = self.transfer_of(share, id)?;
        let wanted = Wanted::decode(wanted);
        let wanted = wanted.map_err(|e| invalid(format!("what is asked for: {e}"), ""))?;
        Ok(contents(self.replications.walks.begin(destination.id), move |may, say| {
            write_objects(&compared(&snapshots, &destination, may)?, &wanted, may, say)
        }))
    }
}

/// What a destination has, and what it is about to have.
fn compared(
    snapshots: &Arc<dyn Snapshots>,
    destination: &DestinationRecord,
    may: MayWait<'_>,
) -> storage::Result<Compared> {
    let listed = snapshots.list(may)?;
    let moment = |name: &str| {
        let found = listed.iter().find(|one| one.name == name)?;
        Some((found.id, not_before(&listed, found.id)))
    };
    let later = moment(&destination.pending).ok_or(Error::NotFound)?;
    Compared::open(snapshots, moment(&destination.completed), later, may)
}

/// Contents that are made on a thread of their own, until nobody reads them any more.
fn contents(
    walk: Walk,
    make: impl FnOnce(MayWait<'_>, &mut dyn FnMut(&Record) -> replica::Result<()>) -> replica::Result<()>
    + Send
    + 'static,
) -> Contents {
    Box::new(move |out| {
        let spawned = StoreThread::spawn("replica-source", move |thread| {
            let (mut out, mut bytes, mut sent) = (out, Vec::new(), Instant::now());
            let mut say = |record: &Record| {
                if walk.is_ended() {
                    return Err(Failure::Stopped);
                }
                let is_alive = *record == Record::Alive;
                if is_alive && sent.elapsed() < ALIVE_EVERY {
                    return Ok(());
                }
                bytes.clear();
                record.encode_into(&mut bytes);
                let mut said = out.write_all(&bytes);
                if is_alive {
                    sent = Instant::now();
                    said = said.and_then(|()| out.flush());
                }
                said.map_err(|e| Failure::Source(format!("the replica does not listen: {e}")))
            };
            let made = make(thread.may_wait(View::FRESH), &mut say);
            if let Err(why) = made {
                tracing::warn!("what a replica has asked for: {why}");
                // Who asks may be gone.
                let _ = say(&Record::Failed(why.to_string()));
            }
            let _ = out.flush();
        });
        if let Err(e) = spawned {
            tracing::error!("cannot start a thread: {e}");
        }
    })
}

/// Takes a snapshot for a destination, if what is in it can be asked for by its handle.
fn take(share: &Arc<Share>, id: u64) -> Result<Snapshot> {
    let label = label(id);
    let taken = asked(share, move |snapshots, may| {
        let taken = snapshots.take(&label, may)?;
        let last = handles_last(snapshots, taken.id, may);
        if last != Ok(true) {
            snapshots.remove(taken.id, may)?;
        }
        last.map(|last| last.then_some(taken))
    })?;
    taken.ok_or_else(|| {
        let what = format!(
            "the share {} cannot be replicated: its server may not open files by filehandle",
            share.name()
        );
        let advice = "The server of the source needs CAP_DAC_READ_SEARCH (docs/service.md).";
        Refusal::new(RefusalKind::NoSnapshots, what, advice)
    })
}

/// Whether what has a handle in a snapshot is found by it when the snapshot is opened anew, as for each question of a destination.
fn handles_last(snapshots: &dyn Snapshots, id: SnapshotId, may: MayWait<'_>) -> storage::Result<bool> {
    let root = snapshots.open(id, may)?.root();
    // The root is found in any case.
    let mut handle = root.handle();
    root.survey(may, &mut |entry| {
        let found = Name::new(entry.name).and_then(|name| root.lookup(name, Wait::May(may)));
        let Ok(found) = found else { return ControlFlow::Continue(()) };
        handle = found.handle();
        ControlFlow::Break(())
    })?;
    let Ok(handle) = handle else { return Ok(false) };
    match snapshots.open(id, may)?.by_handle(&handle, Wait::May(may)) {
        Ok(_) => Ok(true),
        Err(Error::Io(code)) => Err(Error::Io(code)),
        Err(_) => Ok(false),
    }
}

/// The place of a destination among the others.
fn enter(kept: &mut DestinationsRecord, id: u64, share: &str) -> Result<usize> {
    if let Some(at) = kept.destinations.iter().position(|one| one.id == id) {
        return Ok(at);
    }
    if kept.destinations.len() >= DESTINATIONS_MAX {
        let what = format!("the share {share} has {DESTINATIONS_MAX} destinations, and can have no more");
        let advice = "Forget one that is gone: anabranch share replicate NAME --forget DESTINATION";
        return Err(Refusal::new(RefusalKind::TooMany, what, advice));
    }
    kept.destinations.push(DestinationRecord { id, ..DestinationRecord::default() });
    Ok(kept.destinations.len() - 1)
}

pub(super) fn is_lost(destination: &DestinationRecord, now: u64) -> bool {
    destination.seen.saturating_add(LOST_SECS) < now
}

/// Notes what a destination says that it has, as far as that is still there. If it may have a part of something else than what it is
/// about to have here, it counts as having nothing: what it has moved already would not be said again.
fn use_completed(destination: &mut DestinationRecord, said: &NewTransfer, listed: &[Snapshot]) {
    let is_there = |name: &str| listed.iter().any(|one| one.name == name);
    let known = [&destination.completed, &destination.pending];
    let completed = said.completed.as_ref().filter(|name| known.contains(name) && is_there(name));
    let completed = completed.cloned().unwrap_or_default();
    let has_part_of = said.pending.as_deref().unwrap_or_default();
    if destination.pending == completed {
        destination.pending.clear();
    }
    let is_lost = !destination.pending.is_empty() && !is_there(&destination.pending);
    let has_other_part = !has_part_of.is_empty() && has_part_of != destination.pending;
    destination.completed = if is_lost || has_other_part { String::new() } else { completed };
    if is_lost {
        destination.pending.clear();
    }
}

/// The label of the snapshots that are kept for a destination.
fn label(id: u64) -> String {
    format!("{LABEL}-{}", written(id))
}

fn read_id(id: &str) -> Result<u64> {
    read(id).ok_or_else(|| invalid(format!("{id:?} is no destination"), "It has 16 hexadecimal digits."))
}

fn no_destination(share: &str) -> Refusal {
    let what = format!("the share {share} has no such destination, or it has begun no transfer");
    Refusal::new(RefusalKind::NotFound, what, "")
}

fn tell(record: &DestinationRecord) -> Destination {
    let there = |name: &String| Some(name.clone()).filter(|name| !name.is_empty());
    Destination {
        id: written(record.id),
        completed: there(&record.completed),
        pending: there(&record.pending),
        seen: record.seen,
    }
}

#[cfg(test)]
mod tests {
    use storage::conformance::MAY;
    use storage::memory::MemoryStore;
    use storage::{NewKind, NewNode, Storage as _};

    use super::*;

    fn snapshot(name: &str) -> Snapshot {
        let taken = storage::Timestamp::default();
        Snapshot { id: SnapshotId(1), name: name.to_owned(), taken, is_own: true, uuid: None }
    }

    #[test]
    fn what_a_destination_has_is_what_it_says_and_what_is_there() {
        let known = |completed: &str, pending: &str| DestinationRecord {
            completed: completed.to_owned(),
            pending: pending.to_owned(),
            ..DestinationRecord::default()
        };
        let listed = [snapshot("a"), snapshot("b")];
        let says = |record: DestinationRecord, completed: Option<&str>, pending: Option<&str>| {
            let mut record = record;
            let (completed, pending) = (completed.map(str::to_owned), pending.map(str::to_owned));
            let said = NewTransfer { completed, pending, ..NewTransfer::default() };
            use_completed(&mut record, &said, &listed);
            (record.completed, record.pending)
        };
        let after = |record: DestinationRecord, completed: Option<&str>| says(record, completed, None);
        let pair = |one: &str, other: &str| (one.to_owned(), other.to_owned());
        assert_eq!(after(known("a", "b"), Some("b")), pair("b", ""), "it has completed it");
        assert_eq!(after(known("a", "b"), Some("a")), pair("a", "b"), "it goes on");
        assert_eq!(after(known("a", "gone"), Some("a")), pair("", ""), "it may have a part of what is gone");
        assert_eq!(after(known("", "gone"), None), pair("", ""));
        assert_eq!(says(known("a", "b"), Some("a"), Some("b")), pair("a", "b"), "it has a part, and goes on");
        // The source's state is older than its snapshots.
        assert_eq!(
            says(known("a", "b"), Some("b"), Some("later")),
            pair("", ""),
            "it has a part of a later one"
        );
        assert_eq!(says(known("a", "a"), Some("a"), Some("later")), pair("", ""));
        assert_eq!(says(known("a", ""), Some("a"), Some("gone")), pair("", ""));
        assert_eq!(after(known("gone", "b"), Some("gone")), pair("", "b"), "it begins anew");
        assert_eq!(after(known("a", ""), None), pair("", ""), "it is empty again");
        assert_eq!(after(known("a", ""), Some("b")), pair("", ""), "it was never sent that");
    }

    #[test]
    fn handles_of_a_store_in_memory_last() {
        let store = MemoryStore::new();
        let snapshots = store.snapshots().unwrap();
        let new = NewNode { kind: NewKind::Regular, mode: 0o600, uid: 0, gid: 0 };
        let empty = snapshots.take("a", MAY).unwrap().id;
        store.root().create(Name::new(b"file").unwrap(), &new, MAY).unwrap();
        let other = snapshots.take("a", MAY).unwrap().id;
        assert_eq!(handles_last(&*snapshots, empty, MAY), Ok(true));
        assert_eq!(handles_last(&*snapshots, other, MAY), Ok(true));
    }

    #[test]
    fn a_destination_is_lost_after_a_day() {
        let seen = |seen| DestinationRecord { seen, ..DestinationRecord::default() };
        assert!(!is_lost(&seen(1000), 1000 + LOST_SECS) && is_lost(&seen(1000), 1001 + LOST_SECS));
        assert!(!is_lost(&seen(u64::MAX), 1000));
    }

    #[test]
    fn a_share_has_two_destinations_at_most() {
        let mut kept = DestinationsRecord::default();
        assert_eq!((enter(&mut kept, 1, "a"), enter(&mut kept, 2, "a")), (Ok(0), Ok(1)));
        assert_eq!(enter(&mut kept, 1, "a"), Ok(0));
        assert_eq!(enter(&mut kept, 3, "a").map_err(|refusal| refusal.kind), Err(RefusalKind::TooMany));
    }
}
