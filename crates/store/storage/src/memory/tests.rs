use super::*;
use crate::conformance::MAY;
use crate::{
    DirEntry, Name, NewKind, NewNode, Replace, SetAttributes, Stability, StreamName, Uncertain, View, Want,
    XattrMode,
};

fn file(mode: u32) -> NewNode<'static> {
    NewNode { kind: NewKind::Regular, mode, uid: 1, gid: 2 }
}

#[test]
fn the_clock_is_the_given_one() {
    fn clock() -> Timestamp {
        Timestamp { secs: -5, nanos: 7 }
    }
    let store = MemoryStore::with_clock(clock);
    let node = store.root().create(Name::new(b"f").unwrap(), &file(0o600), MAY).unwrap();
    let attributes = node.attributes(Want::all(), Wait::Never(View::FRESH)).unwrap();
    assert_eq!((attributes.mtime, attributes.btime), (clock(), Some(clock())));
}

#[test]
fn nothing_at_hand_would_block() {
    let store = MemoryStore::new();
    store.set_at_hand(false);
    let root = store.root();
    assert_eq!(root.attributes(Want::empty(), Wait::Never(View::FRESH)), Err(Error::WouldBlock));
    assert!(root.attributes(Want::empty(), Wait::May(MAY)).is_ok());
}

#[test]
fn objects_go_with_their_last_reference() {
    let store = MemoryStore::with_capacity(8192);
    let root = store.root();
    let name = Name::new(b"f").unwrap();
    let node = root.create(name, &file(0o600), MAY).unwrap();
    node.write(0, &[std::io::IoSlice::new(&[1; 8192])], Stability::Unstable, Wait::May(MAY)).unwrap();
    assert_eq!(store.space(MAY).unwrap().free, 0);
    assert_eq!(node.allocate(8192, 1, true, MAY), Err(Error::NoSpace));
    root.remove_file(name, MAY).unwrap();
    assert_eq!(store.space(MAY).unwrap().free, 0, "still held");
    let handle = node.handle().unwrap();
    assert_eq!(store.by_handle(&handle, Wait::May(MAY)).unwrap().id(), node.id());
    drop(node);
    assert_eq!(store.space(MAY).unwrap().free, 8192);
    assert_eq!(store.by_handle(&handle, Wait::May(MAY)).err(), Some(Error::Stale));
    assert_eq!(store.shared.state.lock().objects.len(), 1, "only the root is left");
}

fn name(name: &'static [u8]) -> Name<'static> {
    Name::new(name).unwrap()
}

fn write(node: &NodeRef, data: &[u8]) -> Result<usize> {
    node.write(0, &[std::io::IoSlice::new(data)], Stability::Unstable, Wait::May(MAY))
}

fn read(node: &NodeRef) -> Vec<u8> {
    let mut data = [0; 8];
    let count = node.read(0, &mut data, Wait::May(MAY)).unwrap();
    data[..count].to_vec()
}

#[test]
fn a_further_file_system_has_numbers_of_its_own() {
    let store = MemoryStore::new();
    let root = store.root();
    let here = root.create(name(b"f"), &file(0o600), MAY).unwrap();
    let top = store.add_file_system(name(b"other")).unwrap();
    let there = top.create(name(b"f"), &file(0o600), MAY).unwrap();
    assert_eq!((here.id().number, top.id().number), (there.id().number, root.id().number));
    assert_ne!(here.id(), there.id());
    for node in [&here, &top, &there] {
        let handle = node.handle().unwrap();
        assert_eq!(store.by_handle(&handle, Wait::May(MAY)).unwrap().id(), node.id());
    }
    let found = root.lookup(name(b"other"), Wait::May(MAY)).unwrap();
    assert_eq!((found.id(), found.parent(MAY).unwrap().id()), (top.id(), root.id()));
    assert_eq!(there.path(), Ok(b"other/f".to_vec()));
    assert_eq!(store.add_file_system(name(b"other")).err(), Some(Error::Exists));
    // Names and blocks stay within a file system; data does not.
    assert_eq!(top.link(name(b"g"), &*here, MAY), Err(Error::CrossDevice));
    assert_eq!(root.rename(name(b"f"), &*top, name(b"g"), Replace::Never, MAY), Err(Error::CrossDevice));
    assert_eq!(here.clone_range(0, &*there, 0, 0, MAY), Err(Error::CrossDevice));
    assert_eq!(here.copy_range(0, &*there, 0, 1, MAY), Ok(0));
}

#[test]
fn a_snapshot_stays_as_it_was_made() {
    let store = MemoryStore::new();
    let root = store.root();
    store.add_file_system(name(b"other")).unwrap();
    let dir = root.create(name(b"d"), &NewNode { kind: NewKind::Directory, ..file(0o700) }, MAY).unwrap();
    let live = dir.create(name(b"f"), &file(0o600), MAY).unwrap();
    let stream_name = StreamName::new(b"s").unwrap();
    write(&live, b"old").unwrap();
    write(&live.create_stream(stream_name, MAY).unwrap(), b"beside").unwrap();

    let top = store.add_snapshot(name(b"then")).unwrap();
    write(&live, b"new").unwrap();
    dir.create(name(b"g"), &file(0o600), MAY).unwrap();
    let second = store.add_snapshot(name(b"later")).unwrap();

    let mut names = Vec::new();
    let mut each = |entry: DirEntry<'_>| {
        names.push((entry.name.to_vec(), entry.id));
        std::ops::ControlFlow::Continue(())
    };
    assert_eq!(top.read_dir(0, MAY, &mut each), Ok(true));
    assert_eq!(names, [(b"d".to_vec(), ObjectId { snapshot: 1, ..dir.id() })]);
    let links = |node: &NodeRef| node.attributes(Want::empty(), Wait::May(MAY)).unwrap().links;
    assert_eq!((links(&top), links(&root)), (3, 6));

    let old_dir = top.lookup(name(b"d"), Wait::May(MAY)).unwrap();
    assert_eq!(old_dir.lookup(name(b"g"), Wait::May(MAY)).err(), Some(Error::NotFound));
    let old = old_dir.lookup(name(b"f"), Wait::May(MAY)).unwrap();
    assert_eq!(old.id(), ObjectId { snapshot: 1, ..live.id() });
    assert_eq!((read(&old), read(&live)), (b"old".to_vec(), b"new".to_vec()));
    assert_eq!(old.path(), Ok(b"then/d/f".to_vec()));
    let stream = old.stream(stream_name, MAY).unwrap();
    assert_eq!((read(&stream), stream.id().snapshot), (b"beside".to_vec(), 1));
    for node in [&top, &second, &old_dir, &old, &stream] {
        let handle = node.handle().unwrap();
        assert_eq!(store.by_handle(&handle, Wait::May(MAY)).unwrap().id(), node.id());
    }
}

