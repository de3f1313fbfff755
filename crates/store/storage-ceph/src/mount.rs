//! A mounted file system of a Ceph cluster.
#![expect(unsafe_code, reason = "functions of a C library are called here")]

use std::ffi::{CStr, CString, c_int};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::ptr::null_mut;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use rustix::io::Errno;

use crate::data_cache::DataCache;
use crate::inode::Inode;
use crate::library::{self, CFile, CInode, CMount, CPerms, Functions};

/// How long the cluster may take to answer a mount, in seconds. Once it is mounted, calls wait as long as it takes.
const ANSWER: &CStr = c"8";

/// What is set, whatever the configuration file says.
const OPTIONS: [(&CStr, &CStr); 4] = [
    // Data is written when a call returns. What was read is kept by this crate, which needs less memory and does not write slower.
    (c"client_oc", c"false"),
    (c"client_mount_timeout", ANSWER),
    // A program's lines are its own.
    (c"log_to_stderr", c"false"),
    (c"err_to_stderr", c"false"),
];

/// What is set where the library has it: the server decides who may do what.
const OPTIONS_OF_SOME_VERSIONS: [(&CStr, &CStr); 2] =
    [(c"client_permissions", c"false"), (c"fuse_default_permissions", c"true")];

/// Where a file system is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Ceph's configuration file, which says where the monitors and the keyring are.
    pub configuration: PathBuf,
    /// Whose key is used, such as `client.anabranch`.
    pub user: String,
    /// The name of the file system; None: the default one of the cluster.
    pub file_system: Option<String>,
}

impl Default for Place {
    /// The default file system of the cluster whose configuration is where Ceph's packages expect it, and a user of this program.
    fn default() -> Self {
        Self {
            configuration: "/etc/ceph/ceph.conf".into(),
            user: "client.anabranch".to_owned(),
            file_system: None,
        }
    }
}

impl Place {
    fn file_system_name(&self) -> &str {
        self.file_system.as_deref().unwrap_or("of the default name")
    }
}

/// Why a file system cannot be mounted.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// The library is missing or too old.
    #[error("Ceph's client library cannot be used: {0}")]
    Library(String),
    /// A text of the [`Place`] has a NUL in it.
    #[error("the {0} has a NUL in it")]
    Nul(&'static str),
    /// The configuration file cannot be read.
    #[error("Ceph's configuration file {}: {}", .0.display(), .1)]
    Configuration(PathBuf, Errno),
    /// The library refuses an option.
    #[error("Ceph's library does not take the option {0}: {1}")]
    Option(String, Errno),
    /// No monitor has answered, or the file names none.
    #[error("no monitor of the Ceph cluster of {} has answered", .0.configuration.display())]
    NoMonitor(Place),
    /// The cluster refuses the key, or there is none.
    #[error(
        "the Ceph cluster of {} does not admit {}: there is no key here, or the cluster has another one",
        .0.configuration.display(), .0.user
    )]
    Refused(Place),
    /// There is no such file system, or no metadata server serves it.
    #[error("the Ceph cluster of {} serves no file system {}", .0.configuration.display(), .0.file_system_name())]
    NoFileSystem(Place),
    /// Another failure.
    #[error("the file system {} of the Ceph cluster of {}: {}", .0.file_system_name(), .0.configuration.display(), .1)]
    Other(Place, Errno),
}

impl MountError {
    /// Whether the same may succeed later, without a change on this machine.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::NoMonitor(_))
    }

    /// What the reader can do; empty if that is obvious.
    #[must_use]
    pub fn advice(&self) -> String {
        match self {
            Self::Library(_) => "Install it, version 16 or later (Debian and Ubuntu: libcephfs2; Fedora and RHEL: libcephfs2)".to_owned(),
            Self::Configuration(..) => "Copy it from a machine of the Ceph cluster".to_owned(),
            Self::NoMonitor(_) => {
                "Look whether the monitors run and can be reached from here, and whether the file has mon host: ceph -s".to_owned()
            }
            Self::Refused(Place { user, configuration, file_system }) => {
                let file_system = file_system.as_deref().unwrap_or("NAME");
                format!(
                    "Put into the keyring that {} names what this prints: ceph auth get {user} (for a new user: \
                     ceph fs authorize {file_system} {user} / rws)",
                    configuration.display()
                )
            }
            Self::NoFileSystem(_) => {
                "Look which file systems there are (ceph fs ls), and whether a metadata server is active (ceph fs status)".to_owned()
            }
            Self::Other(..) => "Try: ceph -s".to_owned(),
            Self::Nul(_) | Self::Option(..) => String::new(),
        }
    }
}

