//! A share over the in-memory store, as two protocols see it.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use acl::{AccessMask, Ace, AceFlags, Acl, Control, Sid};
use anabranch_share::{
    Access, Admission, ByteRange, Call, Caller, Case, ChangeKinds, Error, ExtendedAttribute, File, Found,
    Identity, Location, LockKind, LockWait, NewObject, Open, OpenRequest, Pick, Proof, RenameHow,
    SecurityChange, Settings, Share, ShareId, Sharing, Terms, Walk,
};
use storage::conformance::MAY;
use storage::fault::{self, Fault, FaultyStore, Rule};
use storage::memory::MemoryStore;
use storage::{
    Device, Error as StorageError, FileKind, NodeRef, Replace, SetAttributes, SetTime, Stability, Storage,
    Timestamp, Wait, Want,
};

#[expect(dead_code, reason = "what other tests use")]
#[path = "../fronts/mod.rs"]
mod fronts;

use fronts::{SMB, call};

mod permissions;
mod quotas;
mod read_only;
mod recycle;
mod restoration;
mod room;
mod snapshots;
mod vigilance;
mod watch;
mod within;

fn share() -> Arc<Share> {
    Share::new(ShareId(1), Settings::new("data"), Arc::new(MemoryStore::new()))
}

fn user(uid: u32) -> Call {
    call(&SMB, Caller::new(Identity::unix(uid, uid, vec![]), Proof::Stated))
}

fn root() -> Call {
    user(0)
}

fn object(kind: FileKind, mode: u32, target: &str) -> NewObject {
    NewObject {
        kind,
        target: target.as_bytes().to_vec(),
        device: Device::default(),
        mode,
        umask: 0,
        set: SetAttributes::default(),
        want: Want::empty(),
        security: None,
        mode_bounds: false,
    }
}

async fn make(share: &Arc<Share>, who: &Call, path: &str, kind: FileKind, mode: u32) -> Found {
    let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
    let dir = find(share, &root(), dir).await.unwrap();
    share
        .create(who, &dir.node, name.as_bytes(), Case::Sensitive, object(kind, mode, ""))
        .await
        .unwrap()
        .found
}

fn parts(path: &str) -> Vec<Vec<u8>> {
    path.split('/').filter(|p| !p.is_empty()).map(|p| p.as_bytes().to_vec()).collect()
}

async fn find(share: &Arc<Share>, who: &Call, path: &str) -> Result<Found, Error> {
    match share.walk(who, parts(path), Case::Insensitive, Want::FLAGS).await? {
        Walk::Found(found) => Ok(found),
        Walk::Missing { .. } => Err(StorageError::NotFound.into()),
    }
}

fn open(share: &Arc<Share>, found: &Found, access: Access, sharing: Sharing) -> Result<Arc<Open>, Error> {
    at_once(share.open(&root(), found, &OpenRequest::new(access, sharing)))
}

/// What a call gives that does not wait.
fn at_once<T>(call: impl Future<Output = T>) -> T {
    match pin!(call).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => panic!("it waits"),
    }
}

fn at(parent: &NodeRef, name: &[u8]) -> Location {
    Location { parent: parent.clone(), name: name.to_vec() }
}

/// As NFS renames, which has no open.
const MOVE: RenameHow = RenameHow { replace: Replace::Never, case: Case::Sensitive, opened: None };

fn range(offset: u64, length: u64) -> ByteRange {
    ByteRange::new(offset, length).unwrap()
}

#[tokio::test]
async fn names_are_found_whatever_their_case() {
    let share = share();
    make(&share, &root(), "Docs", FileKind::Directory, 0o755).await;
    make(&share, &root(), "Docs/ReadMe.txt", FileKind::Regular, 0o644).await;
    let found = find(&share, &root(), "dOCS/README.TXT").await.unwrap();
    assert_eq!(found.name, b"ReadMe.txt");
    let dir = find(&share, &root(), "docs").await.unwrap().node;
    let again = share
        .create(&root(), &dir, b"readme.TXT", Case::Insensitive, object(FileKind::Regular, 0o644, ""))
        .await;
    assert_eq!(again.unwrap_err(), StorageError::Exists.into());
    // NFS may make both; an exact match comes first then.
    share
        .create(&root(), &dir, b"readme.TXT", Case::Sensitive, object(FileKind::Regular, 0o644, ""))
        .await
        .unwrap();
    assert_eq!(find(&share, &root(), "docs/readme.TXT").await.unwrap().name, b"readme.TXT");
    assert_eq!(find(&share, &root(), "docs/ReadMe.txt").await.unwrap().name, b"ReadMe.txt");
    share.remove(&root(), &dir, b"ReadMe.txt", false).await.unwrap();
    assert_eq!(find(&share, &root(), "docs/README.txt").await.unwrap().name, b"readme.TXT");
}

