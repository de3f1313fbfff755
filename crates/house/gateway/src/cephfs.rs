//! Shares in CephFS: how their directories are written, and the mount that they have in common.

mod redundancy;

use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use state::ServerRecords;
use storage_ceph::{CephOptions, CephStore, Mount, MountError, Place};

pub(crate) use self::redundancy::Kept;
use crate::in_time;
use crate::problem::{self, Cause, Problem};
use crate::session_ends::SessionEnds;

/// What a directory in CephFS begins with, in place of a directory of this machine.
const SCHEME: &str = "cephfs:";

/// How long the end of another gateway's session may take until whoever waits for it is told.
const END: Duration = Duration::from_secs(10);
/// How long the end of the session may take.
const LEAVE: Duration = Duration::from_secs(5);

/// A Ceph cluster, and its file system once a share in it was opened.
#[derive(Debug, Default)]
pub(crate) struct Cluster {
    place: Place,
    /// Held while the file system is being mounted, so that this happens once, and while it is asked whether it still is. It stays
    /// mounted for shares to come: unmounting waits for the cluster.
    mount: Mutex<Option<Arc<Mount>>>,
    /// How many sessions the cluster has ended. It is raised while the mount is held.
    ended: AtomicU64,
    was_mounted: AtomicBool,
    /// Guards where the present session comes from.
    address: Mutex<Option<String>>,
    ends: Arc<SessionEnds>,
}

/// A share to be opened in CephFS.
#[derive(Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) share: &'a str,
    /// As [`absolute`] returns it.
    pub(crate) directory: &'a Path,
    pub(crate) options: CephOptions,
    /// By which the cluster knows this gateway, also after a restart.
    pub(crate) gateway: &'a str,
}

/// The path in the file system, if this is a directory in CephFS.
pub fn path_of(directory: &Path) -> Option<&str> {
    directory.to_str()?.strip_prefix(SCHEME)
}

/// Where a directory in CephFS is, in the only way to write it; None: it is none.
///
/// # Errors
/// The path has no `/` in front, or `.` or `..` in it. The reason in words.
pub(crate) fn absolute(directory: &Path) -> Option<Result<PathBuf, &'static str>> {
    let path = Path::new(path_of(directory)?);
    // `cephfs:/{user}` is written so without its last part.
    if !path.is_absolute() && path != Path::new("") {
        return Some(Err("is not absolute"));
    }
    let is_dots = |name: &str| name == "." || name == "..";
    if path.to_str().is_some_and(|text| text.split('/').any(is_dots)) {
        return Some(Err("has . or .. in it"));
    }
    let names = path.components().filter(|component| matches!(component, Component::Normal(_)));
    let below: PathBuf = names.collect();
    Some(Ok(PathBuf::from(format!("{SCHEME}/")).join(below)))
}

/// The name by which the cluster knows a gateway: that of the server that it is by itself, also after a restart.
///
/// # Errors
/// The state database cannot be used.
pub(crate) fn gateway(server: &ServerRecords) -> problem::Result<String> {
    Ok(format!("anabranch-{:032x}", u128::from_be_bytes(server.server_guid()?)))
}

/// Looks for what keeps all shares in CephFS from being served, without asking the cluster.
///
/// # Errors
/// Ceph's library or the configuration file cannot be used.
pub(crate) fn check(place: &Place) -> problem::Result<()> {
    storage_ceph::check(place).map_err(|error| {
        Problem::new(Cause::Settings, format!("shares in CephFS cannot be served: {error}"), error.advice())
    })
}

impl Cluster {
    pub(crate) fn new(place: Place) -> Self {
        Self { place, ..Self::default() }
    }

    /// Opens a directory as a store that no other gateway serves at the same time. The cluster may take its time to answer.
    ///
    /// # Errors
    /// [`Cause::Silent`]: the cluster does not answer, or another gateway serves the directory, a part of it or what holds it.
    /// [`Cause::Directory`]: the cluster does not admit this gateway, or there is no such directory.
    pub(crate) fn open(&self, wanted: &Wanted<'_>) -> problem::Result<CephStore> {
        let mount = self.mounted(wanted.gateway).map_err(|error| {
            let cause = if error.may_pass() { Cause::Silent } else { Cause::Directory };
            wanted.refused(cause, &error, error.advice())
        })?;
        let path = path_of(wanted.directory).unwrap_or_default();
        CephStore::open(&mount, path, &wanted.options).map_err(|error| self.explained(wanted, error))
    }

    /// Ends the session of another gateway, which may not read or write in the file system any more.
    ///
    /// # Errors
    /// The cluster does not answer in time, or does not admit this gateway.
    pub(crate) fn end_session(&self, gateway: &str) -> problem::Result<()> {
        let (place, session) = (self.place.clone(), gateway.to_owned());
        self.ends.ended(gateway, END, move || {
            let end = || storage_ceph::end_session(&place, &session);
            end().or_else(|_| end()).map_err(|error| {
                let what = format!("the session of {session} in CephFS cannot be ended: {error}");
                Problem::new(Cause::Silent, what, error.advice())
            })
        })
    }

    /// Ends the session with the cluster. Nobody uses a store of [`Cluster::open`] any more, unless it has stopped answering.
    pub(crate) fn leave(&self) {
        let mount = self.mount.try_lock_for(LEAVE).map(|mut mount| mount.take());
        let is_left = mount.is_some_and(|mount| {
            let Some(mount) = mount else { return true };
            let (still, left) = (Arc::downgrade(&mount), in_time::answer_within(LEAVE, move || drop(mount)));
            left.is_some() && still.strong_count() == 0
        });
        if !is_left {
            tracing::warn!(
                "the session with the Ceph cluster is not ended: until the cluster ends it, no other gateway serves its shares"
            );
        }
    }

