//! Changes of directories as the kernel reports them: inotify(7).

use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;
use storage::{Deed, Error, FileKind, Node, Observed, ObservedId, Observer, Result};

use crate::errno::from_errno;
use crate::node::LocalNode;
use crate::store::Shared;

/// How much is read at once: some hundred events.
const READ_BYTES: usize = 64 * 1024;
/// The most events that are passed on at a time.
const EVENTS_MAX: usize = 16_384;
/// The events that the kernel is asked for, for each directory.
const WANTED: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::ONLYDIR)
    .union(WatchFlags::EXCL_UNLINK);

/// An inotify instance for one store.
#[derive(Debug)]
pub(crate) struct LocalObserver {
    store: Arc<Shared>,
    inotify: OwnedFd,
    /// Readable when the wait is to end.
    woken: OwnedFd,
    /// Guards the numbers.
    numbers: Mutex<Numbers>,
}

/// The kernel reuses the number of a directory that is no longer watched; the numbers used here are unique.
#[derive(Debug, Default)]
struct Numbers {
    next: u64,
    by_kernel: HashMap<i32, ObservedId>,
}

impl LocalObserver {
    /// # Errors
    /// [`Error::OutOfResources`] when the user has as many instances as allowed (fs.inotify.max_user_instances).
    pub(crate) fn new(store: &Arc<Shared>) -> Result<Self> {
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).map_err(from_errno)?;
        let woken = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(from_errno)?;
        Ok(Self { store: Arc::clone(store), inotify, woken, numbers: Mutex::default() })
    }

    /// Waits until there is something to read, and resets the request to end.
    fn wait_readable(&self) -> Result<()> {
        let mut fds = [PollFd::new(&self.inotify, PollFlags::IN), PollFd::new(&self.woken, PollFlags::IN)];
        match poll(&mut fds, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(from_errno(errno)),
        }
        match rustix::io::read(&self.woken, &mut [0_u8; 8]) {
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => Ok(()),
            Err(errno) => Err(from_errno(errno)),
        }
    }

    fn give(&self, event: &inotify::Event<'_>, each: &mut dyn FnMut(Observed<'_>)) {
        let events = event.events();
        if events.contains(ReadFlags::QUEUE_OVERFLOW) {
            return each(Observed::Lost);
        }
        let dir = {
            let mut numbers = self.numbers.lock();
            if events.contains(ReadFlags::IGNORED) {
                numbers.by_kernel.remove(&event.wd())
            } else {
                numbers.by_kernel.get(&event.wd()).copied()
            }
        };
        let Some(dir) = dir else { return };
        if events.contains(ReadFlags::IGNORED) {
            return each(Observed::Ended(dir));
        }
        // An event without a name is about the directory itself.
        let (Some(name), Some(deed)) = (event.file_name(), deed(events, event.cookie())) else { return };
        if self.store.reserved.has(name.to_bytes()) {
            return; // clients do not see such entries
        }
        let is_dir = events.contains(ReadFlags::ISDIR);
        each(Observed::Entry { dir, name: name.to_bytes(), is_dir, deed });
    }
}

fn deed(events: ReadFlags, cookie: u32) -> Option<Deed> {
    let is = |flag| events.contains(flag);
    Some(match () {
        () if is(ReadFlags::CREATE) => Deed::Made,
        () if is(ReadFlags::DELETE) => Deed::Removed,
        () if is(ReadFlags::MOVED_TO) => Deed::MovedHere(cookie),
        () if is(ReadFlags::MOVED_FROM) => Deed::MovedAway(cookie),
        () if is(ReadFlags::MODIFY) => Deed::Written,
        () if is(ReadFlags::ATTRIB) => Deed::Attributes,
        () => return None,
    })
}

impl Observer for LocalObserver {
    fn observe(&self, dir: &dyn Node) -> Result<ObservedId> {
        let node: Option<&LocalNode> = dir.as_any().downcast_ref();
        let node = node.filter(|node| Arc::ptr_eq(&node.store, &self.store)).ok_or(Error::CrossDevice)?;
        if node.kind != FileKind::Directory {
            return Err(Error::NotDirectory);
        }
        // The descriptor's own name, which no other object can have meanwhile.
        let path = format!("/proc/self/fd/{}", node.fd.as_raw_fd());
        // The lock is held over the call, so that events that arrive at once find their number.
        let mut numbers = self.numbers.lock();
        let number =
            inotify::add_watch(&self.inotify, path.as_str(), WANTED).map_err(|errno| match errno {
                // fs.inotify.max_user_watches
                Errno::NOSPC => Error::OutOfResources,
                other => from_errno(other),
            })?;
        let next = numbers.next;
        let id = *numbers.by_kernel.entry(number).or_insert(ObservedId(next));
        if id == ObservedId(next) {
            numbers.next = next.wrapping_add(1);
        }
        Ok(id)
    }

    fn ignore(&self, dir: ObservedId) {
        let numbers = self.numbers.lock();
        let number = numbers.by_kernel.iter().find(|(_, id)| **id == dir).map(|(number, _)| *number);
        if let Some(number) = number
            && let Err(errno) = inotify::remove_watch(&self.inotify, number)
        {
            tracing::debug!("a directory that is gone was observed: {errno}");
        }
    }