#[tokio::test]
async fn a_rename_may_change_the_case_only() {
    let share = share();
    make(&share, &root(), "name", FileKind::Regular, 0o644).await;
    let top = share.root().clone();
    let rename = |from: &'static [u8], to: &'static [u8], replace| {
        let (share, top) = (share.clone(), top.clone());
        let how = RenameHow { replace, case: Case::Insensitive, opened: None };
        async move { share.rename(&root(), at(&top, from), at(&top, to), how).await }
    };
    rename(b"name", b"NAME", Replace::Never).await.unwrap();
    assert_eq!(find(&share, &root(), "name").await.unwrap().name, b"NAME");
    make(&share, &root(), "other", FileKind::Regular, 0o644).await;
    assert_eq!(rename(b"NAME", b"OTHER", Replace::Never).await.unwrap_err(), StorageError::Exists.into());
    rename(b"NAME", b"OTHER", Replace::Yes).await.unwrap();
    assert_eq!(find(&share, &root(), "name").await.unwrap_err(), StorageError::NotFound.into());
}

#[tokio::test]
async fn links_are_followed_inside_the_share_only() {
    let share = share();
    make(&share, &root(), "a", FileKind::Directory, 0o755).await;
    make(&share, &root(), "a/file", FileKind::Regular, 0o644).await;
    let top = share.root().clone();
    for (name, target) in
        [("in", "a/file"), ("dir", "./a"), ("out", "/etc/passwd"), ("up", "../../../a"), ("loop", "loop")]
    {
        let link = object(FileKind::Symlink, 0o777, target);
        share.create(&root(), &top, name.as_bytes(), Case::Sensitive, link).await.unwrap();
    }
    assert_eq!(find(&share, &root(), "in").await.unwrap().name, b"file");
    assert_eq!(find(&share, &root(), "dir/file").await.unwrap().name, b"file");
    assert_eq!(find(&share, &root(), "out").await.unwrap_err(), Error::AccessDenied);
    assert_eq!(find(&share, &root(), "up").await.unwrap().name, b"a", "above the root is the root");
    assert_eq!(find(&share, &root(), "loop").await.unwrap_err(), StorageError::SymlinkLoop.into());
}

#[tokio::test]
async fn permissions_hold_for_every_way_in() {
    let share = share();
    let top = File::Stateless(share.root().clone());
    let mode = SetAttributes { mode: Some(0o755), ..SetAttributes::default() };
    share.set_attributes(&root(), &top, &mode, None).await.unwrap();
    make(&share, &root(), "closed", FileKind::Directory, 0o700).await;
    make(&share, &root(), "closed/file", FileKind::Regular, 0o666).await;
    let file = make(&share, &root(), "mine", FileKind::Regular, 0o640).await;
    let stranger = user(7);
    assert_eq!(find(&share, &stranger, "closed/file").await.unwrap_err(), Error::AccessDenied);
    let stateless = File::Stateless(file.node.clone());
    assert_eq!(share.read(&stranger, &stateless, 0, vec![0; 4]).await.unwrap_err(), Error::AccessDenied);
    let write = share.write(&stranger, &stateless, 0, b"x".to_vec(), Stability::Unstable).await;
    assert_eq!(write.unwrap_err(), Error::AccessDenied);
    let request = OpenRequest::new(Access::READ_DATA, Sharing::all());
    assert_eq!(share.open(&stranger, &file, &request).await.unwrap_err(), Error::AccessDenied);
    let top = share.root().clone();
    let made =
        share.create(&stranger, &top, b"new", Case::Sensitive, object(FileKind::Regular, 0o644, "")).await;
    assert_eq!(made.unwrap_err(), Error::AccessDenied);
    assert_eq!(share.remove(&stranger, &top, b"mine", false).await.unwrap_err(), Error::AccessDenied);
    let mode = SetAttributes { mode: Some(0o777), ..SetAttributes::default() };
    assert_eq!(share.set_attributes(&stranger, &stateless, &mode, None).await.unwrap_err(), Error::NotOwner);
}

