use std::io::IoSlice;

use storage::conformance::MAY;
use storage::{Error, FileFlags, Name, NewKind, NewNode, SetAttributes, Stability, Want};
use tempfile::TempDir;

use super::*;

const NEW_FILE: NewNode<'static> = NewNode { kind: NewKind::Regular, mode: 0o644, uid: 0, gid: 0 };

fn open_with(nodes_max: usize) -> (TempDir, LocalStore) {
    let dir = tempfile::tempdir().unwrap();
    let options = LocalOptions { nodes_max: Some(nodes_max), ..LocalOptions::default() };
    let store = LocalStore::open(dir.path(), options).unwrap();
    (dir, store)
}

fn name(text: &str) -> Name<'_> {
    Name::new(text.as_bytes()).unwrap()
}

/// The paths below a directory to which the process's descriptors lead.
fn descriptors_below(dir: &TempDir) -> Vec<String> {
    let inside = dir.path().to_str().unwrap();
    let open = std::fs::read_dir("/proc/self/fd").unwrap();
    let leads = open.filter_map(|fd| std::fs::read_link(fd.unwrap().path()).ok());
    let leads = leads.map(|path| path.to_string_lossy().into_owned());
    leads.filter(|path| path.starts_with(inside) && path != inside).collect()
}

#[test]
fn nodes_are_bounded_and_held_ones_stay() {
    let (dir, store) = open_with(64);
    let root = store.root();
    let held: Vec<_> =
        (0..100).map(|n| root.create(name(&format!("h{n}")), &NEW_FILE, MAY).unwrap()).collect();
    for number in 0..2000 {
        root.create(name(&format!("f{number}")), &NEW_FILE, MAY).unwrap();
    }
    let open = descriptors_below(&dir).len();
    assert!(open <= 100 + 80, "{open} descriptors");
    for (number, node) in held.iter().enumerate() {
        let found = root.lookup(name(&format!("h{number}")), Wait::May(MAY)).unwrap();
        assert!(Arc::ptr_eq(&found, node), "one object, one node");
    }
}

#[test]
fn nothing_is_kept_of_what_was_removed() {
    let (dir, store) = open_with(1000);
    let root = store.root();
    for at in ["a", "b", "c"] {
        let node = root.create(name(at), &NEW_FILE, MAY).unwrap();
        node.write(0, &[IoSlice::new(&[1; 100])], Stability::Unstable, Wait::May(MAY)).unwrap();
    }
    root.remove_file(name("a"), MAY).unwrap();
    root.rename(name("b"), &*root, name("c"), storage::Replace::Yes, MAY).unwrap();
    let open = descriptors_below(&dir);
    assert!(open.iter().all(|path| !path.ends_with("(deleted)")), "{open:?}");
    let held = root.lookup(name("c"), Wait::May(MAY)).unwrap();
    root.remove_file(name("c"), MAY).unwrap();
    let handle = held.handle().unwrap();
    let found = store.by_handle(&handle, Wait::May(MAY)).unwrap();
    assert!(Arc::ptr_eq(&found, &held), "a removed object that is held is still found by its handle");
    drop((found, held));
    assert!(descriptors_below(&dir).is_empty());
    assert_eq!(store.by_handle(&handle, Wait::May(MAY)).err(), Some(Error::Stale));
}

#[test]
fn what_is_removed_behind_the_servers_back_goes_with_the_sweeps() {
    let (dir, store) = open_with(1000);
    let root = store.root();
    let handle = root.create(name("a"), &NEW_FILE, MAY).unwrap().handle().unwrap();
    std::fs::remove_file(dir.path().join("a")).unwrap();
    assert_eq!(root.lookup(name("a"), Wait::May(MAY)).err(), Some(Error::NotFound));
    assert_eq!(descriptors_below(&dir).len(), 1);
    store.shared.cache.sweep();
    assert_eq!(descriptors_below(&dir).len(), 1, "used since the last sweep");
    store.shared.cache.sweep();
    assert!(descriptors_below(&dir).is_empty());
    assert_eq!(store.by_handle(&handle, Wait::May(MAY)).err(), Some(Error::Stale));
    // A call for its attributes shows at once that it is gone.
    let node = root.create(name("b"), &NEW_FILE, MAY).unwrap();
    std::fs::remove_file(dir.path().join("b")).unwrap();
    assert_eq!(node.attributes(Want::empty(), Wait::May(MAY)).unwrap().links, 0);
    drop(node);
    assert!(descriptors_below(&dir).is_empty());
}

