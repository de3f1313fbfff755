//! Random calls on a store and on the in-memory store, which is the model: both must return the same and hold the same tree
//! afterwards.

use std::collections::HashMap;
use std::io::IoSlice;
use std::ops::ControlFlow;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use storage::conformance::MAY;
use storage::memory::MemoryStore;
use storage::{
    Error, FileFlags, FileKind, Name, NewKind, NewNode, NodeRef, ObjectId, Replace, Result, SetAttributes,
    SetTime, Stability, Storage, Timestamp, Wait, Want, XattrMode,
};

/// Few names, so that calls interfere with each other.
const NAMES: [&str; 4] = ["a", "b", "c", "\u{e9}"];

/// Where a call happens: the names to walk down.
pub(crate) type Place = Vec<&'static str>;

/// A kind of object.
#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Regular,
    Directory,
    Symlink(Vec<u8>),
    Fifo,
}

/// A call.
#[derive(Debug, Clone)]
pub(crate) enum Op {
    Create(Place, &'static str, Kind, u32),
    RemoveFile(Place, &'static str),
    RemoveDir(Place, &'static str),
    Rename(Place, &'static str, Place, &'static str, Replace),
    Link(Place, &'static str, Place),
    Write(Place, u64, Vec<u8>),
    Read(Place, u64, usize),
    Set(Place, SetAttributes),
    Punch(Place, u64, u64),
    Allocate(Place, u64, u64, bool),
    Copy(Place, u64, Place, u64, u64),
    SetXattr(Place, &'static str, Vec<u8>, XattrMode),
    RemoveXattr(Place, &'static str),
    /// Holds a node during the following calls.
    Hold(Place),
    ReadHeld(usize),
}

/// The result of a call, as far as it is the same for every store.
#[derive(Debug, PartialEq, Eq)]
enum CallResult {
    Done,
    Bytes(Vec<u8>),
    Count(u64),
    Attributes { kind: FileKind, mode: u32, uid: u32, gid: u32, size: Option<u64>, mtime: Option<Timestamp> },
}

fn name() -> impl Strategy<Value = &'static str> {
    select(&NAMES[..])
}

fn place() -> impl Strategy<Value = Place> {
    prop_oneof![3 => vec(name(), 0..2), 1 => vec(name(), 2..4)]
}

/// A place where a file is likely.
fn at_file() -> impl Strategy<Value = Place> {
    let likely = [vec!["b"], vec!["c"], vec!["a", "b"], vec!["a", "a", "c"]];
    prop_oneof![4 => select(likely.to_vec()), 1 => place()]
}

/// A place where a directory is likely.
fn at_directory() -> impl Strategy<Value = Place> {
    prop_oneof![4 => select(vec![vec![], vec!["a"], vec!["a", "a"]]), 1 => place()]
}

/// The initial objects.
fn start() -> Vec<Op> {
    let create = |place: &[&'static str], at, kind| Op::Create(place.to_vec(), at, kind, 0o755);
    vec![
        create(&[], "a", Kind::Directory),
        create(&[], "b", Kind::Regular),
        create(&["a"], "a", Kind::Directory),
        create(&["a"], "b", Kind::Regular),
        create(&["a", "a"], "c", Kind::Regular),
    ]
}

fn set() -> impl Strategy<Value = SetAttributes> {
    let mode = proptest::option::of(select(vec![0o600, 0o755, 0o4755, 0o2775, 0o1777]));
    let owner = proptest::option::weighted(0.3, 0..5_u32);
    let size = proptest::option::weighted(0.3, 0..20_000_u64);
    let mtime = proptest::option::of((-10..10_i64, 0..1_000_000_000_u32));
    let flags = proptest::option::weighted(0.3, select(vec![FileFlags::HIDDEN, FileFlags::empty()]));
    (mode, owner.clone(), owner, size, mtime, flags).prop_map(|(mode, uid, gid, size, mtime, flags)| {
        let mtime = mtime.map(|(secs, nanos)| SetTime::To(Timestamp { secs, nanos }));
        SetAttributes { mode, uid, gid, size, mtime, flags, ..SetAttributes::default() }
    })
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        3 => Just(Kind::Regular),
        3 => Just(Kind::Directory),
        1 => vec(any::<u8>(), 0..5).prop_map(Kind::Symlink),
        1 => Just(Kind::Fifo),
    ]
}

/// Calls.
pub(crate) fn ops() -> impl Strategy<Value = Vec<Op>> {
    vec(op(), 1..120)
}

fn op() -> impl Strategy<Value = Op> {
    let replace = || select(vec![Replace::Never, Replace::Yes]);
    let xattr = || select(vec!["x", "y"]);
    let xattr_mode = || select(vec![XattrMode::Set, XattrMode::Create, XattrMode::Replace]);
    let offset = || prop_oneof![9 => 0..20_000_u64, 1 => select(vec![u64::MAX, i64::MAX.unsigned_abs()])];
    let (dir, file) = (at_directory, at_file);
    prop_oneof![
        6 => (dir(), name(), kind(), 0..0o10000_u32).prop_map(|(p, n, k, m)| Op::Create(p, n, k, m)),
        2 => (dir(), name()).prop_map(|(p, n)| Op::RemoveFile(p, n)),
        2 => (dir(), name()).prop_map(|(p, n)| Op::RemoveDir(p, n)),
        5 => (dir(), name(), dir(), name(), replace())
            .prop_map(|(p, n, to, to_name, r)| Op::Rename(p, n, to, to_name, r)),
        2 => (dir(), name(), file()).prop_map(|(p, n, target)| Op::Link(p, n, target)),
        3 => (file(), offset(), vec(any::<u8>(), 0..9000)).prop_map(|(p, o, d)| Op::Write(p, o, d)),
        2 => (file(), offset(), 0..9000_usize).prop_map(|(p, o, c)| Op::Read(p, o, c)),
        2 => (file(), set()).prop_map(|(p, s)| Op::Set(p, s)),
        1 => (file(), offset(), offset()).prop_map(|(p, o, l)| Op::Punch(p, o, l)),
        1 => (file(), 0..20_000_u64, 0..20_000_u64, any::<bool>())
            .prop_map(|(p, o, l, g)| Op::Allocate(p, o, l, g)),
        1 => (file(), offset(), file(), 0..20_000_u64, 0..9000_u64)
            .prop_map(|(p, o, to, at, l)| Op::Copy(p, o, to, at, l)),
        2 => (file(), xattr(), vec(any::<u8>(), 0..50), xattr_mode())
            .prop_map(|(p, n, v, m)| Op::SetXattr(p, n, v, m)),
        1 => (file(), xattr()).prop_map(|(p, n)| Op::RemoveXattr(p, n)),
        1 => file().prop_map(Op::Hold),
        1 => (0..4_usize).prop_map(Op::ReadHeld),
    ]
}

/// A store and the nodes that are held.
struct Side<'a> {
    store: &'a dyn Storage,
    held: Vec<NodeRef>,
}

fn named(text: &str) -> Name<'_> {
    Name::new(text.as_bytes()).unwrap()
}

impl Side<'_> {
    fn walk(&self, place: &Place) -> Result<NodeRef> {
        place.iter().try_fold(self.store.root(), |node, at| node.lookup(named(at), Wait::May(MAY)))
    }

    fn run(&mut self, op: &Op) -> Result<CallResult> {
        match op {
            Op::Create(place, at, kind, mode) => {
                let kind = match kind {
                    Kind::Regular => NewKind::Regular,
                    Kind::Directory => NewKind::Directory,
                    Kind::Symlink(text) => NewKind::Symlink(text),
                    Kind::Fifo => NewKind::Fifo,
                };
                let new = NewNode { kind, mode: *mode, uid: 11, gid: 12 };
                answer_of(&self.walk(place)?.create(named(at), &new, MAY)?)
            }
            Op::RemoveFile(place, at) => {
                self.walk(place)?.remove_file(named(at), MAY).map(|()| CallResult::Done)
            }
            Op::RemoveDir(place, at) => {
                self.walk(place)?.remove_dir(named(at), MAY).map(|()| CallResult::Done)
            }
            Op::Rename(place, at, to, to_at, replace) => {
                let (dir, to) = (self.walk(place)?, self.walk(to)?);
                dir.rename(named(at), &*to, named(to_at), *replace, MAY).map(|()| CallResult::Done)
            }
            Op::Link(place, at, target) => {
                let target = self.walk(target)?;
                self.walk(place)?.link(named(at), &*target, MAY).map(|()| CallResult::Done)
            }
            Op::Hold(place) => {
                let node = self.walk(place)?;
                self.held.push(node);
                Ok(CallResult::Done)
            }
            Op::ReadHeld(number) => match self.held.get(*number) {
                Some(node) => read(node, 0, 20_000),
                None => Ok(CallResult::Done),
            },
            Op::Set(place, set) => {
                let node = self.walk(place)?;
                node.set_attributes(set, MAY)?;
                answer_of(&node)
            }
            other => self.run_on_data(other),
        }
    }

    fn run_on_data(&self, op: &Op) -> Result<CallResult> {
        match op {
            Op::Write(place, offset, data) => {
                let node = self.walk(place)?;
                let data = [IoSlice::new(&data[..data.len() / 2]), IoSlice::new(&data[data.len() / 2..])];
                Ok(CallResult::Count(node.write(*offset, &data, Stability::Unstable, Wait::May(MAY))? as u64))
            }
            Op::Read(place, offset, count) => read(&self.walk(place)?, *offset, *count),
            Op::Punch(place, offset, length) => {
                self.walk(place)?.punch_hole(*offset, *length, MAY).map(|()| CallResult::Done)
            }
            Op::Allocate(place, offset, length, grow) => {
                self.walk(place)?.allocate(*offset, *length, *grow, MAY).map(|()| CallResult::Done)
            }
            Op::Copy(place, offset, to, to_offset, length) => {
                let (from, to) = (self.walk(place)?, self.walk(to)?);
                from.copy_range(*offset, &*to, *to_offset, *length, MAY).map(CallResult::Count)
            }
            Op::SetXattr(place, at, value, mode) => {
                self.walk(place)?.set_xattr(at.as_bytes(), value, *mode, MAY).map(|()| CallResult::Done)
            }
            Op::RemoveXattr(place, at) => {
                self.walk(place)?.remove_xattr(at.as_bytes(), MAY).map(|()| CallResult::Done)
            }
            _ => Ok(CallResult::Done),
        }
    }
}

fn read(node: &NodeRef, offset: u64, count: usize) -> Result<CallResult> {
    let mut into = vec![0xee; count];
    let count = node.read(offset, &mut into, Wait::May(MAY))?;
    into.truncate(count);
    Ok(CallResult::Bytes(into))
}

fn answer_of(node: &NodeRef) -> Result<CallResult> {
    let found = node.attributes(Want::all(), Wait::May(MAY))?;
    // The store decides the size of a directory, and the times that nobody has set.
    let is_directory = found.kind == FileKind::Directory;
    Ok(CallResult::Attributes {
        kind: found.kind,
        mode: found.mode,
        uid: found.uid,
        gid: found.gid,
        size: (!is_directory).then_some(found.size),
        mtime: Some(found.mtime).filter(|mtime| mtime.secs < 1000),
    })
}

/// The object at a path.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    path: String,
    /// The number, as the order in which it was first seen.
    object: usize,
    attributes: CallResult,
    links: Option<u32>,
    flags: Option<FileFlags>,
    text: Option<Vec<u8>>,
    data: Option<CallResult>,
    xattrs: Option<Vec<(Vec<u8>, Vec<u8>)>>,
}

/// Everything below a directory, in the order of names.
fn tree(dir: &NodeRef, path: &str, objects: &mut HashMap<ObjectId, usize>, seen: &mut Vec<Seen>) {
    let mut names = Vec::new();
    dir.read_dir(0, MAY, &mut |entry| {
        names.push((String::from_utf8(entry.name.to_vec()).unwrap(), entry.id));
        ControlFlow::Continue(())
    })
    .unwrap();
    names.sort();
    for (at, id) in names {
        let node = dir.lookup(named(&at), Wait::May(MAY)).unwrap();
        assert_eq!(node.id(), id);
        let next = objects.len();
        let found = node.attributes(Want::all(), Wait::May(MAY)).unwrap();
        let xattrs = node.xattrs(MAY).ok().map(|mut names| {
            names.sort();
            names.into_iter().map(|name| (name.clone(), node.xattr(&name, MAY).unwrap())).collect()
        });
        let path = format!("{path}/{at}");
        seen.push(Seen {
            path: path.clone(),
            object: *objects.entry(id).or_insert(next),
            attributes: answer_of(&node).unwrap(),
            links: (found.kind != FileKind::Directory).then_some(found.links),
            flags: found.flags,
            text: node.read_link(MAY).ok(),
            data: (found.kind == FileKind::Regular).then(|| read(&node, 0, 50_000).unwrap()),
            xattrs,
        });
        if found.kind == FileKind::Directory {
            tree(&node, &path, objects, seen);
        }
    }
}

/// Makes the calls on a store, which is empty and can set owners and extended attributes, and on the model.
pub(crate) fn compare(store: &dyn Storage, ops: &[Op]) {
    let memory = MemoryStore::new();
    let mode = SetAttributes { mode: Some(0o755), uid: Some(0), gid: Some(0), ..SetAttributes::default() };
    memory.root().set_attributes(&mode, MAY).unwrap();
    store.root().set_attributes(&mode, MAY).unwrap();
    let mut sides = [store, &memory].map(|store| Side { store, held: Vec::new() });
    for (number, op) in start().iter().chain(ops).enumerate() {
        let [stored, in_memory] = sides.each_mut().map(|side| side.run(op));
        assert_eq!(stored, in_memory, "call {number}: {op:?}");
    }
    let [stored, in_memory] = sides.map(|side| {
        let mut seen = Vec::new();
        tree(&side.store.root(), "", &mut HashMap::new(), &mut seen);
        seen
    });
    assert_eq!(stored, in_memory);
    assert_ne!(store.root().lookup(named("none"), Wait::May(MAY)).err(), Some(Error::WouldBlock));
}
