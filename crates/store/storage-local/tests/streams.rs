//! The depot of named streams: what shows it, what is left in it, and what is removed at a start.
#![expect(clippy::unwrap_used, reason = "a check that fails panics: that is how it tells")]

use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anabranch_storage_local::{LocalOptions, LocalStore, StreamsCheck, check_streams};
use rustix::fs::{XattrFlags, getxattr, removexattr, setxattr};
use storage::conformance::MAY;
use storage::depot::{DEPOT_NAME as DEPOT, StreamsNumber, StreamsOwner};
use storage::{
    Capabilities, Error, Name, NewKind, NewNode, NodeRef, Replace, Stability, Storage, StreamName, View, Wait,
};

/// A store whose first look through the depot is over: if it came late, it would give numbers back that a test has removed.
fn open(root: &Path) -> LocalStore {
    let store = LocalStore::open(root, LocalOptions::default()).unwrap();
    wait_until("the start looks through the depot", || store.has_looked_through_depot());
    store
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

/// What is in the depot.
fn folders(root: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(root.join(DEPOT)).into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
}

/// The attribute that holds the number of an object's streams.
fn number_name(object: &Path) -> Option<&'static str> {
    let has = |name: &&&str| getxattr(object, **name, &mut [0; 64]).is_ok();
    [StreamsNumber::TRUSTED_XATTR, StreamsNumber::USER_XATTR].iter().find(has).copied()
}

fn number(object: &Path) -> Option<StreamsNumber> {
    let mut value = [0; 64];
    let count = getxattr(object, number_name(object)?, &mut value).unwrap();
    StreamsNumber::decode(&value[..count])
}

fn owner(folder: &Path) -> StreamsOwner {
    let mut value = [0; StreamsOwner::XATTR_BYTES_MAX];
    let count = getxattr(folder, StreamsOwner::XATTR, &mut value).unwrap();
    StreamsOwner::decode(&value[..count]).unwrap()
}

fn data(node: &NodeRef, stream: &str) -> Vec<u8> {
    let mut bytes = [0; 100];
    let count = node.stream(stream_name(stream), MAY).unwrap().read(0, &mut bytes, Wait::May(MAY)).unwrap();
    bytes[..count].to_vec()
}

fn find(store: &LocalStore, file: &str) -> NodeRef {
    store.root().lookup(name(file), Wait::May(MAY)).unwrap()
}

fn write(node: &NodeRef, stream: &str, bytes: &[u8]) {
    let stream = match node.stream(stream_name(stream), MAY) {
        Err(Error::NotFound) => node.create_stream(stream_name(stream), MAY).unwrap(),
        found => found.unwrap(),
    };
    stream.write(0, &[IoSlice::new(bytes)], Stability::Unstable, Wait::May(MAY)).unwrap();
}

fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-a").args([from, to]).status().unwrap().success());
}

/// Puts an object's directory back to where version 0.1.0 had it, and takes the number away.
fn make_old(root: &Path, file: &str) -> PathBuf {
    let object = root.join(file);
    let folder = root.join(DEPOT).join(number(&object).unwrap().folder_name());
    let owner = owner(&folder);
    let (kind, handle) = owner.object.split_first_chunk().unwrap();
    let hex: String = handle.iter().map(|byte| format!("{byte:02x}")).collect();
    let top = root.join(DEPOT).join(format!("{:016x}", owner.root));
    let old = top.join(format!("{:x}.{hex}", i32::from_le_bytes(*kind)));
    std::fs::create_dir_all(&top).unwrap();
    std::fs::rename(&folder, &old).unwrap();
    removexattr(&old, StreamsOwner::XATTR).unwrap();
    removexattr(&object, number_name(&object).unwrap()).unwrap();
    old
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
    assert!(number(&dir.path().join("f")).is_some());
    node.remove_stream(stream_name(&long), MAY).unwrap();
    assert_eq!(folders(dir.path()), Vec::<PathBuf>::new());
    assert_eq!(number(&dir.path().join("f")), None);
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
    let other = dir.path().join(DEPOT).join("not a number");
    std::fs::create_dir(&other).unwrap();
    let store = open(dir.path());
    wait_until("the streams of a file that is gone are there", || folders(dir.path()).len() == 3);
    assert!(other.is_dir());
    assert_eq!(streams(&store, "stays"), ["s"]);
    assert_eq!(streams(&store, "other"), ["s"]);
}