#[tokio::test]
async fn times_and_owners_follow_posix() {
    let share = share();
    let shared = make(&share, &root(), "shared", FileKind::Regular, 0o666).await;
    let file = File::Stateless(shared.node.clone());
    let now = SetAttributes { mtime: Some(SetTime::Now), ..SetAttributes::default() };
    let then = SetAttributes {
        mtime: Some(SetTime::To(Timestamp { secs: 5, nanos: 6 })),
        ..SetAttributes::default()
    };
    share.set_attributes(&user(7), &file, &now, None).await.unwrap();
    assert_eq!(share.set_attributes(&user(7), &file, &then, None).await.unwrap_err(), Error::NotOwner);
    let changed = share.set_attributes(&root(), &file, &then, None).await.unwrap();
    assert_eq!(changed.after.mtime, Timestamp { secs: 5, nanos: 6 });
    let guard = Some(changed.before.ctime);
    if changed.before.ctime != changed.after.ctime {
        assert_eq!(share.set_attributes(&root(), &file, &now, guard).await.unwrap_err(), Error::GuardFailed);
    }
    let own = SetAttributes { uid: Some(7), ..SetAttributes::default() };
    assert_eq!(share.set_attributes(&user(7), &file, &own, None).await.unwrap_err(), Error::NotOwner);
    share.set_attributes(&root(), &file, &own, None).await.unwrap();
    let group = |gid| SetAttributes { gid: Some(gid), ..SetAttributes::default() };
    share.set_attributes(&user(7), &file, &group(7), None).await.unwrap();
    assert_eq!(share.set_attributes(&user(7), &file, &group(8), None).await.unwrap_err(), Error::NotOwner);
}

#[tokio::test]
async fn a_write_by_others_takes_privilege_from_a_program() {
    let share = share();
    let program = make(&share, &root(), "program", FileKind::Regular, 0o6777).await;
    let file = File::Stateless(program.node.clone());
    share.write(&root(), &file, 0, b"trusted".to_vec(), Stability::Unstable).await.unwrap();
    assert_eq!(share.attributes(&root(), &program.node, Want::empty()).await.unwrap().mode, 0o6777);
    share.write(&user(7), &file, 0, b"changed".to_vec(), Stability::Unstable).await.unwrap();
    assert_eq!(share.attributes(&root(), &program.node, Want::empty()).await.unwrap().mode, 0o777);
}

/// Each way to change data, and never more than the bits: the owner may have changed the mode meanwhile.
#[tokio::test]
async fn every_change_takes_privilege_from_a_program() {
    let share = share();
    let access = Access::READ_DATA | Access::WRITE_DATA;
    for way in ["write", "zero", "copy"] {
        let program = make(&share, &root(), way, FileKind::Regular, 0o4777).await;
        let file = File::Stateless(program.node.clone());
        share.write(&root(), &file, 0, b"trusted".to_vec(), Stability::Unstable).await.unwrap();
        let request = OpenRequest::new(access, Sharing::all());
        let program = find(&share, &user(7), way).await.unwrap();
        let open = share.open(&user(7), &program, &request).await.unwrap();
        let narrower = SetAttributes { mode: Some(0o4700), ..SetAttributes::default() };
        share.set_attributes(&root(), &file, &narrower, None).await.unwrap();
        let target = File::Open(open.clone());
        match way {
            "write" => {
                let data = b"changed".to_vec();
                share.write(&user(7), &target, 0, data, Stability::Unstable).await.map(|_| ()).unwrap();
            }
            "zero" => share.zero_range(&user(7), &target, 0, 3).await.unwrap(),
            _ => share.copy_range(&user(7), (&target, 0), (&target, 4), 3).await.unwrap(),
        }
        assert_eq!(
            share.attributes(&root(), &program.node, Want::empty()).await.unwrap().mode,
            0o700,
            "{way}"
        );
    }
}

