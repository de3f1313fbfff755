//! Snapshots on Btrfs, in file systems of their own, and what other file systems say.
#![expect(clippy::unwrap_used, reason = "a check that fails panics: that is how it tells")]

#[expect(dead_code, reason = "nothing is mounted read-only here")]
mod disk;
#[path = "../../../anabranch/tests/program/needs/mod.rs"]
mod needs;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use acl::SecurityDescriptor;
use anabranch_storage_local::{HandleRecords, LocalOptions, LocalStore, RecordsInMemory};
use disk::{Disk, succeeds};
use rustix::fs::{CWD, RenameFlags, XattrFlags, getxattr, renameat_with, setxattr};
use rustix::process::{Gid, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use storage::conformance::{MAY, Subject};
use storage::{
    BEFORE_REVERT, Error, Name, NewKind, NewNode, NoSnapshots, NodeRef, Snapshot, SnapshotId, SnapshotName,
    Snapshots, Stability, Storage, StreamName, Wait, Want,
};
use tempfile::TempDir;

/// The user nobody.
const USER: u32 = 65_534;
const FOLDER: &str = ".anabranch-snapshots";
const MARK: &str = "user.anabranch.revert";
const NEW_FILE: NewNode<'static> = NewNode { kind: NewKind::Regular, mode: 0o644, uid: 0, gid: 0 };

/// A store whose root is the subvolume `live` of a Btrfs of its own.
struct OnBtrfs {
    // In this order they are let go of.
    store: Option<LocalStore>,
    _disk: Disk,
    dir: TempDir,
    native_handles: bool,
    /// They outlive a store, as a database does.
    records: Arc<RecordsInMemory>,
}

impl OnBtrfs {
    fn new(native_handles: bool) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let disk = Disk::make("btrfs", &["-q"], 256, &dir.path().join("top"))?;
        let mut made = Self { store: None, _disk: disk, dir, native_handles, records: Arc::default() };
        btrfs("create", &[&made.at("live")]).then_some(())?;
        made.restart();
        Some(made)
    }

    fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join("top").join(path)
    }

    fn open(&self, path: &str) -> LocalStore {
        let handle_records: Arc<dyn HandleRecords> = self.records.clone();
        let options = LocalOptions {
            handle_records: Some(handle_records),
            native_handles: self.native_handles,
            ..LocalOptions::default()
        };
        LocalStore::open(&self.at(path), options).unwrap()
    }

    fn snapshots(&self) -> Arc<dyn Snapshots> {
        self.store().snapshots().unwrap()
    }

    fn write(&self, file: &str) {
        std::fs::write(self.at("live").join(file), file).unwrap();
    }
}

impl Subject for OnBtrfs {
    fn store(&self) -> &dyn Storage {
        self.store.as_ref().unwrap()
    }

    fn restart(&mut self) {
        self.store = None;
        self.store = Some(self.open("live"));
    }

    fn at_once(&self, jobs: &[&(dyn Fn() + Sync)]) {
        std::thread::scope(|scope| jobs.iter().for_each(|job| _ = scope.spawn(job)));
    }

    fn may_be_filled(&self) -> bool {
        true
    }
}

fn btrfs(what: &str, at: &[&Path]) -> bool {
    succeeds("btrfs", &["-q", "subvolume", what], at)
}

/// A snapshot as other programs make it.
fn by_others(from: &Path, to: &Path) {
    assert!(succeeds("btrfs", &["-q", "subvolume", "snapshot", "-r"], &[from, to]));
}

/// The names in the root of a store.
fn names(store: &dyn Storage) -> Vec<String> {
    let mut names = Vec::new();
    let each = &mut |entry: storage::DirEntry<'_>| {
        names.push(String::from_utf8_lossy(entry.name).into_owned());
        std::ops::ControlFlow::Continue(())
    };
    store.root().read_dir(0, MAY, each).unwrap();
    names.sort();
    names
}

mod on_btrfs {
    fn subject() -> Option<super::OnBtrfs> {
        super::OnBtrfs::new(true)
    }
    storage::snapshot_conformance_tests!(subject);
}

mod on_btrfs_by_index {
    fn subject() -> Option<super::OnBtrfs> {
        super::OnBtrfs::new(false)
    }
    storage::snapshot_conformance_tests!(subject);
}

