//! What a source or a destination may hold that needs care.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#[path = "../../storage-local/tests/disk/mod.rs"]
#[expect(dead_code, reason = "nothing is mounted read-only here")]
mod disk;
#[path = "../../../anabranch/tests/program/needs/mod.rs"]
mod needs;
mod picture;
mod sides;

use std::io::IoSlice;
use std::sync::Arc;
use std::time::Duration;

use anabranch_replica::{Compared, Convergence, Failure, Progress, Takes, changes};
use picture::picture;
use replica_wire::{DEPTH_MAX, Record};
use sides::{Far, Said, converge, subvolume};
use storage::conformance::MAY;
use storage::fault::{Call, Fault, FaultyStore, Rule};
use storage::memory::MemoryStore;
use storage::{
    Device, Error, Name, NewKind, NewNode, NodeRef, Replace, SnapshotId, Stability, Storage, StreamName,
    Timestamp, Wait,
};

/// What a call writes while a snapshot is taken has the change time of its beginning, in the snapshot and after it.
#[test]
fn what_was_being_written_when_a_snapshot_was_taken_is_not_taken_for_complete() {
    const BEGUN: i64 = 1_800_000_000;
    let taken = |secs| Some(Duration::from_secs(u64::try_from(BEGUN).unwrap() + secs));
    let source = MemoryStore::with_clock(|| Timestamp { secs: BEGUN, nanos: 0 });
    let destination = Arc::new(MemoryStore::new()) as Arc<dyn Storage>;
    let snapshots = source.snapshots().unwrap();
    let new = NewNode { kind: NewKind::Regular, mode: 0o644, uid: 0, gid: 0 };
    let node = |name: &str| source.root().create(Name::new(name.as_bytes()).unwrap(), &new, MAY).unwrap();
    let files = [node("longer"), node("in place"), node("stream")];
    let stream = files[2].create_stream(StreamName::new(b"n0").unwrap(), MAY).unwrap();
    let put = |file: &NodeRef, byte: u8, length: usize| {
        let bytes = vec![byte; length];
        file.write(0, &[IoSlice::new(&bytes)], Stability::Unstable, Wait::May(MAY)).unwrap();
    };
    let mut last: Option<(SnapshotId, Option<Duration>)> = None;
    // The call lasts until the second snapshot. The third one is taken much later.
    for (round, secs) in [(1, 20), (2, 50), (3, 900)] {
        let (byte, length) = (round.min(2), 40_000 * usize::from(round.min(2)));
        put(&files[0], 1, length);
        put(&files[1], byte, 40_000);
        put(&stream, byte, 1000);
        let to = snapshots.take("replica", MAY).unwrap().id;
        let compared = Compared::open(&snapshots, last, (to, taken(secs)), MAY).unwrap();
        let mut said = Said::by(|say| changes(&compared, MAY, say)).unwrap();
        let mut far = Far { compared: &compared, left: &mut (u64::MAX >> 1) };
        let (progress, takes) = (Progress::default(), Takes { devices: true, set_id: true });
        let (store, adopts) = (&destination, last.is_none());
        Convergence { store, replication: 7, adopts, takes, progress: &progress, may: MAY }
            .run(&mut said, &mut far)
            .unwrap();
        assert_eq!(picture(&*destination), picture(&*snapshots.open(to, MAY).unwrap()), "round {round}");
        if round == 3 {
            // What is as it was costs reads at the source only.
            assert_eq!(progress.figures().bytes, 1000);
        }
        last = Some((to, taken(secs)));
    }
}

/// What was in the folder of a replication was not replicated, and is new when it comes out.
#[test]
fn what_comes_out_of_a_hidden_place_is_new() {
    let (source, destination) = (MemoryStore::new(), Arc::new(MemoryStore::new()) as Arc<dyn Storage>);
    let snapshots = source.snapshots().unwrap();
    let name = |name: &'static str| Name::new(name.as_bytes()).unwrap();
    let new = |kind| NewNode { kind, mode: 0o755, uid: 0, gid: 0 };
    let dir = new(NewKind::Directory);
    let hidden = source.root().create(name(anabranch_replica::FOLDER), &dir, MAY).unwrap();
    let inner = hidden.create(name("a"), &dir, MAY).unwrap().create(name("b"), &dir, MAY).unwrap();
    let _file = inner.create(name("file"), &new(NewKind::Regular), MAY).unwrap();
    let first = snapshots.take("replica", MAY).unwrap().id;
    converge(&snapshots, (None, first), (&destination, 7));
    hidden.rename(name("a"), &*source.root(), name("a"), Replace::Never, MAY).unwrap();
    source.root().remove_dir(name(anabranch_replica::FOLDER), MAY).unwrap();
    let second = snapshots.take("replica", MAY).unwrap().id;
    converge(&snapshots, (Some(first), second), (&destination, 7));
    assert_eq!(picture(&*destination), picture(&*snapshots.open(second, MAY).unwrap()));
}

