//! Whether a directory still lies below the root.
//!
//! A local program may move a directory out of the root. The directory keeps its descriptor and its handle, so whoever
//! holds it could go on working there. Therefore every operation in a directory first checks its place
//! ([`LocalNode::check_place`]). The result is trusted for a second, but no longer than until a [`storage::Feed`]
//! reports that some directory was moved. While it is trusted, a check costs a few loads and a reading of the clock. A
//! directory that is found by name is trusted for as long as the directory in which it was found, so no check is made
//! on the way down a path.
//!
//! The kernel returns the path of a directory at any depth in one call, as long as the path fits into a page. For a
//! longer path, the check first climbs many levels at a time, unless the parent directory is trusted: the cost hardly
//! grows with the depth.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, openat, readlinkat};
use rustix::io::Errno;
use rustix::path::DecInt;
use storage::{Error, FileKind, ObjectId, Result};

use crate::attributes::stat;
use crate::errno::from_errno;
use crate::node::LocalNode;
use crate::resolve::PIN;
use crate::store::Shared;

/// How long the result of a check is trusted.
const BELIEVED: Duration = Duration::from_secs(1);
/// Levels to climb at a time: the largest number that leads to a directory below the root. The kernel accepts a path of
/// that many `../`.
const CLIMBS: [usize; 6] = [1024, 256, 64, 16, 4, 1];
/// The most climbs: some 60,000 levels.
const CLIMBS_MAX: usize = 64;
/// How often the check is repeated when the root itself was moved meanwhile.
const LOOKS_MAX: usize = 3;
/// The bits of a [`MoveTime`] that count moves.
const MOVE_BITS: u32 = 24;

/// How many moves of directories in the store were reported, and the origin of the times in [`MoveTime`].
#[derive(Debug)]
pub(crate) struct Moves {
    told: AtomicU64,
    since: Instant,
}

/// A time in milliseconds; the lowest bits hold the number of moves until then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MoveTime(u64);

/// When a directory was last found below the root.
#[derive(Debug, Default)]
pub(crate) struct LastFound(AtomicU64);

impl LastFound {
    fn found(&self) -> MoveTime {
        MoveTime(self.0.load(Ordering::Relaxed))
    }

    fn note(&self, found: MoveTime) {
        if self.found().0 < found.0 {
            self.0.store(found.0, Ordering::Relaxed);
        }
    }
}

impl Default for Moves {
    fn default() -> Self {
        // No directory was found before the first millisecond: a new place starts there.
        let now = Instant::now();
        Self { told: AtomicU64::new(0), since: now.checked_sub(2 * BELIEVED).unwrap_or(now) }
    }
}

impl Moves {
    /// Notes that a directory was moved, or may have been.
    pub(crate) fn tell(&self) {
        self.told.fetch_add(1, Ordering::AcqRel);
    }

    fn now(&self) -> MoveTime {
        let moves = self.told.load(Ordering::Acquire) & ((1 << MOVE_BITS) - 1);
        let ms = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        MoveTime(ms << MOVE_BITS | moves)
    }
}

impl MoveTime {
    /// Whether a check made at this moment is still trusted.
    fn holds(self, now: Self) -> bool {
        let moves = |moment: Self| moment.0 & ((1 << MOVE_BITS) - 1);
        let age = (now.0 >> MOVE_BITS).saturating_sub(self.0 >> MOVE_BITS);
        moves(self) == moves(now) && u128::from(age) < BELIEVED.as_millis()
    }
}

impl LocalNode {
    /// Fails for a directory that is no longer below the root. Other objects are where their names are.
    ///
    /// # Errors
    /// [`Error::Stale`].
    pub(crate) fn check_place(&self) -> Result<()> {
        if self.kind == FileKind::Directory { self.found_below().map(|_| ()) } else { Ok(()) }
    }

    /// When this directory was last found below the root. Checks it now if that was too long ago.
    fn found_below(&self) -> Result<MoveTime> {
        let now = self.store.moves.now();
        let found = self.place.found();
        if self.id == self.store.root_id || found.holds(now) {
            return Ok(if self.id == self.store.root_id { now } else { found });
        }
        let found = self.store.look_below(self.fd.as_fd(), now, &mut 0)?.ok_or(Error::Stale)?;
        self.place.note(found);
        Ok(found)
    }

