//! The metadata cache over a directory of this machine that others change too: what a client is told must be so.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_share::{
    CacheCounts, Call, Caller, Case, Error, File, Found, Identity, NewObject, Proof, Settings, Share,
    ShareId, Walk,
};
use storage::conformance::MAY;
use storage::memory::MemoryStore;
use storage::{
    Device, Error as StorageError, FileKind, Name, NewKind, NewNode, SetAttributes, SetTime, Storage,
    Timestamp, Want,
};
use storage_local::{LocalOptions, LocalStore};

#[expect(dead_code, reason = "what other tests use")]
#[path = "../fronts/mod.rs"]
mod fronts;

mod histories;

use fronts::{SMB, call};
use histories::{Deed, churn};

fn root() -> Call {
    let own = std::fs::metadata("/proc/self").unwrap();
    call(&SMB, Caller::new(Identity::unix(own.uid(), own.gid(), vec![]), Proof::Stated))
}

/// What a call gives; calls that go to the pool run on a runtime.
fn done<T>(call: impl Future<Output = T>) -> T {
    thread_local! {
        static RUNTIME: tokio::runtime::Runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    }
    RUNTIME.with(|runtime| runtime.block_on(call))
}

fn object(kind: FileKind) -> NewObject {
    let mode = if kind == FileKind::Directory { 0o755 } else { 0o644 };
    NewObject {
        kind,
        target: Vec::new(),
        device: Device::default(),
        mode,
        umask: 0,
        set: SetAttributes::default(),
        want: Want::empty(),
        security: None,
        mode_bounds: false,
    }
}

struct Server {
    share: Arc<Share>,
    directory: tempfile::TempDir,
    runtime: tokio::runtime::Runtime,
}

impl Server {
    fn new() -> Self {
        Self::with(|_| ())
    }

    fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = LocalStore::open(directory.path(), LocalOptions::default()).unwrap();
        let mut settings = Settings::new("data");
        change(&mut settings);
        let share = Share::new(ShareId(1), settings, Arc::new(store));
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        Self { share, directory, runtime }
    }

    fn run<T>(&self, call: impl Future<Output = T>) -> T {
        self.runtime.block_on(call)
    }

    fn at(&self, path: &str) -> PathBuf {
        self.directory.path().join(path)
    }

    fn walk(&self, path: &str, case: Case) -> Result<Found, Error> {
        let parts = path.split('/').filter(|p| !p.is_empty()).map(|p| p.as_bytes().to_vec()).collect();
        match self.run(self.share.walk(&root(), parts, case, Want::FLAGS))? {
            Walk::Found(found) => Ok(found),
            Walk::Missing { .. } => Err(StorageError::NotFound.into()),
        }
    }

    fn names(&self, path: &str) -> Result<Vec<Vec<u8>>, Error> {
        let dir = self.walk(path, Case::Sensitive)?.node;
        let listing = self.run(self.share.list(&root(), &dir, 0, usize::MAX, None))?;
        let mut names: Vec<_> = listing.entries.into_iter().map(|entry| entry.name).collect();
        names.sort();
        Ok(names)
    }

    fn counts(&self) -> CacheCounts {
        self.share.cache_counts().unwrap()
    }
}

fn newest(directory: &tempfile::TempDir) -> u64 {
    let number = |name: std::ffi::OsString| name.to_str()?.strip_prefix('h')?.parse().ok();
    let entries = std::fs::read_dir(directory.path()).unwrap();
    entries.filter_map(|entry| number(entry.unwrap().file_name())).max().unwrap_or(0)
}

// --- single behaviours ---

/// Asks until the directory is followed and all is at hand.
fn warm(server: &Server, path: &str) {
    for _ in 0..4 {
        let _ = server.walk(path, Case::Insensitive);
    }
}

#[test]
fn what_was_asked_before_is_answered_from_memory() {
    let server = Server::new();
    std::fs::create_dir_all(server.at("a/b/c")).unwrap();
    warm(&server, "a/b/c/none");
    warm(&server, "a/b/c");
    let before = server.counts();
    server.walk("a/b/c/none", Case::Sensitive).unwrap_err();
    server.walk("a/b/c", Case::Sensitive).unwrap();
    let after = server.counts();
    assert_eq!(after.names.misses, before.names.misses);
    assert_eq!(after.attributes.misses, before.attributes.misses);
    assert_eq!((after.names.hits, after.absent), (before.names.hits + 6, before.absent + 1));
}

