//! The store: a directory of a mounted file system.

use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::io::Errno;
use siphasher::sip::SipHasher24;
use storage::depot::{DEPOT_NAME, StreamsNumber};
use storage::{
    Capabilities, Error, Feed, FeedLimits, FileKind, Handle, MayWait, Name, NoSnapshots, Node, NodeCache,
    NodeRef, ObjectId, OwnChanges, ReservedNames, Result, Snapshots, Space, Storage, Wait,
};

use crate::attributes::kind_of;
use crate::claim::Claim;
use crate::data::Files;
use crate::depot;
use crate::errno::from_errno;
use crate::handle;
use crate::inode::{Found, Inode};
use crate::library::CStat;
use crate::mount::Mount;
use crate::name_locks::NameLocks;
use crate::node::CephNode;
use crate::place::{Place, text};
use crate::snapshot_store::OfSnapshot;
use crate::snapshots::{CephSnapshots, SNAPSHOT_FOLDER};

/// How often unused nodes are dropped.
const SWEEP: Duration = Duration::from_secs(5);
/// How much a feed keeps.
const FEED_LIMITS: FeedLimits = FeedLimits { directories: 65_536, changes: 4096 };
/// How many more objects a file system can have, as far as this store tells: CephFS has no limit.
const OBJECTS_FREE: u64 = 1 << 40;
/// Where streams are stored, and where snapshots are.
const RESERVED: [&str; 2] = [DEPOT_NAME, SNAPSHOT_FOLDER];

/// How to open a store.
#[derive(Debug, Clone)]
pub struct CephOptions {
    /// The key of the store's handles. Each gateway that serves the store needs the same, before and after a restart.
    pub handle_key: [u8; 16],
    /// Whether this store alone changes the directory, so that what is read may be cached. Then no other store that wants to be
    /// alone has the directory, a part of it, or what holds it, through any gateway.
    pub is_exclusive: bool,
    /// How many nodes stay cached.
    pub nodes_max: usize,
    /// Names that clients cannot look up, list or create, in any case, besides `.snap`.
    pub reserved_names: Vec<String>,
}

/// A store in a directory of CephFS.
#[derive(Debug)]
pub struct CephStore {
    shared: Arc<Shared>,
    root: Arc<CephNode>,
    /// The path by which the store was opened.
    path: Vec<Vec<u8>>,
    /// What keeps other gateways away, if the store is alone.
    claim: Option<Claim>,
    sweeper: Option<JoinHandle<()>>,
}

/// The data of a store in memory.
pub(crate) struct OwnData {
    /// [`crate::data_cache::DataCache::new_store`]
    pub(crate) store: u64,
    /// Whether nobody else changes the data.
    pub(crate) is_certain: AtomicBool,
}

/// What the nodes of a store share.
pub(crate) struct Shared {
    pub(crate) mount: Arc<Mount>,
    pub(crate) root_id: ObjectId,
    /// The root, once more: its node refers to this value.
    pub(crate) root: Inode,
    /// Where streams are stored, once that directory exists.
    pub(crate) depot: OnceLock<Inode>,
    pub(crate) cache: NodeCache<CephNode>,
    pub(crate) handle_key: SipHasher24,
    pub(crate) reserved: ReservedNames,
    pub(crate) name_locks: NameLocks,
    /// The number of the store in the cache of data, while it is alone.
    pub(crate) data: OwnData,
    /// How many names were replaced in two calls.
    pub(crate) replaced_in_two: AtomicU64,
    /// Held while a directory is moved. It guards no data.
    pub(crate) moving: Mutex<()>,
    pub(crate) changes: OwnChanges,
    /// Held while a snapshot is taken or removed. It guards no data.
    pub(crate) taking_snapshots: Mutex<()>,
    /// The snapshot that the store is; None: the present state.
    pub(crate) snapshot: Option<OfSnapshot>,
}

/// How a store is opened.
pub(crate) struct Terms {
    pub(crate) nodes_max: usize,
    pub(crate) handle_key: SipHasher24,
    pub(crate) reserved: ReservedNames,
    /// Whether nobody else changes what is there.
    pub(crate) is_certain: bool,
    pub(crate) snapshot: Option<OfSnapshot>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("mount", &self.mount)
            .field("root", &self.root_id)
            .finish_non_exhaustive()
    }
}

