//! Nothing outside the root can be reached, whatever is in the root and whatever happens to it meanwhile.

use std::fs;
use std::ops::ControlFlow;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anabranch_storage_local::{HandleRecords, LocalOptions, LocalStore, RecordsInMemory};
use storage::conformance::MAY;
use storage::{
    Capabilities, Error, FileKind, Handle, Name, NewKind, NewNode, NodeRef, Storage, View, Wait, Want,
};
use tempfile::TempDir;

#[path = "../../../anabranch/tests/program/needs/mod.rs"]
mod needs;

const NEW_FILE: NewNode<'static> = NewNode { kind: NewKind::Regular, mode: 0o644, uid: 0, gid: 0 };

/// `outside/secret` and `root`, and records of handles.
struct Place {
    dir: TempDir,
    records: Arc<RecordsInMemory>,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        fs::create_dir_all(dir.path().join("outside/deep")).expect("outside");
        fs::write(dir.path().join("outside/secret"), "secret").expect("secret");
        fs::create_dir(dir.path().join("root")).expect("root");
        Self { dir, records: Arc::default() }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    /// Stores opened like this share the key for handles, as over a restart of the server.
    fn open(&self, root: &str) -> LocalStore {
        let records: Arc<dyn HandleRecords> = self.records.clone();
        let options = LocalOptions { handle_records: Some(records), ..LocalOptions::default() };
        LocalStore::open(&self.at(root), options).expect("a store")
    }
}

fn name(text: &str) -> Name<'_> {
    Name::new(text.as_bytes()).expect("a name")
}

fn find(dir: &NodeRef, at: &str) -> storage::Result<NodeRef> {
    dir.lookup(name(at), Wait::May(MAY))
}

fn data_of(node: &NodeRef) -> Vec<u8> {
    let mut into = [0; 100];
    let count = node.read(0, &mut into, Wait::May(MAY)).expect("data");
    into[..count].to_vec()
}

#[test]
fn symbolic_links_lead_nowhere() {
    let place = Place::new();
    let links = ["/", "..", "../outside", "../outside/secret", "/proc/self/root", "/proc/self/fd/0", "."];
    for (number, text) in links.iter().enumerate() {
        symlink(text, place.at(&format!("root/l{number}"))).expect("a link");
    }
    let store = place.open("root");
    let root = store.root();
    for (number, text) in links.iter().enumerate() {
        for wait in [Wait::May(MAY), Wait::Never(View::FRESH)] {
            let link = root.lookup(name(&format!("l{number}")), wait).expect("the link");
            assert_eq!(link.kind(), FileKind::Symlink, "{text}");
            assert_eq!(link.read_link(MAY).expect("text"), text.as_bytes());
            for below in ["secret", "etc", "root", "deep"] {
                assert_eq!(link.lookup(name(below), wait).err(), Some(Error::NotDirectory), "{text}");
            }
            assert_eq!(link.create(name("x"), &NEW_FILE, MAY).err(), Some(Error::NotDirectory));
            assert_eq!(link.read(0, &mut [0; 9], wait), Err(Error::WrongKind));
            assert_eq!(
                link.read_dir(0, MAY, &mut |_| ControlFlow::Continue(())).err(),
                Some(Error::NotDirectory)
            );
        }
    }
    // Nothing is created through a dangling link either.
    symlink(place.at("outside/made"), place.at("root/dangling")).expect("a link");
    assert_eq!(root.create(name("dangling"), &NEW_FILE, MAY).err(), Some(Error::Exists));
    assert!(!place.at("outside/made").exists());
}

#[test]
fn a_directory_turned_into_a_link_during_resolution() {
    let place = Place::new();
    fs::create_dir(place.at("root/d")).expect("d");
    fs::write(place.at("root/d/secret"), "mine").expect("mine");
    let store = place.open("root");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..500 {
                fs::rename(place.at("root/d"), place.at("root/away")).expect("away");
                symlink(place.at("outside"), place.at("root/d")).expect("a link");
                fs::remove_file(place.at("root/d")).expect("no link");
                fs::rename(place.at("root/away"), place.at("root/d")).expect("back");
            }
            done.store(true, Ordering::Relaxed);
        });
        while !done.load(Ordering::Relaxed) {
            let found = find(&store.root(), "d").and_then(|d| find(&d, "secret"));
            match found {
                Ok(node) => assert_eq!(data_of(&node), b"mine"),
                Err(e) => assert!(matches!(e, Error::NotFound | Error::NotDirectory), "{e:?}"),
            }
        }
    });
}

#[test]
fn a_directory_moved_out_while_it_is_held() {
    let place = Place::new();
    fs::create_dir_all(place.at("root/d/e")).expect("d/e");
    let store = place.open("root");
    let d = find(&store.root(), "d").expect("d");
    let e = find(&d, "e").expect("e");
    fs::rename(place.at("root/d"), place.at("outside/d")).expect("moved");
    // A held directory stays the same object; the way up is closed.
    assert_eq!(d.parent(MAY).err(), Some(Error::Stale));
    assert_eq!(d.path(), Err(Error::Stale));
    assert_eq!(e.path(), Err(Error::Stale));
    assert_eq!(e.parent(MAY).err(), Some(Error::Stale));
    assert_eq!(find(&store.root(), "d").err(), Some(Error::NotFound));
}