    /// Trusts a directory that was just found in this one, for which [`LocalNode::check_place`] succeeded, as long as
    /// this one.
    pub(crate) fn vouch_for(&self, child: &Self) {
        if child.kind == FileKind::Directory {
            let is_root = self.id == self.store.root_id;
            child.place.note(if is_root { self.store.moves.now() } else { self.place.found() });
        }
    }
}

/// Where a directory lies, according to the kernel.
enum Path {
    Root,
    Below,
    /// The root lies below it.
    Above,
    Elsewhere,
    /// The path is too long for the kernel to return.
    Long,
}

impl Shared {
    /// Whether a directory is the root or lies below it.
    pub(crate) fn is_below_root(&self, fd: &OwnedFd, id: ObjectId) -> Result<bool> {
        Ok(id == self.root_id || self.look_below(fd.as_fd(), self.moves.now(), &mut 0)?.is_some())
    }

    /// When a directory was found below the root, if it lies there. `calls` counts system calls.
    fn look_below(&self, fd: BorrowedFd<'_>, now: MoveTime, calls: &mut usize) -> Result<Option<MoveTime>> {
        let mut root = self.path_of(self.root.as_fd(), calls)?.ok_or(Error::InvalidArgument)?;
        for _ in 0..LOOKS_MAX {
            let found = self.find_below(fd, &root, now, calls)?;
            if found.is_some() {
                return Ok(found);
            }
            let again = self.path_of(self.root.as_fd(), calls)?.ok_or(Error::InvalidArgument)?;
            if again == root {
                break;
            }
            root = again;
        }
        Ok(None)
    }

    fn find_below(
        &self,
        fd: BorrowedFd<'_>,
        root: &[u8],
        now: MoveTime,
        calls: &mut usize,
    ) -> Result<Option<MoveTime>> {
        let mut at: Option<OwnedFd> = None;
        for _ in 0..CLIMBS_MAX {
            let here = at.as_ref().map_or(fd, AsFd::as_fd);
            match self.place_of(here, root, calls)? {
                Path::Root | Path::Below => return Ok(Some(now)),
                Path::Above | Path::Elsewhere => return Ok(None),
                Path::Long => {}
            }
            if let (None, Some(found)) = (&at, self.found_above(here, now, calls)?) {
                return Ok(Some(found));
            }
            match self.climb(here, root, calls)? {
                Some(up) => at = Some(up),
                None => return Ok(None),
            }
        }
        Ok(None)
    }

    /// When the parent directory was found below the root, if the parent is cached and still trusted.
    fn found_above(&self, fd: BorrowedFd<'_>, now: MoveTime, calls: &mut usize) -> Result<Option<MoveTime>> {
        *calls += 2;
        let up = self.with_descriptor(|| openat(fd, c"..", PIN | OFlags::DIRECTORY, Mode::empty()))?;
        let stat = stat(&up)?;
        let at_hand = self.cache.get(ObjectId::live(stat.stx_ino)).filter(|node| node.is_object_of(&stat));
        Ok(at_hand.map(|node| node.place.found()).filter(|found| found.holds(now)))
    }

    /// A directory above that may lie below the root, as far up as possible.
    fn climb(&self, fd: BorrowedFd<'_>, root: &[u8], calls: &mut usize) -> Result<Option<OwnedFd>> {
        for levels in CLIMBS {
            *calls += 1;
            let path = "../".repeat(levels);
            let up =
                self.with_descriptor(|| openat(fd, path.as_str(), PIN | OFlags::DIRECTORY, Mode::empty()))?;
            match self.place_of(up.as_fd(), root, calls)? {
                Path::Root | Path::Below | Path::Long => return Ok(Some(up)),
                Path::Above => {} // too far
                Path::Elsewhere => break,
            }
        }
        Ok(None)
    }

    fn place_of(&self, fd: BorrowedFd<'_>, root: &[u8], calls: &mut usize) -> Result<Path> {
        let Some(path) = self.path_of(fd, calls)? else { return Ok(Path::Long) };
        Ok(match (behind(&path, root), behind(root, &path)) {
            (Some([]), _) => Path::Root,
            (Some(_), _) => Path::Below,
            (None, Some(_)) => Path::Above,
            (None, None) => Path::Elsewhere,
        })
    }

