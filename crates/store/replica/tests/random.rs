//! Random histories: a store changes, snapshots are taken of it, and another store becomes like each of them, although it is
//! interrupted at random calls.

#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]
#[path = "../../storage-local/tests/disk/mod.rs"]
#[expect(dead_code, reason = "nothing is mounted read-only here")]
mod disk;
#[path = "../../../anabranch/tests/program/needs/mod.rs"]
mod needs;
mod picture;
mod sides;

use std::collections::{BTreeMap, BTreeSet};
use std::io::IoSlice;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use acl::{AccessMask, Ace, AceFlags, Acl, Control, SecurityDescriptor, Sid};
use anabranch_replica::{Compared, Convergence, Failure, MirrorStore, Progress, Result, Takes, changes};
use picture::picture;
use replica_wire::Record;
use sides::{Far, Said, converge, subvolume};
use storage::conformance::MAY;
use storage::fault::{Call, Fault, FaultyStore, Rule};
use storage::memory::MemoryStore;
use storage::{
    CLOCK_TICK, Device, Error, FileFlags, FileKind, Name, NewKind, NewNode, NodeRef, Replace, SetAttributes,
    SetTime, SnapshotId, Stability, Storage, StreamName, Timestamp, Wait, Want, XattrMode,
};

/// xorshift64*: what is drawn is the same on every machine.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % end
    }

    fn one<T: Clone>(&mut self, of: &[T]) -> Option<T> {
        let length = u64::try_from(of.len()).unwrap();
        (length > 0).then(|| of[usize::try_from(self.below(length)).unwrap()].clone())
    }
}

struct Place {
    dir: NodeRef,
    name: Vec<u8>,
    node: NodeRef,
}

fn places(store: &dyn Storage) -> (Vec<NodeRef>, Vec<Place>) {
    let (mut dirs, mut all, mut at) = (vec![store.root()], Vec::new(), 0);
    while let Some(dir) = dirs.get(at).cloned() {
        at += 1;
        for name in picture::names(&dir) {
            let node = dir.lookup(Name::new(&name).unwrap(), Wait::May(MAY)).unwrap();
            if node.kind() == FileKind::Directory {
                dirs.push(NodeRef::clone(&node));
            }
            all.push(Place { dir: NodeRef::clone(&dir), name, node });
        }
    }
    (dirs, all)
}

fn is_allowed(outcome: storage::Result<()>) {
    use Error as E;
    let refused = matches!(
        outcome,
        Err(E::Exists
            | E::NotEmpty
            | E::IsDirectory
            | E::NotDirectory
            | E::InvalidArgument
            | E::WrongKind
            | E::NotSupported)
    );
    assert!(refused || outcome.is_ok(), "{outcome:?}");
}

fn write(node: &NodeRef, dice: &mut Dice) -> storage::Result<()> {
    let bytes = vec![u8::try_from(dice.below(256)).unwrap(); usize::try_from(dice.below(9000)).unwrap() + 1];
    node.write(dice.below(40_000), &[IoSlice::new(&bytes)], Stability::Unstable, Wait::May(MAY)).map(drop)
}

fn attribute(dice: &mut Dice) -> SetAttributes {
    let time = Timestamp { secs: i64::try_from(dice.below(1 << 30)).unwrap(), nanos: 7 };
    let mut set = SetAttributes::default();
    match dice.below(6) {
        0 => set.mode = Some(0o600 + u32::try_from(dice.below(0o200)).unwrap()),
        1 => set.uid = Some(u32::try_from(dice.below(5000)).unwrap()),
        2 => set.mtime = Some(SetTime::To(time)),
        3 => set.flags = Some(FileFlags::HIDDEN),
        4 => set.btime = Some(time),
        _ => set.size = Some(dice.below(50_000)),
    }
    set
}

