//! The store: a directory and what is known about its file system.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::fs::{Mode, OFlags, fstat, fstatvfs, open, syncfs};
use rustix::io::Errno;
use siphasher::sip::SipHasher24;
use storage::{
    Capabilities, Device, Error, Feed, Handle, MayWait, NoSnapshots, NodeCache, NodeRef, ObjectId, Observer,
    Result, Snapshots, Space, Storage, Wait,
};

use crate::attributes::{device_of, stat};
use crate::below::Moves;
use crate::depot::Depot;
use crate::errno::from_errno;
use crate::feed::LocalFeed;
use crate::handle::Handles;
use crate::handle_records::{HandleKey, HandleRecords, RecordsInMemory};
use crate::index::Index;
use crate::node::LocalNode;
use crate::observe::LocalObserver;
use crate::other_file_systems::Told;
use crate::reserved::Reserved;
use crate::revert::recover;
use crate::snapshots::{LocalSnapshots, can_have_snapshots};
use crate::{limits, probe};

/// How often unused nodes are dropped.
const SWEEP: Duration = Duration::from_secs(5);

/// How to open a store.
#[derive(Debug, Clone)]
pub struct LocalOptions {
    /// Where the store keeps what makes handles valid after a restart of the server. Each store needs records of its own.
    /// Without them, handles are valid only as long as the store value lives.
    pub handle_records: Option<Arc<dyn HandleRecords>>,
    /// How many nodes stay cached; None: half of the descriptors that the process may have.
    pub nodes_max: Option<usize>,
    /// Whether to use the file system's own handles, where the server may.
    pub native_handles: bool,
    /// Names that clients cannot look up, list or create, in any case, besides those that are known to have a special
    /// meaning to the file system (`.snap` of CephFS, `.zfs` of ZFS).
    pub reserved_names: Vec<String>,
}

impl Default for LocalOptions {
    fn default() -> Self {
        Self { handle_records: None, nodes_max: None, native_handles: true, reserved_names: Vec::new() }
    }
}

/// A store on a directory of this machine.
#[derive(Debug)]
pub struct LocalStore {
    shared: Arc<Shared>,
    root: Arc<LocalNode>,
    /// The path by which the store was opened.
    path: PathBuf,
    /// The thread that lets go of unused nodes.
    sweeper: Option<JoinHandle<()>>,
    /// The thread that looks through the depot once. None: nothing changes here.
    depot_sweep: Option<JoinHandle<()>>,
}

/// What may be done in a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Whatever the file system permits.
    Full,
    /// Nothing changes: the root is a snapshot.
    ReadOnly,
}

/// What the nodes of a store share.
pub(crate) struct Shared {
    /// The root, opened as a directory. Handles are looked up on its file system.
    pub(crate) root: OwnedFd,
    pub(crate) root_id: ObjectId,
    pub(crate) device: Device,
    /// `/proc/self/fd`, where a descriptor's number leads to its object.
    pub(crate) descriptors: OwnedFd,
    pub(crate) capabilities: Capabilities,
    /// The attribute that holds security descriptors.
    pub(crate) descriptor_xattr: &'static str,
    /// Whether data is in memory, so that nothing waits for a device.
    pub(crate) is_in_memory: bool,
    /// Sends descriptors to the thread that closes them; None where closing is quick ([`Capabilities::LOCAL`]).
    pub(crate) closer: Option<mpsc::Sender<OwnedFd>>,
    /// Whether the file system supports RWF_NOWAIT, as far as known.
    pub(crate) reads_nowait: AtomicBool,
    pub(crate) writes_nowait: AtomicBool,
    pub(crate) handles: Handles,
    pub(crate) cache: NodeCache<LocalNode>,
    /// Counts moves of directories.
    pub(crate) moves: Moves,
    /// Where named streams are stored; None where the file system cannot have any.
    pub(crate) depot: Option<Depot>,
    /// Names that do not exist for clients.
    pub(crate) reserved: Reserved,
    /// The file systems below the root of which the log has a line.
    pub(crate) told: Told,
    /// Whether the root can have snapshots.
    pub(crate) can_have_snapshots: std::result::Result<(), NoSnapshots>,
    /// Held while a snapshot is taken, removed or reverted to: each has a second of its own. It guards no data.
    pub(crate) taking_snapshots: Mutex<()>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("root", &self.root).field("capabilities", &self.capabilities).finish()
    }
}