    /// The mount whose session the cluster has ended, if there was one. The next share is opened in a new one.
    pub(crate) fn take_if_ended(&self) -> Option<Arc<Mount>> {
        let mut mount = self.mount.lock();
        let ended = mount.take_if(|mount| mount.is_ended());
        if ended.is_some() {
            *self.address.lock() = None;
            self.ended.fetch_add(1, Ordering::SeqCst);
        }
        ended
    }

    /// Whether this process has mounted the file system: then no session of the process before is left, because whoever mounts it ends the
    /// session before of the same name.
    pub(crate) fn was_mounted(&self) -> bool {
        self.was_mounted.load(Ordering::SeqCst)
    }

    /// Where the present session comes from, as the cluster writes it; None: that is not known.
    pub(crate) fn address(&self) -> Option<String> {
        self.address.lock().clone()
    }

    /// The number of the session in which shares are opened from now on. What was opened in one of a lower number does nothing any more.
    pub(crate) fn session(&self) -> u64 {
        self.ended.load(Ordering::SeqCst)
    }

    fn mounted(&self, gateway: &str) -> Result<Arc<Mount>, MountError> {
        let mut mount = self.mount.lock();
        if let Some(mounted) = &*mount {
            return Ok(Arc::clone(mounted));
        }
        let mounted = Mount::new(&self.place, gateway)?;
        self.was_mounted.store(true, Ordering::SeqCst);
        *self.address.lock() = address_of(&mounted);
        Ok(Arc::clone(mount.insert(mounted)))
    }

    fn explained(&self, wanted: &Wanted<'_>, error: storage::Error) -> Problem {
        use storage::Error as E;
        let Place { user, configuration, .. } = &self.place;
        let path = path_of(wanted.directory).unwrap_or_default();
        let configuration = configuration.display();
        match error {
            E::Busy => wanted.refused(
                Cause::Silent,
                &"another gateway serves it, a part of it, or what holds it",
                "It is served as soon as that gateway ends. If it has died: when the cluster ends its session, after five minutes \
                 (session_autoclose of the file system).".to_owned(),
            ),
            E::NotFound | E::NotDirectory => wanted.refused(
                Cause::Directory,
                &"there is no such directory",
                format!(
                    "Create it where the file system is mounted, or with: cephfs-shell -c {configuration} mkdir -p {path}"
                ),
            ),
            E::PermissionDenied | E::NotPermitted => wanted.refused(
                Cause::Directory,
                &error,
                format!("Look what {user} may do: ceph auth get {user}"),
            ),
            error => wanted.refused(Cause::Directory, &error, String::new()),
        }
    }
}

/// Where a session comes from, if the cluster can refuse that and nothing else.
fn address_of(mount: &Mount) -> Option<String> {
    let address = mount.address();
    let known = address.as_deref().ok().filter(|address| is_of_one_session(address)).map(str::to_owned);
    if known.is_none() {
        tracing::warn!(
            "where the session with the Ceph cluster comes from is not known ({address:?}): if this gateway dies together with the active \
             metadata server, the next one waits for this session"
        );
    }
    known
}

/// Whether this is one address with the number of a client after it. Without a number it stands for all clients of the machine.
fn is_of_one_session(address: &str) -> bool {
    let is_number = |number: &str| number.parse::<u64>().is_ok_and(|number| number != 0);
    !address.contains(',') && address.rsplit_once('/').is_some_and(|(_, number)| is_number(number))
}

impl Wanted<'_> {
    fn refused(&self, cause: Cause, why: &dyn fmt::Display, advice: String) -> Problem {
        let what = format!("share {}: cannot serve {}: {why}", self.share, self.directory.display());
        Problem::new(cause, what, advice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_in_cephfs_is_written_in_one_way() {
        let at = |text: &str| absolute(Path::new(text)).map(|at| at.map(|at| at.display().to_string()));
        assert_eq!(at("/srv/data"), None);
        assert_eq!(at("./cephfs:/a"), None, "a directory of this machine");
        for (written, expected) in [
            ("cephfs:/a/b", "cephfs:/a/b"),
            ("cephfs://a//b/", "cephfs:/a/b"),
            ("cephfs:/", "cephfs:/"),
            ("cephfs:", "cephfs:/"),
        ] {
            assert_eq!(at(written), Some(Ok(expected.to_owned())), "{written}");
        }
        for wrong in ["cephfs:a", "cephfs:/a/../b", "cephfs:/./a", "cephfs:/a/."] {
            assert!(at(wrong).unwrap().is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_address_of_a_session_is_that_of_one_client() {
        assert!(is_of_one_session("198.51.100.1:0/2200139885") && is_of_one_session("[2001:db8::1]:0/1"));
        for other in ["198.51.100.1:0/0", "198.51.100.1:0", "[v2:192.0.2.1:0/7,v1:192.0.2.1:0/7]", "", "-"] {
            assert!(!is_of_one_session(other), "{other}");
        }
    }

    #[test]
    fn a_configuration_that_is_not_there_is_named() {
        let place = Place { configuration: "/no/ceph.conf".into(), ..Place::default() };
        let options =
            CephOptions { handle_key: [0; 16], is_exclusive: true, nodes_max: 1, reserved_names: Vec::new() };
        let directory = Path::new("cephfs:/a");
        let wanted = Wanted { share: "a", directory, options, gateway: "a test" };
        let refused = Cluster::new(place).open(&wanted).unwrap_err();
        // A machine without Ceph's library says so first.
        assert_eq!(refused.cause, Cause::Directory);
        assert!(refused.what.starts_with("share a: cannot serve cephfs:/a: Ceph's c"), "{refused}");
        assert!(!refused.advice.is_empty());
    }
}