/// A copy of the directory has the streams that it was copied with, and neither has anything to do with the other's.
#[test]
fn a_copied_share_has_its_streams() {
    let dir = tempfile::tempdir().unwrap();
    // Another file system, where there is one.
    let elsewhere = tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap());
    let root = dir.path().join("root");
    std::fs::create_dir_all(root.join("d")).unwrap();
    let store = open(&root);
    make(&store, "f", "s");
    make(&store, "g", "s");
    write(&find(&store, "d"), "of a directory", b"data");
    write(&store.root(), "of the root", b"data");
    drop(store);
    for to in [dir.path().join("copy"), elsewhere.path().join("copy")] {
        copy(&root, &to);
        let store = open(&to);
        assert_eq!(streams(&store, "f"), ["s"]);
        write(&find(&store, "f"), "s", b"DATA");
        assert_eq!(data(&find(&store, "d"), "of a directory"), b"data");
        assert_eq!(data(&store.root(), "of the root"), b"data");
        make(&store, "h", "t");
        store.root().remove_file(name("f"), MAY).unwrap();
        assert_eq!(folders(&to).len(), 4, "{to:?}: those of g, h, d and the root");
        drop(store);
        let store = open(&to);
        assert_eq!(streams(&store, "g"), ["s"]);
    }
    let store = open(&root);
    assert_eq!(data(&find(&store, "f"), "s"), b"data");
    assert_eq!(folders(&root).len(), 4);
}

/// A local program copies a file with its attributes: each has streams of its own from when the copy is first asked.
#[test]
fn a_copied_file_has_streams_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let at = |file: &str| dir.path().join(file);
    let store = open(dir.path());
    let long = "l".repeat(600);
    write(&make(&store, "f", "s"), &long, b"long");
    copy(&at("f"), &at("g"));
    copy(&at("f"), &at("h"));
    assert_eq!(number(&at("f")), number(&at("g")));
    let (f, g) = (find(&store, "f"), find(&store, "g"));
    assert_eq!((data(&g, "s"), data(&g, &long)), (b"data".to_vec(), b"long".to_vec()));
    assert!(number(&at("g")).is_some_and(|of_g| Some(of_g) != number(&at("f"))));
    assert_eq!(folders(dir.path()).len(), 2);
    write(&f, "s", b"of f");
    write(&g, "s", b"of g");
    assert_eq!((data(&f, "s"), data(&g, "s")), (b"of f".to_vec(), b"of g".to_vec()));
    // A copy that was never asked has nothing that could go with it.
    store.root().remove_file(name("h"), MAY).unwrap();
    assert_eq!(data(&f, "s"), b"of f");
    store.root().remove_file(name("f"), MAY).unwrap();
    assert_eq!(data(&g, "s"), b"of g");
    drop(store);
    assert_eq!(data(&find(&open(dir.path()), "g"), "s"), b"of g");
}

/// A local program puts a copy in the place of a file: the copy takes over what is left of the file.
#[test]
fn a_file_that_stands_for_another_takes_its_streams_over() {
    let dir = tempfile::tempdir().unwrap();
    let at = |file: &str| dir.path().join(file);
    let store = open(dir.path());
    make(&store, "asked", "s");
    make(&store, "unasked", "s");
    let before = folders(dir.path());
    for file in ["asked", "unasked"] {
        copy(&at(file), &at("new"));
        std::fs::rename(at("new"), at(file)).unwrap();
    }
    assert_eq!(streams(&store, "asked"), ["s"]);
    if !store.capabilities().contains(Capabilities::NATIVE_HANDLES) {
        return; // copied, since nobody can tell
    }
    assert_eq!(folders(dir.path()), before);
    let unasked = at(DEPOT).join(number(&at("unasked")).unwrap().folder_name());
    let former = owner(&unasked);
    drop(store);
    let store = open(dir.path());
    wait_until("the start has not found the new owner", || owner(&unasked) != former);
    assert_eq!(streams(&store, "unasked"), ["s"]);
    assert_eq!(folders(dir.path()), before);
    store.root().remove_file(name("asked"), MAY).unwrap();
    store.root().remove_file(name("unasked"), MAY).unwrap();
    assert_eq!(folders(dir.path()), Vec::<PathBuf>::new());
}

