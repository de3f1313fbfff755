//! Which directories have changed, reliably: fanotify(7), polled instead of waited for.
//!
//! The kernel queues an event within the call that makes the change, before that call returns. So a reader that reads
//! the queue until it is empty has learned of every change that was complete when it began. Names are changed only
//! through the directory's inode, and the inode is what is marked, whatever path or handle was used. For names, and for
//! the attributes of the directory itself, this is complete.
//!
//! inotify(7) is not used: it would also report every read and write of a file in the directory. A modification time
//! that is set on the directory itself (utimensat(2)) must be reported, and inotify has the same event for both. Marks
//! without `FAN_EVENT_ON_CHILD` cost the data path nothing, since the kernel does not even look at them.
//!
//! Not covered: the access time, the flags of chattr(1), and file systems that are mounted over a directory meanwhile.

use std::collections::HashMap;
use std::ffi::CString;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::io::Errno;
use storage::{Error, Feed, FileKind, Node, NodeRef, ObservedId, Result, Uncertain};

use crate::errno::from_errno;
use crate::kernel_handle::{self, KernelHandle};
use crate::node::LocalNode;
use crate::store::Shared;
use crate::sys::{self, Mark};

/// How much is read at once: some dozen events.
const READ_BYTES: usize = 4096;
/// The longest event: its header, the kernel's handles (MAX_HANDLE_SZ) and names (NAME_MAX) of the directory and the entry,
/// and both names of a rename.
const EVENT_BYTES_MAX: usize = 1024;
/// The most directories that are followed at a time, however many nodes and marks there may be.
const DIRECTORIES_MAX: usize = 65_536;
/// The kernel's limit of marks for each user.
const MARKS_MAX: &str = "/proc/sys/fs/fanotify/max_user_marks";
/// Events that change a name.
const NAMES: u64 = libc::FAN_CREATE | libc::FAN_DELETE | libc::FAN_MOVED_FROM | libc::FAN_MOVED_TO;
/// Events that remove a name.
const GONE: u64 = libc::FAN_DELETE | libc::FAN_MOVED_FROM;
/// Events that move a directory.
const MOVED: u64 = libc::FAN_MOVED_FROM | libc::FAN_MOVE_SELF;
/// The events that the kernel is asked for.
const WANTED: u64 = NAMES | libc::FAN_ATTRIB | libc::FAN_MODIFY | libc::FAN_MOVE_SELF | libc::FAN_ONDIR;
/// The name in events of the directory itself.
const ITSELF: &[u8] = b".";

/// A fanotify group for one store.
#[derive(Debug)]
pub(crate) struct LocalFeed {
    store: Arc<Shared>,
    directories_max: usize,
    /// Guards the group and its numbers. The lock is held while events are read and passed on, so that a caller that
    /// finds the queue empty knows that everything in it has been passed on. Reading the queue never waits for a
    /// device.
    instance: Mutex<Instance>,
}

#[derive(Debug)]
struct Instance {
    group: OwnedFd,
    /// The number of the next directory. Numbers are never reused.
    next: u64,
    by_handle: HashMap<KernelHandle, ObservedId>,
    followed: HashMap<ObservedId, Followed>,
}

#[derive(Debug)]
struct Followed {
    handle: KernelHandle,
    path: CString,
    /// Keeps the object's path in /proc valid.
    _node: Arc<dyn Node>,
}

/// The contents of an event.
#[derive(Debug, PartialEq, Eq)]
struct Event<'a> {
    mask: u64,
    handle: KernelHandle,
    name: &'a [u8],
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*taken)
}