#[test]
fn handles_of_what_lies_outside() {
    let place = Place::new();
    fs::create_dir_all(place.at("root/d/e")).expect("d/e");
    fs::write(place.at("root/f"), "mine").expect("f");
    let (outer, inner) = (place.open(""), place.open("root"));
    if !inner.capabilities().contains(Capabilities::NATIVE_HANDLES) {
        return needs::not_tested("this user may not use the file system's handles");
    }
    // Handles with the right key, for directories that are not below the inner root.
    let outside = find(&outer.root(), "outside").expect("outside");
    let deep = find(&outside, "deep").expect("deep");
    for node in [&outer.root(), &outside, &deep] {
        let handle = node.handle().expect("a handle");
        assert_eq!(outer.by_handle(&handle, Wait::May(MAY)).map(|n| n.id()), Ok(node.id()));
        assert_eq!(inner.by_handle(&handle, Wait::May(MAY)).err(), Some(Error::Stale));
    }
    // A directory that was below the root and is moved out.
    let handle =
        find(&inner.root(), "d").and_then(|d| find(&d, "e")).and_then(|e| e.handle()).expect("a handle");
    drop(inner);
    let inner = place.open("root");
    fs::rename(place.at("root/d"), place.at("outside/d")).expect("moved");
    assert_eq!(inner.by_handle(&handle, Wait::May(MAY)).err(), Some(Error::Stale));
    fs::rename(place.at("outside/d"), place.at("root/again")).expect("moved back");
    assert!(inner.by_handle(&handle, Wait::May(MAY)).is_ok());
}

#[test]
fn handles_without_the_key() {
    let place = Place::new();
    fs::write(place.at("root/f"), "mine").expect("f");
    let known = place.open("root");
    let other = LocalStore::open(&place.at("root"), LocalOptions::default()).expect("a store");
    if !known.capabilities().contains(Capabilities::NATIVE_HANDLES) {
        return needs::not_tested("this user may not use the file system's handles");
    }
    let handle = find(&other.root(), "f").and_then(|f| f.handle()).expect("a handle");
    assert_eq!(known.by_handle(&handle, Wait::May(MAY)).err(), Some(Error::BadHandle));
    // The same object with the checksum of another one.
    let mine = find(&known.root(), "f").and_then(|f| f.handle()).expect("a handle");
    let secret = place.open("").root();
    let secret =
        find(&secret, "outside").and_then(|o| find(&o, "secret")).and_then(|f| f.handle()).expect("a handle");
    let mut mixed = secret.as_bytes().to_vec();
    mixed[9..17].copy_from_slice(&mine.as_bytes()[9..17]);
    let mixed = Handle::new(&mixed).expect("bytes");
    assert_eq!(known.by_handle(&mixed, Wait::May(MAY)).err(), Some(Error::BadHandle));
}

#[test]
fn special_files_are_never_opened() {
    let place = Place::new();
    let store = place.open("root");
    let root = store.root();
    // Opening a fifo without a writer would wait for ever.
    let fifo = root.create(name("p"), &NewNode { kind: NewKind::Fifo, ..NEW_FILE }, MAY).expect("a fifo");
    assert_eq!(fifo.read(0, &mut [0; 9], Wait::May(MAY)), Err(Error::WrongKind));
    assert!(fifo.attributes(Want::all(), Wait::May(MAY)).is_ok());
    assert_eq!(fifo.commit(MAY), Ok(()));
    assert!(fifo.handle().is_ok());
}

/// A file system that is mounted inside the root does not belong to the store. Needs a mount namespace of its own.
#[test]
fn mount_points_are_not_crossed() {
    let place = Place::new();
    fs::create_dir(place.at("root/mnt")).expect("mnt");
    fs::create_dir(place.at("root/bound")).expect("bound");
    let run = |command: &str| {
        let shell = std::process::Command::new("unshare")
            .args(["-m", "sh", "-c", command, "sh"])
            .args([place.at("root"), place.at("outside"), Path::new(&program()).to_path_buf()])
            .env("BELOW_ROOT_INSIDE", place.at("root"))
            .output();
        needs::installed("unshare", shell).map(|output| (output.status.success(), format!("{output:?}")))
    };
    let mounted = run("mount -t tmpfs none $1/mnt && mount --bind $2 $1/bound");
    if mounted.is_none_or(|(success, _)| !success) {
        return needs::not_tested("nothing can be mounted here");
    }
    let (success, output) = run(
        "mount -t tmpfs none $1/mnt && mount --bind $2 $1/bound && exec $3 --exact --nocapture inside_mounts",
    )
    .expect("the tests themselves");
    assert!(success && output.contains("1 passed"), "{output}");
}

fn program() -> String {
    std::env::current_exe().expect("this program").to_string_lossy().into_owned()
}

/// The directories of which the log says that clients cannot enter them.
#[derive(Default)]
struct Log(std::sync::Mutex<Vec<String>>);

impl tracing::Subscriber for Log {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target().ends_with("other_file_systems")
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut |field: &tracing::field::Field, value: &dyn std::fmt::Debug| {
            if field.name() == "directory" {
                self.0.lock().expect("lines").push(format!("{value:?}"));
            }
        });
    }
}

/// Run by the test above, among the mounts; alone it does nothing.
#[test]
fn inside_mounts() {
    let Ok(root) = std::env::var("BELOW_ROOT_INSIDE") else { return };
    let store = LocalStore::open(Path::new(&root), LocalOptions::default()).expect("a store");
    let root = store.root();
    let log = Arc::<Log>::default();
    let _log = tracing::subscriber::set_default(Arc::clone(&log));
    for at in ["mnt", "bound"] {
        assert_eq!(root.lookup(name(at), Wait::May(MAY)).err(), Some(Error::PermissionDenied), "{at}");
        let never = root.lookup(name(at), Wait::Never(View::FRESH)).err();
        assert!(matches!(never, Some(Error::PermissionDenied | Error::WouldBlock)), "{at} {never:?}");
        assert_eq!(root.remove_dir(name(at), MAY), Err(Error::Busy));
    }
    assert_eq!(*log.0.lock().expect("lines"), ["mnt", "bound"], "the reasons, once for each");
    println!("inside");
}