impl LocalStore {
    /// Opens the directory `path` as a store.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::NotDirectory`], [`Error::PermissionDenied`];
    /// [`Error::NotSupported`] without `/proc`, or if reserved names are missing ([`lacks_reserved_names`]).
    pub fn open(path: &Path, options: LocalOptions) -> Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = open(path, flags, Mode::empty()).map_err(from_errno)?;
        if can_have_snapshots(&root, &stat(&root)?).is_ok() {
            recover(&root)?;
        }
        Self::on(root, path.to_owned(), options, Access::Full)
    }

    /// Opens a directory that is open already, and has this path.
    pub(crate) fn on(root: OwnedFd, path: PathBuf, options: LocalOptions, access: Access) -> Result<Self> {
        let descriptors =
            open(c"/proc/self/fd", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
        let descriptors = descriptors.map_err(|_| Error::NotSupported)?;
        let stat = stat(&root)?;
        let is_in_memory = probe::is_in_memory(&root)?;
        let mut capabilities = probe::capabilities(&root, is_in_memory)?;
        if access == Access::ReadOnly {
            capabilities.remove(Capabilities::WRITE);
        }
        let native = options.native_handles && probe::has_native_handles(&root);
        capabilities.set(Capabilities::NATIVE_HANDLES, native);
        let depot = Depot::open(&root, &stat, capabilities)?;
        capabilities.set(Capabilities::STREAMS, depot.is_some());
        let shared = Arc::new(Shared {
            handles: if native {
                Handles::Native(SipHasher24::new_with_key(&key(options.handle_records.as_deref())?))
            } else {
                Handles::Index(Index::new(options.handle_records.unwrap_or_else(in_memory)))
            },
            root_id: ObjectId::live(stat.stx_ino),
            device: device_of(&stat),
            reads_nowait: AtomicBool::new(capabilities.contains(Capabilities::READ_NEVER)),
            writes_nowait: AtomicBool::new(capabilities.contains(Capabilities::WRITE_NEVER)),
            cache: NodeCache::new(options.nodes_max.unwrap_or_else(limits::nodes_max)),
            moves: Moves::default(),
            depot,
            reserved: Reserved::of(&root, &options.reserved_names)?,
            descriptor_xattr: probe::descriptor_xattr(&root),
            told: Told::default(),
            can_have_snapshots: can_have_snapshots(&root, &stat),
            taking_snapshots: Mutex::new(()),
            root,
            descriptors,
            closer: (!capabilities.contains(Capabilities::LOCAL)).then(start_closer).transpose()?,
            capabilities,
            is_in_memory,
        });
        let root = shared.root_node()?;
        let mut store = Self { shared, root, path, sweeper: None, depot_sweep: None };
        store.sweeper = Some(start_sweeper(Arc::downgrade(&store.shared))?);
        if capabilities.contains(Capabilities::WRITE) {
            store.depot_sweep = Some(start_depot_sweep(&store.shared)?);
        }
        Ok(store)
    }

    /// Whether the look through the depot of streams is over with which a store begins. Until then, it may give objects that local programs
    /// have changed their numbers back.
    #[must_use]
    pub fn has_looked_through_depot(&self) -> bool {
        self.depot_sweep.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for LocalStore {
    fn drop(&mut self) {
        // Nodes refer to what they share, and the cache refers to nodes.
        self.shared.cache.close();
        self.shared.handles.flush();
        for sweeper in self.sweeper.take().into_iter().chain(self.depot_sweep.take()) {
            sweeper.thread().unpark();
            // A sweeper must not keep the database open any longer. If the file system may stop answering, the sweeper
            // is not waited for.
            if self.shared.closer.is_none() && sweeper.join().is_err() {
                tracing::error!("a thread that sweeps a store has failed");
            }
        }
    }
}

/// How far a call may reach. Whoever calls this store has shown a token for the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Only what is in memory.
    Memory,
    /// As far as the device, however long that takes.
    Device,
}

impl From<Wait<'_>> for Reach {
    fn from(wait: Wait<'_>) -> Self {
        if wait.is_never() { Self::Memory } else { Self::Device }
    }
}

impl Shared {
    /// Fails if a call must not wait but might: any call on a file system that may stop answering.
    pub(crate) fn check_at_hand(&self, reach: Reach) -> Result<()> {
        if reach == Reach::Memory && self.closer.is_some() { Err(Error::WouldBlock) } else { Ok(()) }
    }

    /// The node of the root. It stays cached as long as the store lives.
    pub(crate) fn root_node(self: &Arc<Self>) -> Result<Arc<LocalNode>> {
        if let Some(node) = self.cache.get(self.root_id) {
            return Ok(node);
        }
        self.adopt(self.root.try_clone().map_err(|_| Error::OutOfResources)?, false)
    }
}

