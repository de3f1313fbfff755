//! CHANGE_NOTIFY of what programs of the server's machine do to the directory of a share.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_smb_server::Config;
use smb_wire::change_notify::CompletionFilter;
use smb_wire::create::CreateOptions;
use smb_wire::fscc::notify::Action;
use smb_wire::{AccessMask, FileId, NtStatus};
use storage_local::{LocalOptions, LocalStore};
use tempfile::TempDir;

use crate::client::{Client, TestServer};
use crate::directory;
use crate::notify::{NAMES, Watch, changes};
use crate::opening::{Opening, delete, make_file};

/// A share on a directory of this machine, a client that watches its top, and another one.
struct Local {
    directory: TempDir,
    server: TestServer,
    watcher: Client,
    top: FileId,
    other: Client,
}

impl Local {
    fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let store = LocalStore::open(directory.path(), LocalOptions::default()).unwrap();
        let server = TestServer::start_on(Config::default(), Arc::new(store));
        let (mut watcher, other) = (server.client(), server.client());
        let top = open_top(&mut watcher);
        Self { directory, server, watcher, top, other }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn names(&self) -> Watch {
        Watch { room: 65_536, ..Watch::names(self.top) }
    }

    fn tree(&self) -> Watch {
        Watch { tree: true, ..self.names() }
    }

    /// Begins a watch, and waits until so many directories are observed.
    fn begin(&mut self, watch: Watch, directories: usize) {
        watch.begin(&mut self.watcher);
        self.wait_observed(directories);
    }

