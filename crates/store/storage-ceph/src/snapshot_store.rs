//! A snapshot as a store.

use std::ffi::CStr;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::io::Errno;
use siphasher::sip::SipHasher24;
use storage::{Capabilities, Error, Handle, MayWait, NodeRef, Result, Space, Storage, Wait};

use crate::errno::from_errno;
use crate::inode::Inode;
use crate::snapshot_places::SnapshotPlaces;
use crate::snapshots::TAKEN;
use crate::store::{CephStore, Shared, Terms};

/// How many nodes of a snapshot stay cached: many may be open at a time.
const NODES_MAX: usize = 1024;
/// How long it is believed that a snapshot is there, for names and attributes.
const BELIEVED: Duration = Duration::from_millis(100);

/// Where a snapshot is.
pub(crate) struct OfSnapshot {
    /// Its top directory.
    top: Inode,
    pub(crate) places: SnapshotPlaces,
    /// Guards when the snapshot was last known to be there.
    was_there: Mutex<Option<Instant>>,
}

impl OfSnapshot {
    /// The same as [`OfSnapshot::check`], of a moment ago, if it was asked then.
    pub(crate) fn check_lately(&self) -> Result<()> {
        let was_there = *self.was_there.lock();
        if was_there.is_some_and(|at| at.elapsed() < BELIEVED) { Ok(()) } else { self.check() }
    }

    /// Fails if the snapshot is not there any more.
    pub(crate) fn check(&self) -> Result<()> {
        let asked = Instant::now();
        // Names are found in the library's memory. For this attribute it always asks the metadata server, by the snapshot's name.
        match self.top.xattr(TAKEN) {
            Ok(_) | Err(Errno::NODATA) => {
                *self.was_there.lock() = Some(asked);
                Ok(())
            }
            Err(Errno::NOENT | Errno::STALE) => Err(Error::Stale),
            Err(errno) => Err(from_errno(errno)),
        }
    }
}

/// A store that never changes: there is nothing to observe, and nothing to take a snapshot of.
pub(crate) struct SnapshotStore(CephStore);

impl SnapshotStore {
    /// Opens a snapshot of the root of a store: the one with this number and this name in the directory of snapshots. Its handles have
    /// a key of their own, which is made of that store's: so that store's handles are none of the snapshot.
    ///
    /// # Errors
    /// [`Error::NotFound`] if another one has the name now, or none; those of the cluster.
    pub(crate) fn open(of: &Shared, folder: &Inode, name: &CStr, number: u64) -> Result<Self> {
        let find = || match folder.lookup(name).map_err(from_errno)? {
            (top, stat) if stat.device == number => Ok((top, stat)),
            _ => Err(Error::NotFound),
        };
        let ((top, _), (inode, _), root) = (find()?, find()?, find()?);
        let terms = Terms {
            nodes_max: NODES_MAX,
            handle_key: key_for(&of.handle_key, number),
            reserved: of.reserved.clone(),
            is_certain: of.data.is_certain.load(Ordering::Acquire),
            snapshot: Some(OfSnapshot {
                top,
                places: SnapshotPlaces::default(),
                was_there: Mutex::default(),
            }),
        };
        CephStore::on(inode, root, terms, Vec::new(), None).map(Self)
    }
}

/// The key for handles of a snapshot. What is hashed is longer than what the checksum of a handle covers.
fn key_for(key: &SipHasher24, snapshot: u64) -> SipHasher24 {
    let half = |number: u8| key.hash(&[&b"snapshot"[..], &snapshot.to_le_bytes(), &[number]].concat());
    SipHasher24::new_with_keys(half(0), half(1))
}

impl Storage for SnapshotStore {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities() - Capabilities::WRITE
    }

    fn root(&self) -> NodeRef {
        self.0.root()
    }

    fn by_handle(&self, handle: &Handle, wait: Wait<'_>) -> Result<NodeRef> {
        self.0.by_handle(handle, wait)
    }

    fn space(&self, may: MayWait<'_>) -> Result<Space> {
        self.0.space(may)
    }
}
