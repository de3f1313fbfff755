//! One transfer to a replica: it becomes like a snapshot of the source, and clients see that when it is complete.
//!
//! Everything that is remembered is in the state database: which snapshot clients see, and which one of the source that is. A server that
//! is killed anywhere shows that snapshot again, and the next transfer goes on from whatever the store has become.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use control::replications::{NewTransfer, Transfer};
use replica::{Convergence, Failure, Progress, Records, Shown, Source, Takes};
use replica_wire::Wanted;
use share::Share;
use state::{ReplicationRecord, State};
use storage::{Error, MayWait, SnapshotName, Snapshots, StoreThread, View};

use super::received::{Received, Slowed};
use super::remote::{NO_SOURCE, Patience, Remote, Unanswered, json_call, legible};
use super::{LABEL, Mirrors, Place, written};
use crate::control_access::Access;
use crate::snapshots::{Kept, Snapshotting, now};

/// The label of the snapshots of a replica that clients see.
pub(crate) const OWN_LABEL: &str = LABEL;

/// How long the source may be silent while it says what is different, or what objects consist of.
const STREAM_SILENCE: Duration = Duration::from_secs(600);
/// How long it may take for a snapshot.
const SNAPSHOT_SILENCE: Duration = Duration::from_secs(120);

/// Why a transfer has not come to its end.
#[derive(Debug)]
pub(super) enum Ended {
    Stopped,
    Failed(String),
}

/// One transfer.
pub(super) struct Run<'a> {
    pub(super) state: &'a State,
    pub(super) snapshotting: &'a Snapshotting,
    pub(super) remote: &'a dyn Remote,
    pub(super) mirrors: &'a Mirrors,
    pub(super) shown: &'a Arc<Shown>,
    /// The share, which ends without waiting for the transfer.
    pub(super) share: &'a Weak<Share>,
    pub(super) record: ReplicationRecord,
    pub(super) takes: Takes,
    pub(super) progress: &'a Arc<Progress>,
}

impl Run<'_> {
    /// Carries it out. Returns what is remembered then.
    pub(super) fn carry_out(self, thread: &StoreThread) -> Result<ReplicationRecord, Ended> {
        let progress = Arc::clone(self.progress);
        // Whatever fails because it is to stop has not failed.
        self.bring_up_to_date(thread).map_err(|why| match why {
            Ended::Failed(why) if !progress.is_stopped() => Ended::Failed(legible(&why)),
            _ => Ended::Stopped,
        })
    }

    fn bring_up_to_date(mut self, thread: &StoreThread) -> Result<ReplicationRecord, Ended> {
        let may = thread.may_wait(View::FRESH);
        let place = Place::parse(&self.record.from).map_err(Ended::Failed)?;
        let access = place.access(&self.record.token, &self.record.certificate).map_err(Ended::Failed)?;
        let path = format!("/v1/replication/{}/transfers", path_part(&place.share));
        let transfer = self.begin(&access, &path)?;
        // From here on, the store may be like neither: the source has to know from which states it can go on.
        self.record.toward.clone_from(&transfer.snapshot);
        self.state.keep_replication(&self.record).map_err(|e| Ended::Failed(e.what))?;
        let of_this = format!("{path}/{}", written(self.record.id));
        let changes = self.changes(&access, &of_this)?;
        let mut source = Far {
            remote: self.remote,
            access: &access,
            path: format!("{of_this}/objects"),
            bandwidth: self.record.bandwidth,
            patience: self.patience(STREAM_SILENCE),
        };
        let convergence = Convergence {
            store: self.shown.live(),
            replication: self.record.id,
            adopts: self.record.of.is_empty(),
            takes: self.takes,
            progress: self.progress,
            may,
        };
        convergence.run(&mut Received::new(changes), &mut source).map_err(failed)?;
        self.complete(&transfer, may)?;
        Ok(self.record)
    }

    fn begin(&self, access: &Access, path: &str) -> Result<Transfer, Ended> {
        let there = |name: &String| Some(name.clone()).filter(|name| !name.is_empty());
        let new = NewTransfer {
            destination: written(self.record.id),
            completed: there(&self.record.of),
            pending: there(&self.record.toward),
        };
        let patience = self.patience(SNAPSHOT_SILENCE);
        json_call(self.remote, access, ("POST", path), Some(&new), &patience).map_err(unanswered)
    }

    fn patience(&self, silence: Duration) -> Patience {
        let progress = Arc::clone(self.progress);
        Patience::until(silence, move || progress.is_stopped())
    }

    /// What is different at the source: all of it before anything is done, so that the source need not wait.
    fn changes(&self, access: &Access, path: &str) -> Result<File, Ended> {
        let (path, patience) = (format!("{path}/changes"), self.patience(STREAM_SILENCE));
        let answer = self.remote.call(access, ("GET", &path), &[], &patience).map_err(unanswered)?;
        let mut file = unnamed(self.state.directory()).map_err(|e| cannot_keep(&e))?;
        let mut answer =
            Stopping { from: Slowed::new(answer, self.record.bandwidth), progress: self.progress };
        io::copy(&mut answer, &mut file).map_err(|e| cannot_keep(&e))?;
        if self.progress.is_stopped() {
            return Err(Ended::Stopped);
        }
        file.seek(SeekFrom::Start(0)).map_err(|e| cannot_keep(&e))?;
        Ok(file)
    }

    /// Clients see what there is now.
    fn complete(&mut self, transfer: &Transfer, may: MayWait<'_>) -> Result<(), Ended> {
        let snapshots = self.shown.live().snapshots().map_err(|why| Ended::Failed(why.to_string()))?;
        let turn = self.snapshotting.turn(&*snapshots).map_err(|refusal| Ended::Failed(refusal.what))?;
        if !self.mirrors.shows(&self.record.share, self.shown) {
            return Err(Ended::Failed("the share was changed meanwhile".to_owned()));
        }
        let taken = snapshots.take(OWN_LABEL, may).map_err(|e| failed(e.into()))?;
        let before = std::mem::replace(&mut self.record.shown, taken.name);
        self.record.of.clone_from(&transfer.snapshot);
        self.record.of_taken = transfer.taken;
        self.record.toward.clear();
        self.record.transfers += 1;
        self.record.resync = false;
        self.state.keep_replication(&self.record).map_err(|e| Ended::Failed(e.what))?;
        self.shown.show(taken.id, may).map_err(|e| failed(e.into()))?;
        self.remove_others(&*snapshots, &before, may);
        if let Some(share) = self.share.upgrade() {
            share.forget_listed_snapshots();
        }
        drop(turn);
        Ok(())
    }

    /// Removes the snapshots of earlier transfers but the last, which clients may be reading, and of those that were interrupted. What
    /// cannot be removed now is removed the next time.
    fn remove_others(&self, snapshots: &dyn Snapshots, before: &str, may: MayWait<'_>) {
        let ReplicationRecord { share, directory, shown, .. } = &self.record;
        let kept = Kept::of(self.state, share, directory, now());
        let kept = kept.inspect_err(|e| tracing::error!("the snapshots of {share}: {}", e.what));
        let (Ok(kept), Ok(listed)) = (kept, snapshots.list(may)) else { return };
        for other in listed {
            let is_of_transfers =
                SnapshotName::parse(&other.name).is_some_and(|name| name.label() == OWN_LABEL);
            let is_needed = other.name == *shown || other.name == before || kept.contains(&other);
            if !other.is_own || !is_of_transfers || is_needed {
                continue;
            }
            match snapshots.remove(other.id, may) {
                Ok(()) => kept.forget(self.state, &other),
                Err(e) => tracing::warn!("the snapshot {} is not removed: {e}", other.name),
            }
        }
    }
}