#[tokio::test]
async fn deny_modes_bind_opens_and_those_without() {
    let share = share();
    let found = make(&share, &root(), "file", FileKind::Regular, 0o666).await;
    let first = open(&share, &found, Access::READ_DATA, Sharing::READ).unwrap();
    let refused = open(&share, &found, Access::WRITE_DATA, Sharing::all()).unwrap_err();
    assert_eq!(refused, Error::SharingViolation);
    let stateless = File::Stateless(found.node.clone());
    let anybody = root();
    let write = || share.write(&anybody, &stateless, 0, b"x".to_vec(), Stability::Unstable);
    assert_eq!(write().await.unwrap_err(), Error::SharingViolation);
    let top = share.root().clone();
    assert_eq!(share.remove(&root(), &top, b"file", false).await.unwrap_err(), Error::SharingViolation);
    share.close(&root(), &first).await.unwrap();
    write().await.unwrap();
    assert_eq!(share.read(&root(), &File::Open(first), 0, vec![0; 1]).await.unwrap_err(), Error::Closed);
    share.remove(&root(), &top, b"file", false).await.unwrap();
}

#[tokio::test]
async fn a_file_goes_with_its_last_open() {
    let share = share();
    let found = make(&share, &root(), "doomed", FileKind::Regular, 0o666).await;
    let delete = Access::DELETE | Access::READ_DATA;
    let first = open(&share, &found, delete, Sharing::all()).unwrap();
    let second = open(&share, &found, Access::READ_DATA, Sharing::all()).unwrap();
    assert_eq!(share.set_delete_pending(&root(), &second, true).await.unwrap_err(), Error::NotOpenedForThis);
    share.set_delete_pending(&root(), &first, true).await.unwrap();
    assert!(share.is_delete_pending(&found.node));
    assert_eq!(open(&share, &found, delete, Sharing::all()).unwrap_err(), Error::DeletePending);
    share.close(&root(), &first).await.unwrap();
    let top = share.root().clone();
    share.rename(&root(), at(&top, b"doomed"), at(&top, b"renamed"), MOVE).await.unwrap_err();
    share.close(&root(), &second).await.unwrap();
    assert_eq!(find(&share, &root(), "doomed").await.unwrap_err(), StorageError::NotFound.into());
    share.close(&root(), &second).await.unwrap();
    assert!(!share.is_delete_pending(&found.node));
}

#[tokio::test]
async fn deletion_follows_a_rename() {
    let share = share();
    let found = make(&share, &root(), "before", FileKind::Regular, 0o666).await;
    make(&share, &root(), "bystander", FileKind::Regular, 0o666).await;
    let request = OpenRequest { delete_on_close: true, ..OpenRequest::new(Access::DELETE, Sharing::all()) };
    let doomed = share.open(&root(), &found, &request).await.unwrap();
    let top = share.root().clone();
    share.rename(&root(), at(&top, b"before"), at(&top, b"after"), MOVE).await.unwrap();
    share.rename(&root(), at(&top, b"bystander"), at(&top, b"before"), MOVE).await.unwrap();
    assert_eq!(share.location(&doomed).unwrap().name, b"after");
    share.close(&root(), &doomed).await.unwrap();
    assert!(find(&share, &root(), "before").await.is_ok(), "another file of the old name stays");
    assert_eq!(find(&share, &root(), "after").await.unwrap_err(), StorageError::NotFound.into());
}

/// Who may remove one name of a file has no say about its other names.
#[tokio::test]
async fn deletion_takes_the_name_that_it_was_asked_for_by() {
    let share = share();
    make(&share, &root(), "closed", FileKind::Directory, 0o755).await;
    let found = make(&share, &root(), "closed/file", FileKind::Regular, 0o644).await;
    let own = make(&share, &root(), "own", FileKind::Directory, 0o777).await.node;
    for (name, on_close) in [(&b"one"[..], true), (b"two", false)] {
        share.link(&user(7), &found.node, &own, name, Case::Sensitive, None).await.unwrap();
        // It is open by the name that this user may not remove, too.
        let by_name = find(&share, &user(7), "closed/file").await.unwrap();
        let read = OpenRequest::new(Access::READ_DATA, Sharing::all());
        let reader = share.open(&user(7), &by_name, &read).await.unwrap();
        let delete = OpenRequest { access: Access::DELETE, delete_on_close: on_close, ..read };
        assert_eq!(share.open(&user(7), &by_name, &delete).await.unwrap_err(), Error::AccessDenied);
        let path = format!("own/{}", std::str::from_utf8(name).unwrap());
        let linked = find(&share, &user(7), &path).await.unwrap();
        let doomed = share.open(&user(7), &linked, &delete).await.unwrap();
        if !on_close {
            share.set_delete_pending(&root(), &doomed, true).await.unwrap();
        }
        share.close(&root(), &doomed).await.unwrap();
        share.close(&root(), &reader).await.unwrap();
        assert!(find(&share, &root(), "closed/file").await.is_ok(), "{path}");
        assert_eq!(find(&share, &root(), &path).await.unwrap_err(), StorageError::NotFound.into());
    }
}

