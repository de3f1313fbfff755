//! Named streams in snapshots, in a backup, and on what cannot be written.
#![expect(clippy::unwrap_used, reason = "a check that fails panics: that is how it tells")]

mod disk;
#[path = "../../../anabranch/tests/program/needs/mod.rs"]
mod needs;

use std::io::IoSlice;
use std::path::Path;

use acl::{SecurityDescriptor, Sid};
use anabranch_storage_local::{LocalOptions, LocalStore};
use disk::{Disk, succeeds};
use rustix::fs::{XattrFlags, getxattr, removexattr, setxattr};
use storage::conformance::MAY;
use storage::depot::{DEPOT_NAME, StreamsNumber, StreamsOwner};
use storage::{
    Capabilities, Error, Name, NewKind, NewNode, NodeRef, Stability, Storage, StreamName, Wait, Want,
};

const NEW_FILE: NewNode<'static> = NewNode { kind: NewKind::Regular, mode: 0o644, uid: 0, gid: 0 };

fn open(root: &Path) -> LocalStore {
    LocalStore::open(root, LocalOptions::default()).unwrap()
}

fn find(store: &LocalStore, file: &str) -> NodeRef {
    store.root().lookup(Name::new(file.as_bytes()).unwrap(), Wait::May(MAY)).unwrap()
}

fn stream_name(text: &str) -> StreamName<'_> {
    StreamName::new(text.as_bytes()).unwrap()
}

fn write(node: &NodeRef, stream: &str, bytes: &[u8]) {
    let stream = match node.stream(stream_name(stream), MAY) {
        Err(Error::NotFound) => node.create_stream(stream_name(stream), MAY).unwrap(),
        found => found.unwrap(),
    };
    stream.write(0, &[IoSlice::new(bytes)], Stability::Unstable, Wait::May(MAY)).unwrap();
}

fn data(store: &LocalStore, file: &str) -> Vec<u8> {
    let mut bytes = [0; 100];
    let stream = find(store, file).stream(stream_name("s"), MAY).unwrap();
    let count = stream.read(0, &mut bytes, Wait::May(MAY)).unwrap();
    bytes[..count].to_vec()
}

/// Files `f` and `g` with a stream each.
fn fill(root: &Path) {
    let store = open(root);
    for file in ["f", "g"] {
        let node = store.root().create(Name::new(file.as_bytes()).unwrap(), &NEW_FILE, MAY).unwrap();
        write(&node, "s", b"data");
    }
    let owner = SecurityDescriptor { owner: Some(Sid::EVERYONE), ..Default::default() };
    find(&store, "f").set_security(Some(owner), MAY).unwrap();
}

fn has_descriptor(store: &LocalStore, file: &str) -> bool {
    let node = find(store, file);
    let attributes = node.attributes(Want::all(), Wait::May(MAY)).unwrap();
    node.security(&attributes, Wait::May(MAY)).unwrap().is_some()
}

fn folders(root: &Path) -> usize {
    std::fs::read_dir(root.join(DEPOT_NAME)).unwrap().count()
}

/// A Btrfs subvolume with streams, in a file system of its own, and the directory that holds both.
fn subvolume() -> Option<(Disk, tempfile::TempDir)> {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().join("top");
    let disk = Disk::make("btrfs", &["-q"], 256, &top)?;
    btrfs("create", &[&top.join("live")]).then_some(())?;
    fill(&top.join("live"));
    Some((disk, dir))
}

fn btrfs(what: &str, at: &[&Path]) -> bool {
    succeeds("btrfs", &["-q", "subvolume", what], at)
}

