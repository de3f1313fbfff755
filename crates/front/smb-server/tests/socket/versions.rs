//! Earlier versions: FSCTL_SRV_ENUMERATE_SNAPSHOTS and SMB2_CREATE_TIMEWARP_TOKEN. [MS-SMB2] 2.2.13.2.7, 2.2.32.2, 3.3.5.9.4,
//! 3.3.5.15.1.

use std::sync::Arc;
use std::time::Duration;

use anabranch_smb_server::Config;
use share::{Right, Role, Rules};
use smb_proto::dialect::Dialect;
use smb_wire::create::{CreateAction, CreateDisposition, CreateOptions, OplockLevel};
use smb_wire::create_context::RequestContext;
use smb_wire::fscc::file_info::{Disposition, EndOfFile, Rename, RenameFlags};
use smb_wire::fscc::fs_info::Volume;
use smb_wire::fscc::fsctl::{Chunk, Copychunk, CopychunkResponse, Fsctl, ResumeKey, SnapshotArray};
use smb_wire::fscc::{FileInfoClass, FsInfoClass};
use smb_wire::query_info::InfoType;
use smb_wire::{AccessMask, FileId, FileTime, Guid, NtStatus};
use storage::conformance::MAY;
use storage::memory::MemoryStore;
use storage::{SetAttributes, Snapshot, Storage, Wait};

use crate::client::{Client, OTHER_USER, PASSWORD, SHARE, TestServer, USER};
use crate::directory::listed;
use crate::durable::{Asking, lease, read_handle, request_v2};
use crate::information::{Query, query, set};
use crate::ioctl::{ioctl, output};
use crate::opening::{ALL, Opening, delete, make_file};
use crate::security::set_dacl;

const READ: AccessMask = AccessMask::FILE_READ.union(AccessMask::FILE_EXECUTE);
const PROTECTED: NtStatus = NtStatus::MEDIA_WRITE_PROTECTED;
const NOT_FOUND: NtStatus = NtStatus::OBJECT_NAME_NOT_FOUND;

struct Served {
    server: TestServer,
    store: Arc<MemoryStore>,
    client: Client,
}

impl Served {
    fn start() -> Self {
        let store = Arc::new(MemoryStore::new());
        let server = TestServer::start_on(Config::default(), Arc::clone(&store) as Arc<dyn Storage>);
        let client = server.client();
        Self { server, store, client }
    }

    fn take(&self) -> Snapshot {
        let snapshot = self.store.snapshots().unwrap().take("test", MAY).unwrap();
        // Until the server looks again.
        std::thread::sleep(Duration::from_millis(1100));
        snapshot
    }

    fn write(&mut self, name: &str, data: &[u8]) {
        let file = Opening::default().send(&mut self.client, name).unwrap().id;
        self.client.write(file, 0, data).unwrap();
        self.client.close(file).unwrap();
    }

    /// With the file `d\f`, which has the stream `s`, and says `old` in the snapshot and `new` now; and `g`, made since.
    fn with_snapshot() -> (Self, Snapshot) {
        let mut served = Self::start();
        Opening::directory().try_out(&mut served.client, "d").unwrap();
        make_file(&mut served.client, r"d\f", b"old");
        make_file(&mut served.client, r"d\f:s", b"stream");
        let snapshot = served.take();
        served.write(r"d\f", b"new");
        make_file(&mut served.client, r"d\g", b"");
        (served, snapshot)
    }

    fn versions(&mut self, name: &str) -> Vec<String> {
        let access = AccessMask::READ_DATA | AccessMask::READ_ATTRIBUTES | AccessMask::SYNCHRONIZE;
        let file = Opening { access, ..Opening::default() }.send(&mut self.client, name).unwrap().id;
        let told = enumerated(&mut self.client, file, 65_536);
        self.client.close(file).unwrap();
        told.snapshots
    }
}

fn enumerated(client: &mut Client, file: FileId, room: u32) -> SnapshotArray {
    SnapshotArray::decode(&output(&ioctl(client, Fsctl::SrvEnumerateSnapshots, file, &[], room))).unwrap()
}

/// Opens what was there then.
fn then(snapshot: &Snapshot) -> Opening {
    at(FileTime::from_unix(snapshot.taken.secs, 0))
}

