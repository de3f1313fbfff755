use super::*;
use crate::conformance::MAY;
use crate::{Name, NewKind, NewNode, View};

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
    let attributes = node.attributes(crate::Want::all(), Wait::Never(View::FRESH)).unwrap();
    assert_eq!((attributes.mtime, attributes.btime), (clock(), Some(clock())));
}

#[test]
fn nothing_at_hand_would_block() {
    let store = MemoryStore::new();
    store.set_at_hand(false);
    let root = store.root();
    assert_eq!(root.attributes(crate::Want::empty(), Wait::Never(View::FRESH)), Err(Error::WouldBlock));
    assert!(root.attributes(crate::Want::empty(), Wait::May(MAY)).is_ok());
}

#[test]
fn objects_go_with_their_last_reference() {
    let store = MemoryStore::with_capacity(8192);
    let root = store.root();
    let name = Name::new(b"f").unwrap();
    let node = root.create(name, &file(0o600), MAY).unwrap();
    node.write(0, &[std::io::IoSlice::new(&[1; 8192])], crate::Stability::Unstable, Wait::May(MAY)).unwrap();
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
}

fn subject() -> Memory {
    Memory(MemoryStore::new())
}

crate::conformance_tests!(subject);