/// A source that says of a new directory only what has changed in it is not believed.
#[test]
fn what_was_not_there_has_to_be_said_as_a_whole() {
    let source = MemoryStore::new();
    let new = NewNode { kind: NewKind::Directory, mode: 0o755, uid: 0, gid: 0 };
    source.root().create(Name::new(b"new").unwrap(), &new, MAY).unwrap();
    let snapshots = source.snapshots().unwrap();
    let taken = snapshots.take("replica", MAY).unwrap().id;
    let compared = Compared::open(&snapshots, None, (taken, None), MAY).unwrap();
    let mut said = Said::by(|say| changes(&compared, MAY, say)).unwrap();
    let mut rest = Vec::new();
    Record::Rest.encode_into(&mut rest);
    let at = said.0.len() - 2;
    said.0[at] = rest;
    let destination = Arc::new(MemoryStore::new()) as Arc<dyn Storage>;
    let mut far = Far { compared: &compared, left: &mut (u64::MAX >> 1) };
    let (progress, takes) = (Progress::default(), Takes { devices: true, set_id: true });
    let store = &destination;
    let outcome = Convergence { store, replication: 7, adopts: true, takes, progress: &progress, may: MAY }
        .run(&mut said, &mut far);
    assert!(matches!(outcome, Err(Failure::Nonsense(_))), "{outcome:?}");
}

/// Any client can make directories in each other without an end. Those that are too deep are left out, until they are moved up.
#[test]
fn directories_that_are_too_deep_are_left_out() {
    let (source, destination) = (MemoryStore::new(), Arc::new(MemoryStore::new()) as Arc<dyn Storage>);
    let snapshots = source.snapshots().unwrap();
    let new = |kind| NewNode { kind, mode: 0o755, uid: 0, gid: 0 };
    let name = |name: &'static str| Name::new(name.as_bytes()).unwrap();
    let mut chain = vec![source.root()];
    for _ in 0..DEPTH_MAX + 5 {
        let dir = chain.last().unwrap().create(name("d"), &new(NewKind::Directory), MAY).unwrap();
        let _file = dir.create(name("f"), &new(NewKind::Regular), MAY).unwrap();
        chain.push(dir);
    }
    let mut last = None;
    // Where the tenth directory is: as deep as it was made, further up, and deep again.
    for (round, place) in [("deep", None), ("up", Some((9, 0, "u"))), ("deep again", Some((0, 9, "d")))] {
        if let Some((from, to, named)) = place {
            let old = if from == 9 { name("d") } else { name("u") };
            chain[from].rename(old, &*chain[to], name(named), Replace::Never, MAY).unwrap();
        }
        chain[500].create(Name::new(round.as_bytes()).unwrap(), &new(NewKind::Regular), MAY).unwrap();
        let to = snapshots.take("replica", MAY).unwrap().id;
        let figures = converge(&snapshots, (last, to), (&destination, 7));
        let is_deep = place.is_none_or(|(_, to, _)| to == 9);
        assert_eq!(figures.too_deep, u64::from(is_deep), "{round}");
        let mut should = picture(&*snapshots.open(to, MAY).unwrap());
        let longest = 2 * (DEPTH_MAX - 1) + "/f".len();
        should.retain(|path, _| path.len() <= longest && !path.ends_with(&"/d".repeat(DEPTH_MAX)));
        let is = picture(&*destination);
        assert!(is.keys().eq(should.keys()), "{round}: {} of {}", is.len(), should.len());
        assert!(is == should, "{round}");
        last = Some(to);
    }
}

/// Whoever looks through a large directory says for each name that it goes on, and can be stopped there.
#[test]
fn a_directory_that_takes_long_is_not_silent() {
    let source = MemoryStore::new();
    let new = NewNode { kind: NewKind::Regular, mode: 0o644, uid: 0, gid: 0 };
    for name in 0..1000 {
        let name = format!("{name}").into_bytes();
        source.root().create(Name::new(&name).unwrap(), &new, MAY).unwrap();
    }
    let snapshots = source.snapshots().unwrap();
    let [first, second] = [0, 1].map(|_| snapshots.take("replica", MAY).unwrap().id);
    let compared = Compared::open(&snapshots, Some((first, None)), (second, None), MAY).unwrap();
    let walk = |most: u64| {
        let mut said = 0;
        let outcome = changes(&compared, MAY, &mut |_| {
            said += 1;
            if said < most { Ok(()) } else { Err(Failure::Stopped) }
        });
        (outcome, said)
    };
    let (outcome, said) = walk(u64::MAX);
    assert!(outcome == Ok(()) && said > 2000, "{outcome:?} {said}");
    assert_eq!(walk(said - 10), (Err(Failure::Stopped), said - 10));
}