/// A file system that is mounted until this is dropped. Unmounting waits for the cluster.
pub struct Mount {
    pub(crate) functions: &'static Functions,
    pub(crate) mount: CMount,
    /// The rights of the server itself.
    pub(crate) root: Perms,
    /// What lets go of objects; None before the file system is mounted.
    closer: Option<Closer>,
    place: Place,
    /// Data of files in memory.
    pub(crate) data: DataCache,
}

/// A thread that lets go of what nothing uses any more: that may wait for the cluster, and objects are dropped on any thread.
struct Closer {
    queue: mpsc::Sender<Unused>,
    thread: JoinHandle<()>,
}

/// What nothing uses any more.
pub(crate) enum Unused {
    Inode(CInode),
    File(CFile),
}

// SAFETY: whoever sends it uses it no more, and libcephfs takes it back on any thread.
unsafe impl Send for Unused {}

/// The mount, for the thread that lets go of its objects.
struct Closing(&'static Functions, CMount);

// SAFETY: libcephfs may be called from several threads with one mount.
unsafe impl Send for Closing {}

impl Closing {
    fn close(&self, unused: &Unused) {
        let closed = match *unused {
            // SAFETY: the object was held once for the value that was dropped.
            Unused::Inode(inode) => unsafe { (self.0.ll_put)(self.1, inode) },
            // SAFETY: the file was opened for the value that was dropped.
            Unused::File(file) => unsafe { (self.0.ll_close)(self.1, file) },
        };
        if let Err(error) = done(closed) {
            tracing::debug!("letting go of an object of Ceph: {error}");
        }
    }
}

// SAFETY: libcephfs may be called from several threads with one mount, as long as nobody changes its configuration. That happens in
// `Mount::new` only, before others have it.
unsafe impl Send for Mount {}
// SAFETY: as above.
unsafe impl Sync for Mount {}

impl fmt::Debug for Mount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mount").field("place", &self.place).finish_non_exhaustive()
    }
}

/// The error number that a function reports as a negative result.
pub(crate) fn done(result: c_int) -> Result<usize, Errno> {
    usize::try_from(result).map_err(|_| Errno::from_raw_os_error(result.saturating_neg()))
}

/// Looks whether a mount can be tried: nothing is asked of the cluster.
///
/// # Errors
/// [`MountError::Library`], [`MountError::Configuration`].
pub fn check(place: &Place) -> Result<(), MountError> {
    library::functions()?;
    std::fs::File::open(&place.configuration).map(drop).map_err(|error| {
        let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
        MountError::Configuration(place.configuration.clone(), errno)
    })
}

fn text(text: &str, what: &'static str) -> Result<CString, MountError> {
    CString::new(text).map_err(|_| MountError::Nul(what))
}

/// Ends the session that has this identity, with its locks and its right to write, if there is one. Nothing is mounted.
///
/// # Errors
/// As for [`Mount::new`].
pub fn end_session(place: &Place, identity: &str) -> Result<(), MountError> {
    Mount::begin(place)?.reclaim(&text(identity, "identity of the gateway")?)
}