    fn wait_observed(&self, directories: usize) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while self.server.share.changes().observed_directories() != directories {
            assert!(Instant::now() < deadline, "{directories} directories are not observed");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// All that is told until this is told.
    fn told_until(&mut self, watch: Watch, last: (Action, &str)) -> Vec<(Action, String)> {
        let mut told = Vec::new();
        while !named(&told).contains(&last) {
            let mut reply = watch.ask(&mut self.watcher);
            if reply.status() == NtStatus::PENDING {
                reply = self.watcher.receive();
            }
            told.extend(changes(&reply));
        }
        told
    }
}

fn open_top(client: &mut Client) -> FileId {
    let options = CreateOptions::DIRECTORY_FILE;
    let access = AccessMask::LIST_DIRECTORY;
    Opening { options, access, ..Opening::default() }.send(client, "").unwrap().id
}

fn named(told: &[(Action, String)]) -> Vec<(Action, &str)> {
    told.iter().map(|(action, name)| (*action, name.as_str())).collect()
}

#[test]
fn what_local_programs_do_is_told() {
    let mut test = Local::new();
    let watch = test.names();
    test.begin(watch, 1);
    fs::write(test.path("a"), "data").unwrap();
    let first = changes(&test.watcher.receive());
    assert_eq!(named(&first), [(Action::Added, "a")]);
    fs::rename(test.path("a"), test.path("b")).unwrap();
    fs::create_dir(test.path("d")).unwrap();
    fs::rename(test.path("b"), test.path("d/b")).unwrap();
    fs::remove_dir_all(test.path("d")).unwrap();
    let told = test.told_until(watch, (Action::Removed, "d"));
    let expected = [
        (Action::RenamedOldName, "a"),
        (Action::RenamedNewName, "b"),
        (Action::Added, "d"),
        (Action::Removed, "b"),
        (Action::Removed, "d"),
    ];
    assert_eq!(named(&told), expected);
}

#[test]
fn data_and_attributes_are_told_to_those_who_watch_for_them() {
    let mut test = Local::new();
    fs::write(test.path("f"), "").unwrap();
    let sizes = Watch { filter: CompletionFilter::SIZE, ..test.names() };
    test.begin(sizes, 1);
    fs::write(test.path("new"), "").unwrap();
    fs::write(test.path("f"), "data").unwrap();
    assert_eq!(named(&changes(&test.watcher.receive())), [(Action::Modified, "f")]);
    let attributes = open_top(&mut test.watcher);
    let attributes = Watch { filter: CompletionFilter::SECURITY, dir: attributes, ..test.names() };
    test.begin(attributes, 1);
    let read_only = std::os::unix::fs::PermissionsExt::from_mode(0o400);
    fs::set_permissions(test.path("f"), read_only).unwrap();
    assert_eq!(named(&changes(&test.watcher.receive())), [(Action::Modified, "f")]);
}

#[test]
fn the_servers_own_changes_are_told_once() {
    const ROUNDS: usize = 40;
    let mut test = Local::new();
    let watch = test.names();
    test.begin(watch, 1);
    make_file(&mut test.other, "first", b"data");
    let mut told = changes(&test.watcher.receive());
    for round in 0..ROUNDS {
        make_file(&mut test.other, &format!("own-{round}"), b"data");
        delete(&mut test.other, &format!("own-{round}")).unwrap();
        if round % 4 == 0 {
            fs::write(test.path(&format!("local-{round}")), "data").unwrap();
        }
    }
    fs::write(test.path("last"), "").unwrap();
    told.extend(test.told_until(watch, (Action::Added, "last")));
    let count = |action, prefix: &str| {
        told.iter().filter(|(a, name)| *a == action && name.starts_with(prefix)).count()
    };
    assert_eq!((count(Action::Added, "own-"), count(Action::Removed, "own-")), (ROUNDS, ROUNDS), "{told:?}");
    assert_eq!(count(Action::Added, "local-"), ROUNDS / 4, "{told:?}");
    assert_eq!((count(Action::Added, "first"), count(Action::Modified, "")), (1, 0), "{told:?}");
}

#[test]
fn a_tree_is_observed_with_what_comes_into_it() {
    let mut test = Local::new();
    fs::create_dir_all(test.path("a/b")).unwrap();
    let watch = test.tree();
    test.begin(watch, 3);
    fs::write(test.path("a/b/f"), "").unwrap();
    assert_eq!(named(&changes(&test.watcher.receive())), [(Action::Added, r"a\b\f")]);
    // Local and own directories, with local and own files in them at once.
    fs::create_dir_all(test.path("a/c/d")).unwrap();
    fs::write(test.path("a/c/d/f"), "").unwrap();
    Opening::directory().try_out(&mut test.other, "own").unwrap();
    make_file(&mut test.other, r"own\f", b"");
    make_file(&mut test.other, r"a\c\own", b"");
    // Once its own name is told, what is in it is observed.
    let mut told = test.told_until(watch, (Action::Added, r"a\c\own"));
    let count = |told: &[(Action, String)], name: &str| {
        told.iter().filter(|(action, told)| *action == Action::Added && told == name).count()
    };
    for name in [r"a\c", r"a\c\d", r"a\c\d\f", r"own", r"own\f"] {
        if count(&told, name) == 0 {
            told.extend(test.told_until(watch, (Action::Added, name)));
        }
    }
    fs::write(test.path("own/local"), "").unwrap();
    told.extend(test.told_until(watch, (Action::Added, r"own\local")));
    for name in [r"a\c", r"a\c\d", r"a\c\d\f", r"a\c\own", r"own", r"own\f", r"own\local"] {
        assert_eq!(count(&told, name), 1, "{name}: {told:?}");
    }
}

#[test]
fn too_much_at_once_is_not_told_one_by_one() {
    let mut test = Local::new();
    let watch = Watch { room: 64, ..test.names() };
    let waiting = watch.begin(&mut test.watcher);
    test.wait_observed(1);
    crate::notify::cancel(&mut test.watcher, &waiting);
    assert_eq!(test.watcher.receive().status(), NtStatus::CANCELLED);
    for n in 0..1000 {
        fs::write(test.path(&format!("file-{n}")), "").unwrap();
    }
    loop {
        let mut reply = watch.ask(&mut test.watcher);
        if reply.status() == NtStatus::PENDING {
            reply = test.watcher.receive();
        }
        if reply.status() == NtStatus::NOTIFY_ENUM_DIR {
            break;
        }
        assert_eq!(reply.status(), NtStatus::SUCCESS);
    }
}

#[test]
fn nothing_is_observed_once_nobody_watches() {
    let mut test = Local::new();
    for _ in 0..3 {
        let watch = Watch { filter: NAMES, ..test.tree() };
        test.begin(watch, 1);
        fs::write(test.path("f"), "").unwrap();
        assert_eq!(named(&changes(&test.watcher.receive())), [(Action::Added, "f")]);
        test.watcher.close(test.top).unwrap();
        assert!(!test.server.share.changes().is_watched());
        test.wait_observed(0);
        fs::remove_file(test.path("f")).unwrap();
        test.top = open_top(&mut test.watcher);
    }
}

#[test]
fn a_directory_that_was_moved_out_is_listed_no_more() {
    let mut test = Local::new();
    let outside = TempDir::new_in(test.directory.path().parent().unwrap()).unwrap();
    fs::create_dir_all(test.path("d/e")).unwrap();
    let open = |client: &mut Client, path: &str| {
        let (options, access) = (CreateOptions::DIRECTORY_FILE, AccessMask::LIST_DIRECTORY);
        Opening { options, access, ..Opening::default() }.send(client, path)
    };
    let client = &mut test.other;
    let [d, e] = ["d", "d\\e"].map(|path| open(client, path).unwrap().id);
    assert_eq!(directory::listed(client, d, "*"), [".", "..", "e"]);
    assert_eq!(directory::refused(client, e), None);
    fs::rename(test.directory.path().join("d"), outside.path().join("d")).unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    for dir in [e, d] {
        while directory::refused(client, dir).is_none() {
            assert!(Instant::now() < deadline, "it is listed still");
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(directory::refused(client, dir), Some(NtStatus::OBJECT_NAME_NOT_FOUND));
    }
    let gone = open(client, "d\\e").map(|opened| opened.id);
    assert_eq!(gone, Err(NtStatus::OBJECT_PATH_NOT_FOUND));
}

#[test]
fn what_is_done_in_a_directory_that_was_moved_out_is_not_told() {
    let mut test = Local::new();
    let outside = TempDir::new_in(test.directory.path().parent().unwrap()).unwrap();
    fs::create_dir(test.path("d")).unwrap();
    let (options, access) = (CreateOptions::DIRECTORY_FILE, AccessMask::LIST_DIRECTORY);
    let d = Opening { options, access, ..Opening::default() }.send(&mut test.watcher, "d").unwrap().id;
    fs::rename(test.path("d"), outside.path().join("d")).unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while directory::refused(&mut test.watcher, d).is_none() {
        assert!(Instant::now() < deadline, "it is listed still");
        std::thread::sleep(Duration::from_millis(20));
    }
    let watch = Watch { dir: d, ..test.names() };
    test.begin(watch, 1);
    let of_top = Watch { dir: open_top(&mut test.other), ..test.names() };
    of_top.begin(&mut test.other);
    test.wait_observed(2);
    fs::write(outside.path().join("d/secret"), "").unwrap();
    fs::write(test.path("told"), "").unwrap();
    // What was done before has been judged, too.
    assert_eq!(named(&changes(&test.other.receive())), [(Action::Added, "told")]);
    fs::rename(outside.path().join("d"), test.path("back")).unwrap();
    fs::write(test.path("back/file"), "").unwrap();
    assert_eq!(named(&changes(&test.watcher.receive())), [(Action::Added, "file")]);
}