#[tokio::test]
async fn a_directory_with_entries_is_not_deleted() {
    let share = share();
    let dir = make(&share, &root(), "dir", FileKind::Directory, 0o755).await;
    make(&share, &root(), "dir/file", FileKind::Regular, 0o644).await;
    let held = open(&share, &dir, Access::DELETE, Sharing::all()).unwrap();
    assert_eq!(
        share.set_delete_pending(&root(), &held, true).await.unwrap_err(),
        StorageError::NotEmpty.into()
    );
    share.remove(&root(), &dir.node, b"file", false).await.unwrap();
    share.set_delete_pending(&root(), &held, true).await.unwrap();
    let late = share
        .create(&root(), &dir.node, b"late", Case::Sensitive, object(FileKind::Regular, 0o644, ""))
        .await;
    assert_eq!(late.unwrap_err(), Error::DeletePending);
    share.close(&root(), &held).await.unwrap();
    assert_eq!(find(&share, &root(), "dir").await.unwrap_err(), StorageError::NotFound.into());
}

#[tokio::test]
async fn locks_stop_the_io_of_others_and_are_waited_for() {
    let share = share();
    let found = make(&share, &root(), "locked", FileKind::Regular, 0o666).await;
    let both = Access::READ_DATA | Access::WRITE_DATA;
    let (one, two) = (
        open(&share, &found, both, Sharing::all()).unwrap(),
        open(&share, &found, both, Sharing::all()).unwrap(),
    );
    share.lock(&one, range(0, 10), LockKind::Exclusive, LockWait::Never).await.unwrap();
    let stateless = File::Stateless(found.node.clone());
    for file in [File::Open(two.clone()), stateless] {
        let write = share.write(&root(), &file, 5, b"x".to_vec(), Stability::Unstable).await;
        assert_eq!(write.unwrap_err(), Error::RangeLocked);
        share.write(&root(), &file, 10, b"x".to_vec(), Stability::Unstable).await.unwrap();
        let cut = SetAttributes { size: Some(0), ..SetAttributes::default() };
        assert_eq!(share.set_attributes(&root(), &file, &cut, None).await.unwrap_err(), Error::RangeLocked);
    }
    let refused = share.lock(&two, range(9, 1), LockKind::Shared, LockWait::Never).await;
    assert_eq!(refused.unwrap_err(), Error::LockNotGranted);
    let given_up = share.lock(&two, range(9, 1), LockKind::Shared, LockWait::UntilGranted);
    assert!(tokio::time::timeout(Duration::from_millis(20), given_up).await.is_err());
    let waiting = {
        let (share, two) = (share.clone(), two.clone());
        tokio::spawn(
            async move { share.lock(&two, range(9, 1), LockKind::Shared, LockWait::UntilGranted).await },
        )
    };
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(!waiting.is_finished());
    assert_eq!(share.unlock(&one, range(0, 9)).unwrap_err(), Error::RangeNotLocked);
    share.unlock(&one, range(0, 10)).unwrap();
    waiting.await.unwrap().unwrap();
    share.close(&root(), &two).await.unwrap();
    share.lock(&one, range(0, 10), LockKind::Exclusive, LockWait::Never).await.unwrap();
}

#[tokio::test]
async fn a_waiting_lock_ends_with_its_open() {
    let share = share();
    let found = make(&share, &root(), "locked", FileKind::Regular, 0o666).await;
    let one = open(&share, &found, Access::READ_DATA, Sharing::all()).unwrap();
    let two = open(&share, &found, Access::READ_DATA, Sharing::all()).unwrap();
    share.lock(&one, range(0, 1), LockKind::Exclusive, LockWait::Never).await.unwrap();
    let waiting = {
        let (share, two) = (share.clone(), two.clone());
        tokio::spawn(
            async move { share.lock(&two, range(0, 1), LockKind::Shared, LockWait::UntilGranted).await },
        )
    };
    tokio::time::sleep(Duration::from_millis(20)).await;
    share.close(&root(), &two).await.unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(60), waiting).await.unwrap().unwrap();
    assert_eq!(ended.unwrap_err(), Error::Closed);
}