impl CephStore {
    /// Opens the directory `path` of a mounted file system as a store. The path begins at the top of the file system.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::NotDirectory`], [`Error::PermissionDenied`]; [`Error::InvalidName`] for a path with `..`;
    /// [`Error::Busy`] if the store is to be alone and another one is; those of the cluster.
    pub fn open(mount: &Arc<Mount>, path: &str, options: &CephOptions) -> Result<Self> {
        let path: Vec<Vec<u8>> =
            path.split('/').filter(|name| !name.is_empty()).map(|name| name.as_bytes().to_vec()).collect();
        let (inode, stat) = walk(mount, &path)?;
        if kind_of(&stat) != FileKind::Directory {
            return Err(Error::NotDirectory);
        }
        let claim = options.is_exclusive.then(|| claim(mount, &path)).transpose()?;
        let (root, _) = walk(mount, &path)?;
        let reserved = RESERVED.into_iter().chain(options.reserved_names.iter().map(String::as_str));
        let terms = Terms {
            nodes_max: options.nodes_max,
            handle_key: SipHasher24::new_with_key(&options.handle_key),
            reserved: reserved.collect(),
            is_certain: options.is_exclusive,
            snapshot: None,
        };
        Self::on(inode, (root, stat), terms, path, claim)
    }

    /// A store below a root, which is given twice.
    pub(crate) fn on(
        inode: Inode,
        (root, stat): Found,
        terms: Terms,
        path: Vec<Vec<u8>>,
        claim: Option<Claim>,
    ) -> Result<Self> {
        let shared = Arc::new(Shared::new(root, stat.number, terms)?);
        let root = shared.adopt(inode, &stat);
        *root.place.lock() = Place::Top;
        let sweeper = start_sweeper(Arc::downgrade(&shared))?;
        Ok(Self { shared, root, path, claim, sweeper: Some(sweeper) })
    }

    /// Others may change the directory from now on, or may have changed it: nothing that was read of it is certain any more.
    pub fn end_exclusive(&self) {
        self.shared.data.is_certain.store(false, Ordering::Release);
        self.shared.changes.tell_all();
    }

    /// Limits what the store can hold, in bytes; 0: no limit. CephFS learns of what is written late, so that a store can be some
    /// seconds' worth of writes above its limit.
    ///
    /// # Errors
    /// [`Error::NotPermitted`] if the user of Ceph may not set quotas (MDS capability `p`); those of the cluster.
    pub fn set_quota(&self, bytes: u64) -> Result<()> {
        self.set_own(c"ceph.quota.max_bytes", &bytes.to_string())
    }

    /// Which pool keeps the data of files that are made from now on in directories that are made from now on, and in the root.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the file system has no such pool (`ceph fs add_data_pool`); [`Error::NotPermitted`] if the
    /// user of Ceph may not set layouts (MDS capability `p`); those of the cluster.
    pub fn set_data_pool(&self, pool: &str) -> Result<()> {
        self.set_own(c"ceph.dir.layout.pool", pool)
    }

    /// Which pool keeps the data of a file of this store.
    ///
    /// # Errors
    /// [`Error::CrossDevice`] for a node of another store, [`Error::IsDirectory`], [`Error::WrongKind`]; those of the cluster.
    pub fn data_pool(&self, file: &dyn Node, _: MayWait<'_>) -> Result<String> {
        let file: Option<&CephNode> = file.as_any().downcast_ref();
        let file = file.filter(|file| Arc::ptr_eq(&file.store, &self.shared)).ok_or(Error::CrossDevice)?;
        file.check_data()?;
        let value = file.inode.xattr(c"ceph.file.layout.pool").map_err(from_errno)?;
        Ok(String::from_utf8_lossy(&value).into_owned())
    }

    pub(crate) fn root_inode(&self) -> &Inode {
        &self.root.inode
    }

    fn set_own(&self, name: &CStr, value: &str) -> Result<()> {
        self.root.inode.set_xattr(name, value.as_bytes(), 0).map_err(from_errno)
    }

    /// A number that CephFS tells of the root by an extended attribute; 0 if it has none.
    fn number(&self, name: &CStr) -> Result<u64> {
        match self.root.inode.xattr(name) {
            Ok(value) => Ok(std::str::from_utf8(&value).ok().and_then(|text| text.parse().ok()).unwrap_or(0)),
            Err(Errno::NODATA) => Ok(0),
            Err(errno) => Err(from_errno(errno)),
        }
    }
}

/// Claims the directory at a path.
fn claim(mount: &Arc<Mount>, path: &[Vec<u8>]) -> Result<Claim> {
    /// Distinguishes the claims of this process.
    static OWNERS: AtomicU64 = AtomicU64::new(1);
    let directories = (0..=path.len()).map(|names| Ok(walk(mount, path.get(..names).unwrap_or(path))?.0));
    let directories = directories.collect::<Result<Vec<_>>>()?;
    Claim::of(&directories, OWNERS.fetch_add(1, Ordering::Relaxed)).map_err(|errno| match errno {
        Errno::AGAIN => Error::Busy,
        errno => from_errno(errno),
    })
}