fn at(time: FileTime) -> Opening {
    Opening { access: READ, contexts: vec![RequestContext::TimewarpToken(time)], ..Opening::default() }
}

fn token(snapshot: &Snapshot) -> String {
    let [year, month, day, hour, minute, second] = storage::date_and_time(snapshot.taken.secs);
    format!("@GMT-{year:04}.{month:02}.{day:02}-{hour:02}.{minute:02}.{second:02}")
}

#[test]
fn the_versions_of_a_file_are_told() {
    let (mut served, first) = Served::with_snapshot();
    let second = served.take();
    let both = [token(&second), token(&first)];
    for name in ["", "d", r"d\f", r"D\F:s"] {
        assert_eq!(served.versions(name), both, "{name}");
    }
    assert_eq!(served.versions(r"d\g"), [token(&second)]);
    make_file(&mut served.client, "h", b"");
    assert_eq!(served.versions("h"), [""; 0]);
    // Of what is itself of a snapshot, too.
    let file = then(&first).send(&mut served.client, r"d\f").unwrap().id;
    assert_eq!(enumerated(&mut served.client, file, 65_536).snapshots, both);
}

#[test]
fn their_number_is_told_before_there_is_room_for_all() {
    let (mut served, first) = Served::with_snapshot();
    served.take();
    let file = Opening::default().send(&mut served.client, r"d\f").unwrap().id;
    for room in [16, 12 + 101] {
        let told = enumerated(&mut served.client, file, room);
        assert_eq!((told.number_of_snapshots, told.snapshot_array_size), (2, 102));
        assert_eq!(told.snapshots, [""; 0]);
    }
    let all = enumerated(&mut served.client, file, 12 + 102);
    assert_eq!((all.number_of_snapshots, all.snapshots.len()), (2, 2));
    assert_eq!(all.snapshots[1], token(&first));
    for room in [0, 15] {
        let refused = ioctl(&mut served.client, Fsctl::SrvEnumerateSnapshots, file, &[], room);
        assert_eq!(refused.status(), NtStatus::INVALID_PARAMETER);
    }
}

#[test]
fn a_share_without_snapshots_says_so() {
    let place = tempfile::tempdir_in("/dev/shm").unwrap();
    let store = storage_local::LocalStore::open(place.path(), storage_local::LocalOptions::default());
    let server = TestServer::start_on(Config::default(), Arc::new(store.unwrap()));
    let mut client = server.client();
    make_file(&mut client, "f", b"");
    let file = Opening::default().send(&mut client, "f").unwrap().id;
    let refused = ioctl(&mut client, Fsctl::SrvEnumerateSnapshots, file, &[], 65_536);
    assert_eq!(refused.status(), NtStatus::NOT_SUPPORTED);
    assert_eq!(at(FileTime::from_unix(1, 0)).try_out(&mut client, "f"), Err(NOT_FOUND));
}

#[test]
fn a_version_is_read_beside_the_file() {
    let (mut served, snapshot) = Served::with_snapshot();
    let client = &mut served.client;
    let live = Opening::default().send(client, r"d\f").unwrap().id;
    for (name, data) in [(r"d\f", &b"old"[..]), (r"D\F", b"old"), (r"d\f:s", b"stream")] {
        let old = then(&snapshot).send(client, name).unwrap();
        assert_eq!(client.read(old.id, 0, 10).unwrap(), data);
        assert_eq!(old.end_of_file, data.len() as u64);
        assert_eq!(client.read(live, 0, 10).unwrap(), b"new");
        client.close(old.id).unwrap();
    }
    let dir = then(&snapshot).send(client, "d").unwrap().id;
    assert_eq!(listed(client, dir, "*"), [".", "..", "f"]);
    let top = then(&snapshot).send(client, "").unwrap().id;
    assert_eq!(listed(client, top, "*"), [".", "..", "d"]);
    assert_eq!(then(&snapshot).try_out(client, r"d\g"), Err(NOT_FOUND), "made since");
    assert_eq!(then(&snapshot).try_out(client, r"e\g"), Err(NtStatus::OBJECT_PATH_NOT_FOUND));
    let old = then(&snapshot).send(client, r"d\f").unwrap().id;
    assert!(!query(client, old, FileInfoClass::Stream).unwrap().is_empty());
    let files = served.server.server.open_files();
    let names: Vec<_> = files.iter().map(|file| file.name.clone()).collect();
    assert!(names.contains(&format!(r"{}\d", token(&snapshot))), "{names:?}");
}