impl Mount {
    /// Mounts a file system. Its metadata servers know the session by the `identity`: what is left of an earlier session of the same
    /// identity, by a process that was killed, ends first, with its locks and its right to write.
    ///
    /// # Errors
    /// Ceph's library, the configuration file, the key, the monitors or the file system are not there.
    pub fn new(place: &Place, identity: &str) -> Result<Arc<Self>, MountError> {
        let mut made = Self::begin(place)?;
        let (functions, mount) = (made.functions, made.mount);
        made.identify(&text(identity, "identity of the gateway")?)?;
        // SAFETY: the handle is one that was made, and the text ends with NUL.
        done(unsafe { (functions.mount)(mount, c"/".as_ptr()) }).map_err(|e| made.failed(e))?;
        let (queue, unused) = mpsc::channel::<Unused>();
        let closing = Closing(functions, mount);
        let close = move || {
            // The value, and not only its fields, belongs to the thread.
            let closing = closing;
            unused.iter().for_each(|unused| closing.close(&unused));
        };
        match std::thread::Builder::new().name("ceph-close".into()).spawn(close) {
            Ok(thread) => made.closer = Some(Closer { queue, thread }),
            Err(_) => return Err(made.failed(Errno::AGAIN)),
        }
        Ok(Arc::new(made))
    }

    /// A handle that knows the cluster, and has mounted nothing.
    fn begin(place: &Place) -> Result<Self, MountError> {
        let functions = library::functions()?;
        let path = CString::new(place.configuration.as_os_str().as_bytes());
        let path = path.map_err(|_| MountError::Nul("path of Ceph's configuration file"))?;
        let id = text(place.user.strip_prefix("client.").unwrap_or(&place.user), "name of the user of Ceph")?;
        let mut mount = null_mut();
        // SAFETY: the text ends with NUL, and the handle is written to before it is used.
        done(unsafe { (functions.create)(&raw mut mount, id.as_ptr()) })
            .map_err(|e| MountError::Other(place.clone(), e))?;
        let root = Perms::new(functions, 0, 0);
        // From here on `Drop` gives back what there is.
        let made =
            Self { functions, mount, root, closer: None, place: place.clone(), data: DataCache::default() };
        made.configure(&path)?;
        if let Some(name) = &place.file_system {
            let name = text(name, "name of the file system")?;
            // SAFETY: the handle is one that was made, and the text ends with NUL.
            done(unsafe { (functions.select_filesystem)(mount, name.as_ptr()) })
                .map_err(|e| made.failed(e))?;
        }
        Ok(made)
    }

    fn configure(&self, path: &CStr) -> Result<(), MountError> {
        // SAFETY: the handle is one that was made, and the text ends with NUL.
        done(unsafe { (self.functions.conf_read_file)(self.mount, path.as_ptr()) })
            .map_err(|e| MountError::Configuration(self.place.configuration.clone(), e))?;
        for (option, value) in OPTIONS {
            self.set(option, value)
                .map_err(|e| MountError::Option(option.to_string_lossy().into_owned(), e))?;
        }
        for (option, value) in OPTIONS_OF_SOME_VERSIONS {
            // A version without the option behaves as if it were set.
            let _ = self.set(option, value);
        }
        // SAFETY: the handle is one that was made.
        done(unsafe { (self.functions.init)(self.mount) }).map(drop).map_err(|e| self.failed(e))
    }

    /// Ends what is left of an earlier session of this identity, and takes it.
    fn identify(&self, identity: &CStr) -> Result<(), MountError> {
        self.reclaim(identity)?;
        // SAFETY: the handle is one that was made, and the text ends with NUL.
        unsafe { (self.functions.set_uuid)(self.mount, identity.as_ptr()) };
        Ok(())
    }

    /// Ends what is left of an earlier session of this identity.
    fn reclaim(&self, identity: &CStr) -> Result<(), MountError> {
        // SAFETY: the handle is one that was made, and the text ends with NUL.
        let ended = done(unsafe {
            (self.functions.start_reclaim)(self.mount, identity.as_ptr(), library::END_SESSION)
        });
        match ended {
            // Nothing is left, or there is no such file system, which the mount tells.
            Ok(_) | Err(Errno::NOENT) => {}
            Err(error) => return Err(self.failed(error)),
        }
        // SAFETY: the handle is one that was made.
        unsafe { (self.functions.finish_reclaim)(self.mount) };
        Ok(())
    }