/// Takes one event off the front. None if it is not an event that a group with `FAN_REPORT_DFID_NAME` produces, or if
/// it reports that events were lost.
fn take_event<'a>(bytes: &mut &'a [u8]) -> Option<Event<'a>> {
    let length = usize::try_from(u32::from_ne_bytes(*bytes.first_chunk()?)).ok()?;
    let (mut event, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    // struct fanotify_event_metadata: lengths and version in eight bytes, the mask, a descriptor and a process.
    let _ = take::<8>(&mut event)?;
    let mask = u64::from_ne_bytes(take(&mut event)?);
    let _ = take::<8>(&mut event)?;
    // struct fanotify_event_info_header: the kind, a byte of padding, the length; then the number of the file system.
    let [kind, _, a, b] = take(&mut event)?;
    let length = usize::from(u16::from_ne_bytes([a, b]));
    let mut info = event.get(..length.checked_sub(4)?)?;
    let _ = take::<8>(&mut info)?;
    // struct file_handle, then the name, which ends with a zero byte and is padded.
    let count = usize::try_from(u32::from_ne_bytes(take(&mut info)?)).ok()?;
    let handle_kind = i32::from_ne_bytes(take(&mut info)?);
    let (handle, name) = info.split_at_checked(count)?;
    let name = name.split(|byte| *byte == 0).next()?;
    let is_known = kind == libc::FAN_EVENT_INFO_TYPE_DFID_NAME && mask & libc::FAN_Q_OVERFLOW == 0;
    let handle = KernelHandle { kind: handle_kind, bytes: handle.to_vec() };
    is_known.then_some(Event { mask, handle, name })
}

impl Instance {
    /// Passes on an event.
    fn give(&self, event: &Event<'_>, store: &Shared, each: &mut dyn FnMut(Uncertain<'_>)) {
        if event.mask & libc::FAN_ONDIR != 0 && event.mask & MOVED != 0 {
            store.moves.tell();
        }
        let Some(dir) = self.by_handle.get(&event.handle).copied() else { return };
        let is = |mask| event.mask & mask != 0;
        match event.name {
            ITSELF if is(libc::FAN_MOVE_SELF) => each(Uncertain::Moved(dir)),
            // Clients do not see reserved names, but the directory has changed.
            name if name == ITSELF || store.reserved.has(name) => each(Uncertain::Itself(dir)),
            name => {
                let is_dir_gone = is(libc::FAN_ONDIR) && is(GONE);
                // Until they are read, all events of one name are merged.
                let changes = (event.mask & NAMES).count_ones();
                each(Uncertain::Name { dir, name, is_dir_gone, changes });
            }
        }
    }

    /// Reads the queue until it is empty. Returns false when part of it was lost.
    ///
    /// The kernel fills the buffer as long as it has events. If there is room left for another event, the last one was
    /// read.
    fn drain(&self, store: &Shared, each: &mut dyn FnMut(Uncertain<'_>)) -> bool {
        let mut buffer = [MaybeUninit::uninit(); READ_BYTES];
        loop {
            let mut events: &[u8] = match rustix::io::read(&self.group, &mut buffer) {
                Ok((events, _)) => events,
                Err(Errno::AGAIN) => return true,
                Err(Errno::INTR) => continue,
                Err(_) => return false,
            };
            let is_all = events.len() < READ_BYTES - EVENT_BYTES_MAX;
            while !events.is_empty() {
                match take_event(&mut events) {
                    Some(event) => self.give(&event, store, each),
                    None => return false,
                }
            }
            if is_all {
                return true;
            }
        }
    }

    /// Starts again: closing the group removes all its marks.
    fn restart(&mut self) {
        self.by_handle.clear();
        self.followed.clear();
        match sys::fanotify_group() {
            Ok(group) => self.group = group,
            // The old group is kept. Its marks no longer mean anything.
            Err(e) => tracing::warn!("changes by programs of this machine may be told late for now: {e}"),
        }
    }
}

impl LocalFeed {
    /// # Errors
    /// [`Error::NotSupported`] where the kernel (before Linux 5.13, or without privileges) or the file system does not
    /// support it; [`Error::OutOfResources`] when the user has as many groups as allowed (fs.fanotify.max_user_groups).
    pub(crate) fn new(store: &Arc<Shared>) -> Result<Self> {
        let group = sys::fanotify_group().map_err(|errno| match errno {
            Errno::INVAL | Errno::PERM | Errno::NOSYS => Error::NotSupported,
            other => from_errno(other),
        })?;
        let marks = std::fs::read_to_string(MARKS_MAX).ok().and_then(|text| text.trim().parse().ok());
        // Half of both is left for others.
        let directories_max =
            DIRECTORIES_MAX.min(marks.unwrap_or(usize::MAX) / 2).min(store.cache.nodes_max() / 2);
        let instance = Instance { group, next: 0, by_handle: HashMap::new(), followed: HashMap::new() };
        let feed = Self { store: Arc::clone(store), directories_max, instance: Mutex::new(instance) };
        // Only an attempt shows whether the file system accepts marks.
        let root: Arc<dyn Node> = store.root_node()?;
        let tried = feed.follow(&root)?;
        feed.unfollow(tried);
        Ok(feed)
    }
}