#[test]
fn a_snapshot_has_the_streams_of_its_time() {
    let Some((_disk, dir)) = subvolume() else { return };
    let at = |name: &str| dir.path().join("top").join(name);
    let store = open(&at("live"));
    assert!(succeeds("btrfs", &["-q", "subvolume", "snapshot", "-r"], &[&at("live"), &at("snapshot")]));
    write(&find(&store, "f"), "s", b"DATA");
    write(&find(&store, "f"), "t", b"later");
    store.root().remove_file(Name::new(b"g").unwrap(), MAY).unwrap();
    assert_eq!(folders(&at("live")), 1);
    // The snapshot is not mounted read-only: only trying tells that it cannot be written.
    let snapshot = open(&at("snapshot"));
    assert!(snapshot.capabilities().contains(Capabilities::STREAMS));
    assert_eq!((data(&snapshot, "f"), data(&snapshot, "g")), (b"data".to_vec(), b"data".to_vec()));
    assert_eq!(find(&snapshot, "f").streams(MAY).unwrap().len(), 1);
    assert_eq!(find(&snapshot, "f").create_stream(stream_name("u"), MAY).unwrap_err(), Error::ReadOnly);
    assert!(has_descriptor(&snapshot, "f"));
    assert_eq!(data(&store, "f"), b"DATA");
}

#[test]
fn a_reverted_subvolume_has_its_streams() {
    let Some((_disk, dir)) = subvolume() else { return };
    let at = |name: &str| dir.path().join("top").join(name);
    assert!(btrfs("snapshot", &[&at("live"), &at("snapshot")]));
    {
        let store = open(&at("live"));
        write(&find(&store, "f"), "s", b"DATA");
        store.root().remove_file(Name::new(b"g").unwrap(), MAY).unwrap();
    }
    std::fs::rename(at("live"), at("former")).unwrap();
    std::fs::rename(at("snapshot"), at("live")).unwrap();
    for _ in 0..2 {
        let store = open(&at("live"));
        assert_eq!((data(&store, "f"), data(&store, "g")), (b"data".to_vec(), b"data".to_vec()));
        assert_eq!(folders(&at("live")), 2, "taken over, not copied");
    }
    let store = open(&at("live"));
    write(&find(&store, "f"), "s", b"new!");
    store.root().remove_file(Name::new(b"f").unwrap(), MAY).unwrap();
    assert_eq!(folders(&at("live")), 1);
    assert_eq!(data(&open(&at("former")), "f"), b"DATA");
}

#[test]
fn a_subvolume_that_was_sent_has_its_streams() {
    let Some((_disk, dir)) = subvolume() else { return };
    let at = |name: &str| dir.path().join("top").join(name);
    let stream = dir.path().join("stream");
    std::fs::create_dir(at("received")).unwrap();
    assert!(succeeds("btrfs", &["-q", "subvolume", "snapshot", "-r"], &[&at("live"), &at("snapshot")]));
    let file = stream.to_str().unwrap();
    assert!(succeeds("btrfs", &["-q", "send", "-f", file], &[&at("snapshot")]));
    assert!(succeeds("btrfs", &["-q", "receive", "-f", file], &[&at("received")]));
    let received = at("received").join("snapshot");
    assert_eq!(data(&open(&received), "f"), b"data");
    assert!(btrfs("snapshot", &[&received, &at("again")]));
    let store = open(&at("again"));
    assert_eq!((data(&store, "f"), data(&store, "g")), (b"data".to_vec(), b"data".to_vec()));
    write(&find(&store, "f"), "s", b"DATA");
    assert_eq!(data(&open(&at("live")), "f"), b"data");
}

/// The numbers of its files may be those of files of the share.
#[test]
fn a_subvolume_below_the_root_is_refused() {
    let Some((_disk, dir)) = subvolume() else { return };
    let live = dir.path().join("top/live");
    assert!(btrfs("create", &[&live.join("inner")]));
    let store = open(&live);
    let inner = Name::new(b"inner").unwrap();
    for _ in 0..2 {
        assert_eq!(store.root().lookup(inner, Wait::May(MAY)).unwrap_err(), Error::PermissionDenied);
    }
}