/// A list may let somebody add to a file without letting them change what is there.
#[tokio::test]
async fn who_may_append_overwrites_nothing() {
    let share = share();
    let found = make(&share, &root(), "log", FileKind::Regular, 0o666).await;
    let file = File::Open(open(&share, &found, Access::APPEND_DATA, Sharing::all()).unwrap());
    for (offset, data) in [(0, b"one"), (0, b"two"), (100, b"six")] {
        share.write(&user(10), &file, offset, data.to_vec(), Stability::Unstable).await.unwrap();
    }
    let mut log = [0; 16];
    let count = found.node.read(0, &mut log, Wait::May(MAY)).unwrap();
    assert_eq!(&log[..count], b"onetwosix");
}

/// What a directory gives of its entries it does not give of itself, by whatever name it is reached.
#[tokio::test]
async fn a_directory_is_not_its_own_entry() {
    let share = share();
    let top = make(&share, &root(), "top", FileKind::Directory, 0o755).await;
    make(&share, &root(), "top/open", FileKind::Directory, 0o777).await;
    let link = object(FileKind::Symlink, 0o777, "open/.");
    share.create(&root(), &top.node, b"link", Case::Sensitive, link).await.unwrap();
    for path in ["top/open", "top/link"] {
        let found = find(&share, &user(10), path).await.unwrap();
        assert!(!share.maximal_access(&user(10).caller, &found).contains(Access::DELETE), "{path}");
    }
}

/// Who takes a program over does not lend its maker the new owner's rights.
#[tokio::test]
async fn a_program_loses_its_privileges_with_its_owner() {
    let share = share();
    let found = make(&share, &user(10), "program", FileKind::Regular, 0o4755).await;
    let change = SecurityChange {
        owner: Some(Sid::of_user(0)),
        dacl: Some((Control::DACL_PRESENT, None)),
        ..SecurityChange::default()
    };
    share.set_security(&root(), &File::Stateless(found.node.clone()), change).await.unwrap();
    let after = found.node.attributes(Want::empty(), Wait::May(MAY)).unwrap();
    assert_eq!((after.uid, after.mode), (0, 0o777));
}

/// The last open is closed, and a storage that takes its time removes the name: who wants the name meanwhile waits for
/// that, and is not told of a deletion that pends.
#[tokio::test]
async fn a_name_that_is_being_removed_is_waited_for() {
    let store = Arc::new(FaultyStore::distant(Arc::new(MemoryStore::new())));
    let share = Share::new(ShareId(1), Settings::new("data"), Arc::clone(&store) as Arc<dyn Storage>);
    make(&share, &root(), "file", FileKind::Regular, 0o600).await;
    // Looked up: what the creation has found may be opened, whatever was removed since.
    let found = find(&share, &root(), "file").await.unwrap();
    let request = OpenRequest { delete_on_close: true, ..OpenRequest::new(Access::DELETE, Sharing::empty()) };
    let held = share.open(&root(), &found, &request).await.unwrap();
    let stall = store.hang(fault::Call::RemoveFile);
    let closing = tokio::spawn({
        let (share, held) = (Arc::clone(&share), Arc::clone(&held));
        async move { share.close_unasked(&held).await }
    });
    while store.calls(fault::Call::RemoveFile) == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let Admission::Wait(removed) = share.open_granted(&found, &request).unwrap() else {
        panic!("it is opened while it is being removed");
    };
    drop(stall);
    removed.over().await;
    // What was found before is no longer there to be opened, and holds nothing.
    assert_eq!(share.open_granted(&found, &request).unwrap_err(), Error::Gone);
    assert_eq!(find(&share, &root(), "file").await.unwrap_err(), StorageError::NotFound.into());
    closing.await.unwrap().unwrap();
}