/// Without its attribute an object has no streams. What is there is not touched, and a start gives the number back.
#[test]
fn a_removed_attribute_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    make(&store, "f", "s");
    let object = dir.path().join("f");
    let before = number(&object);
    removexattr(&object, number_name(&object).unwrap()).unwrap();
    assert_eq!(streams(&store, "f"), [""; 0]);
    assert_eq!(folders(dir.path()).len(), 1);
    if !store.capabilities().contains(Capabilities::NATIVE_HANDLES) {
        return; // a server without privileges cannot ask whose the directory is
    }
    drop(store);
    let store = open(dir.path());
    wait_until("the number is not back", || number(&object) == before);
    assert_eq!(data(&find(&store, "f"), "s"), b"data");
}

/// Values that this version does not know are no numbers; a new stream gets a directory.
#[test]
fn a_damaged_attribute_is_none() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    make(&store, "f", "s");
    let object = dir.path().join("f");
    for value in [&b""[..], b"\x02123456789abcdef0", &[1; 64], &[1; 4000]] {
        setxattr(&object, number_name(&object).unwrap(), value, XattrFlags::empty()).unwrap();
        assert_eq!(streams(&store, "f"), [""; 0], "{value:?}");
    }
    write(&find(&store, "f"), "t", b"data");
    assert_eq!(streams(&store, "f"), ["t"]);
}

/// A number whose directory is missing (a backup left the depot out): no streams, and new ones can be made.
#[test]
fn a_number_may_lead_to_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    make(&store, "f", "s");
    let before = number(&dir.path().join("f"));
    std::fs::remove_dir_all(&folders(dir.path())[0]).unwrap();
    assert_eq!(streams(&store, "f"), [""; 0]);
    let node = find(&store, "f");
    assert_eq!(node.stream(stream_name("s"), MAY).unwrap_err(), Error::NotFound);
    write(&node, "t", b"data");
    assert_eq!(number(&dir.path().join("f")), before);
    assert_eq!(streams(&store, "f"), ["t"]);
    // The owner was not recorded.
    removexattr(&folders(dir.path())[0], StreamsOwner::XATTR).unwrap();
    assert_eq!(streams(&store, "f"), ["t"]);
    store.root().remove_file(name("f"), MAY).unwrap();
    assert_eq!(folders(dir.path()), Vec::<PathBuf>::new());
}

/// A server was killed while it copied streams.
#[test]
fn a_copy_that_was_not_finished() {
    let dir = tempfile::tempdir().unwrap();
    let at = |file: &str| dir.path().join(file);
    let store = open(dir.path());
    make(&store, "f", "s");
    copy(&at("f"), &at("g"));
    copy(&at("f"), &at("h"));
    copy(&at("f"), &at("i"));
    let of_f = number(&at("f")).unwrap();
    for file in ["g", "h", "i"] {
        assert_eq!(streams(&store, file), ["s"]);
    }
    drop(store);
    let new = |number: StreamsNumber| at(DEPOT).join(number.folder_name() + ".new");
    let renamed = |file: &str| {
        let number = number(&at(file)).unwrap();
        std::fs::rename(at(DEPOT).join(number.folder_name()), new(number)).unwrap();
        number
    };
    // Before it was complete: the object still has the former number.
    let of_g = renamed("g");
    setxattr(at("g"), number_name(&at("g")).unwrap(), &of_f.encode(), XattrFlags::empty()).unwrap();
    std::fs::write(new(of_g).join("s"), "da").unwrap();
    // After it was complete, and the object has its number.
    let of_h = renamed("h");
    // Before it had an owner.
    std::fs::create_dir(at(DEPOT).join("00112233445566778899aabbccddeeff.new")).unwrap();
    // When the owner was gone.
    let of_i = renamed("i");
    std::fs::remove_file(at("i")).unwrap();
    for _ in 0..2 {
        let store = open(dir.path());
        for file in ["f", "g", "h"] {
            assert_eq!(data(&find(&store, file), "s"), b"data", "{file}");
        }
        assert_eq!(number(&at("h")), Some(of_h));
        if store.capabilities().contains(Capabilities::NATIVE_HANDLES) {
            let is_left = || [of_g, of_i].into_iter().any(|number| new(number).exists());
            wait_until("a copy that was not finished is there", || {
                !is_left() && folders(dir.path()).len() == 3
            });
        }
    }
}

