//! A directory that is shown at another place, as a store of ours and as users see it. Needs root and /dev/fuse.
#![expect(clippy::unwrap_used, reason = "a check that fails panics: that is how it tells")]

use std::fs;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_storage_delay::{Delayed, Delays};
use storage::Storage;
use storage::conformance::{CHECKS, Subject};
use storage_local::kernel_handle::{name_to_handle, open_by_handle};
use storage_local::{HandleRecords, LocalOptions, LocalStore, RecordsInMemory};
use tempfile::TempDir;

const NONE: Delays = Delays { data: Duration::ZERO, metadata: Duration::ZERO };

/// A directory, and the place where it is shown.
struct Shown {
    /// Before the directories: it is taken away before they are removed.
    delayed: Option<Delayed>,
    place: TempDir,
    source: TempDir,
}

impl Shown {
    /// None where it cannot be shown, which is said.
    fn with(delays: Delays) -> Option<Self> {
        let (source, place) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::set_permissions(source.path(), PermissionsExt::from_mode(0o755)).unwrap();
        match Delayed::mount(source.path(), place.path(), delays) {
            Ok(delayed) => Some(Self { delayed: Some(delayed), place, source }),
            Err(e) => {
                // Past libtest, which shows nothing of a test that passes.
                let _ = io::stderr().write_all(format!("not tested: a delayed storage: {e}\n").as_bytes());
                None
            }
        }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }
}

/// A store in such a place; where there is none, in the directory itself.
struct Stored {
    store: Option<LocalStore>,
    records: Arc<RecordsInMemory>,
    shown: Option<Shown>,
    source: TempDir,
}

impl Stored {
    fn new() -> Self {
        let (shown, source) = (Shown::with(NONE), tempfile::tempdir().unwrap());
        let mut stored = Self { store: None, records: Arc::default(), shown, source };
        let root = stored.root();
        fs::create_dir(root).unwrap();
        stored.restart();
        stored
    }

    fn root(&self) -> PathBuf {
        self.shown.as_ref().map_or_else(|| self.source.path().join("root"), |shown| shown.at("root"))
    }
}

impl Subject for Stored {
    fn store(&self) -> &dyn Storage {
        self.store.as_ref().unwrap()
    }

    fn restart(&mut self) {
        self.store = None;
        let handle_records: Arc<dyn HandleRecords> = self.records.clone();
        let options = LocalOptions { handle_records: Some(handle_records), ..LocalOptions::default() };
        self.store = Some(LocalStore::open(&self.root(), options).unwrap());
    }

    fn at_once(&self, jobs: &[&(dyn Fn() + Sync)]) {
        std::thread::scope(|scope| jobs.iter().for_each(|job| _ = scope.spawn(job)));
    }
}

/// Checks of the suite that a store does not pass on any file system that may stop answering, as FUSE is: it does not ask the file
/// system whether a name that ends with ` (deleted)` is one, and looks at nothing without waiting.
const NOT_OF_THIS_STORE: [&str; 2] = ["directories::paths", "names::in_what_is_no_directory"];

#[test]
fn a_store_conforms() {
    for (name, check) in CHECKS.iter().filter(|(name, _)| !NOT_OF_THIS_STORE.contains(name)) {
        println!("{name}");
        check(&mut Stored::new());
    }
}

#[test]
fn no_answer_is_early() {
    let delays = Delays { data: Duration::from_millis(40), metadata: Duration::from_millis(20) };
    let Some(shown) = Shown::with(delays) else { return };
    let timed = |work: &dyn Fn()| {
        let begun = Instant::now();
        work();
        begun.elapsed()
    };
    let file = fs::File::options().create(true).truncate(true).read(true).write(true).open(shown.at("file"));
    let file = file.unwrap();
    assert!(timed(&|| file.write_all_at(b"data", 0).unwrap()) >= delays.data);
    assert!(timed(&|| assert_eq!(file.read_at(&mut [0; 4], 0).unwrap(), 4)) >= delays.data);
    assert!(timed(&|| file.sync_all().unwrap()) >= delays.data);
    std::thread::sleep(delays.metadata * 2);
    assert!(timed(&|| assert!(fs::metadata(shown.at("file")).is_ok())) >= delays.metadata);
    assert!(timed(&|| assert!(fs::metadata(shown.at("none")).is_err())) >= delays.metadata);
    assert!(timed(&|| assert_eq!(fs::read_dir(shown.place.path()).unwrap().count(), 1)) >= delays.metadata);
    assert!(timed(&|| fs::create_dir(shown.at("directory")).unwrap()) >= delays.metadata);
    assert!(timed(&|| fs::rename(shown.at("directory"), shown.at("moved")).unwrap()) >= delays.metadata);
    assert!(timed(&|| fs::remove_dir(shown.at("moved")).unwrap()) >= delays.metadata);
}