/// While the store is quick a directory that changes nearly as often as it is asked is not kept, but for a try now and then.
#[test]
fn a_directory_that_only_changes_rests() {
    let server = Server::with(|settings| settings.quick_answer = Duration::MAX);
    std::fs::create_dir(server.at("d")).unwrap();
    let dir = server.walk("d", Case::Sensitive).unwrap().node;
    // Asked ten times, after some that get it into memory if it may be there.
    let hits = || {
        for _ in 0..4 {
            let _ = server.walk("d/none", Case::Sensitive);
        }
        let before = server.counts().attributes.hits;
        (0..10).for_each(|_| _ = done(server.share.attributes(&root(), &dir, Want::empty())).unwrap());
        (server.counts().attributes.hits - before, server.counts().directories)
    };
    let is_kept = || {
        let deadline = Instant::now() + Duration::from_secs(120);
        while hits().0 < 10 {
            assert!(Instant::now() < deadline, "it rests for too long");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    // The first rest lasts for a second, each further one is longer: a machine that stands still until it is over shows nothing.
    let rests = || {
        let is_seen = || {
            is_kept();
            let begun = Instant::now();
            churn(&server, "d", 300);
            let seen = hits();
            (begun.elapsed() < Duration::from_millis(900)).then_some(seen)
        };
        (0..20).find_map(|_| is_seen()).expect("the machine stands still again and again")
    };
    let (asked, followed) = hits();
    assert_eq!(asked, 10);
    assert_eq!(rests(), (0, followed - 1));
    is_kept();
    assert_eq!(hits(), (10, followed));
    // Its index of names is told of changes all the while.
    warm(&server, "d/NONE");
    churn(&server, "d", 300);
    std::fs::write(server.at("d/none"), "").unwrap();
    assert_eq!(server.walk("d/NONE", Case::Insensitive).unwrap().name, b"none");
    assert_eq!(rests(), (0, followed));
}

/// While the store is slow each answer from memory is worth it.
#[test]
fn a_directory_of_a_slow_store_is_kept_however_often_it_changes() {
    let server = Server::with(|settings| settings.quick_answer = Duration::ZERO);
    std::fs::create_dir(server.at("d")).unwrap();
    warm(&server, "d/none");
    churn(&server, "d", 300);
    let before = server.counts();
    warm(&server, "d/none");
    let after = server.counts();
    assert_eq!((after.attributes.misses, after.directories), (before.attributes.misses, before.directories));
    assert!(after.attributes.hits > before.attributes.hits);
}

/// A directory of many names is read for its index where that holds up nobody.
#[test]
fn a_large_directory_is_read_beside_other_calls() {
    const NAMES: usize = 200_000;
    let store = MemoryStore::new();
    let new = |kind| NewNode { kind, mode: 0o755, uid: 0, gid: 0 };
    let dir = store.root().create(Name::new(b"d").unwrap(), &new(NewKind::Directory), MAY).unwrap();
    for n in 0..NAMES {
        dir.create(Name::new(format!("File {n}").as_bytes()).unwrap(), &new(NewKind::Regular), MAY).unwrap();
    }
    let (store, runtime): (Arc<dyn Storage>, _) =
        (Arc::new(store), tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap());
    // On one thread: if it were read there, nobody else would be answered before it is over.
    let share = Share::new(ShareId(1), Settings::new("data"), Arc::clone(&store));
    let took = std::cell::Cell::new(None);
    let large = async {
        let begun = Instant::now();
        let found = share.lookup(&root(), &dir, b"FILE 199999", Case::Insensitive, Want::empty()).await;
        took.set(Some(begun.elapsed()));
        found.unwrap().name
    };
    let small = async {
        let (mut longest, mut others) = (Duration::ZERO, 0);
        while took.get().is_none() {
            let begun = Instant::now();
            share.lookup(&root(), share.root(), b"d", Case::Sensitive, Want::empty()).await.unwrap();
            tokio::task::yield_now().await;
            longest = longest.max(begun.elapsed());
            others += 1;
        }
        (longest, others)
    };
    let (name, (longest, others)) = runtime.block_on(async { tokio::join!(large, small) });
    assert_eq!(name, b"File 199999");
    let caller = root();
    let again = share.lookup(&caller, &dir, b"FILE 7", Case::Insensitive, Want::empty());
    // What was slow may have sent it to the pool, and that is the runtime's.
    assert_eq!(runtime.block_on(again).unwrap().name, b"File 7", "the index is there");
    println!("{others} others meanwhile, the longest in {longest:?} of {:?}", took.get().unwrap());
    assert!(others > 0);
}

#[test]
fn what_the_server_removes_and_makes_stays_known() {
    let server = Server::new();
    let dir = Deed::Dir("d".into());
    assert!(dir.served(&server));
    warm(&server, "d/x");
    let make = Deed::Dir("d/x".into());
    assert!(make.served(&server));
    let before = server.counts();
    server.walk("d/x", Case::Sensitive).unwrap();
    assert_eq!(server.counts().names.misses, before.names.misses);
    assert!(Deed::RemoveDir("d/x".into()).served(&server));
    let before = server.counts();
    server.walk("d/x", Case::Sensitive).unwrap_err();
    assert_eq!(server.counts().absent, before.absent + 1);
}

#[test]
fn a_directory_that_is_held_and_removed_behind_the_server_is_gone() {
    let server = Server::new();
    std::fs::create_dir_all(server.at("a/b")).unwrap();
    warm(&server, "a/b/none");
    let held = server.walk("a/b", Case::Sensitive).unwrap().node;
    std::fs::create_dir(server.at("other")).unwrap();
    std::fs::rename(server.at("a/b"), server.at("other/b")).unwrap();
    assert_eq!(done(server.share.attributes(&root(), &held, Want::empty())).unwrap().links, 2);
    warm(&server, "other/b");
    std::fs::remove_dir(server.at("other/b")).unwrap();
    assert_eq!(done(server.share.attributes(&root(), &held, Want::empty())).unwrap().links, 0);
    server.walk("other/b", Case::Sensitive).unwrap_err();
}

#[test]
fn a_time_of_last_access_that_a_client_sets_alone_is_told() {
    let server = Server::new();
    std::fs::create_dir(server.at("d")).unwrap();
    warm(&server, "d");
    let dir = server.walk("d", Case::Sensitive).unwrap().node;
    let early = Timestamp { secs: 1_000_000_000, nanos: 0 };
    let set = SetAttributes { atime: Some(SetTime::To(early)), ..SetAttributes::default() };
    server.run(server.share.set_attributes(&root(), &File::Stateless(dir), &set, None)).unwrap();
    assert_eq!(server.walk("d", Case::Sensitive).unwrap().attributes.atime, early);
}

#[test]
fn a_file_changed_by_another_of_its_names_is_seen() {
    let server = Server::new();
    for dir in ["a", "b"] {
        std::fs::create_dir(server.at(dir)).unwrap();
    }
    std::fs::write(server.at("a/f"), "one").unwrap();
    std::fs::hard_link(server.at("a/f"), server.at("b/g")).unwrap();
    warm(&server, "a/f");
    std::fs::write(server.at("b/g"), "three").unwrap();
    assert_eq!(server.walk("a/f", Case::Sensitive).unwrap().attributes.size, 5);
}

#[test]
fn the_cache_can_be_switched_off_and_is_off_where_changes_are_not_told() {
    let server = Server::with(|settings| settings.metadata_cache = false);
    assert_eq!(server.share.cache_counts(), None);
    let share = Share::new(ShareId(1), Settings::new("data"), Arc::new(MemoryStore::new()));
    assert_eq!(share.cache_counts(), None);
}

#[test]
fn the_cache_keeps_no_more_than_it_may() {
    const LIMIT: usize = 64 << 10;
    let server = Server::with(|settings| settings.metadata_cache_bytes_max = LIMIT);
    std::fs::create_dir(server.at("d")).unwrap();
    warm(&server, "d/x");
    for n in 0..2000 {
        server.walk(&format!("d/none {n}"), Case::Sensitive).unwrap_err();
        assert!(server.counts().bytes <= LIMIT + 4096, "{:?}", server.counts());
    }
    for n in 0..200 {
        std::fs::create_dir_all(server.at(&format!("{n}/e"))).unwrap();
        warm(&server, &format!("{n}/e/f"));
        assert!(server.counts().bytes <= LIMIT + 4096, "{:?}", server.counts());
    }
    assert!(server.counts().directories < 40);
}

#[test]
fn when_more_changes_than_can_be_remembered_all_is_asked_anew() {
    let server = Server::new();
    std::fs::create_dir(server.at("d")).unwrap();
    std::fs::write(server.at("d/gone"), "").unwrap();
    warm(&server, "d/NONE");
    let queued = std::fs::read_to_string("/proc/sys/fs/fanotify/max_queued_events").unwrap();
    let queued: usize = queued.trim().parse().unwrap();
    let path = |n: usize| server.at(&format!("d/{n}"));
    (0..=queued).for_each(|n| std::fs::write(path(n), "").unwrap());
    (0..=queued).for_each(|n| std::fs::remove_file(path(n)).unwrap());
    std::fs::remove_file(server.at("d/gone")).unwrap();
    std::fs::write(server.at("d/none"), "").unwrap();
    server.walk("d/gone", Case::Insensitive).unwrap_err();
    server.walk("d/NONE", Case::Insensitive).unwrap();
    assert_eq!(server.names("d").unwrap(), [b"none"]);
}

/// The index of a large directory is read once, whatever others do in it.
#[test]
fn the_index_of_names_follows_single_changes() {
    let server = Server::new();
    std::fs::create_dir(server.at("d")).unwrap();
    for n in 0..100 {
        std::fs::write(server.at(&format!("d/File {n}")), "").unwrap();
    }
    warm(&server, "d/FILE 1");
    let before = server.counts().listings;
    for n in 0..50 {
        std::fs::rename(server.at(&format!("d/File {n}")), server.at(&format!("d/New {n}"))).unwrap();
        server.walk(&format!("d/FILE {n}"), Case::Insensitive).unwrap_err();
        assert_eq!(
            server.walk(&format!("d/NEW {n}"), Case::Insensitive).unwrap().name,
            format!("New {n}").into_bytes()
        );
    }
    assert_eq!(server.counts().listings, before, "it was not read again");
}

/// The indexes of names take their memory from the same limit.
#[test]
fn indexes_and_directories_keep_no_more_than_they_may_together() {
    const LIMIT: usize = 256 << 10;
    let server = Server::with(|settings| settings.metadata_cache_bytes_max = LIMIT);
    for dir in 0..8 {
        std::fs::create_dir(server.at(&format!("{dir}"))).unwrap();
        for n in 0..2000 {
            std::fs::write(server.at(&format!("{dir}/File {n}")), "").unwrap();
        }
    }
    for turn in 0..3 {
        for dir in 0..8 {
            for n in [turn, 777, 1999] {
                let found = server.walk(&format!("{dir}/FILE {n}"), Case::Insensitive).unwrap();
                assert_eq!(found.name, format!("File {n}").into_bytes());
                server.walk(&format!("{dir}/FILE {n}x"), Case::Insensitive).unwrap_err();
                assert!(server.counts().bytes <= LIMIT + 4096, "{:?}", server.counts());
            }
        }
    }
    for n in 0..100 {
        std::fs::write(server.at(&format!("7/More {n}")), "").unwrap();
        let found = server.walk(&format!("7/MORE {n}"), Case::Insensitive).unwrap();
        assert_eq!(found.name, format!("More {n}").into_bytes());
        assert!(server.counts().bytes <= LIMIT + 4096, "{:?}", server.counts());
    }
    assert!(server.counts().bytes > 16 << 10, "{:?}", server.counts());
}

/// A directory's own listing takes as much as three indexes of its names.
#[test]
fn a_listing_makes_room_for_the_index_of_its_directory() {
    const LIMIT: usize = 256 << 10;
    let server = Server::with(|settings| settings.metadata_cache_bytes_max = LIMIT);
    std::fs::create_dir(server.at("d")).unwrap();
    for n in 0..2000 {
        std::fs::write(server.at(&format!("d/File {n}")), "").unwrap();
    }
    for _ in 0..4 {
        assert_eq!(server.names("d").unwrap().len(), 2000);
    }
    assert!(server.counts().bytes > LIMIT / 4 * 3, "{:?}", server.counts());
    assert_eq!(server.walk("d/FILE 7", Case::Insensitive).unwrap().name, b"File 7");
    let before = server.counts().listings;
    assert_eq!(server.walk("d/FILE 1999", Case::Insensitive).unwrap().name, b"File 1999");
    server.walk("d/FILE 2000", Case::Insensitive).unwrap_err();
    assert_eq!(server.counts().listings, before, "the index is there");
}

/// A directory whose names have no room in the cache is searched each time.
#[test]
fn names_without_room_for_an_index_are_found_all_the_same() {
    let server = Server::with(|settings| settings.metadata_cache_bytes_max = 32 << 10);
    std::fs::create_dir(server.at("d")).unwrap();
    for n in 0..5000 {
        std::fs::write(server.at(&format!("d/A longer name {n}.text")), "").unwrap();
    }
    let look = |name: &str| server.walk(&format!("d/{name}"), Case::Insensitive).map(|found| found.name);
    for n in [0, 1, 2500, 4999] {
        assert_eq!(
            look(&format!("A LONGER NAME {n}.TEXT")).unwrap(),
            format!("A longer name {n}.text").into_bytes()
        );
        let short = anabranch_share::short_name(format!("A longer name {n}.text").as_bytes()).unwrap();
        let short = String::from_utf8(short).unwrap();
        assert_eq!(look(&short).unwrap(), format!("A longer name {n}.text").into_bytes(), "{short}");
        assert!(server.counts().bytes <= (32 << 10) + 4096, "{:?}", server.counts());
    }
    look("A LONGER NAME 5000.TEXT").unwrap_err();
    std::fs::rename(server.at("d/A longer name 1.text"), server.at("d/Another")).unwrap();
    look("A LONGER NAME 1.TEXT").unwrap_err();
    assert_eq!(look("ANOTHER").unwrap(), b"Another");
}

#[test]
fn the_cache_is_switched_off_and_on_while_it_is_used() {
    let server = Server::new();
    std::fs::create_dir_all(server.at("a/b")).unwrap();
    std::fs::write(server.at("a/b/File"), "").unwrap();
    for turn in 0..3 {
        warm(&server, "a/b/none");
        assert_eq!(server.walk("a/b/FILE", Case::Insensitive).unwrap().name, b"File");
        assert!(server.counts().directories >= 3, "turn {turn}: {:?}", server.counts());
        server.share.set_metadata_cache(false);
        assert_eq!(server.share.cache_counts(), None);
        std::fs::rename(server.at("a/b"), server.at("a/c")).unwrap();
        server.walk("a/b", Case::Sensitive).unwrap_err();
        assert_eq!(server.walk("a/c/FILE", Case::Insensitive).unwrap().name, b"File");
        std::fs::rename(server.at("a/c"), server.at("a/b")).unwrap();
        server.share.set_metadata_cache(true);
        assert_eq!(server.counts().directories, 0);
    }
}

/// What decides about access is kept when names change, and forgotten when it does.
#[test]
fn a_directory_where_names_change_all_the_time_keeps_its_permissions_until_they_change() {
    let server = Server::new();
    std::fs::create_dir(server.at("d")).unwrap();
    warm(&server, "d/none");
    let before = server.counts().attributes;
    for n in 0..20 {
        std::fs::write(server.at(&format!("d/{n}")), "").unwrap();
        server.walk(&format!("d/{n}"), Case::Sensitive).unwrap();
    }
    let after = server.counts().attributes;
    assert_eq!(after.misses, before.misses, "{before:?} {after:?}");
    let mode = |mode| std::fs::set_permissions(server.at("d"), PermissionsExt::from_mode(mode)).unwrap();
    let other = call(&SMB, Caller::new(Identity::unix(12_345, 12_345, vec![]), Proof::Stated));
    let look = || {
        let path = vec![b"d".to_vec(), b"0".to_vec()];
        server.run(server.share.walk(&other, path, Case::Sensitive, Want::empty())).map(drop)
    };
    for _ in 0..3 {
        mode(0o700);
        assert_eq!(look().unwrap_err(), Error::AccessDenied);
        mode(0o755);
        look().unwrap();
    }
}