    fn wait(&self, each: &mut dyn FnMut(Observed<'_>)) -> Result<bool> {
        self.wait_readable()?;
        let mut buffer = vec![MaybeUninit::uninit(); READ_BYTES];
        let mut reader = Reader::new(&self.inotify, &mut buffer);
        for _ in 0..EVENTS_MAX {
            match reader.next() {
                Ok(event) => self.give(&event, each),
                Err(Errno::AGAIN) => return Ok(true),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(from_errno(errno)),
            }
        }
        // Events in the buffer were taken from the kernel and must be passed on.
        while !reader.is_buffer_empty() {
            let event = reader.next().map_err(from_errno)?;
            self.give(&event, each);
        }
        Ok(false)
    }

    fn wake(&self) {
        if let Err(errno) = rustix::io::write(&self.woken, &1_u64.to_ne_bytes()) {
            tracing::debug!("the observer is not woken: {errno}");
        }
    }
}

#[cfg(test)]
mod tests {
    use storage::conformance::MAY;
    use storage::{Name, Storage, Wait};

    use super::*;
    use crate::{LocalOptions, LocalStore};

    /// What is observed of everything that has happened.
    fn seen(observer: &dyn Observer) -> Vec<(String, bool, Deed)> {
        let mut all = Vec::new();
        observer.wake();
        let whole = observer.wait(&mut |observed| {
            if let Observed::Entry { name, is_dir, deed, .. } = observed {
                // The kernel chooses the numbers of renames.
                let deed = match deed {
                    Deed::MovedHere(_) => Deed::MovedHere(0),
                    Deed::MovedAway(_) => Deed::MovedAway(0),
                    other => other,
                };
                all.push((String::from_utf8(name.to_vec()).unwrap(), is_dir, deed));
            }
        });
        assert!(whole.unwrap());
        all
    }

    #[test]
    fn what_others_do_is_observed_in_order() {
        let directory = tempfile::tempdir().unwrap();
        let store = LocalStore::open(directory.path(), LocalOptions::default()).unwrap();
        let observer = store.observer().unwrap();
        let id = observer.observe(&*store.root()).unwrap();
        assert_eq!(observer.observe(&*store.root()).unwrap(), id);
        let path = |name: &str| directory.path().join(name);
        std::fs::write(path("a"), "x").unwrap();
        std::fs::rename(path("a"), path("b")).unwrap();
        std::fs::create_dir(path("d")).unwrap();
        std::fs::remove_file(path("b")).unwrap();
        let expected = [
            ("a", false, Deed::Made),
            ("a", false, Deed::Written),
            ("a", false, Deed::MovedAway(0)),
            ("b", false, Deed::MovedHere(0)),
            ("d", true, Deed::Made),
            ("b", false, Deed::Removed),
        ];
        let expected = expected.map(|(name, is_dir, deed)| (name.to_owned(), is_dir, deed));
        assert_eq!(seen(&*observer), expected);
        let d = store.root().lookup(Name::new(b"d").unwrap(), Wait::May(MAY)).unwrap();
        let other = observer.observe(&*d).unwrap();
        assert_ne!(other, id);
        observer.ignore(other);
        std::fs::write(path("d/f"), "x").unwrap();
        assert_eq!(seen(&*observer), []);
        let mut again = observer.observe(&*d).unwrap();
        assert!(again != other && again != id, "no number is used twice");
        std::fs::write(path("d/g"), "x").unwrap();
        observer
            .wait(&mut |observed| match observed {
                Observed::Entry { dir, .. } => again = dir,
                other => panic!("{other:?}"),
            })
            .unwrap();
        assert!(again != other && again != id);
    }

    #[test]
    fn only_directories_of_the_store_are_observed() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("f"), "x").unwrap();
        let store = LocalStore::open(directory.path(), LocalOptions::default()).unwrap();
        let other = LocalStore::open(directory.path(), LocalOptions::default()).unwrap();
        let observer = store.observer().unwrap();
        assert_eq!(observer.observe(&*other.root()), Err(Error::CrossDevice));
        let file = store.root().lookup(Name::new(b"f").unwrap(), Wait::May(MAY)).unwrap();
        assert_eq!(observer.observe(&*file), Err(Error::NotDirectory));
    }

    #[test]
    fn the_depot_of_streams_is_not_observed() {
        let directory = tempfile::tempdir().unwrap();
        let store = LocalStore::open(directory.path(), LocalOptions::default()).unwrap();
        let observer = store.observer().unwrap();
        std::fs::write(directory.path().join("f"), "x").unwrap();
        observer.observe(&*store.root()).unwrap();
        let file = store.root().lookup(Name::new(b"f").unwrap(), Wait::May(MAY)).unwrap();
        file.create_stream(storage::StreamName::new(b"s").unwrap(), MAY).unwrap();
        let numbered = ("f".to_owned(), false, Deed::Attributes);
        assert_eq!(seen(&*observer), [numbered], "with the first stream, the file gets a number");
        file.create_stream(storage::StreamName::new(b"t").unwrap(), MAY).unwrap();
        assert_eq!(seen(&*observer), []);
    }
}