#[test]
fn only_the_second_of_a_time_counts() {
    let (mut served, snapshot) = Served::with_snapshot();
    let second = snapshot.taken.secs;
    for (time, expected) in [
        (FileTime::from_unix(second, 999_999_900), Ok(CreateAction::Opened)),
        (FileTime::from_unix(second - 1, 999_999_900), Err(NOT_FOUND)),
        (FileTime::from_unix(second + 1, 0), Err(NOT_FOUND)),
        (FileTime(0), Err(NOT_FOUND)),
        (FileTime(1), Err(NOT_FOUND)),
        (FileTime(u64::MAX), Err(NOT_FOUND)),
    ] {
        assert_eq!(at(time).try_out(&mut served.client, r"d\f"), expected, "{time:?}");
    }
}

/// All changes through an open that allows them are refused.
fn refuses_changes(client: &mut Client, file: FileId) {
    assert_eq!(client.write(file, 0, b"x"), Err(PROTECTED));
    assert_eq!(set_dacl(client, file, Vec::new()), Err(PROTECTED));
    let (mut name, mut deletion, mut end) = (Vec::new(), Vec::new(), Vec::new());
    let flags = RenameFlags::REPLACE_IF_EXISTS;
    Rename { flags, root_directory: 0, name: r"d\h".into() }.encode_into(&mut name).unwrap();
    Disposition { delete_pending: true }.encode_into(&mut deletion);
    EndOfFile { end_of_file: 0 }.encode_into(&mut end);
    for (class, wanted) in [
        (FileInfoClass::Rename, name.clone()),
        (FileInfoClass::Link, name),
        (FileInfoClass::Disposition, deletion),
        (FileInfoClass::EndOfFile, end),
    ] {
        assert_eq!(set(client, file, class, &wanted), Err(PROTECTED), "{class:?}");
    }
}

#[test]
fn a_version_takes_no_changes() {
    let (mut served, snapshot) = Served::with_snapshot();
    let client = &mut served.client;
    for (disposition, there, missing) in [
        (CreateDisposition::Overwrite, Err(PROTECTED), Err(NOT_FOUND)),
        (CreateDisposition::OverwriteIf, Err(PROTECTED), Err(PROTECTED)),
        (CreateDisposition::Supersede, Err(PROTECTED), Err(PROTECTED)),
        (CreateDisposition::Create, Err(NtStatus::OBJECT_NAME_COLLISION), Err(PROTECTED)),
        (CreateDisposition::OpenIf, Ok(CreateAction::Opened), Err(PROTECTED)),
    ] {
        let opening = Opening { disposition, ..then(&snapshot) };
        assert_eq!(opening.try_out(client, r"d\f"), there, "{disposition:?}");
        assert_eq!(opening.try_out(client, r"d\g"), missing, "{disposition:?}");
    }
    let deleting = Opening {
        access: AccessMask::MAXIMUM_ALLOWED,
        options: CreateOptions::DELETE_ON_CLOSE,
        ..then(&snapshot)
    };
    assert_eq!(deleting.try_out(client, r"d\f"), Err(PROTECTED));
    // Whoever might change the file but for the snapshot opens it.
    let old = Opening { access: ALL, ..then(&snapshot) }.send(client, r"d\f").unwrap().id;
    refuses_changes(client, old);
    client.close(old).unwrap();
    let access = AccessMask::MAXIMUM_ALLOWED;
    let mut contexts = then(&snapshot).contexts;
    contexts.push(RequestContext::QueryMaximalAccess { timestamp: None });
    let old = Opening { access, contexts, ..Opening::default() }.send(client, r"d\f").unwrap();
    let (_, maximal) = old.maximal_access.unwrap();
    assert!(maximal.contains(READ) && !maximal.intersects(ALL.difference(READ)), "{maximal:?}");
    assert_eq!(client.write(old.id, 0, b"x"), Err(PROTECTED));
    client.close(old.id).unwrap();
    assert_eq!(then(&snapshot).try_out(client, r"d\f"), Ok(CreateAction::Opened), "it is still there");
}

