//! The depot of named streams: what shows it, what is left in it, and what is removed at a start.
#![expect(clippy::unwrap_used, reason = "a check that fails panics: that is how it tells")]

use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anabranch_storage_local::{LocalOptions, LocalStore};
use storage::conformance::MAY;
use storage::{
    Capabilities, Error, Name, NewKind, NewNode, NodeRef, Replace, Stability, Storage, StreamName, View, Wait,
};

const DEPOT: &str = ".anabranch-streams";

fn open(root: &Path) -> LocalStore {
    LocalStore::open(root, LocalOptions::default()).unwrap()
}

fn name(text: &str) -> Name<'_> {
    Name::new(text.as_bytes()).unwrap()
}

fn stream_name(text: &str) -> StreamName<'_> {
    StreamName::new(text.as_bytes()).unwrap()
}

fn make(store: &LocalStore, file: &str, stream: &str) -> NodeRef {
    let new = NewNode { kind: NewKind::Regular, mode: 0o644, uid: 0, gid: 0 };
    let node = store.root().create(name(file), &new, MAY).unwrap();
    let data = node.create_stream(stream_name(stream), MAY).unwrap();
    data.write(0, &[IoSlice::new(b"data")], Stability::Unstable, Wait::May(MAY)).unwrap();
    node
}

fn streams(store: &LocalStore, file: &str) -> Vec<String> {
    let node = store.root().lookup(name(file), Wait::May(MAY)).unwrap();
    node.streams(MAY).unwrap().into_iter().map(|entry| String::from_utf8(entry.name).unwrap()).collect()
}

/// The directories in the depot, for any root.
fn folders(root: &Path) -> Vec<PathBuf> {
    let entries = |dir: &Path| -> Vec<PathBuf> {
        std::fs::read_dir(dir).into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
    };
    entries(&root.join(DEPOT)).iter().flat_map(|dir| entries(dir)).collect()
}

fn wait_until(what: &str, is: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn no_call_reaches_the_depot() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    assert!(store.capabilities().contains(Capabilities::STREAMS));
    make(&store, "f", "s");
    assert!(dir.path().join(DEPOT).is_dir());
    let (root, depot) = (store.root(), name(DEPOT));
    assert_eq!(root.lookup(depot, Wait::May(MAY)).unwrap_err(), Error::NotFound);
    assert_eq!(root.lookup(depot, Wait::Never(View::FRESH)).unwrap_err(), Error::NotFound);
    assert_eq!(root.remove_dir(depot, MAY), Err(Error::NotFound));
    assert_eq!(root.remove_file(depot, MAY), Err(Error::NotFound));
    assert_eq!(root.rename(depot, &*root, name("x"), Replace::Never, MAY), Err(Error::NotFound));
    assert_eq!(root.rename(name("f"), &*root, depot, Replace::Yes, MAY), Err(Error::PermissionDenied));
    let file = root.lookup(name("f"), Wait::May(MAY)).unwrap();
    assert_eq!(root.link(depot, &*file, MAY), Err(Error::PermissionDenied));
    let new = NewNode { kind: NewKind::Directory, mode: 0o755, uid: 0, gid: 0 };
    assert_eq!(root.create(depot, &new, MAY).unwrap_err(), Error::PermissionDenied);
}

#[test]
fn nothing_is_made_before_the_first_stream_or_left_after_the_last() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let long = "l".repeat(600);
    let new = NewNode { kind: NewKind::Regular, mode: 0o644, uid: 0, gid: 0 };
    let node = store.root().create(name("f"), &new, MAY).unwrap();
    assert_eq!(node.streams(MAY), Ok(Vec::new()));
    assert!(!dir.path().join(DEPOT).exists());
    node.create_stream(stream_name(&long), MAY).unwrap();
    assert_eq!(folders(dir.path()).len(), 1);
    node.remove_stream(stream_name(&long), MAY).unwrap();
    assert_eq!(folders(dir.path()), Vec::<PathBuf>::new());
    node.create_stream(stream_name(&long), MAY).unwrap();
    store.root().remove_file(name("f"), MAY).unwrap();
    assert_eq!(folders(dir.path()), Vec::<PathBuf>::new());
}

/// A start removes what a killed server has left, and what belongs to objects that a local program removed; nothing
/// else.
#[test]
fn a_start_removes_what_belongs_to_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    if !store.capabilities().contains(Capabilities::NATIVE_HANDLES) {
        return; // a server without privileges cannot ask, and leaves it
    }
    make(&store, "stays", "s");
    make(&store, "goes", "s");
    make(&store, "renamed", "s");
    drop(store);
    std::fs::remove_file(dir.path().join("goes")).unwrap();
    std::fs::rename(dir.path().join("renamed"), dir.path().join("other")).unwrap();
    assert_eq!(folders(dir.path()).len(), 3);
    let top = folders(dir.path())[0].parent().unwrap().to_owned();
    std::fs::create_dir(top.join("not a handle")).unwrap();
    let store = open(dir.path());
    wait_until("the streams of a file that is gone are there", || folders(dir.path()).len() == 3);
    assert!(top.join("not a handle").is_dir());
    assert_eq!(streams(&store, "stays"), ["s"]);
    assert_eq!(streams(&store, "other"), ["s"]);
}

/// A copy of the directory does not take the copied depot for its own, and does not touch it.
#[test]
fn a_copy_has_no_streams_but_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("root");
    std::fs::create_dir(&root).unwrap();
    let store = open(&root);
    make(&store, "f", "s");
    drop(store);
    let copy = dir.path().join("copy");
    let copied = std::process::Command::new("cp").arg("-a").args([&root, &copy]).status().unwrap();
    assert!(copied.success());
    let store = open(&copy);
    assert_eq!(streams(&store, "f"), [""; 0]);
    make(&store, "g", "t");
    assert_eq!(folders(&copy).len(), 2);
    drop(store);
    assert_eq!(streams(&open(&root), "f"), ["s"]);
}

/// Names that are removed while streams are created leave nothing without an object.
#[test]
fn streams_made_while_the_file_goes_go_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    make(&store, "keeps the depot", "s");
    for round in 0..200 {
        let node = make(&store, "f", "first");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let made = node.create_stream(stream_name("second"), MAY);
                assert!(made.is_ok() || made.is_err_and(|e| e == Error::Stale));
            });
            scope.spawn(|| store.root().remove_file(name("f"), MAY).unwrap());
        });
        assert_eq!(folders(dir.path()).len(), 1, "round {round}");
    }
}

#[test]
fn a_depot_of_somebody_else_is_not_used() {
    use std::os::unix::fs::chown;
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join(DEPOT)).unwrap();
    if chown(dir.path().join(DEPOT), Some(65534), None).is_err() {
        return; // only root can give a directory away
    }
    let store = open(dir.path());
    assert!(!store.capabilities().contains(Capabilities::STREAMS));
    let new = NewNode { kind: NewKind::Regular, mode: 0o644, uid: 0, gid: 0 };
    let node = store.root().create(name("f"), &new, MAY).unwrap();
    assert_eq!(node.create_stream(stream_name("s"), MAY).unwrap_err(), Error::NotSupported);
}