/// A server was killed after it made a directory for the first stream, and before the object had its number.
#[test]
fn a_first_stream_that_was_not_made() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    make(&store, "keeps the depot", "s");
    let f = make(&store, "f", "s");
    let folder = dir.path().join(DEPOT).join(number(&dir.path().join("f")).unwrap().folder_name());
    drop(f);
    drop(store);
    std::fs::remove_file(folder.join("s")).unwrap();
    let object = dir.path().join("f");
    removexattr(&object, number_name(&object).unwrap()).unwrap();
    let store = open(dir.path());
    assert_eq!(streams(&store, "f"), [""; 0]);
    if store.capabilities().contains(Capabilities::NATIVE_HANDLES) {
        wait_until("an empty directory is there", || folders(dir.path()).len() == 1);
    }
}

/// Directories of the old naming are found, wherever a server that renames them is killed.
#[test]
fn streams_of_the_old_naming_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let at = |file: &str| dir.path().join(file);
    let store = open(dir.path());
    std::fs::create_dir(at("d")).unwrap();
    for file in ["asked", "numbered", "unasked", "removed", "removed locally"] {
        make(&store, file, "s");
    }
    write(&find(&store, "d"), "s", b"data");
    write(&store.root(), "s", b"data");
    let native = store.capabilities().contains(Capabilities::NATIVE_HANDLES);
    drop(store);
    let mut old = PathBuf::new();
    for file in ["asked", "numbered", "unasked", "removed", "removed locally", "d", "."] {
        old = make_old(dir.path(), file);
    }
    assert_eq!(folders(dir.path()), [old.parent().unwrap()]);
    let value = StreamsNumber::new([7; 16]).encode();
    let xattr = if native { StreamsNumber::TRUSTED_XATTR } else { StreamsNumber::USER_XATTR };
    setxattr(at("numbered"), xattr, &value, XattrFlags::empty()).unwrap();
    std::fs::remove_file(at("removed locally")).unwrap();
    let store = open(dir.path());
    store.root().remove_file(name("removed"), MAY).unwrap();
    for file in ["asked", "numbered", "d"] {
        assert_eq!(data(&find(&store, file), "s"), b"data", "{file}");
    }
    assert_eq!(data(&store.root(), "s"), b"data");
    assert_eq!(number(&at("numbered")), Some(StreamsNumber::new([7; 16])));
    if native {
        wait_until("the old naming is there", || !old.parent().unwrap().exists());
        assert!(number(&at("unasked")).is_some());
        assert_eq!(folders(dir.path()).len(), 5);
    }
    assert_eq!(data(&find(&store, "unasked"), "s"), b"data");
    drop(store);
    assert_eq!(data(&find(&open(dir.path()), "unasked"), "s"), b"data");
}

/// Directories of the old naming for another root: whose they are is unknown, so they stay as they are.
#[test]
fn streams_of_the_old_naming_for_another_root_stay() {
    let dir = tempfile::tempdir().unwrap();
    let (root, to) = (dir.path().join("root"), dir.path().join("copy"));
    std::fs::create_dir(&root).unwrap();
    let store = open(&root);
    make(&store, "f", "s");
    drop(store);
    let old = make_old(&root, "f");
    copy(&root, &to);
    let store = open(&to);
    assert_eq!(streams(&store, "f"), [""; 0]);
    make(&store, "g", "s");
    drop(store);
    assert!(to.join(old.strip_prefix(&root).unwrap()).join("s").exists());
    assert_eq!(streams(&open(&root), "f"), ["s"]);
}