    /// The path of an open object; None when it is too long. For an object that was removed this is its last path.
    fn path_of(&self, fd: BorrowedFd<'_>, calls: &mut usize) -> Result<Option<Vec<u8>>> {
        *calls += 1;
        match readlinkat(&self.descriptors, DecInt::from_fd(fd), Vec::new()) {
            Ok(path) => Ok(Some(path.into_bytes())),
            Err(Errno::NAMETOOLONG) => Ok(None),
            Err(errno) => Err(from_errno(errno)),
        }
    }
}

/// The rest of a path below `dir`, if the path leads through it.
fn behind<'a>(path: &'a [u8], dir: &[u8]) -> Option<&'a [u8]> {
    let rest = path.strip_prefix(dir.strip_suffix(b"/").unwrap_or(dir))?;
    matches!(rest, [] | [b'/', ..]).then(|| rest.strip_prefix(b"/").unwrap_or(rest))
}

#[cfg(test)]
mod tests {

    use rustix::fs::mkdirat;
    use storage::conformance::MAY;
    use storage::{Name, Storage, Wait};

    use super::*;
    use crate::{LocalOptions, LocalStore};

    #[test]
    fn a_place_is_believed_for_a_second_and_until_something_is_moved() {
        let moves = Moves::default();
        let first = moves.now();
        assert!(!MoveTime(LastFound::default().0.into_inner()).holds(first), "nothing is known at first");
        assert!(first.holds(first));
        let at = |ms: u64, moves: u64| MoveTime(ms << MOVE_BITS | moves);
        assert!(at(5000, 3).holds(at(5999, 3)) && !at(5000, 3).holds(at(6000, 3)));
        assert!(!at(5000, 3).holds(at(5000, 4)), "somebody told of a move");
        assert!(at(5000, 3).holds(at(4990, 3)), "the moments of two threads");
        moves.tell();
        assert!(!first.holds(moves.now()));
    }

    #[test]
    fn what_a_path_leads_to() {
        assert_eq!(behind(b"/a/b/c", b"/a"), Some(&b"b/c"[..]));
        assert_eq!(behind(b"/a", b"/a"), Some(&b""[..]));
        assert_eq!((behind(b"/ab", b"/a"), behind(b"/a", b"/a/b")), (None, None));
        assert_eq!((behind(b"/a", b"/"), behind(b"/", b"/")), (Some(&b"a"[..]), Some(&b""[..])));
    }