/// A backup with tar, restored onto another file system.
#[test]
fn a_backup_has_the_streams() {
    let dir = tempfile::tempdir().unwrap();
    let (root, back, archive) =
        (dir.path().join("root"), dir.path().join("back"), dir.path().join("archive"));
    let Some(_disk) = Disk::make("xfs", &["-q"], 320, &back) else { return };
    std::fs::create_dir(&root).unwrap();
    fill(&root);
    let xattrs = ["--xattrs", "--xattrs-include=*"];
    let options = |verb: &'static str| {
        [verb, xattrs[0], xattrs[1], "--file", archive.to_str().unwrap()].map(str::to_owned)
    };
    let tar = |verb, dir: &Path, rest: &[&str]| {
        let options = options(verb);
        let mut arguments: Vec<&str> = options.iter().map(String::as_str).collect();
        arguments.extend(["--directory", dir.to_str().unwrap()]);
        arguments.extend(rest);
        succeeds("tar", &arguments, &[])
    };
    assert!(tar("--create", &root, &["."]));
    assert!(tar("--extract", &back, &[]));
    let store = open(&back);
    assert_eq!((data(&store, "f"), data(&store, "g")), (b"data".to_vec(), b"data".to_vec()));
    // One file that was removed with its streams: its directory in the depot comes back, too.
    let number = number_of(&back.join("f"));
    store.root().remove_file(Name::new(b"f").unwrap(), MAY).unwrap();
    assert!(tar("--extract", &back, &["./f"]));
    assert_eq!(find(&store, "f").streams(MAY), Ok(Vec::new()));
    assert!(tar("--extract", &back, &[&format!("./{DEPOT_NAME}/{}", number.folder_name())]));
    assert_eq!(data(&store, "f"), b"data");
    assert_eq!(folders(&back), 2);
}

fn number_of(file: &Path) -> StreamsNumber {
    let mut value = [0; StreamsNumber::XATTR_BYTES];
    getxattr(file, StreamsNumber::TRUSTED_XATTR, &mut value).unwrap();
    StreamsNumber::decode(&value).unwrap()
}

#[test]
fn what_is_mounted_read_only_shows_its_streams() {
    if !rustix::process::geteuid().is_root() {
        return needs::not_tested("only root mounts");
    }
    let dir = tempfile::tempdir().unwrap();
    let (root, copy, view) = (dir.path().join("root"), dir.path().join("copy"), dir.path().join("view"));
    std::fs::create_dir(&root).unwrap();
    fill(&root);
    // The owners in the depot are those of another root, and one directory has the name of version 0.1.0.
    assert!(succeeds("cp", &["-a"], &[&root, &copy]));
    let store = open(&copy);
    let node = store.root().create(Name::new(b"old").unwrap(), &NEW_FILE, MAY).unwrap();
    write(&node, "s", b"data");
    drop((node, store));
    let folder = copy.join(DEPOT_NAME).join(number_of(&copy.join("old")).folder_name());
    let mut value = [0; StreamsOwner::XATTR_BYTES_MAX];
    let count = getxattr(&folder, StreamsOwner::XATTR, &mut value).unwrap();
    let owner = StreamsOwner::decode(&value[..count]).unwrap();
    let (kind, handle) = owner.object.split_first_chunk().unwrap();
    let hex: String = handle.iter().map(|byte| format!("{byte:02x}")).collect();
    let top = copy.join(DEPOT_NAME).join(format!("{:016x}", owner.root));
    std::fs::create_dir(&top).unwrap();
    std::fs::rename(&folder, top.join(format!("{:x}.{hex}", i32::from_le_bytes(*kind)))).unwrap();
    removexattr(copy.join("old"), StreamsNumber::TRUSTED_XATTR).unwrap();
    let g = number_of(&copy.join("g")).encode();
    std::fs::write(copy.join("copy of g"), "").unwrap();
    setxattr(copy.join("copy of g"), StreamsNumber::TRUSTED_XATTR, &g, XattrFlags::empty()).unwrap();
    let Some(_disk) = Disk::read_only(&copy, &view) else { return };
    let store = open(&view);
    assert!(!store.capabilities().contains(Capabilities::WRITE));
    for file in ["f", "g", "copy of g", "old"] {
        assert_eq!(data(&store, file), b"data", "{file}");
    }
    assert!(has_descriptor(&store, "f"));
    assert_eq!(find(&store, "f").create_stream(stream_name("u"), MAY).unwrap_err(), Error::ReadOnly);
    assert_eq!(find(&store, "f").remove_stream(stream_name("s"), MAY).unwrap_err(), Error::ReadOnly);
    assert!(top.exists());
}