#[test]
fn a_name_that_another_object_took_behind_the_servers_back() {
    let (dir, store) = open_with(1000);
    let root = store.root();
    let old = root.create(name("a"), &NEW_FILE, MAY).unwrap();
    std::fs::write(dir.path().join("b"), "new").unwrap();
    std::fs::rename(dir.path().join("b"), dir.path().join("a")).unwrap();
    let found = root.lookup(name("a"), Wait::May(MAY)).unwrap();
    assert_ne!(found.id(), old.id());
    assert_eq!(found.attributes(Want::empty(), Wait::May(MAY)).unwrap().size, 3);
}

#[test]
fn flags_changed_behind_the_servers_back_are_seen() {
    let (dir, store) = open_with(1000);
    let root = store.root();
    let node = root.create(name("a"), &NEW_FILE, MAY).unwrap();
    if !store.capabilities().contains(Capabilities::XATTRS) {
        return;
    }
    let flags = |node: &NodeRef| node.attributes(Want::FLAGS, Wait::May(MAY)).unwrap().flags;
    let other = LocalStore::open(dir.path(), LocalOptions::default()).unwrap();
    let theirs = other.root().lookup(name("a"), Wait::May(MAY)).unwrap();
    for value in [FileFlags::HIDDEN, FileFlags::SYSTEM, FileFlags::empty()] {
        assert_eq!(flags(&node), flags(&theirs));
        // File systems stamp changes with a clock that ticks slowly.
        std::thread::sleep(Duration::from_millis(30));
        theirs
            .set_attributes(&SetAttributes { flags: Some(value), ..SetAttributes::default() }, MAY)
            .unwrap();
        assert_eq!(flags(&node), Some(value));
    }
}

#[test]
fn the_key_of_handles_is_kept() {
    let (one, other) = (RecordsInMemory::default(), RecordsInMemory::default());
    assert_eq!(key(Some(&one)).unwrap(), key(Some(&one)).unwrap());
    assert_ne!(key(Some(&one)).unwrap(), key(Some(&other)).unwrap());
    assert_ne!(key(None).unwrap(), key(None).unwrap());
}

#[test]
fn nodes_outlive_the_store() {
    let (dir, store) = open_with(1000);
    let node = store.root().create(name("a"), &NEW_FILE, MAY).unwrap();
    drop(store);
    node.write(0, &[IoSlice::new(b"late")], Stability::Unstable, Wait::May(MAY)).unwrap();
    assert_eq!(std::fs::read(dir.path().join("a")).unwrap(), b"late");
    drop(node);
    assert!(descriptors_below(&dir).is_empty(), "nothing is left open");
}

#[test]
fn by_index_a_rename_behind_the_servers_back_makes_a_handle_stale() {
    let dir = tempfile::tempdir().unwrap();
    let options = LocalOptions { native_handles: false, ..LocalOptions::default() };
    let store = LocalStore::open(dir.path(), options).unwrap();
    let handle = store.root().create(name("a"), &NEW_FILE, MAY).unwrap().handle().unwrap();
    std::fs::rename(dir.path().join("a"), dir.path().join("b")).unwrap();
    store.shared.cache.drop_unreferred();
    assert_eq!(store.by_handle(&handle, Wait::May(MAY)).err(), Some(Error::Stale));
    // Another file with that name is a different object.
    std::fs::write(dir.path().join("a"), "other").unwrap();
    assert_eq!(store.by_handle(&handle, Wait::May(MAY)).err(), Some(Error::Stale));
    // Looking up the object again enters its new name.
    let found = store.root().lookup(name("b"), Wait::May(MAY)).unwrap();
    assert_eq!(found.handle().unwrap(), handle);
    drop(found);
    store.shared.cache.drop_unreferred();
    assert!(store.by_handle(&handle, Wait::May(MAY)).is_ok());
}

#[test]
fn what_is_no_directory_is_no_store() {
    let dir = tempfile::tempdir().unwrap();
    let open = |path: &Path| LocalStore::open(path, LocalOptions::default()).err();
    assert_eq!(open(&dir.path().join("none")), Some(Error::NotFound));
    std::fs::write(dir.path().join("file"), "").unwrap();
    assert_eq!(open(&dir.path().join("file")), Some(Error::NotDirectory));
}

#[test]
fn an_object_of_another_file_system_is_none_of_the_store() {
    let place = tempfile::tempdir().unwrap();
    let store = LocalStore::open(place.path(), LocalOptions::default()).unwrap();
    let mut stat = stat(&store.root.fd).unwrap();
    assert!(store.root.is_object_of(&stat));
    stat.stx_dev_minor += 1;
    assert!(!store.root.is_object_of(&stat));
}