/// The object at a path.
fn walk(mount: &Arc<Mount>, path: &[Vec<u8>]) -> Result<(Inode, CStat)> {
    let root = Inode::root(mount).map_err(from_errno)?;
    let stat = root.stat().map_err(from_errno)?;
    path.iter().try_fold((root, stat), |(dir, _), name| {
        let name = Name::new(name)?;
        dir.lookup(&text(name.as_bytes())?).map_err(from_errno)
    })
}

impl Drop for CephStore {
    fn drop(&mut self) {
        // Nodes refer to what they share, and the cache refers to nodes.
        self.shared.cache.close();
        let Some(sweeper) = self.sweeper.take() else { return };
        sweeper.thread().unpark();
        if sweeper.join().is_err() {
            tracing::error!("the thread that lets go of unused nodes has failed");
        }
    }
}

impl Shared {
    fn new(root: Inode, number: u64, terms: Terms) -> Result<Self> {
        let depot = depot::entry(&root, DEPOT_NAME.as_bytes())?;
        let mount = Arc::clone(&root.mount);
        Ok(Self {
            root_id: ObjectId::live(number),
            root,
            depot: depot.map_or_else(OnceLock::new, |(depot, _)| OnceLock::from(depot)),
            cache: NodeCache::new(terms.nodes_max),
            handle_key: terms.handle_key,
            reserved: terms.reserved,
            name_locks: NameLocks::default(),
            data: OwnData { store: mount.data.new_store(), is_certain: AtomicBool::new(terms.is_certain) },
            replaced_in_two: AtomicU64::new(0),
            moving: Mutex::default(),
            changes: OwnChanges::new(FEED_LIMITS),
            taking_snapshots: Mutex::default(),
            snapshot: terms.snapshot,
            mount,
        })
    }

    /// Fails if the store is a snapshot that is not there any more.
    pub(crate) fn check_snapshot(&self) -> Result<()> {
        self.snapshot.as_ref().map_or(Ok(()), OfSnapshot::check)
    }

    /// The same, of a moment ago, if it was asked then.
    pub(crate) fn check_snapshot_lately(&self) -> Result<()> {
        self.snapshot.as_ref().map_or(Ok(()), OfSnapshot::check_lately)
    }

    /// The node of an object that was just found.
    pub(crate) fn adopt(self: &Arc<Self>, inode: Inode, stat: &CStat) -> Arc<CephNode> {
        self.adopt_with(inode, stat, Files::default())
    }

    /// The node of an object that was just found or made, with a file that is open.
    pub(crate) fn adopt_with(self: &Arc<Self>, inode: Inode, stat: &CStat, files: Files) -> Arc<CephNode> {
        let id = ObjectId::live(stat.number);
        if let Some(known) = self.cache.get(id) {
            return known;
        }
        self.cache.enter(CephNode {
            store: Arc::clone(self),
            inode,
            id,
            kind: kind_of(stat),
            files,
            place: Mutex::default(),
            changing: Mutex::default(),
        })
    }

    /// Notes that an object has lost a name.
    pub(crate) fn end_name(&self, dir: &CephNode, name: Name<'_>, lost: &Losing) {
        let node = &lost.node;
        node.is_not_in(dir, name.as_bytes());
        if node.kind == FileKind::Directory {
            self.cache.forget(node.id);
        } else {
            self.cache.release(node.id);
        }
        if let Some(number) = lost.streams.filter(|_| lost.is_last) {
            node.end_streams(number);
        }
    }

    fn find_by_number(self: &Arc<Self>, id: ObjectId) -> Result<Arc<CephNode>> {
        let found = Inode::of_number(&self.mount, id.number).map_err(|errno| match errno {
            Errno::NOENT | Errno::STALE => Error::Stale,
            other => from_errno(other),
        })?;
        let stat = found.stat().map_err(from_errno)?;
        // The metadata server knows an object for a while after its last name was removed.
        if stat.links == 0 || stat.number != id.number {
            return Err(Error::Stale);
        }
        let node = self.adopt(found, &stat);
        if node.kind == FileKind::Directory {
            node.locate()?;
        }
        Ok(node)
    }
}