fn extra(node: &NodeRef, dice: &mut Dice) -> storage::Result<()> {
    let name = format!("n{}", dice.below(3));
    match dice.below(5) {
        0 => node.set_xattr(name.as_bytes(), &[u8::try_from(dice.below(256)).unwrap()], XattrMode::Set, MAY),
        1 => match node.remove_xattr(name.as_bytes(), MAY) {
            Err(Error::NoAttribute) => Ok(()),
            done => done,
        },
        2 => {
            let name = StreamName::new(name.as_bytes()).unwrap();
            let stream = match node.stream(name, MAY) {
                Err(Error::NotFound) => node.create_stream(name, MAY)?,
                found => found?,
            };
            write(&stream, dice)
        }
        3 => match node.remove_stream(StreamName::new(name.as_bytes()).unwrap(), MAY) {
            Err(Error::NotFound) => Ok(()),
            done => done,
        },
        _ => {
            let ace = Ace::allow(
                Sid::EVERYONE,
                AccessMask::from_bits_retain(1 << dice.below(9)),
                AceFlags::empty(),
            );
            let dacl = Acl { revision: 2, aces: vec![ace] };
            let descriptor = SecurityDescriptor {
                control: Control::DACL_PRESENT,
                owner: Some(Sid::EVERYONE),
                dacl: Some(dacl),
                ..SecurityDescriptor::default()
            };
            node.set_security(Some(descriptor), MAY).map(drop)
        }
    }
}

/// Changes something.
fn change(store: &dyn Storage, dice: &mut Dice) {
    let (dirs, all) = places(store);
    let dir = dice.one(&dirs).unwrap();
    let name = format!("{}", dice.below(6)).into_bytes();
    let name = Name::new(&name).unwrap();
    let some = (!all.is_empty()).then(|| &all[usize::try_from(dice.below(all.len() as u64)).unwrap()]);
    is_allowed(match (dice.below(14), some) {
        (0..=2, _) | (_, None) => {
            let kind = match dice.below(12) {
                0..=5 => NewKind::Regular,
                6..=8 => NewKind::Directory,
                9 => NewKind::Symlink(b"to"),
                10 => NewKind::Fifo,
                _ => NewKind::CharDevice(Device { major: 1, minor: 3 }),
            };
            dir.create(name, &NewNode { kind, mode: 0o644, uid: 1, gid: 2 }, MAY).map(drop)
        }
        (3 | 4, Some(place)) => write(&place.node, dice),
        (5 | 6, Some(place)) => {
            let replace = if dice.below(2) == 0 { Replace::Yes } else { Replace::Never };
            place.dir.rename(Name::new(&place.name).unwrap(), &*dir, name, replace, MAY)
        }
        (7 | 8, Some(place)) => dir.link(name, &*place.node, MAY),
        (9, Some(place)) => place.node.set_attributes(&attribute(dice), MAY).map(drop),
        (10 | 11, Some(place)) => extra(&place.node, dice),
        (12, Some(place)) => place.node.punch_hole(dice.below(20_000), 1 + dice.below(9000), MAY),
        (_, Some(place)) => {
            let name = Name::new(&place.name).unwrap();
            match place.node.kind() {
                FileKind::Directory => place.dir.remove_dir(name, MAY),
                _ => place.dir.remove_file(name, MAY),
            }
        }
    });
}

struct History {
    dice: Dice,
    source: Arc<dyn Storage>,
    destination: Arc<FaultyStore>,
    /// What clients of the destination see.
    mirror: Option<MirrorStore>,
    /// Whether change times tell all changes apart: what is as it was has the same version in the next snapshot.
    is_exact: bool,
    /// How long nothing changes after a snapshot, so that they do.
    pause: Duration,
    /// Whether everything is looked at, whatever the source knows of what has changed.
    is_in_full: bool,
    /// How much changes from one snapshot to the next.
    changes_max: u64,
    interrupted: u64,
}

impl History {
    fn new(seed: u64, source: Arc<dyn Storage>, destination: Arc<dyn Storage>) -> Self {
        Self {
            dice: Dice(seed * 0x9E37_79B9),
            source,
            destination: Arc::new(FaultyStore::new(destination)),
            mirror: None,
            is_exact: false,
            pause: Duration::ZERO,
            is_in_full: seed.is_multiple_of(4),
            changes_max: 25,
            interrupted: 0,
        }
    }

    /// A snapshot of the source, and when it was taken.
    fn moment(&self, id: SnapshotId) -> (SnapshotId, Option<Duration>) {
        let listed = self.source.snapshots().unwrap().list(MAY).unwrap();
        // Of snapshots of one second, all but the first are said to be taken later.
        let secs =
            listed.iter().find(|one| one.id == id).unwrap().taken.secs - i64::try_from(listed.len()).unwrap();
        (id, (!self.is_exact).then(|| Duration::from_secs(u64::try_from(secs).unwrap())))
    }