impl Feed for LocalFeed {
    fn follow(&self, dir: &NodeRef) -> Result<ObservedId> {
        let node: Option<&LocalNode> = dir.as_any().downcast_ref();
        let node = node.filter(|node| Arc::ptr_eq(&node.store, &self.store)).ok_or(Error::CrossDevice)?;
        if node.kind != FileKind::Directory {
            return Err(Error::NotDirectory);
        }
        let handle = kernel_handle::name_to_handle(node.fd.as_fd()).map_err(|_| Error::NotSupported)?;
        // The descriptor's own name, which no other object can have meanwhile.
        let path = CString::new(format!("/proc/self/fd/{}", node.fd.as_raw_fd())).unwrap_or_default();
        let mut instance = self.instance.lock();
        let marked = sys::fanotify_mark(instance.group.as_fd(), Mark::Add, WANTED, &path);
        marked.map_err(|errno| match errno {
            // fs.fanotify.max_user_marks
            Errno::NOSPC => Error::OutOfResources,
            Errno::NODEV | Errno::XDEV | Errno::OPNOTSUPP | Errno::INVAL => Error::NotSupported,
            other => from_errno(other),
        })?;
        let number = ObservedId(instance.next);
        instance.next = instance.next.wrapping_add(1);
        let before = instance.by_handle.insert(handle.clone(), number);
        let before = before.and_then(|number| instance.followed.remove(&number));
        instance.followed.insert(number, Followed { handle, path, _node: Arc::clone(dir) });
        drop(instance);
        drop(before);
        Ok(number)
    }

    fn unfollow(&self, dir: ObservedId) {
        let followed = {
            let mut instance = self.instance.lock();
            let Some(followed) = instance.followed.remove(&dir) else { return };
            instance.by_handle.remove(&followed.handle);
            let removed = sys::fanotify_mark(instance.group.as_fd(), Mark::Remove, WANTED, &followed.path);
            if let Err(errno) = removed {
                tracing::debug!("a mark stays: {errno}");
            }
            followed
        };
        drop(followed);
    }

    fn is_followed(&self, dir: ObservedId) -> bool {
        self.instance.lock().followed.contains_key(&dir)
    }

    fn directories_max(&self) -> usize {
        self.directories_max
    }