/// Who may change the permissions of somebody else's program does not make it run with that one's rights.
#[tokio::test]
async fn only_its_owner_gives_a_program_privileges() {
    let share = share();
    let found = make(&share, &root(), "program", FileKind::Regular, 0o2755).await;
    let file = File::Stateless(found.node.clone());
    let set = |mode| SetAttributes { mode: Some(mode), ..SetAttributes::default() };
    let aces = vec![Ace::allow(Sid::of_user(10), AccessMask::FILE_ALL, AceFlags::empty())];
    let dacl = Some((Control::DACL_PRESENT, Some(Acl { revision: 2, aces })));
    let change = SecurityChange { dacl, ..SecurityChange::default() };
    share.set_security(&root(), &file, change).await.unwrap();
    let after = share.set_attributes(&user(10), &file, &set(0o6711), None).await.unwrap().after;
    assert_eq!(after.mode, 0o711, "neither the owner nor of the group");
    let after = share.set_attributes(&root(), &file, &set(0o6711), None).await.unwrap().after;
    assert_eq!(after.mode, 0o6711);
}

#[tokio::test]
async fn limits_hold_at_the_edge() {
    let settings = Settings { opens_max: 2, watches_max: 1, ..Settings::new("small") };
    let share = Share::new(ShareId(1), settings, Arc::new(MemoryStore::new()));
    let found = make(&share, &root(), "file", FileKind::Regular, 0o666).await;
    let read = |found: &Found| open(&share, found, Access::READ_DATA, Sharing::all());
    let one = read(&found).unwrap();
    let _two = read(&found).unwrap();
    assert_eq!(read(&found).unwrap_err(), Error::LimitReached("opens"));
    share.close(&root(), &one).await.unwrap();
    read(&found).unwrap();
    let watch = share.watch(&root().caller, share.root(), false, ChangeKinds::all()).unwrap();
    assert_eq!(
        share.watch(&root().caller, share.root(), false, ChangeKinds::all()).unwrap_err(),
        Error::LimitReached("watches")
    );
    drop(watch);
    share.watch(&root().caller, share.root(), false, ChangeKinds::all()).unwrap();
}

#[tokio::test]
async fn large_directories_are_listed_in_parts() {
    let share = share();
    for n in 0..250 {
        make(&share, &root(), &format!("f{n:03}"), FileKind::Regular, 0o644).await;
    }
    let (mut names, mut cookie) = (Vec::new(), 0);
    loop {
        let part = share.list(&root(), share.root(), cookie, 100, Some(Want::empty())).await.unwrap();
        assert!(part.entries.len() <= 100);
        names.extend(part.entries.iter().map(|e| e.name.clone()));
        if part.end {
            break;
        }
        cookie = part.entries.last().unwrap().cookie;
    }
    names.sort();
    assert_eq!(names.len(), 250);
    assert_eq!(names[249], b"f249");
}

#[tokio::test]
async fn overwriting_needs_leave_to_write_but_minds_no_locks() {
    let share = share();
    let found = make(&share, &root(), "f", FileKind::Regular, 0o644).await;
    let reader = open(&share, &found, Access::READ_DATA, Sharing::READ).unwrap();
    let all = Sharing::READ | Sharing::WRITE | Sharing::DELETE;
    let request = OpenRequest { delete_on_close: true, ..OpenRequest::new(Access::READ_DATA, all) };
    let refused = share.open_overwriting(&root(), &found, &request, None).await;
    assert_eq!(refused.unwrap_err(), Error::SharingViolation);
    share.close(&root(), &reader).await.unwrap();

    let writer = open(&share, &found, Access::WRITE_DATA, all).unwrap();
    let file = File::Open(Arc::clone(&writer));
    share.write(&root(), &file, 0, b"data".to_vec(), Stability::Unstable).await.unwrap();
    share.lock(&writer, range(0, 4), LockKind::Exclusive, LockWait::Never).await.unwrap();
    let request = OpenRequest { delete_on_close: false, ..request };
    let admission = share.open_overwriting(&root(), &found, &request, None).await.unwrap();
    let Admission::Done((opened, after)) = admission else { panic!("it waits") };
    assert_eq!(after.size, 0);
    assert_eq!(opened.access(), Access::READ_DATA);
    // The leave to write was needed for a moment only.
    share.close(&root(), &writer).await.unwrap();
    let sharing = Sharing::READ | Sharing::DELETE;
    open(&share, &found, Access::READ_DATA, sharing).unwrap();
}