    fn take(&mut self) -> SnapshotId {
        for _ in 0..self.dice.below(self.changes_max) {
            change(&*self.source, &mut self.dice);
        }
        let taken = self.source.snapshots().unwrap().take("replica", MAY).unwrap().id;
        std::thread::sleep(self.pause);
        taken
    }

    fn attempt(&mut self, from: Option<SnapshotId>, to: SnapshotId, is_interrupted: bool) -> Result<()> {
        let snapshots = self.source.snapshots().unwrap();
        let mut compared =
            Compared::open(&snapshots, from.map(|from| self.moment(from)), self.moment(to), MAY).unwrap();
        if !self.is_in_full {
            compared = compared.where_touched(MAY, &mut |_| Ok(())).unwrap();
            assert_eq!(compared.knows_touched(), from.is_some());
        }
        let mut said = Said::by(|say| changes(&compared, MAY, say)).unwrap();
        let mut left = u64::MAX >> 1;
        if is_interrupted {
            match self.dice.below(4) {
                0 => said.0.truncate(usize::try_from(self.dice.below(said.0.len() as u64)).unwrap()),
                1 => left = self.dice.below(30),
                _ => {
                    let calls = [&Call::METADATA[..], &Call::DATA, &[Call::PunchHole, Call::Rename]].concat();
                    let call = self.dice.one(&calls).unwrap();
                    let fault = Fault::Fail(Error::Io(5));
                    self.destination.inject(Rule { call, skip: self.dice.below(40), times: 1, fault });
                }
            }
        }
        let mut far = Far { compared: &compared, left: &mut left };
        let store: Arc<dyn Storage> = Arc::clone(&self.destination) as _;
        let progress = Progress::default();
        let takes = Takes { devices: true, set_id: true };
        let adopts = from.is_none();
        let convergence =
            Convergence { store: &store, replication: 7, adopts, takes, progress: &progress, may: MAY };
        let outcome = convergence.run(&mut said, &mut far);
        self.destination.clear();
        outcome
    }

    /// The destination becomes like a snapshot, perhaps with interruptions.
    fn replicate(&mut self, from: Option<SnapshotId>, to: SnapshotId) {
        for _ in 0..self.dice.below(4) {
            match self.attempt(from, to, true) {
                Ok(()) => break,
                Err(Failure::Store { error: Error::Io(5), .. } | Failure::Source(_)) => self.interrupted += 1,
                Err(e) => panic!("{e:?}"),
            }
        }
        self.attempt(from, to, false).unwrap();
        let there = self.source.snapshots().unwrap().open(to, MAY).unwrap();
        let (is, should) = (picture(&*self.destination), picture(&*there));
        let paths: BTreeSet<_> = is.keys().chain(should.keys()).collect();
        for path in paths {
            assert_eq!(is.get(path), should.get(path), "{path}, from {from:?} to {to:?}");
        }
        self.show(&should);
    }
}

impl History {
    /// The mirror shows this state from now on, with the handles that it had.
    fn show(&mut self, should: &BTreeMap<String, String>) {
        let store: Arc<dyn Storage> = Arc::clone(&self.destination) as _;
        let taken = store.snapshots().unwrap().take("replica", MAY).unwrap().id;
        let Some(mirror) = &self.mirror else {
            self.mirror = Some(MirrorStore::new(store, taken, MAY).unwrap());
            return;
        };
        let (_, before) = places(mirror);
        mirror.shown().show(taken, MAY).unwrap();
        assert_eq!(picture(mirror), *should);
        for Place { node, .. } in before {
            let again = mirror.by_handle(&node.handle().unwrap(), Wait::May(MAY));
            let (is, again) = (node.attributes(Want::all(), Wait::May(MAY)), again.map(|node| node.id()));
            assert_eq!(is.map(|is| is.id), again);
        }
    }
}

/// Returns how often it was interrupted.
fn play(mut history: History) -> u64 {
    let mut last = None;
    for _ in 0..6 {
        let next = history.take();
        if history.dice.below(5) == 0 {
            // The snapshot vanishes before the destination is like it, and so does the last one.
            let _ = history.attempt(last, next, true);
            let later = history.take();
            history.replicate(None, later);
            last = Some(later);
        } else {
            history.replicate(last, next);
            last = Some(next);
        }
    }
    history.interrupted
}

fn in_memory(seed: u64) -> u64 {
    let (source, destination) = (Arc::new(MemoryStore::new()), Arc::new(MemoryStore::new()));
    play(History { is_exact: !seed.is_multiple_of(8), ..History::new(seed, source, destination) })
}