    fn drain(&self, each: &mut dyn FnMut(Uncertain<'_>)) {
        let mut instance = self.instance.lock();
        if !instance.drain(&self.store, each) {
            instance.restart();
            self.store.moves.tell();
            each(Uncertain::All);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::{Duration, SystemTime};
    use storage::conformance::MAY;

    use storage::{Name, Storage, Wait};

    use super::*;
    use crate::{LocalOptions, LocalStore};

    const FIRST: ObservedId = ObservedId(1);
    const SECOND: ObservedId = ObservedId(2);

    fn given(feed: &dyn Feed) -> Vec<(u64, String)> {
        let mut all = Vec::new();
        feed.drain(&mut |uncertain| {
            all.push(match uncertain {
                Uncertain::Name { dir, name, is_dir_gone, changes } => {
                    let gone = if is_dir_gone { " gone" } else { "" };
                    (dir.0, format!("{}{gone} {changes}", name.escape_ascii()))
                }
                Uncertain::Itself(dir) => (dir.0, "itself".to_owned()),
                Uncertain::Moved(dir) => (dir.0, "moved".to_owned()),
                Uncertain::All => (u64::MAX, "all".to_owned()),
            });
        });
        all
    }

    fn followed(path: &Path) -> (LocalStore, Arc<dyn Feed>) {
        let store = LocalStore::open(path, LocalOptions::default()).unwrap();
        let feed = store.feed().unwrap();
        assert_eq!(feed.follow(&store.root()).unwrap(), FIRST);
        (store, feed)
    }

    #[test]
    fn each_change_is_given_as_soon_as_it_is_made() {
        let directory = tempfile::tempdir().unwrap();
        let (store, feed) = followed(directory.path());
        let path = |name: &str| directory.path().join(name);
        let expect = |what: &[&str]| {
            let all = given(&*feed);
            let names: Vec<&str> = all.iter().map(|(_, what)| what.as_str()).collect();
            assert_eq!(names, what);
        };
        expect(&[]);
        std::fs::write(path("a"), "x").unwrap();
        expect(&["a 1"]);
        std::fs::write(path("a"), "more").unwrap();
        std::fs::set_permissions(path("a"), std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        expect(&[]);
        std::fs::hard_link(path("a"), path("b")).unwrap();
        std::fs::rename(path("a"), path("b2")).unwrap();
        expect(&["b 1", "a 1", "b2 1"]);
        std::fs::write(path("c"), "x").unwrap();
        std::fs::remove_file(path("c")).unwrap();
        expect(&["c 2"]);
        let times = std::fs::File::open(directory.path()).unwrap();
        times.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(5)).unwrap();
        expect(&["itself"]);
        std::fs::create_dir(path("d")).unwrap();
        expect(&["d 1"]);
        let d = store.root().lookup(Name::new(b"d").unwrap(), Wait::May(MAY)).unwrap();
        assert_eq!(feed.follow(&d).unwrap(), SECOND);
        let third = feed.follow(&d).unwrap();
        feed.unfollow(SECOND);
        assert!(third != SECOND && feed.is_followed(third) && !feed.is_followed(SECOND));
        std::fs::rename(path("d"), path("e")).unwrap();
        assert_eq!(given(&*feed), [(1, "d gone 1".into()), (1, "e 1".into()), (third.0, "moved".into())]);
        std::fs::set_permissions(path("e"), std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        assert_eq!(given(&*feed), [(third.0, "itself".into())], "what is said of it as a name is of no use");
        std::fs::remove_dir(path("e")).unwrap();
        assert!(given(&*feed).contains(&(1, "e gone 1".into())));
        feed.unfollow(third);
        std::fs::write(path("f"), "").unwrap();
        assert_eq!(given(&*feed), [(1, "f 1".into())]);
        assert!(feed.is_followed(FIRST) && !feed.is_followed(third));
    }

    #[test]
    fn when_events_are_lost_everything_is() {
        let directory = tempfile::tempdir().unwrap();
        let (store, feed) = followed(directory.path());
        let queued: usize = std::fs::read_to_string("/proc/sys/fs/fanotify/max_queued_events")
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        let path = |n: usize| directory.path().join(format!("{n}"));
        for n in 0..=queued {
            std::fs::write(path(n), "").unwrap();
        }
        assert_eq!(given(&*feed).last(), Some(&(u64::MAX, "all".to_owned())));
        assert!(!feed.is_followed(FIRST));
        assert_eq!(given(&*feed), []);
        assert_eq!(feed.follow(&store.root()).unwrap(), SECOND, "no number is used again");
        std::fs::remove_file(path(0)).unwrap();
        assert_eq!(given(&*feed), [(2, "0 1".into())]);
    }

    #[test]
    fn what_is_no_event_is_none() {
        let bytes = hex(
            "38000000 03001800 00010000 00000000 ffffffff 01000000 02002000 1122334455667788 08000000 01000000 \
            20405700d5fa8405 61000000",
        );
        let expected = Event {
            mask: libc::FAN_CREATE,
            handle: KernelHandle { kind: 1, bytes: hex("20405700d5fa8405") },
            name: b"a",
        };
        let mut left = bytes.as_slice();
        assert_eq!(take_event(&mut left), Some(expected));
        assert_eq!(left, b"");
        for length in 0..bytes.len() {
            assert_eq!(take_event(&mut &bytes[..length]), None, "{length} bytes");
        }
        let mut other = bytes.clone();
        other[24] = 1;
        assert_eq!(take_event(&mut other.as_slice()), None, "another kind");
        let mut lost = bytes;
        lost[9] = 0x40;
        assert_eq!(take_event(&mut lost.as_slice()), None, "events were lost");
    }

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(16)).collect();
        digits.chunks(2).map(|pair| u8::try_from(pair[0] * 16 + pair[1]).unwrap()).collect()
    }
}