#[test]
fn snapshots_of_others_are_shown_and_stay_theirs() {
    let Some(made) = OnBtrfs::new(true) else { return };
    std::fs::create_dir_all(made.at("live/.snapshots/7")).unwrap();
    std::fs::create_dir(made.at("beside")).unwrap();
    made.write("f");
    by_others(&made.at("live"), &made.at("live/.snapshots/7/snapshot"));
    let own = made.snapshots().take("mine", MAY).unwrap();
    made.write("g");
    by_others(&made.at("live"), &made.at("beside/there"));
    // None of these is a snapshot of the share.
    assert!(btrfs("snapshot", &[&made.at("live"), &made.at("clone")]));
    assert!(btrfs("create", &[&made.at("other")]));
    by_others(&made.at("other"), &made.at("beside/of-other"));
    let listed = made.snapshots().list(MAY).unwrap();
    let told: Vec<_> = listed.iter().map(|s| (s.name.as_str(), s.is_own)).collect();
    assert_eq!(told.len(), 3, "{told:?}");
    for expected in [(".snapshots/7/snapshot", false), (own.name.as_str(), true), ("beside/there", false)] {
        assert!(told.contains(&expected), "{told:?}");
    }
    let find = |name: &str| listed.iter().find(|snapshot| snapshot.name == name).unwrap();
    let open = |snapshot: &Snapshot| made.snapshots().open(snapshot.id, MAY).unwrap();
    assert_eq!(names(&*open(find(".snapshots/7/snapshot"))), [".snapshots", "f"]);
    let theirs = open(find("beside/there"));
    assert_eq!(names(&*theirs), [".snapshots", "f", "g"]);
    let node = theirs.root().lookup(Name::new(b"f").unwrap(), Wait::May(MAY)).unwrap();
    assert_eq!(node.path().unwrap(), b"f");
    let handle = node.handle().unwrap();
    assert_eq!(theirs.by_handle(&handle, Wait::May(MAY)).unwrap().id(), node.id());
    assert_eq!(made.store().by_handle(&handle, Wait::May(MAY)).err(), Some(Error::BadHandle));
    assert_eq!(node.create_stream(StreamName::new(b"s").unwrap(), MAY).err(), Some(Error::ReadOnly));
    let id = find("beside/there").id;
    assert_eq!(made.snapshots().remove(id, MAY), Err(Error::NotPermitted));
    assert!(btrfs("delete", &[&made.at("beside/there")]));
    // Whoever has it open reads what was there, or learns that it is gone.
    let mut into = [0; 1];
    match node.read(0, &mut into, Wait::May(MAY)) {
        Ok(count) => assert_eq!((count, into), (1, *b"f")),
        Err(e) => assert_eq!(e, Error::Stale),
    }
    assert_eq!(made.snapshots().list(MAY).unwrap().len(), 2);
    assert_eq!(made.snapshots().open(id, MAY).err(), Some(Error::NotFound));
    assert_eq!(made.snapshots().remove(id, MAY), Err(Error::NotFound));
}

#[test]
fn the_store_goes_back_to_a_snapshot_of_others() {
    let Some(mut made) = OnBtrfs::new(true) else { return };
    made.write("f");
    by_others(&made.at("live"), &made.at("theirs"));
    made.write("g");
    let [theirs] = &made.snapshots().list(MAY).unwrap()[..] else { panic!("one is there") };
    let before = made.snapshots().revert(theirs.id, MAY).unwrap();
    made.restart();
    assert_eq!(names(made.store()), ["f"]);
    assert_eq!(names(&*made.snapshots().open(before.id, MAY).unwrap()), ["f", "g"]);
}

#[test]
fn clients_neither_see_nor_enter_the_folder() {
    let Some(made) = OnBtrfs::new(true) else { return };
    let snapshot = made.snapshots().take("mine", MAY).unwrap();
    assert!(made.at("live").join(FOLDER).join(&snapshot.name).is_dir());
    let view = made.snapshots().open(snapshot.id, MAY).unwrap();
    for store in [made.store(), &*view] {
        for form in [FOLDER, ".Anabranch-Snapshots"] {
            let name = Name::new(form.as_bytes()).unwrap();
            assert_eq!(store.root().lookup(name, Wait::May(MAY)).err(), Some(Error::NotFound));
            assert_eq!(store.root().remove_dir(name, MAY), Err(Error::NotFound));
        }
        assert!(names(store).is_empty());
    }
    let metadata = std::fs::metadata(made.at("live").join(FOLDER)).unwrap();
    assert_eq!(std::os::unix::fs::MetadataExt::mode(&metadata) & 0o777, 0o700);
}