#[test]
fn a_version_and_the_file_are_apart() {
    let (mut served, snapshot) = Served::with_snapshot();
    let client = &mut served.client;
    let contexts = |more: Vec<_>| [more, vec![RequestContext::QueryOnDiskId]].concat();
    let opening = Opening { contexts: contexts(Vec::new()), ..Opening::default() };
    let live = opening.send(client, r"d\f").unwrap();
    let opening = then(&snapshot);
    let opening = Opening { contexts: contexts(opening.contexts), ..opening };
    let old = opening.send(client, r"d\f").unwrap();
    let ((live_number, live_volume), (number, volume)) = (live.on_disk_id.unwrap(), old.on_disk_id.unwrap());
    assert_eq!(live_number, number);
    assert_ne!(live_volume, volume, "or clients take them for one file");
    let serial = |client: &mut Client, file| {
        let class = FsInfoClass::Volume.into();
        let query = Query { info_type: InfoType::FileSystem, class, additional: 0, limit: 65536 };
        Volume::decode(&query.get(client, file).unwrap()).unwrap().volume_serial_number
    };
    assert_eq!(u64::from(serial(client, old.id)), volume);
    assert_eq!(u64::from(serial(client, live.id)), live_volume);
    // Neither reserves anything of the other.
    client.close(live.id).unwrap();
    let alone = Opening { sharing: smb_wire::create::ShareAccess::empty(), ..Opening::default() };
    let alone = alone.send(client, r"d\f").unwrap().id;
    let beside = Opening { sharing: smb_wire::create::ShareAccess::empty(), ..then(&snapshot) };
    client.close(old.id).unwrap();
    let beside = beside.send(client, r"d\f").unwrap().id;
    assert_eq!(then(&snapshot).try_out(client, r"d\f"), Err(NtStatus::SHARING_VIOLATION), "it is open so");
    client.close(beside).unwrap();
    client.close(alone).unwrap();
    delete(client, r"d\f").unwrap();
    assert_eq!(
        then(&snapshot).try_out(client, r"d\f"),
        Ok(CreateAction::Opened),
        "what was deleted is there"
    );
}

#[test]
fn nothing_is_kept_for_a_version() {
    let (mut served, snapshot) = Served::with_snapshot();
    let contexts = |more: Vec<RequestContext<'static>>| [then(&snapshot).contexts, more].concat();
    for (oplock, more) in [
        (OplockLevel::Batch, vec![request_v2(Guid([7; 16]), 0, false)]),
        (OplockLevel::Batch, vec![RequestContext::DurableHandleRequest]),
        (OplockLevel::Lease, vec![lease([9; 16], read_handle()), request_v2(Guid([8; 16]), 0, false)]),
        (OplockLevel::Exclusive, Vec::new()),
    ] {
        let mut asking = Asking::new(oplock, contexts(more));
        asking.opening.access = READ;
        let got = asking.send(&mut served.client, r"d\f").unwrap();
        assert_eq!(
            (got.oplock, got.lease, got.durable, got.durable_v2),
            (OplockLevel::None, None, false, None)
        );
        served.client.close(got.id).unwrap();
    }
    let file = then(&snapshot).send(&mut served.client, r"d\f").unwrap().id;
    let asked = ioctl(&mut served.client, Fsctl::LmrRequestResiliency, file, &[0xE8, 3, 0, 0, 0, 0, 0, 0], 0);
    assert_eq!(asked.status(), NtStatus::NOT_SUPPORTED);
    // The lease key is still free for the file.
    let got = Asking::new(OplockLevel::Lease, vec![lease([9; 16], read_handle())]);
    assert!(got.send(&mut served.client, r"d\f").unwrap().lease.is_some());
}