#[test]
fn a_snapshot_takes_nothing() {
    let store = MemoryStore::new();
    let root = store.root();
    let dir = root.create(name(b"d"), &NewNode { kind: NewKind::Directory, ..file(0o700) }, MAY).unwrap();
    let live = dir.create(name(b"f"), &file(0o600), MAY).unwrap();
    write(&live, b"old").unwrap();
    live.create_stream(StreamName::new(b"s").unwrap(), MAY).unwrap();
    let top = store.add_snapshot(name(b"then")).unwrap();
    write(&live, b"new").unwrap();

    let old_dir = top.lookup(name(b"d"), Wait::May(MAY)).unwrap();
    let old = old_dir.lookup(name(b"f"), Wait::May(MAY)).unwrap();
    let stream = old.stream(StreamName::new(b"s").unwrap(), MAY).unwrap();
    let read_only = Some(Error::ReadOnly);
    assert_eq!(write(&old, b"x").err(), read_only);
    assert_eq!(write(&stream, b"x").err(), read_only);
    assert_eq!(old.create_stream(StreamName::new(b"t").unwrap(), MAY).err(), read_only);
    assert_eq!(old_dir.create(name(b"x"), &file(0o600), MAY).err(), read_only);
    assert_eq!(old_dir.remove_file(name(b"f"), MAY).err(), read_only);
    assert_eq!(old_dir.rename(name(b"f"), &*dir, name(b"x"), Replace::Never, MAY).err(), read_only);
    assert_eq!(dir.rename(name(b"f"), &*old_dir, name(b"x"), Replace::Never, MAY).err(), read_only);
    assert_eq!(dir.link(name(b"x"), &*old, MAY).err(), read_only);
    assert_eq!(root.remove_dir(name(b"then"), MAY).err(), read_only);
    let set = SetAttributes { mode: Some(0o777), ..SetAttributes::default() };
    assert_eq!(old.set_attributes(&set, MAY).err(), read_only);
    assert_eq!(old.set_xattr(b"x", b"", XattrMode::Set, MAY).err(), read_only);
    assert_eq!(live.copy_range(0, &*old, 0, 1, MAY).err(), read_only);
    // A file is restored from its picture.
    assert_eq!(old.copy_range(0, &*live, 0, 3, MAY), Ok(3));
    assert_eq!(read(&live), b"old");
}

#[test]
fn a_feed_that_nobody_drains_follows_nothing_in_the_end() {
    let store = MemoryStore::new();
    assert_eq!(store.feed().unwrap_err(), Error::NotSupported);
    let store = store.with_feeds();
    let (feed, root) = (store.feed().unwrap(), store.root());
    let number = feed.follow(&root).unwrap();
    let change = |number| {
        root.create(Name::new(format!("file{number}").as_bytes()).unwrap(), &file(0o600), MAY).unwrap()
    };
    let drained = || {
        let mut told = Vec::new();
        feed.drain(&mut |uncertain| told.push(uncertain == Uncertain::All));
        told
    };
    (0..256).for_each(|number| _ = change(number));
    assert_eq!(drained(), [false; 256]);
    (0..300).for_each(|number| _ = change(1000 + number));
    let late = feed.follow(&root).unwrap();
    assert!(feed.is_followed(late), "it is not known yet that anything was lost");
    assert_eq!(drained(), [true]);
    assert!(!feed.is_followed(number) && !feed.is_followed(late));
    change(2000);
    assert!(drained().is_empty() && feed.follow(&root).unwrap() != late);
}

/// The store has no file on disk, so nothing survives it.
struct Memory(MemoryStore);

impl crate::conformance::Subject for Memory {
    fn store(&self) -> &dyn Storage {
        &self.0
    }

    fn restart(&mut self) {}

    fn at_once(&self, jobs: &[&(dyn Fn() + Sync)]) {
        std::thread::scope(|scope| jobs.iter().for_each(|job| _ = scope.spawn(job)));
    }

    fn may_be_filled(&self) -> bool {
        self.0.space(MAY).unwrap().total <= 64 << 20
    }
}

fn subject() -> Memory {
    Memory(MemoryStore::new().with_feeds())
}

crate::conformance_tests!(subject);

mod with_snapshots {
    use super::{Memory, MemoryStore};

    #[expect(clippy::unnecessary_wraps, reason = "other stores cannot be made everywhere")]
    fn subject() -> Option<Memory> {
        Some(Memory(MemoryStore::with_capacity(64 << 20)))
    }

    crate::snapshot_conformance_tests!(subject);
}