#[test]
fn a_file_of_a_snapshot_shares_its_blocks_with_one_of_the_store() {
    let Some(made) = OnBtrfs::new(true) else { return };
    let long = vec![7; 1_000_003];
    std::fs::write(made.at("live/f"), &long).unwrap();
    let taken = made.snapshots().take("x", MAY).unwrap();
    std::fs::write(made.at("live/f"), "now").unwrap();
    let view = made.snapshots().open(taken.id, MAY).unwrap();
    let then = view.root().lookup(Name::new(b"f").unwrap(), Wait::May(MAY)).unwrap();
    let copy = made.store().root().create(Name::new(b"g").unwrap(), &NEW_FILE, MAY).unwrap();
    then.clone_range(0, &*copy, 0, long.len() as u64, MAY).unwrap();
    assert!(std::fs::read(made.at("live/g")).unwrap() == long);
    let refused = copy.clone_range(0, &*then, 0, long.len() as u64, MAY);
    assert!(
        matches!(refused, Err(Error::ReadOnly | Error::PermissionDenied | Error::NotPermitted)),
        "{refused:?}"
    );
}

#[test]
fn a_snapshot_becomes_a_directory_of_its_own() {
    let Some(made) = OnBtrfs::new(true) else { return };
    let root = made.store().root();
    let file = root.create(Name::new(b"f").unwrap(), &NEW_FILE, MAY).unwrap();
    let stream = |store: &dyn Storage| {
        let file = store.root().lookup(Name::new(b"f").unwrap(), Wait::May(MAY)).unwrap();
        file.stream(StreamName::new(b"s").unwrap(), MAY).unwrap()
    };
    let write = |node: &NodeRef, text: &[u8]| {
        node.write(0, &[std::io::IoSlice::new(text)], Stability::Unstable, Wait::May(MAY)).unwrap();
    };
    let read = |node: &NodeRef| {
        let mut into = [0; 9];
        let count = node.read(0, &mut into, Wait::May(MAY)).unwrap();
        into[..count].to_vec()
    };
    write(&file, b"then");
    write(&file.create_stream(StreamName::new(b"s").unwrap(), MAY).unwrap(), b"beside");
    file.set_security(Some(SecurityDescriptor::default()), MAY).unwrap();
    let descriptor = |store: &dyn Storage| {
        let file = store.root().lookup(Name::new(b"f").unwrap(), Wait::May(MAY)).unwrap();
        let known = file.attributes(Want::empty(), Wait::May(MAY)).unwrap();
        file.security(&known, Wait::May(MAY)).unwrap()
    };
    let taken = made.snapshots().take("x", MAY).unwrap();
    write(&file, b"now!");
    write(&stream(made.store()), b"changed");
    made.snapshots().clone_to(taken.id, &made.at("copy"), MAY).unwrap();

    let copy = made.open("copy");
    let of_copy = copy.root().lookup(Name::new(b"f").unwrap(), Wait::May(MAY)).unwrap();
    assert_eq!((read(&of_copy), read(&stream(&copy))), (b"then".to_vec(), b"beside".to_vec()));
    assert!(descriptor(&copy).is_some() && descriptor(&copy) == descriptor(made.store()));
    assert_eq!(names(&copy), ["f"]);
    // Both go their ways.
    write(&stream(&copy), b"of copy");
    assert_eq!(read(&stream(made.store())), b"changed");
    write(&stream(made.store()), b"of live");
    assert_eq!(read(&stream(&copy)), b"of copy");
    assert_eq!(copy.snapshots().unwrap().list(MAY).unwrap(), []);
    copy.snapshots().unwrap().take("own", MAY).unwrap();

    let clone = |id, at: &Path| made.snapshots().clone_to(id, at, MAY);
    assert_eq!(clone(taken.id, &made.at("copy")), Err(Error::Exists));
    assert_eq!(clone(SnapshotId(77_777), &made.at("other")), Err(Error::NotFound));
    assert_eq!(clone(taken.id, &made.at("none/other")), Err(Error::NotFound));
    assert_eq!(clone(taken.id, Path::new("/dev/shm/anabranch-other")), Err(Error::CrossDevice));
    if let Some(_disk) = Disk::make("btrfs", &["-q"], 128, &made.dir.path().join("beside")) {
        assert_eq!(clone(taken.id, &made.dir.path().join("beside/other")), Err(Error::CrossDevice));
    }
    assert!(!made.at("other").exists());
}

#[test]
fn names_that_are_reserved_are_so_in_a_snapshot() {
    let Some(made) = OnBtrfs::new(true) else { return };
    std::fs::create_dir(made.at("live/.snapshots")).unwrap();
    let options = LocalOptions { reserved_names: vec![".snapshots".to_owned()], ..LocalOptions::default() };
    let store = LocalStore::open(&made.at("live"), options).unwrap();
    let snapshots = store.snapshots().unwrap();
    let view = snapshots.open(snapshots.take("mine", MAY).unwrap().id, MAY).unwrap();
    assert!(names(&store).is_empty() && names(&*view).is_empty());
}

