//! Directories that the server makes in a pool, and removes again: on the file system of the temporary directory, and on Btrfs.
#![expect(clippy::unwrap_used, reason = "a check that fails panics: that is how it tells")]

#[expect(dead_code, reason = "nothing is mounted read-only here")]
mod disk;
#[path = "../../../anabranch/tests/program/needs/mod.rs"]
mod needs;

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anabranch_storage_local::{LocalOptions, LocalStore, Pool, PoolError, PoolMark, PoolOwner, Removal};
use disk::{Disk, succeeds};
use storage::conformance::MAY;
use storage::{Error, Storage};
use tempfile::TempDir;

/// A pool in a directory.
struct Place {
    directory: PathBuf,
    /// Whether it is on Btrfs.
    has_subvolumes: bool,
}

/// What has become of a removal.
type Removed = Result<bool, PoolError>;

impl Place {
    fn pool(&self) -> Pool {
        Pool::open(&self.directory).unwrap()
    }

    fn make(&self, name: &str) -> PoolMark {
        let mark = PoolMark::random().unwrap();
        self.pool().make(name, mark, PoolOwner::default()).unwrap();
        mark
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Whether there was something to remove, which is gone now.
    fn remove(&self, name: &str, mark: PoolMark) -> Removed {
        let Some(mut removal) = Removal::begin(self.pool(), name, mark)? else { return Ok(false) };
        // Each step makes progress: there are not that many things.
        for _ in 0..10_000 {
            if removal.step()? {
                return Ok(true);
            }
        }
        panic!("the removal does not end");
    }

    fn names(&self) -> Vec<String> {
        let found = fs::read_dir(&self.directory).unwrap();
        let mut names: Vec<_> =
            found.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// Runs a test in each kind of file system that is there.
fn in_each(test: &str, check: impl Fn(&Place)) {
    if !rustix::process::geteuid().is_root() {
        needs::not_tested(&format!("{test}: only root sets the attributes of a pool"));
        return;
    }
    let place = TempDir::new().unwrap();
    let directory = place.path().join("pool");
    fs::create_dir(&directory).unwrap();
    check(&Place { directory, has_subvolumes: false });
    let at = place.path().join("btrfs");
    if let Some(_disk) = Disk::make("btrfs", &["-q"], 256, &at) {
        check(&Place { directory: at, has_subvolumes: true });
    }
}

#[test]
fn a_directory_is_made_whole_and_removed_whole() {
    in_each("a_directory_is_made_whole_and_removed_whole", |place| {
        let (pool, mark) = (place.pool(), PoolMark::random().unwrap());
        pool.make("data", mark, PoolOwner { uid: 1000, gid: 100 }).unwrap();
        let made = fs::metadata(place.at("data")).unwrap();
        assert_eq!((made.uid(), made.gid(), made.mode() & 0o7777), (1000, 100, 0o755));
        assert_eq!(made.ino() == 256, place.has_subvolumes);
        assert_eq!(pool.make("data", PoolMark::random().unwrap(), PoolOwner::default()), Err(Error::Exists));
        fill(&place.at("data"));
        pool.check_removable("data", mark).unwrap();
        assert_eq!(place.remove("data", mark), Ok(true));
        assert_eq!(place.remove("data", mark), Ok(false), "it is gone");
        // Of the one that was not made because of its name, only the number tells.
        let left: Vec<_> = place.names().into_iter().filter(|name| name == "data").collect();
        assert_eq!(left, Vec::<String>::new());
    });
}

/// Many files, deep directories, and names that are hard to handle.
fn fill(directory: &Path) {
    for number in 0..1500 {
        fs::write(directory.join(format!("file-{number}")), "x").unwrap();
    }
    for number in 0..150 {
        let below = directory.join(format!("wide-{number}"));
        fs::create_dir(&below).unwrap();
        fs::write(below.join("file"), "x").unwrap();
    }
    let mut deep = directory.to_owned();
    for _ in 0..400 {
        deep.push("deep");
    }
    fs::create_dir_all(&deep).unwrap();
    symlink("/", directory.join("to-the-top")).unwrap();
    fs::write(directory.join("-rf *\n"), "x").unwrap();
    Command::new("mkfifo").arg(directory.join("fifo")).status().unwrap();
}

#[test]
fn what_the_server_has_not_made_stays() {
    in_each("what_the_server_has_not_made_stays", |place| {
        let mark = place.make("data");
        let kept = place.at("kept");
        fs::create_dir(&kept).unwrap();
        fs::write(kept.join("file"), "x").unwrap();
        let refused = |what: &str| {
            assert_eq!(place.pool().check_removable("data", mark), Err(PoolError::NotMade), "{what}");
            assert_eq!(place.remove("data", mark), Err(PoolError::NotMade), "{what}");
        };
        // Another directory has its name, or a file, or a symbolic link to it.
        fs::rename(place.at("data"), place.at("away")).unwrap();
        fs::create_dir(place.at("data")).unwrap();
        refused("a directory");
        fs::remove_dir(place.at("data")).unwrap();
        fs::write(place.at("data"), "x").unwrap();
        refused("a file");
        fs::remove_file(place.at("data")).unwrap();
        for to in ["away", "kept"] {
            symlink(place.at(to), place.at("data")).unwrap();
            refused(to);
            fs::remove_file(place.at("data")).unwrap();
        }
        // Another one that the server made, and a copy with all attributes.
        place.make("data");
        refused("one with another number");
        fs::rename(place.at("data"), place.at("other")).unwrap();
        if place.has_subvolumes {
            succeeds("btrfs", &["-q", "subvolume", "snapshot"], &[&place.at("away"), &place.at("data")]);
        } else {
            succeeds("cp", &["-a", "--preserve=all"], &[&place.at("away"), &place.at("data")]);
        }
        refused("a copy");
        assert!(kept.join("file").is_file() && place.at("away").is_dir() && place.at("data").is_dir());
    });
}

#[test]
fn what_a_killed_server_has_left_is_found() {
    in_each("what_a_killed_server_has_left_is_found", |place| {
        let begun = PoolMark::random().unwrap();
        assert_eq!(place.remove("data", begun), Ok(false), "nothing was made");
        // It was made, and not marked.
        fs::create_dir(place.at(&format!(".anabranch-pool-{begun}"))).unwrap();
        assert_eq!(place.remove("data", begun), Ok(false));
        assert_eq!(place.names(), Vec::<String>::new());
        // Such a name is no proof: what is in it was not put there by the server.
        let forged = place.at(&format!(".anabranch-pool-{begun}"));
        fs::create_dir(&forged).unwrap();
        fs::write(forged.join("file"), "x").unwrap();
        assert_eq!(place.remove("data", begun), Err(PoolError::NotMade));
        assert!(forged.join("file").is_file());
        // It was renamed, and some of it is gone.
        let mark = place.make("data");
        fill(&place.at("data"));
        let mut removal = Removal::begin(place.pool(), "data", mark).unwrap().unwrap();
        assert!(place.at(removal.hidden_name()).is_dir() && !place.at("data").exists());
        if !place.has_subvolumes {
            assert_eq!(removal.step(), Ok(false));
        }
        drop(removal);
        assert_eq!(place.remove("data", mark), Ok(true));
    });
}

#[test]
fn what_no_share_ever_had_goes_if_it_is_empty() {
    in_each("what_no_share_ever_had_goes_if_it_is_empty", |place| {
        let mark = place.make("data");
        let file = place.at("data").join("file");
        fs::write(&file, "x").unwrap();
        assert_eq!(place.pool().unmake("data", mark), Ok(false));
        fs::remove_file(&file).unwrap();
        let other = PoolMark::random().unwrap();
        assert_eq!(place.pool().unmake("data", other), Ok(true), "nothing was made with this number");
        assert!(place.at("data").is_dir());
        fs::create_dir(place.at(&format!(".anabranch-pool-{other}"))).unwrap();
        assert_eq!(place.pool().unmake("none", other), Ok(true));
        assert_eq!(place.pool().unmake("data", mark), Ok(true));
        assert_eq!(place.names(), Vec::<String>::new());
    });
}

#[test]
fn nothing_on_another_file_system_is_removed() {
    in_each("nothing_on_another_file_system_is_removed", |place| {
        if place.has_subvolumes {
            return; // the caller looks for mounts there
        }
        let mark = place.make("data");
        let mounted = place.at("data/a/b");
        fs::create_dir_all(&mounted).unwrap();
        if !succeeds("mount", &["-t", "tmpfs", "none"], &[&mounted]) {
            return;
        }
        fs::write(mounted.join("file"), "x").unwrap();
        let refused = place.remove("data", mark);
        let hidden = place.at(&format!(".anabranch-pool-{mark}"));
        let is_kept = hidden.join("a/b/file").is_file();
        assert!(Command::new("umount").arg(hidden.join("a/b")).status().unwrap().success());
        assert_eq!((refused, is_kept), (Err(PoolError::Mounted), true));
        assert_eq!(place.remove("data", mark), Ok(true));
    });
}

#[test]
fn subvolumes_go_with_the_snapshots_of_the_server_only() {
    in_each("subvolumes_go_with_the_snapshots_of_the_server_only", |place| {
        if !place.has_subvolumes {
            return;
        }
        let mark = place.make("data");
        let store = LocalStore::open(&place.at("data"), LocalOptions::default()).unwrap();
        let snapshots = store.snapshots().unwrap();
        for _ in 0..3 {
            snapshots.take("kept", MAY).unwrap();
        }
        // A revert puts another subvolume in its place, which is the server's, too.
        let first = snapshots.list(MAY).unwrap().remove(0).id;
        snapshots.revert(first, MAY).unwrap();
        drop(snapshots);
        drop(store);
        place.pool().check_removable("data", mark).unwrap();
        let foreign = place.at("data/foreign");
        assert!(succeeds("btrfs", &["-q", "subvolume", "create"], &[&foreign]));
        assert_eq!(place.pool().check_removable("data", mark), Err(PoolError::Subvolume));
        assert_eq!(place.remove("data", mark), Err(PoolError::Subvolume));
        assert!(foreign.is_dir());
        assert!(succeeds("btrfs", &["-q", "subvolume", "delete"], &[&foreign]));
        assert_eq!(place.remove("data", mark), Ok(true));
        assert_eq!(place.names(), Vec::<String>::new());
    });
}

#[test]
fn a_pool_is_known_again() {
    in_each("a_pool_is_known_again", |place| {
        let mark = place.pool().mark().unwrap();
        assert_eq!(place.pool().mark(), Ok(mark));
        place.pool().check(mark).unwrap();
        assert_eq!(place.pool().check(PoolMark::random().unwrap()), Err(PoolError::OtherPool));
        let space = place.pool().space().unwrap();
        assert!(space.total >= space.free && space.free > 0);
        let missing = Pool::open(&place.at("none"));
        assert_eq!(missing.err(), Some(PoolError::Missing));
        assert!(matches!(Pool::open(Path::new("/proc")).unwrap().mark(), Err(PoolError::Unfit(_))));
    });
}

#[test]
fn what_was_restored_is_adopted_if_nobody_else_has_it() {
    in_each("what_was_restored_is_adopted_if_nobody_else_has_it", |place| {
        let mark = place.make("data");
        let other = place.make("other");
        let (pool, random) = (PoolMark::random().unwrap(), || PoolMark::random().unwrap());
        let adopt = |name: &str, mark| place.pool().adopt(name, pool, mark);
        assert_eq!(adopt("none", mark), Err(PoolError::Missing));
        assert_eq!(adopt("other", mark), Err(PoolError::NotMade), "it is that of somebody else");
        symlink(place.at("data"), place.at("link")).unwrap();
        assert_eq!(adopt("link", mark), Err(PoolError::NotMade));
        assert_eq!(place.pool().check(pool), Err(PoolError::OtherPool), "what is refused changes nothing");
        // What the server made, a directory without a mark, and a copy of one with a mark.
        adopt("data", mark).unwrap();
        place.pool().check(pool).unwrap();
        assert_eq!(place.pool().adopt("data", random(), mark), Err(PoolError::OtherPool));
        fs::create_dir(place.at("plain")).unwrap();
        let plain = random();
        adopt("plain", plain).unwrap();
        succeeds("cp", &["-a", "--preserve=all"], &[&place.at("plain"), &place.at("copy")]);
        let copy = random();
        adopt("copy", copy).unwrap();
        for (name, mark) in [("data", mark), ("other", other), ("plain", plain), ("copy", copy)] {
            place.pool().check_removable(name, mark).unwrap();
        }
        fs::write(place.at("copy").join("file"), "x").unwrap();
        assert_eq!(place.remove("copy", copy), Ok(true));
    });
}