#[test]
fn the_destination_becomes_like_each_snapshot() {
    let histories = histories(150);
    let interrupted: u64 = (1..=histories).map(in_memory).sum();
    println!("{histories} histories, {interrupted} interruptions");
    assert!(interrupted > 0);
}

/// Changes some of a large file, and returns how many bytes of it may be other ones, with the blocks that they are in.
fn change_some(file: &NodeRef, dice: &mut Dice) -> u64 {
    let known = file.attributes(Want::empty(), Wait::May(MAY)).unwrap();
    let (at, length) = (dice.below(known.size), 1 + dice.below(100_000));
    let size = |size| SetAttributes { size: Some(size), ..SetAttributes::default() };
    match dice.below(5) {
        0 | 1 => {
            let bytes = vec![u8::try_from(dice.below(256)).unwrap(); usize::try_from(length).unwrap()];
            file.write(at, &[IoSlice::new(&bytes)], Stability::Unstable, Wait::May(MAY)).unwrap();
        }
        2 => file.punch_hole(at, length, MAY).unwrap(),
        3 => drop(file.set_attributes(&size(known.size - length.min(known.size / 2)), MAY).unwrap()),
        _ => drop(file.set_attributes(&size(known.size + length), MAY).unwrap()),
    }
    length + 2 * 4096
}

#[test]
fn of_large_files_only_what_has_changed_is_sent() {
    let (source, destination) = (MemoryStore::new(), Arc::new(MemoryStore::new()) as Arc<dyn Storage>);
    let snapshots = source.snapshots().unwrap();
    let new = NewNode { kind: NewKind::Regular, mode: 0o644, uid: 0, gid: 0 };
    let file = source.root().create(Name::new(b"large").unwrap(), &new, MAY).unwrap();
    let mut dice = Dice(9);
    for at in 0..48 {
        let bytes: Vec<u8> = (0..65_536).map(|_| u8::try_from(dice.below(256)).unwrap()).collect();
        file.write(at << 16, &[IoSlice::new(&bytes)], Stability::Unstable, Wait::May(MAY)).unwrap();
    }
    let mut last = None;
    for round in 0..60 {
        let changed: u64 = (0..round % 4).map(|_| change_some(&file, &mut dice)).sum();
        if round % 7 == 3 {
            let name = [b'n', b'a' + round];
            let root = source.root();
            let from = picture::names(&root);
            let to = Name::new(&name).unwrap();
            root.rename(Name::new(&from[0]).unwrap(), &*root, to, Replace::Never, MAY).unwrap();
        }
        let to = snapshots.take("replica", MAY).unwrap().id;
        let received = converge(&snapshots, (last, to), (&destination, 7)).bytes;
        assert!(last.is_none() || received <= changed, "{received} of {changed} in round {round}");
        let there = snapshots.open(to, MAY).unwrap();
        assert_eq!(picture(&*destination), picture(&*there), "round {round}");
        if let Some(last) = last.replace(to) {
            snapshots.remove(last, MAY).unwrap();
        }
    }
}

/// Both sides exchange their roles again and again, and both have changed meanwhile.
#[test]
fn a_source_becomes_like_its_destination() {
    for seed in 1..=histories(40) {
        let mut dice = Dice(seed * 0x9E37_79B9);
        let stores = [0, 1].map(|_| Arc::new(MemoryStore::new()) as Arc<dyn Storage>);
        for round in 0..6 {
            for store in &stores {
                for _ in 0..dice.below(20) {
                    change(&**store, &mut dice);
                }
            }
            let (source, destination) = (&stores[round % 2], &stores[(round + 1) % 2]);
            let snapshots = source.snapshots().unwrap();
            let mut last = None;
            for _ in 0..1 + dice.below(2) {
                let taken = snapshots.take("replica", MAY).unwrap().id;
                converge(&snapshots, (last, taken), (destination, 100 + round as u64));
                let there = snapshots.open(taken, MAY).unwrap();
                assert_eq!(picture(&**destination), picture(&*there), "seed {seed}, round {round}");
                last = Some(taken);
                for _ in 0..dice.below(9) {
                    change(&**source, &mut dice);
                }
            }
        }
    }
}

fn histories(usually: u64) -> u64 {
    std::env::var("HISTORIES").ok().and_then(|given| given.parse().ok()).unwrap_or(usually)
}