#[tokio::test]
async fn a_listing_takes_what_is_picked_and_goes_on_behind_what_was_looked_at() {
    let share = share();
    for name in ["a", "skip1", "b", "skip2", "c"] {
        make(&share, &root(), name, FileKind::Regular, 0o644).await;
    }
    let mut left = 2;
    let two = move |name: &[u8]| {
        if name.starts_with(b"skip") {
            return Pick::Skip;
        }
        left -= 1;
        if left < 0 { Pick::Stop } else { Pick::Take }
    };
    let top = share.root().clone();
    let part = share.list_picked(&root(), &top, 0, Some(Want::empty()), two).await.unwrap();
    assert!(!part.end && part.entries.iter().all(|e| e.node.is_some()));
    let rest = share.list_picked(&root(), &top, part.cookie, None, |_| Pick::Take).await.unwrap();
    assert!(rest.end && rest.entries.iter().all(|e| e.node.is_none()));
    let mut names: Vec<_> = part.entries.iter().chain(&rest.entries).map(|e| e.name.as_slice()).collect();
    names.retain(|name| !name.starts_with(b"skip"));
    names.sort_unstable();
    assert_eq!(names, [b"a", b"b", b"c"]);
    let nothing = share.list_picked(&root(), &top, rest.cookie, None, |_| Pick::Take).await.unwrap();
    assert!(nothing.end && nothing.entries.is_empty() && nothing.cookie == rest.cookie);
}

#[tokio::test]
async fn a_directory_with_entries_stays_when_it_is_closed() {
    let share = share();
    let dir = make(&share, &root(), "dir", FileKind::Directory, 0o755).await;
    make(&share, &root(), "dir/file", FileKind::Regular, 0o644).await;
    let held = open(&share, &dir, Access::READ_DATA, Sharing::all()).unwrap();
    let request = OpenRequest { delete_on_close: true, ..OpenRequest::new(Access::DELETE, Sharing::all()) };
    let doomed = share.open(&root(), &dir, &request).await.unwrap();
    assert_eq!(share.close(&root(), &doomed).await, Ok(()));
    assert!(!share.is_delete_pending(&dir.node), "also while somebody else has it open");
    make(&share, &root(), "dir/other", FileKind::Regular, 0o644).await;
    share.close(&root(), &held).await.unwrap();
    assert!(find(&share, &root(), "dir/other").await.is_ok());
}

#[tokio::test]
async fn who_has_a_directory_open_may_keep_renames_out_of_it() {
    let share = share();
    let dir = make(&share, &root(), "dir", FileKind::Directory, 0o755).await;
    let file = make(&share, &root(), "dir/file", FileKind::Regular, 0o644).await;
    let opened = open(&share, &file, Access::DELETE, Sharing::all()).unwrap();
    let how = RenameHow { replace: Replace::Never, case: Case::Insensitive, opened: Some(opened.holder()) };
    let rename = async |to: &[u8]| {
        share.rename(&root(), share.location(&opened).unwrap(), at(&dir.node, to), how).await.map(|_| ())
    };
    let deleter = open(&share, &dir, Access::DELETE, Sharing::all()).unwrap();
    assert_eq!(rename(b"other").await, Err(Error::SharingViolation));
    share.close(&root(), &deleter).await.unwrap();
    let alone = open(&share, &dir, Access::WRITE_DATA, Sharing::empty()).unwrap();
    assert_eq!(rename(b"other").await, Err(Error::SharingViolation));
    share.close(&root(), &alone).await.unwrap();
    let onlooker = open(&share, &dir, Access::READ_ATTRIBUTES, Sharing::empty()).unwrap();
    assert_eq!(rename(b"other").await, Ok(()));
    share.close(&root(), &onlooker).await.unwrap();
}

#[tokio::test]
async fn extended_attributes_ignore_the_case_of_their_names() {
    let share = share();
    let found = make(&share, &root(), "file", FileKind::Regular, 0o644).await;
    let file = File::Stateless(found.node.clone());
    let ea = |name: &str, value: &str| ExtendedAttribute { name: name.into(), value: value.into() };
    share
        .set_extended_attributes(&root(), &file, vec![ea("two", "2"), ea("One", "1"), ea("gone", "")])
        .await
        .unwrap();
    assert_eq!(
        share.extended_attributes(&root(), &found.node).await.unwrap(),
        [ea("One", "1"), ea("two", "2")]
    );
    share.set_extended_attributes(&root(), &file, vec![ea("ONE", "11"), ea("TWO", "")]).await.unwrap();
    assert_eq!(share.extended_attributes(&root(), &found.node).await.unwrap(), [ea("One", "11")]);
}
