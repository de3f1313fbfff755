//! The suite that every store passes, as an ordinary user: owners cannot be set, and handles use the index. The threads
//! of these tests give up their privileges.
#![expect(clippy::unwrap_used, reason = "a check that fails panics: that is how it tells")]

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use anabranch_storage_local::{HandleRecords, LocalOptions, LocalStore, RecordsInMemory};
use rustix::process::{Gid, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use storage::conformance::{MAY, Subject};
use storage::{Capabilities, Name, NewKind, NewNode, Storage, StreamName, Wait};
use tempfile::TempDir;

/// The user nobody.
const USER: u32 = 65_534;

struct Local {
    dir: TempDir,
    /// They outlive a store, as a database does.
    records: Arc<RecordsInMemory>,
    store: Option<LocalStore>,
}

/// Makes this thread, and the threads that it starts, run as an ordinary user.
fn give_up_privileges() {
    if rustix::process::geteuid().is_root() {
        let (uid, gid) = (Uid::from_raw(USER), Gid::from_raw(USER));
        set_thread_groups(&[]).unwrap();
        set_thread_res_gid(gid, gid, gid).unwrap();
        set_thread_res_uid(uid, uid, uid).unwrap();
    }
}

fn subject() -> Local {
    give_up_privileges();
    let shm = Path::new("/dev/shm");
    let parent = if shm.is_dir() { shm.to_path_buf() } else { std::env::temp_dir() };
    let mut local =
        Local { dir: tempfile::tempdir_in(parent).unwrap(), records: Arc::default(), store: None };
    std::fs::create_dir(local.dir.path().join("root")).unwrap();
    local.restart();
    let found = local.store().capabilities();
    assert!(!found.intersects(Capabilities::OWNERS | Capabilities::NATIVE_HANDLES), "{found:?}");
    local
}

impl Subject for Local {
    fn store(&self) -> &dyn Storage {
        self.store.as_ref().unwrap()
    }

    fn restart(&mut self) {
        self.store = None;
        let handle_records: Arc<dyn HandleRecords> = self.records.clone();
        let options = LocalOptions { handle_records: Some(handle_records), ..LocalOptions::default() };
        self.store = Some(LocalStore::open(&self.dir.path().join("root"), options).unwrap());
    }

    fn at_once(&self, jobs: &[&(dyn Fn() + Sync)]) {
        std::thread::scope(|scope| jobs.iter().for_each(|job| _ = scope.spawn(job)));
    }
}

/// Nobody can tell whether the file to which streams belong exists: a copy and a file in its place get copies of them.
#[test]
fn streams_are_copied_for_whoever_carries_their_number() {
    let local = subject();
    let at = |file: &str| local.dir.path().join("root").join(file);
    let copy = || assert!(Command::new("cp").arg("-a").args([at("f"), at("g")]).status().unwrap().success());
    let root = local.store().root();
    let new = NewNode { kind: NewKind::Regular, mode: 0o600, uid: USER, gid: USER };
    let find = |file: &str| root.lookup(Name::new(file.as_bytes()).unwrap(), Wait::May(MAY)).unwrap();
    let stream = StreamName::new(b"s").unwrap();
    let f = root.create(Name::new(b"f").unwrap(), &new, MAY).unwrap();
    f.create_stream(stream, MAY).unwrap();
    copy();
    let of_g = find("g").stream(stream, MAY).unwrap().id();
    assert_ne!(of_g, f.stream(stream, MAY).unwrap().id());
    std::fs::remove_file(at("g")).unwrap();
    copy();
    std::fs::rename(at("g"), at("f")).unwrap();
    assert!(find("f").stream(stream, MAY).is_ok());
}

storage::conformance_tests!(subject);