#[test]
fn rights_of_now_and_of_then_both_count() {
    let mut served = Served::start();
    let mode = |served: &Served, name: &str, mode| {
        let name = storage::Name::new(name.as_bytes()).unwrap();
        let node = served.store.root().lookup(name, Wait::May(MAY)).unwrap();
        let mode = SetAttributes { mode: Some(mode), ..SetAttributes::default() };
        node.set_attributes(&mode, MAY).unwrap();
    };
    make_file(&mut served.client, "open", b"");
    make_file(&mut served.client, "closed", b"");
    mode(&served, "open", 0o644);
    mode(&served, "closed", 0o600);
    make_file(&mut served.client, "denied", b"old");
    let denied = Opening { access: ALL, ..Opening::default() }.send(&mut served.client, "denied").unwrap().id;
    set_dacl(&mut served.client, denied, Vec::new()).unwrap();
    served.client.close(denied).unwrap();
    let snapshot = served.take();
    mode(&served, "open", 0o600);
    mode(&served, "closed", 0o644);
    let mut bob = served.server.connect();
    bob.negotiate(&[Dialect::Smb311]);
    bob.log_in(OTHER_USER, PASSWORD).unwrap();
    bob.tree_connect(SHARE).unwrap();
    let old = Opening { access: AccessMask::READ_DATA, ..then(&snapshot) };
    assert_eq!(old.try_out(&mut bob, "open"), Ok(CreateAction::Opened), "the list of then");
    assert_eq!(old.try_out(&mut bob, "closed"), Err(NtStatus::ACCESS_DENIED));
    let whatever = Opening { access: AccessMask::MAXIMUM_ALLOWED, ..then(&snapshot) };
    let live = Opening { access: AccessMask::MAXIMUM_ALLOWED, ..Opening::default() };
    assert_eq!(whatever.try_out(&mut bob, "denied"), live.try_out(&mut bob, "denied"));
    // The list of the share's users is that of now.
    let rights = vec![Right { who: USER.parse().unwrap(), role: Role::Admin }];
    served.server.share.set_rules(Rules { rights, ..Rules::default() });
    assert!(old.try_out(&mut bob, "open").is_err());
}

#[test]
fn a_version_is_copied_back_on_the_server() {
    let (mut served, snapshot) = Served::with_snapshot();
    let client = &mut served.client;
    let old = then(&snapshot).send(client, r"d\f").unwrap().id;
    let live = Opening::default().send(client, r"d\f").unwrap().id;
    let key = output(&ioctl(client, Fsctl::SrvRequestResumeKey, old, &[], 32));
    let source_key = ResumeKey::decode(&key).unwrap().resume_key;
    let mut copy = |target, length| {
        let chunks = vec![Chunk { source_offset: 0, target_offset: 0, length }];
        let mut input = Vec::new();
        Copychunk { source_key, chunks }.encode_into(&mut input).unwrap();
        let reply = ioctl(client, Fsctl::SrvCopychunk, target, &input, 12);
        (reply.status(), reply)
    };
    let (status, reply) = copy(live, 3);
    assert_eq!(status, NtStatus::SUCCESS);
    assert_eq!(CopychunkResponse::decode(&output(&reply)).unwrap().total_bytes_written, 3);
    assert_eq!(copy(live, 4).0, NtStatus::INVALID_VIEW_SIZE);
    assert_eq!(copy(old, 3).0, NtStatus::ACCESS_DENIED, "nothing is copied into a version");
    assert_eq!(client.read(live, 0, 9).unwrap(), b"old");
}

#[test]
fn a_version_that_the_server_removes_is_gone_at_once() {
    let (mut served, snapshot) = Served::with_snapshot();
    assert_eq!(served.versions(r"d\f"), [token(&snapshot)]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let remove = served.server.share.with_snapshots(move |snapshots, may| snapshots.remove(snapshot.id, may));
    runtime.block_on(remove).unwrap().unwrap();
    assert_eq!(served.versions(r"d\f"), [""; 0]);
    let opened = at(FileTime::from_unix(snapshot.taken.secs, 0)).try_out(&mut served.client, r"d\f");
    assert_eq!(opened, Err(NOT_FOUND));
}

#[test]
fn a_version_that_others_remove_is_gone() {
    let (mut served, snapshot) = Served::with_snapshot();
    let file = then(&snapshot).send(&mut served.client, r"d\f").unwrap().id;
    served.store.snapshots().unwrap().remove(snapshot.id, MAY).unwrap();
    let next = served.take();
    assert_eq!(served.versions(r"d\f"), [token(&next)]);
    // In memory, the next one has the same second.
    if next.taken != snapshot.taken {
        assert_eq!(then(&snapshot).try_out(&mut served.client, r"d\f"), Err(NOT_FOUND));
    }
    let read = served.client.read(file, 0, 9);
    assert!(read == Ok(b"old".to_vec()) || read == Err(NOT_FOUND), "{read:?}");
    served.client.close(file).unwrap();
    assert!(served.client.is_alive());
}