/// An object that is about to lose a name.
pub(crate) struct Losing {
    pub(crate) node: Arc<CephNode>,
    /// Whether the name is the last one.
    pub(crate) is_last: bool,
    /// The number of its streams, if it may have any.
    streams: Option<StreamsNumber>,
}

impl Losing {
    /// What must be known before. `links` is the number of names that the object has.
    pub(crate) fn of(node: Arc<CephNode>, links: u32) -> Self {
        node.keep_data_if_held();
        let is_last = node.kind == FileKind::Directory || links <= 1;
        let streams = if is_last { node.streams_number() } else { None };
        Self { node, is_last, streams }
    }
}

impl CephNode {
    /// Opens a file that is about to lose a name, if anybody but the caller and the cache holds it.
    pub(crate) fn keep_data_if_held(self: &Arc<Self>) {
        const CALLER_AND_CACHE: usize = 2;
        if Arc::strong_count(self) > CALLER_AND_CACHE
            && let Err(error) = self.keep_data()
        {
            tracing::debug!("a file that is removed while it is held could not be opened: {error}");
        }
    }
}

impl Storage for CephStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities::WRITE
            | Capabilities::XATTRS
            | Capabilities::PUNCH_HOLE
            | Capabilities::BIRTH_TIME
            | Capabilities::OWNERS
            | Capabilities::NATIVE_HANDLES
            | Capabilities::STREAMS
    }

    fn root(&self) -> NodeRef {
        Arc::<CephNode>::clone(&self.root)
    }

    fn by_handle(&self, handle: &Handle, wait: Wait<'_>) -> Result<NodeRef> {
        let (id, directory) = handle::decode(&self.shared.handle_key, handle)?;
        if let Some(node) = self.shared.cache.get(id) {
            return Ok(node);
        }
        if wait.is_never() {
            return Err(Error::WouldBlock);
        }
        let found = match &self.shared.snapshot {
            Some(snapshot) => self.shared.find_then(&snapshot.places, id, directory),
            None => self.shared.find_by_number(id),
        };
        self.shared.check_snapshot_lately()?;
        Ok(found?)
    }

    fn feed(&self) -> Result<Arc<dyn Feed>> {
        if self.claim.is_none() {
            return Err(Error::NotSupported);
        }
        let shared = Arc::clone(&self.shared);
        let is_own = move |node: &dyn Node| {
            let node: Option<&CephNode> = node.as_any().downcast_ref();
            node.is_some_and(|node| Arc::ptr_eq(&node.store, &shared))
        };
        Ok(Arc::new(self.shared.changes.feed(is_own)))
    }

    fn space(&self, _: MayWait<'_>) -> Result<Space> {
        let space = self.shared.mount.space().map_err(from_errno)?;
        let (total, free) =
            (space.f_blocks.saturating_mul(space.f_frsize), space.f_bfree.saturating_mul(space.f_frsize));
        let available = space.f_bavail.saturating_mul(space.f_frsize);
        let quota = self.number(c"ceph.quota.max_bytes")?;
        let left = quota.saturating_sub(if quota == 0 { 0 } else { self.number(c"ceph.dir.rbytes")? });
        let is_less = quota != 0 && quota < total;
        let objects = self.number(c"ceph.dir.rentries")?;
        Ok(Space {
            total: if is_less { quota } else { total },
            free: if is_less { left.min(free) } else { free },
            available: if quota == 0 { available } else { left.min(available) },
            files: objects.saturating_add(OBJECTS_FREE),
            files_free: OBJECTS_FREE,
            block: u32::try_from(space.f_frsize).unwrap_or(u32::MAX),
        })
    }

    fn snapshots(&self) -> std::result::Result<Arc<dyn Snapshots>, NoSnapshots> {
        Ok(Arc::new(CephSnapshots::of(&self.shared)))
    }

    fn is_in_place(&self, _: MayWait<'_>) -> Result<bool> {
        match walk(&self.shared.mount, &self.path) {
            Ok((_, stat)) => Ok(stat.number == self.root.id.number),
            Err(Error::NotFound | Error::NotDirectory) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Drops nodes that nobody uses, so that the metadata server need not keep them for this gateway.
fn start_sweeper(shared: Weak<Shared>) -> Result<JoinHandle<()>> {
    let sweep = move || {
        loop {
            std::thread::park_timeout(SWEEP);
            let Some(shared) = shared.upgrade().filter(|shared| !shared.cache.is_closed()) else { return };
            shared.cache.sweep();
        }
    };
    std::thread::Builder::new().name("ceph-sweep".into()).spawn(sweep).map_err(|_| Error::OutOfResources)
}