/// A destination that may not have devices, and one that may not make them, have all the rest.
#[test]
fn devices_are_left_out_where_they_cannot_be() {
    let source = MemoryStore::new();
    let new = |kind| NewNode { kind, mode: 0o644, uid: 0, gid: 0 };
    let name = |name: &'static str| Name::new(name.as_bytes()).unwrap();
    let device = new(NewKind::CharDevice(Device { major: 1, minor: 3 }));
    source.root().create(name("device"), &device, MAY).unwrap();
    source.root().create(name("file"), &new(NewKind::Regular), MAY).unwrap();
    let snapshots = source.snapshots().unwrap();
    let taken = snapshots.take("replica", MAY).unwrap().id;
    let compared = Compared::open(&snapshots, None, (taken, None), MAY).unwrap();
    for (devices, present) in [(false, None), (true, None), (false, Some("device"))] {
        let destination = Arc::new(FaultyStore::new(Arc::new(MemoryStore::new())));
        if let Some(present) = present {
            destination.root().create(name(present), &device, MAY).unwrap();
        }
        if devices {
            // The third thing that is made, after the folder and the file.
            let fault = Fault::Fail(Error::NotPermitted);
            destination.inject(Rule { call: Call::Create, skip: 2, times: 1, fault });
        }
        let store: Arc<dyn Storage> = destination;
        let mut said = Said::by(|say| changes(&compared, MAY, say)).unwrap();
        let mut far = Far { compared: &compared, left: &mut (u64::MAX >> 1) };
        let (progress, takes) = (Progress::default(), Takes { devices, set_id: true });
        let adopts = true;
        let convergence =
            Convergence { store: &store, replication: 7, adopts, takes, progress: &progress, may: MAY };
        convergence.run(&mut said, &mut far).unwrap();
        assert_eq!(picture::names(&store.root()), [b"file".to_vec()], "{devices} {present:?}");
        assert_eq!(progress.figures().left_out, 1);
    }
}

/// A snapshot has an empty directory in the place of a subvolume, which nothing finds by its handle.
#[test]
fn subvolumes_below_the_roots_are_left_alone() {
    let place = tempfile::tempdir().unwrap();
    let top = place.path().join("disk");
    let Some(_disk) = disk::Disk::make("btrfs", &[], 512, &top) else { return };
    let open = |name: &str| subvolume(&top.join(name));
    let (Some(source), Some(destination)) = (open("source"), open("destination")) else { return };
    let at = |path: &str| top.join(path);
    std::fs::create_dir(at("source/dir")).unwrap();
    for below in ["source/.snapshots", "source/dir/inner", "destination/.snapshots"] {
        let _ = subvolume(&at(below)).unwrap();
        std::fs::write(at(below).join("file"), "of another subvolume").unwrap();
    }
    std::fs::write(at("source/dir/file"), "one").unwrap();
    let snapshots = source.snapshots().unwrap();
    let first = snapshots.take("replica", MAY).unwrap().id;
    converge(&snapshots, (None, first), (&destination, 7));
    assert_eq!(std::fs::read(at("destination/dir/file")).unwrap(), b"one");
    assert!(!at("destination/dir/inner").exists());
    std::fs::write(at("source/dir/file"), "two").unwrap();
    std::fs::rename(at("source/dir"), at("source/.snapshots.old")).unwrap();
    let second = snapshots.take("replica", MAY).unwrap().id;
    converge(&snapshots, (Some(first), second), (&destination, 7));
    assert_eq!(std::fs::read(at("destination/.snapshots.old/file")).unwrap(), b"two");
    // The source becomes a replica of the destination, with its own.
    let taken = destination.snapshots().unwrap().take("replica", MAY).unwrap().id;
    converge(&destination.snapshots().unwrap(), (None, taken), (&source, 8));
    for stays in ["source/.snapshots", "source/.snapshots.old/inner", "destination/.snapshots"] {
        assert_eq!(std::fs::read(at(stays).join("file")).unwrap(), b"of another subvolume");
    }
}