#[test]
fn delays_are_side_by_side() {
    let data = Duration::from_secs(1);
    let Some(shown) = Shown::with(Delays { data, metadata: Duration::ZERO }) else { return };
    fs::write(shown.source.path().join("file"), [7; 64]).unwrap();
    let file = fs::File::open(shown.at("file")).unwrap();
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for at in 0..64 {
            let file = &file;
            scope.spawn(move || {
                let mut byte = [0];
                file.read_exact_at(&mut byte, at).unwrap();
                assert_eq!(byte, [7]);
            });
        }
    });
    // One after the other, they would take 64 s.
    assert!((data..data * 32).contains(&begun.elapsed()), "{:?}", begun.elapsed());
}

#[test]
fn what_is_made_is_the_makers_and_others_are_refused() {
    let Some(shown) = Shown::with(NONE) else { return };
    let place = shown.place.path();
    fs::set_permissions(place, PermissionsExt::from_mode(0o1777)).unwrap();
    let as_user = |uid: &str, script: &str| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", uid, "--regid", uid, "--clear-groups", "sh", "-ec", script]);
        command.current_dir(place).output().unwrap()
    };
    let script = "umask 027; echo mine >file; mkdir d; ln -s file link; mkfifo pipe; ln file other";
    let made = as_user("4711", script);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    for (name, mode) in [("file", 0o100_640), ("d", 0o040_750), ("pipe", 0o010_640)] {
        for found in
            [fs::symlink_metadata(shown.at(name)), fs::symlink_metadata(shown.source.path().join(name))]
        {
            let found = found.unwrap();
            assert_eq!((found.uid(), found.gid(), found.mode()), (4711, 4711, mode), "{name}");
        }
    }
    assert_eq!(fs::metadata(shown.at("other")).unwrap().nlink(), 2);
    assert_eq!(fs::read_link(shown.at("link")).unwrap(), PathBuf::from("file"));
    assert_eq!(fs::metadata(shown.at("other/x")).unwrap_err().kind(), io::ErrorKind::NotADirectory);
    assert!(!as_user("4712", "cat file").status.success());
    assert!(!as_user("4712", "rm file").status.success(), "the directory is sticky");
    assert!(as_user("4711", "cat file; rm file; test ! -e file; cat other").status.success());
    // The group of a directory, and its access list, are for what is made in it.
    assert!(as_user("4711", "chmod g+s d; umask 0; : >d/file; mkdir d/d").status.success());
    assert_eq!(fs::metadata(shown.at("d/d")).unwrap().mode(), 0o042_777);
}

#[test]
fn an_object_is_found_by_its_handle_and_a_new_one_of_its_number_is_not() {
    let Some(shown) = Shown::with(NONE) else { return };
    let root = fs::File::open(shown.place.path()).unwrap();
    fs::create_dir(shown.at("d")).unwrap();
    fs::write(shown.at("d/file"), "content").unwrap();
    let handle = name_to_handle(fs::File::open(shown.at("d/file")).unwrap().as_fd()).unwrap();
    fs::rename(shown.at("d/file"), shown.at("moved")).unwrap();
    let found = fs::File::from(open_by_handle(root.as_fd(), &handle).unwrap());
    assert_eq!(found.metadata().unwrap().len(), 7);
    drop(found);
    fs::remove_file(shown.at("moved")).unwrap();
    assert!(open_by_handle(root.as_fd(), &handle).is_err());
    for n in 0..100 {
        fs::write(shown.at(&format!("new-{n}")), "other").unwrap();
    }
    assert!(open_by_handle(root.as_fd(), &handle).is_err());
}