impl Storage for LocalStore {
    fn capabilities(&self) -> Capabilities {
        self.shared.capabilities
    }

    fn root(&self) -> NodeRef {
        Arc::<LocalNode>::clone(&self.root)
    }

    fn by_handle(&self, handle: &Handle, wait: Wait<'_>) -> Result<NodeRef> {
        Ok(self.shared.find_by_handle(handle, wait.into())?)
    }

    fn observer(&self) -> Result<Arc<dyn Observer>> {
        Ok(Arc::new(LocalObserver::new(&self.shared)?))
    }

    fn feed(&self) -> Result<Arc<dyn Feed>> {
        if !probe::is_changed_here_only(&self.shared.root)? {
            return Err(Error::NotSupported);
        }
        Ok(Arc::new(LocalFeed::new(&self.shared)?))
    }

    fn snapshots(&self) -> std::result::Result<Arc<dyn Snapshots>, NoSnapshots> {
        self.shared
            .can_have_snapshots
            .map(|()| Arc::new(LocalSnapshots::of(&self.shared)) as Arc<dyn Snapshots>)
    }

    fn is_read_only(&self, _: MayWait<'_>) -> Result<bool> {
        probe::is_read_only(&self.shared.root)
    }

    fn sync(&self, _: MayWait<'_>) -> Result<()> {
        syncfs(&self.shared.root).map_err(from_errno)
    }

    fn is_in_place(&self, _: MayWait<'_>) -> Result<bool> {
        let served = fstat(&self.shared.root).map_err(from_errno)?;
        match rustix::fs::stat(&self.path) {
            Ok(found) => Ok((found.st_dev, found.st_ino) == (served.st_dev, served.st_ino)),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(false),
            Err(error) => Err(from_errno(error)),
        }
    }

    fn space(&self, _: MayWait<'_>) -> Result<Space> {
        let space = fstatvfs(&self.shared.root).map_err(from_errno)?;
        Ok(Space {
            total: space.f_blocks.saturating_mul(space.f_frsize),
            free: space.f_bfree.saturating_mul(space.f_frsize),
            available: space.f_bavail.saturating_mul(space.f_frsize),
            files: space.f_files,
            files_free: space.f_ffree,
            block: u32::try_from(space.f_frsize).unwrap_or(u32::MAX),
        })
    }
}

/// The key for the store's handles: made once and kept.
fn key(records: Option<&dyn HandleRecords>) -> Result<HandleKey> {
    let mut new = HandleKey::default();
    getrandom::fill(&mut new).map_err(|_| Error::OutOfResources)?;
    let Some(records) = records else { return Ok(new) };
    records.key(new).map_err(|e| {
        tracing::error!("the key of handles cannot be kept: {e}");
        Error::Io(libc::EIO)
    })
}

fn in_memory() -> Arc<dyn HandleRecords> {
    Arc::new(RecordsInMemory::default())
}

/// Drops nodes that nobody uses, so that the space of objects removed by local programs is freed.
fn start_sweeper(shared: Weak<Shared>) -> Result<JoinHandle<()>> {
    let sweep = move || {
        loop {
            std::thread::park_timeout(SWEEP);
            let Some(shared) = shared.upgrade().filter(|shared| !shared.cache.is_closed()) else { return };
            shared.cache.sweep();
            shared.handles.flush();
        }
    };
    std::thread::Builder::new().name("storage-sweep".into()).spawn(sweep).map_err(|_| Error::OutOfResources)
}

/// Starts the thread that looks through the depot of streams, once.
fn start_depot_sweep(shared: &Arc<Shared>) -> Result<JoinHandle<()>> {
    let shared = Arc::downgrade(shared);
    let sweep = move || {
        if let Some(shared) = shared.upgrade() {
            shared.sweep_depot();
        }
    };
    std::thread::Builder::new().name("storage-depot".into()).spawn(sweep).map_err(|_| Error::OutOfResources)
}

/// Starts the thread that closes descriptors. Closing a descriptor on a network or FUSE file system sends a message and
/// waits for the answer, and nodes may be dropped on any thread.
fn start_closer() -> Result<mpsc::Sender<OwnedFd>> {
    let (closer, closed) = mpsc::channel();
    let close = move || closed.into_iter().for_each(drop);
    let thread = std::thread::Builder::new().name("storage-close".into()).spawn(close);
    thread.map(|_| closer).map_err(|_| Error::OutOfResources)
}

#[cfg(test)]
mod tests;