#[test]
fn a_share_on_a_copy_of_a_snapshot_has_snapshots_of_its_own() {
    let Some(made) = OnBtrfs::new(true) else { return };
    made.write("f");
    let first = made.snapshots().take("mine", MAY).unwrap();
    assert!(btrfs("snapshot", &[&made.at("live").join(FOLDER).join(&first.name), &made.at("copy")]));
    let copy = made.open("copy");
    let snapshots = copy.snapshots().unwrap();
    assert_eq!(snapshots.list(MAY).unwrap(), []);
    let second = snapshots.take("other", MAY).unwrap();
    assert_eq!(snapshots.list(MAY).unwrap(), [second]);
    assert_eq!(made.snapshots().list(MAY).unwrap(), [first]);
}

/// What a server leaves that is killed while it goes back, step by step.
#[test]
fn a_revert_that_was_interrupted_is_undone_or_finished() {
    for step in 0..6 {
        let Some(mut made) = OnBtrfs::new(true) else { return };
        made.write("f");
        let first = made.snapshots().take("mine", MAY).unwrap();
        made.write("g");
        let live = made.at("live");
        made.snapshots().take("mine", MAY).unwrap();
        made.store = None;
        let number = subvolume_number(&live);
        let beside = made.at(&format!(".anabranch-revert-{number}"));
        assert!(btrfs("snapshot", &[&live.join(FOLDER).join(&first.name), &beside]));
        if step > 0 {
            setxattr(&beside, MARK, &number.to_le_bytes(), XattrFlags::empty()).unwrap();
        }
        if step > 1 {
            std::fs::remove_dir(beside.join(FOLDER)).unwrap();
        }
        if step > 2 {
            renameat_with(CWD, &live, CWD, &beside, RenameFlags::EXCHANGE).unwrap();
        }
        if step > 3 {
            std::fs::rename(beside.join(FOLDER), live.join(FOLDER)).unwrap();
        }
        let moved = SnapshotName::new(BEFORE_REVERT, first.taken.secs + 9).unwrap().to_string();
        if step > 4 {
            std::fs::rename(&beside, live.join(FOLDER).join(&moved)).unwrap();
        }
        for _ in 0..2 {
            made.restart();
            let is_undone = step < 3;
            assert_eq!(names(made.store()).len(), if is_undone { 2 } else { 1 }, "step {step}");
            let listed = made.snapshots().list(MAY).unwrap();
            assert_eq!(listed.len(), if is_undone { 2 } else { 3 }, "step {step}: {listed:?}");
            assert!(!beside.exists(), "step {step}");
            assert!(getxattr(&live, MARK, &mut [0; 8]).is_err(), "step {step}");
            if !is_undone {
                let label = |name: &str| SnapshotName::parse(name).unwrap().label().to_owned();
                let before = listed.iter().find(|found| label(&found.name) == BEFORE_REVERT).unwrap();
                let view = made.snapshots().open(before.id, MAY).unwrap();
                assert_eq!(
                    (names(&*view), u64::from(before.id.0)),
                    (vec!["f".to_owned(), "g".to_owned()], number)
                );
            }
        }
    }
}

#[test]
fn subvolumes_of_one_file_system_are_told_from_others() {
    let (Some(one), Some(other)) = (OnBtrfs::new(true), OnBtrfs::new(true)) else { return };
    assert!(btrfs("create", &[&one.at("second")]));
    let second = one.open("second").snapshots().unwrap().file_system();
    assert!(!second.is_empty());
    assert_eq!(one.snapshots().file_system(), second);
    assert_ne!(other.snapshots().file_system(), second);
}

/// The number of the subvolume, as btrfs-progs tell it.
fn subvolume_number(at: &Path) -> u64 {
    let output =
        std::process::Command::new("btrfs").args(["inspect-internal", "rootid"]).arg(at).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
}

#[test]
fn what_lies_beside_under_the_name_of_a_copy_stays() {
    let Some(mut made) = OnBtrfs::new(true) else { return };
    let snapshot = made.snapshots().take("mine", MAY).unwrap();
    let beside = made.at(&format!(".anabranch-revert-{}", subvolume_number(&made.at("live"))));
    std::fs::create_dir(&beside).unwrap();
    std::fs::write(beside.join("f"), "theirs").unwrap();
    assert_eq!(made.snapshots().revert(snapshot.id, MAY), Err(Error::Exists));
    assert_eq!(LocalStore::open(&made.at("live"), LocalOptions::default()).err(), Some(Error::Exists));
    assert_eq!(std::fs::read(beside.join("f")).unwrap(), b"theirs");
    std::fs::remove_dir_all(&beside).unwrap();
    made.restart();
    made.snapshots().revert(snapshot.id, MAY).unwrap();
}