/// Directories with files, some of them with a stream.
fn fill(store: &dyn Storage, directories: u64, files: u64) {
    let new = |kind| NewNode { kind, mode: 0o755, uid: 1, gid: 2 };
    for directory in 0..directories {
        let name = format!("d{directory}").into_bytes();
        let dir = store.root().create(Name::new(&name).unwrap(), &new(NewKind::Directory), MAY).unwrap();
        for file in 0..files {
            let name = format!("f{file}").into_bytes();
            let file_node = dir.create(Name::new(&name).unwrap(), &new(NewKind::Regular), MAY).unwrap();
            if file % 8 == 0 {
                let _ = file_node.create_stream(StreamName::new(b"n0").unwrap(), MAY).unwrap();
            }
        }
    }
}

/// Both in one file system, which both change at the same time as always. There are so many files that what changes is a small part of
/// the file system's tree.
#[test]
fn on_btrfs() {
    let place = tempfile::tempdir().unwrap();
    let top = place.path().join("disk");
    let Some(_disk) = disk::Disk::make("btrfs", &[], 512, &top) else { return };
    let mut interrupted = 0;
    for seed in 1..=histories(6) {
        let open = |name: &str| subvolume(&top.join(format!("{name}-{seed}")));
        let (Some(source), Some(destination)) = (open("source"), open("destination")) else { return };
        fill(&*source, 12, 30);
        let history = History::new(seed, source, destination);
        let changes_max = if seed % 2 == 0 { 4 } else { 25 };
        interrupted += play(if seed % 3 == 0 {
            History { changes_max, ..history }
        } else {
            History { changes_max, is_exact: true, pause: 2 * CLOCK_TICK, ..history }
        });
    }
    println!("{interrupted} interruptions");
}

/// What has changed is found among much that has not, and little else.
#[test]
fn btrfs_knows_what_was_touched() {
    let place = tempfile::tempdir().unwrap();
    let top = place.path().join("disk");
    let Some(_disk) = disk::Disk::make("btrfs", &[], 256, &top) else { return };
    let Some(store) = subvolume(&top.join("source")) else { return };
    fill(&*store, 50, 100);
    let snapshots = store.snapshots().unwrap();
    // What is changed in the transaction of a snapshot counts as changed after it.
    for _ in 0..2 {
        snapshots.take("replica", MAY).unwrap();
    }
    let before = snapshots.take("replica", MAY).unwrap().id;
    let node = |path: &[&str]| {
        path.iter().fold(store.root(), |at, name| {
            at.lookup(Name::new(name.as_bytes()).unwrap(), Wait::May(MAY)).unwrap()
        })
    };
    let written = node(&["d7", "f7"]);
    written.write(0, &[IoSlice::new(b"new")], Stability::Unstable, Wait::May(MAY)).unwrap();
    // Its file keeps its change time.
    let stream = node(&["d40", "f16"]).stream(StreamName::new(b"n0").unwrap(), MAY).unwrap();
    stream.write(0, &[IoSlice::new(b"new")], Stability::Unstable, Wait::May(MAY)).unwrap();
    let after = snapshots.take("replica", MAY).unwrap().id;
    let touched = snapshots.touched(before, after, &mut || ControlFlow::Continue(()), MAY).unwrap().unwrap();
    for path in [&["d7", "f7"][..], &["d7"], &["d40", "f16"], &["d40"], &[]] {
        assert!(touched.contains(&node(path).id().number), "{path:?}");
    }
    assert!(touched.len() < 1000, "{} of 5000 files", touched.len());
    let mut way_back = || panic!("nothing is looked at");
    assert_eq!(snapshots.touched(after, before, &mut way_back, MAY), Ok(None), "the other way round");
    // Whoever has asked may be gone.
    let mut left = 1000;
    let mut goes_on = || {
        left -= 1;
        if left > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    assert_eq!((snapshots.touched(before, after, &mut goes_on, MAY), left), (Ok(None), 0));
    let open = || Compared::open(&snapshots, Some((before, None)), (after, None), MAY).unwrap();
    let stopped = open().where_touched(MAY, &mut |_| Err(Failure::Stopped));
    assert!(matches!(stopped, Err(Failure::Stopped)), "{stopped:?}");
    let mut said = 0_u64;
    let known = open().where_touched(MAY, &mut |record| {
        said += u64::from(*record == Record::Alive);
        Ok(())
    });
    assert!(known.unwrap().knows_touched() && said > 1000, "{said}");
}