/// First streams of one object, and copies of one object, on several threads.
#[test]
fn several_threads_ask_first() {
    let dir = tempfile::tempdir().unwrap();
    let at = |file: &str| dir.path().join(file);
    let store = open(dir.path());
    let new = NewNode { kind: NewKind::Regular, mode: 0o644, uid: 0, gid: 0 };
    for round in 0..20 {
        let f = store.root().create(name("f"), &new, MAY).unwrap();
        std::thread::scope(|scope| {
            for stream in ["a", "b", "c", "d"] {
                let f = &f;
                scope.spawn(move || write(f, stream, b"data"));
            }
        });
        let copies = ["c1", "c2", "c3"];
        copies.iter().for_each(|file| copy(&at("f"), &at(file)));
        std::thread::scope(|scope| {
            for file in copies.iter().chain(&copies) {
                let store = &store;
                scope.spawn(move || {
                    let mut found = streams(store, file);
                    found.sort();
                    assert_eq!(found, ["a", "b", "c", "d"], "{file}");
                });
            }
        });
        let mut numbers: Vec<_> =
            copies.iter().chain(&["f"]).map(|file| number(&at(file)).unwrap()).collect();
        numbers.sort();
        numbers.dedup();
        assert_eq!((numbers.len(), folders(dir.path()).len()), (4, 4), "round {round}");
        for file in copies.iter().chain(&["f"]) {
            store.root().remove_file(name(file), MAY).unwrap();
        }
        assert_eq!(folders(dir.path()).len(), 0, "round {round}");
    }
}

/// The streams of the original go while the copy is asked for its own: the copy has all of them, or none, for it came
/// too late.
#[test]
fn a_copy_is_asked_while_the_original_goes() {
    let dir = tempfile::tempdir().unwrap();
    let at = |file: &str| dir.path().join(file);
    let store = open(dir.path());
    for round in 0..50 {
        let f = make(&store, "f", "s");
        write(&f, "t", b"data");
        copy(&at("f"), &at("g"));
        std::thread::scope(|scope| {
            scope.spawn(|| store.root().remove_file(name("f"), MAY).unwrap());
            scope.spawn(|| {
                let count = streams(&store, "g").len();
                assert!(matches!(count, 0 | 2), "{count} streams in round {round}");
            });
        });
        let left = streams(&store, "g").len();
        store.root().remove_file(name("g"), MAY).unwrap();
        assert_eq!(folders(dir.path()).len(), 0, "round {round}: {left} streams");
    }
}

#[test]
fn what_leads_nowhere_is_listed() {
    let dir = tempfile::tempdir().unwrap();
    let at = |file: &str| dir.path().join(file);
    assert_eq!(check_streams(dir.path()), Ok(StreamsCheck { is_whole: true, ..StreamsCheck::default() }));
    assert_eq!(check_streams(&at("missing")), Err(Error::NotFound));
    let store = open(dir.path());
    std::fs::create_dir_all(at("d/e")).unwrap();
    for file in ["kept", "old", "removed", "bare", "lost"] {
        write(&make(&store, file, "s"), "t", b"more");
    }
    write(&store.root(), "s", b"data");
    drop(store);
    copy(&at("kept"), &at("d/e/copy"));
    make_old(dir.path(), "old");
    let removed = number(&at("removed")).unwrap().folder_name();
    std::fs::remove_file(at("removed")).unwrap();
    // Its owner exists, but does not carry the number.
    let bare = number(&at("bare")).unwrap().folder_name();
    removexattr(at("bare"), number_name(&at("bare")).unwrap()).unwrap();
    std::fs::remove_dir_all(at(DEPOT).join(number(&at("lost")).unwrap().folder_name())).unwrap();
    std::fs::create_dir_all(at(DEPOT).join("0123456789abcdef/81.01")).unwrap();
    std::fs::write(at(DEPOT).join("0123456789abcdef/81.01/s"), "of another root").unwrap();
    std::fs::create_dir(at(DEPOT).join("00112233445566778899aabbccddeeff")).unwrap(); // holds nothing
    let found = check_streams(dir.path()).unwrap();
    assert_eq!((found.objects, found.is_whole), (4, true), "kept, its copy, old and the root");
    assert_eq!(found.without_streams, [b"lost"]);
    let mut expected: Vec<_> = [(removed, 2, 8), (bare, 2, 8), ("0123456789abcdef/81.01".to_owned(), 1, 15)]
        .into_iter()
        .map(|(name, streams, bytes)| (format!("{DEPOT}/{name}").into_bytes(), streams, bytes))
        .collect();
    expected.sort();
    let orphaned: Vec<_> = found.without_object.into_iter().map(|o| (o.path, o.streams, o.bytes)).collect();
    assert_eq!(orphaned, expected);
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