    /// Nested directories, this many levels, each with a name of four letters.
    fn deep(top: &std::path::Path, levels: usize) -> OwnedFd {
        let open = |dir: BorrowedFd<'_>| {
            mkdirat(dir, "deep", Mode::from_raw_mode(0o755)).unwrap();
            openat(dir, "deep", PIN | OFlags::DIRECTORY, Mode::empty()).unwrap()
        };
        let top = std::fs::File::open(top).unwrap();
        (1..levels).fold(open(top.as_fd()), |dir, _| open(dir.as_fd()))
    }

    fn take_apart(top: &std::path::Path) {
        // Longer than a path may be: deep directories are moved up before they are removed.
        let levels = top.join("deep");
        while levels.join("deep").exists() {
            let (inner, old) = (top.join("inner"), top.join("old"));
            std::fs::rename(levels.join("deep"), &inner).unwrap();
            std::fs::rename(&levels, &old).unwrap();
            std::fs::rename(&inner, &levels).unwrap();
            std::fs::remove_dir(&old).unwrap();
        }
    }

    #[test]
    fn three_thousand_levels_cost_some_calls() {
        let place = tempfile::tempdir().unwrap();
        let (inside, outside) = (place.path().join("root"), place.path().join("outside"));
        std::fs::create_dir(&inside).unwrap();
        std::fs::create_dir(&outside).unwrap();
        let store = LocalStore::open(&inside, LocalOptions::default()).unwrap();
        let root = store.root();
        let root: &LocalNode = root.as_any().downcast_ref().unwrap();
        let shared = &root.store;
        let look = |fd: &OwnedFd| {
            let mut calls = 0;
            (shared.look_below(fd.as_fd(), shared.moves.now(), &mut calls).unwrap().is_some(), calls)
        };
        for levels in [1, 10, 500, 3000] {
            let (below, elsewhere) = (deep(&inside, levels), deep(&outside, levels));
            let (is_below, calls) = look(&below);
            assert!(is_below && calls <= 32, "{levels} levels: {calls} calls");
            let (is_below, calls) = look(&elsewhere);
            assert!(!is_below && calls <= 32, "{levels} levels elsewhere: {calls} calls");
            std::fs::rename(inside.join("deep"), place.path().join("moved")).unwrap();
            assert!(!look(&below).0, "{levels} levels moved out");
            std::fs::rename(place.path().join("moved"), inside.join("deep")).unwrap();
            assert!(look(&below).0);
            take_apart(&inside);
            take_apart(&outside);
            std::fs::remove_dir(inside.join("deep")).unwrap();
            std::fs::remove_dir(outside.join("deep")).unwrap();
        }
    }

    #[test]
    fn on_the_way_down_nobody_asks() {
        let place = tempfile::tempdir().unwrap();
        let inside = place.path().join("root");
        std::fs::create_dir(&inside).unwrap();
        let store = LocalStore::open(&inside, LocalOptions::default()).unwrap();
        drop(deep(&inside, 1500));
        let deep_name = Name::new(b"deep").unwrap();
        let mut nodes = vec![store.root()];
        for _ in 0..1500 {
            nodes.push(nodes.last().unwrap().lookup(deep_name, Wait::May(MAY)).unwrap());
        }
        let local = |n: usize| nodes[n].as_any().downcast_ref::<LocalNode>().unwrap();
        let found = |n: usize| local(n).place.found();
        assert!((1..=1500).all(|n| found(n) != MoveTime(0)), "each is vouched for by the one above");
        let (old, new) = (LastFound::default(), LastFound::default());
        old.note(MoveTime(5));
        new.note(MoveTime(7));
        new.note(MoveTime(5));
        assert_eq!((old.found(), new.found()), (MoveTime(5), MoveTime(7)), "what is newer stays");
        // A directory too deep for the kernel to return its path is found through its parent.
        let now = local(1499).store.moves.now();
        local(1499).place.note(now);
        let mut calls = 0;
        let known = local(1500).store.look_below(local(1500).fd.as_fd(), now, &mut calls).unwrap();
        assert_eq!(
            (known, calls),
            (Some(now), 4),
            "the root's path, its own, the one above and which that is"
        );
        take_apart(&inside);
    }

    #[test]
    fn what_was_moved_out_is_stale_within_a_second_and_at_once_when_that_is_told() {
        let place = tempfile::tempdir().unwrap();
        let (inside, outside) = (place.path().join("root"), place.path().join("outside"));
        std::fs::create_dir_all(inside.join("d/e")).unwrap();
        let store = LocalStore::open(&inside, LocalOptions::default()).unwrap();
        let d = store.root().lookup(Name::new(b"d").unwrap(), Wait::May(MAY)).unwrap();
        let e = d.lookup(Name::new(b"e").unwrap(), Wait::May(MAY)).unwrap();
        let handles = [&d, &e].map(|node| node.handle().unwrap());
        let find = |handle| store.by_handle(handle, Wait::May(MAY)).map(|node| node.id());
        let feed = store.feed().ok();
        let follows = feed.as_ref().is_some_and(|feed| feed.follow(&store.root()).is_ok());
        for turn in 0..2 {
            assert_eq!(handles.each_ref().map(find), [Ok(d.id()), Ok(e.id())]);
            std::fs::rename(inside.join("d"), &outside).unwrap();
            if turn == 0 && follows {
                feed.as_ref().unwrap().drain(&mut |_| {});
            } else {
                std::thread::sleep(BELIEVED);
            }
            assert_eq!(handles.each_ref().map(find), [Err(Error::Stale), Err(Error::Stale)]);
            for dir in [&d, &e] {
                let new = storage::NewNode { kind: storage::NewKind::Regular, mode: 0o600, uid: 0, gid: 0 };
                let new_name = Name::new(b"new").unwrap();
                assert_eq!(dir.create(new_name, &new, MAY).err(), Some(Error::Stale));
                assert_eq!(dir.lookup(new_name, Wait::May(MAY)).err(), Some(Error::Stale));
                assert_eq!(dir.remove_dir(new_name, MAY), Err(Error::Stale));
                assert_eq!(
                    store.root().rename(new_name, &**dir, new_name, storage::Replace::Yes, MAY),
                    Err(Error::Stale)
                );
                assert_eq!(dir.check_place(), Err(Error::Stale));
                let listed = dir.read_dir(0, MAY, &mut |_| std::ops::ControlFlow::Continue(()));
                assert_eq!(listed, Err(Error::Stale));
            }
            std::fs::rename(&outside, inside.join("d")).unwrap();
        }
    }
}