#[test]
fn a_mounted_subvolume_has_snapshots_and_no_way_back() {
    let Some(made) = OnBtrfs::new(true) else { return };
    let place = made.dir.path().join("mounted");
    std::fs::create_dir(&place).unwrap();
    assert!(succeeds("mount", &["--bind"], &[&made.at("live"), &place]));
    let store = LocalStore::open(&place, LocalOptions::default()).unwrap();
    let snapshots = store.snapshots().unwrap();
    let file = store.root().create(Name::new(b"f").unwrap(), &NEW_FILE, MAY).unwrap();
    let snapshot = snapshots.take("mine", MAY).unwrap();
    store.root().remove_file(Name::new(b"f").unwrap(), MAY).unwrap();
    assert_eq!(names(&*snapshots.open(snapshot.id, MAY).unwrap()), ["f"]);
    assert_eq!(snapshots.can_revert(MAY), Err(NoSnapshots::MountPoint));
    assert_eq!(snapshots.revert(snapshot.id, MAY), Err(Error::NotSupported));
    assert_eq!(snapshots.revert(SnapshotId(9), MAY), Err(Error::NotFound));
    drop((file, snapshots, store));
    assert!(succeeds("umount", &[], &[&place]));
}

/// Makes this thread run as an ordinary user.
fn give_up_privileges() {
    let (uid, gid) = (Uid::from_raw(USER), Gid::from_raw(USER));
    set_thread_groups(&[]).unwrap();
    set_thread_res_gid(gid, gid, gid).unwrap();
    set_thread_res_uid(uid, uid, uid).unwrap();
}

#[test]
fn an_ordinary_user_takes_snapshots_of_a_directory_of_theirs() {
    let Some(made) = OnBtrfs::new(false) else { return };
    let open_to_all = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(made.dir.path(), open_to_all).unwrap();
    std::os::unix::fs::chown(made.at("live"), Some(USER), Some(USER)).unwrap();
    by_others(&made.at("live"), &made.at("theirs"));
    let live = made.at("live");
    let as_user = std::thread::spawn(move || {
        give_up_privileges();
        let store = LocalStore::open(&live, LocalOptions::default()).unwrap();
        let snapshots = store.snapshots().unwrap();
        store.root().create(Name::new(b"f").unwrap(), &NEW_FILE, MAY).unwrap();
        let snapshot = snapshots.take("mine", MAY).unwrap();
        store.root().remove_file(Name::new(b"f").unwrap(), MAY).unwrap();
        assert_eq!(names(&*snapshots.open(snapshot.id, MAY).unwrap()), ["f"]);
        let listed: Vec<_> = snapshots.list(MAY).unwrap().into_iter().map(|listed| listed.id).collect();
        assert_eq!(listed, [snapshot.id], "only the administrator sees others");
        assert_eq!(snapshots.remove(snapshot.id, MAY), Err(Error::NotPermitted));
        // Nothing may be made in the directory above.
        assert_eq!(snapshots.revert(snapshot.id, MAY), Err(Error::PermissionDenied));
        assert_eq!(snapshots.list(MAY).unwrap().len(), 1);
    });
    as_user.join().unwrap();
}

fn refused(at: &Path) -> Option<NoSnapshots> {
    LocalStore::open(at, LocalOptions::default()).unwrap().snapshots().err()
}

#[test]
fn a_directory_that_is_no_subvolume_has_none() {
    let Some(made) = OnBtrfs::new(true) else { return };
    std::fs::create_dir(made.at("live/d")).unwrap();
    assert_eq!(refused(&made.at("live/d")), Some(NoSnapshots::NoSubvolume));
    assert!(NoSnapshots::NoSubvolume.to_string().contains("btrfs subvolume create"));
}

#[test]
fn other_file_systems_have_none_and_say_what_they_would_need() {
    assert_eq!(refused(Path::new("/dev/shm")), Some(NoSnapshots::FileSystem));
    assert!(NoSnapshots::FileSystem.to_string().contains("Btrfs"));
    for (kind, arguments, mebibytes) in [("ext4", ["-q", "-F"], 16), ("xfs", ["-q", "-f"], 320)] {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join(kind);
        let Some(_disk) = Disk::make(kind, &arguments, mebibytes, &at) else { return };
        assert_eq!(refused(&at), Some(NoSnapshots::FileSystem), "{kind}");
    }
}