/// The kernel asks for it by its number then, as where a server has started again.
#[test]
fn an_object_is_found_by_its_handle_after_the_kernel_has_forgotten_it() {
    let source = tempfile::tempdir().unwrap();
    fs::create_dir(source.path().join("d")).unwrap();
    fs::write(source.path().join("d/file"), "content").unwrap();
    // In its own place, as in a model.
    let Ok(_delayed) = Delayed::mount(source.path(), source.path(), NONE) else { return };
    let root = fs::File::open(source.path()).unwrap();
    let handle = |name| name_to_handle(fs::File::open(source.path().join(name)).unwrap().as_fd()).unwrap();
    let (file, directory) = (handle("d/file"), handle("d"));
    if let Err(e) = fs::write("/proc/sys/vm/drop_caches", "2") {
        let _ =
            io::stderr().write_all(format!("not tested: what the kernel has forgotten: {e}\n").as_bytes());
        return;
    }
    let found = fs::File::from(open_by_handle(root.as_fd(), &file).unwrap());
    assert_eq!(found.metadata().unwrap().len(), 7);
    let found = fs::File::from(open_by_handle(root.as_fd(), &directory).unwrap());
    assert!(found.metadata().unwrap().is_dir());
}

#[test]
fn who_writes_to_a_file_that_sets_the_user_id_ends_that() {
    let Some(shown) = Shown::with(NONE) else { return };
    fs::write(shown.at("file"), "content").unwrap();
    fs::set_permissions(shown.at("file"), PermissionsExt::from_mode(0o4777)).unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "4711", "--regid", "4711", "--clear-groups", "sh", "-ec", "echo x >>file"]);
    fs::set_permissions(shown.place.path(), PermissionsExt::from_mode(0o755)).unwrap();
    assert!(command.current_dir(shown.place.path()).status().unwrap().success());
    assert_eq!(fs::metadata(shown.source.path().join("file")).unwrap().mode() & 0o7777, 0o777);
}

#[test]
fn data_are_neither_lost_nor_mixed_up() {
    let Some(shown) = Shown::with(NONE) else { return };
    let path = shown.at("file");
    let file = fs::File::options().create_new(true).read(true).write(true).mode(0o600).open(&path).unwrap();
    let block = |n: u64| vec![u8::try_from(n % 251).unwrap(); 3 << 20];
    std::thread::scope(|scope| {
        for n in 0..8 {
            let file = &file;
            scope.spawn(move || file.write_all_at(&block(n), n * (3 << 20)).unwrap());
        }
    });
    for n in 0..8 {
        let mut read = vec![0; 3 << 20];
        file.read_exact_at(&mut read, n * (3 << 20)).unwrap();
        assert!(read == block(n), "{n}");
    }
    assert_eq!(file.read_at(&mut [0; 10], 24 << 20).unwrap(), 0);
    file.set_len(5).unwrap();
    fs::File::options().append(true).open(&path).unwrap().write_all(b"end").unwrap();
    assert_eq!(fs::read(shown.source.path().join("file")).unwrap(), [0, 0, 0, 0, 0, b'e', b'n', b'd']);
    fs::remove_file(&path).unwrap();
    file.write_all_at(b"gone", 0).unwrap();
    assert_eq!((file.metadata().unwrap().nlink(), file.metadata().unwrap().len()), (0, 8));
}

#[test]
fn it_is_taken_away() {
    let Some(mut shown) = Shown::with(NONE) else { return };
    symlink("to", shown.at("link")).unwrap();
    shown.delayed.take().unwrap().end().unwrap();
    assert!(fs::symlink_metadata(shown.at("link")).is_err());
    assert!(fs::symlink_metadata(shown.source.path().join("link")).is_ok());
    let missing = Delayed::mount(&shown.at("missing"), shown.place.path(), NONE).unwrap_err();
    assert_eq!(missing.kind(), io::ErrorKind::NotFound);
}