/// The source, which is asked over the network.
struct Far<'a> {
    remote: &'a dyn Remote,
    access: &'a Access,
    path: String,
    bandwidth: Option<u64>,
    patience: Patience,
}

impl Source for Far<'_> {
    fn objects(&mut self, wanted: &Wanted) -> replica::Result<Box<dyn Records + '_>> {
        let of = ("POST", self.path.as_str());
        let answer = self.remote.call(self.access, of, &wanted.encode(), &self.patience);
        let answer = answer.map_err(|why| Failure::Source(words(&why)))?;
        Ok(Box::new(Received::new(Slowed::new(answer, self.bandwidth))))
    }
}

/// Ends when the transfer is to stop.
struct Stopping<'a, R> {
    from: R,
    progress: &'a Progress,
}

impl<R: io::Read> io::Read for Stopping<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.progress.is_stopped() { Ok(0) } else { self.from.read(into) }
    }
}

/// A file without a name, which ends with the server.
fn unnamed(directory: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags, open};
    let file = open(directory, OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR);
    match file {
        Ok(file) => Ok(File::from(file)),
        // The file system has none.
        Err(_) => {
            let at = directory.join("replica-changes");
            let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&at)?;
            std::fs::remove_file(&at)?;
            Ok(file)
        }
    }
}

/// The snapshot with this name, and its number.
pub(crate) fn open_snapshot(
    snapshots: &Arc<dyn Snapshots>,
    name: &str,
    may: MayWait<'_>,
) -> storage::Result<storage::Snapshot> {
    snapshots.list(may)?.into_iter().find(|one| one.name == name).ok_or(Error::NotFound)
}

fn cannot_keep(e: &io::Error) -> Ended {
    Ended::Failed(format!("what is different at the source cannot be kept in the state directory: {e}"))
}

fn unanswered(why: Unanswered) -> Ended {
    Ended::Failed(words(&why))
}

fn words(why: &Unanswered) -> String {
    match why.code.as_str() {
        "scope" => format!(
            "the source refuses: {} Make one there: anabranch token create NAME --scope replicate",
            sentence(&why.what)
        ),
        "" | NO_SOURCE => why.what.clone(),
        _ => format!("the source refuses: {}", why.what),
    }
}

fn sentence(what: &str) -> String {
    format!("{}.", what.trim_end_matches('.'))
}

fn failed(failure: Failure) -> Ended {
    match failure {
        Failure::Stopped => Ended::Stopped,
        Failure::Store { error: Error::NoSpace, .. } => Ended::Failed(
            "the file system of the replica is full; clients see what was complete before".to_owned(),
        ),
        failure => Ended::Failed(failure.to_string()),
    }
}

/// A name as a part of a path. RFC 3986 2.3: "unreserved characters" stand for themselves.
pub(crate) fn path_part(name: &str) -> String {
    let mut part = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            part.push(char::from(byte));
        } else {
            part.push_str(&format!("%{byte:02X}"));
        }
    }
    part
}