    fn set(&self, option: &CStr, value: &CStr) -> Result<(), Errno> {
        // SAFETY: the handle is one that was made, and the texts end with NUL.
        done(unsafe { (self.functions.conf_set)(self.mount, option.as_ptr(), value.as_ptr()) }).map(drop)
    }

    fn failed(&self, error: Errno) -> MountError {
        let place = self.place.clone();
        match error {
            Errno::ACCESS | Errno::PERM => MountError::Refused(place),
            // Without a line that names a monitor, there is no such file for the library.
            Errno::TIMEDOUT | Errno::INVAL => MountError::NoMonitor(place),
            Errno::NOENT => MountError::NoFileSystem(place),
            other => MountError::Other(place, other),
        }
    }

    /// Where the session comes from, as the cluster writes it: whoever has the cluster refuse this address ends the session, also while no
    /// metadata server is active.
    ///
    /// # Errors
    /// The library does not know.
    pub fn address(&self) -> Result<String, Errno> {
        let mut address = null_mut();
        // SAFETY: the handle is mounted, and the text is written to before it is used.
        done(unsafe { (self.functions.getaddrs)(self.mount, &raw mut address) })?;
        if address.is_null() {
            return Err(Errno::NOMEM);
        }
        // SAFETY: the library has made a text that ends with NUL (libcephfs.cc: strdup), which is copied.
        let copied = unsafe { CStr::from_ptr(address) }.to_str().map(str::to_owned);
        // SAFETY: the text belongs to the caller, who frees it once.
        unsafe { libc::free(address.cast()) };
        copied.map_err(|_| Errno::ILSEQ)
    }

    /// Whether the cluster has ended the session. Then every call fails, for good.
    #[must_use]
    pub fn is_ended(self: &Arc<Self>) -> bool {
        let root = Inode::root(self).and_then(|root| root.stat());
        root.is_err_and(|errno| errno == Errno::SHUTDOWN)
    }

    /// Lets go of an object, sooner or later.
    pub(crate) fn let_go(&self, unused: Unused) {
        // The thread ends after the queue does.
        let _ = self.closer.as_ref().map(|closer| closer.queue.send(unused));
    }

    /// How much the file system holds.
    ///
    /// # Errors
    /// Those of the cluster.
    pub(crate) fn space(&self) -> Result<libc::statvfs, Errno> {
        // SAFETY: all of the structure are numbers, for which zero is a value.
        let mut space: libc::statvfs = unsafe { std::mem::zeroed() };
        // SAFETY: the file system is mounted, the text ends with NUL, and the structure is that of this system.
        done(unsafe { (self.functions.statfs)(self.mount, c"/".as_ptr(), &raw mut space) })?;
        Ok(space)
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if let Some(Closer { queue, thread }) = self.closer.take() {
            drop(queue);
            if thread.join().is_err() {
                tracing::error!("the thread that lets go of objects of Ceph has failed");
            }
            // SAFETY: what refers to the file system holds this value, so nothing does any more.
            if let Err(error) = done(unsafe { (self.functions.unmount)(self.mount) }) {
                tracing::warn!("a file system of Ceph was not unmounted: {error}");
            }
        }
        // SAFETY: nothing uses the handle any more.
        if let Err(error) = done(unsafe { (self.functions.release)(self.mount) }) {
            tracing::warn!("a mount of Ceph stays in memory: {error}");
        }
    }
}

/// Whose rights a call has, and to whom belongs what it makes.
pub(crate) struct Perms {
    functions: &'static Functions,
    pub(crate) perms: CPerms,
}

impl Perms {
    fn new(functions: &'static Functions, uid: u32, gid: u32) -> Self {
        // SAFETY: there is no list of further groups.
        Self { functions, perms: unsafe { (functions.userperm_new)(uid, gid, 0, null_mut()) } }
    }

    /// Those of a user and a group.
    pub(crate) fn of(mount: &Mount, uid: u32, gid: u32) -> Self {
        Self::new(mount.functions, uid, gid)
    }
}

impl Drop for Perms {
    fn drop(&mut self) {
        // SAFETY: nothing uses it any more.
        unsafe { (self.functions.userperm_destroy)(self.perms) };
    }
}
