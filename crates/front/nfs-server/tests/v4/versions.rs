//! The folder `.snapshot`: what of a directory is in snapshots.

use std::time::Duration;

use nfs_wire::v4::attr::{Attribute, AttributeSet, Value};
use nfs_wire::v4::compound::{ArgOp, ResOp};
use nfs_wire::v4::open::{Delegation, How, ShareAccess, ShareDeny, Want};
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::{Name, Stateid, Verifier};
use nfs_wire::v4::{free_stateid, getattr, lookup, readdir, remove};
use share::Terms;
use storage::conformance::MAY;
use storage::{Snapshot, Storage};

use crate::client::{V4Client, put};
use crate::server::TestServer;

const FOLDER: &str = ".snapshot";

fn take(server: &TestServer) -> Snapshot {
    let snapshot = server.store.snapshots().unwrap().take("test", MAY).unwrap();
    // Until the server looks again.
    std::thread::sleep(Duration::from_millis(1100));
    snapshot
}

/// A server whose share says `old` in its file in the snapshot, and `new` now.
fn start() -> (TestServer, V4Client, Snapshot) {
    let server = TestServer::start();
    server.data.set_terms(Terms::SNAPSHOT_FOLDER);
    let mut client = V4Client::start_minor(server.address, "one", 2);
    let root = server.mounted().1.as_bytes().to_vec();
    let (stateid, file) = client.open(&root, "file");
    client.write(&file, stateid, 0, b"old");
    let snapshot = take(&server);
    client.write(&file, stateid, 0, b"new");
    client.close(&file, stateid);
    (server, client, snapshot)
}

fn told(client: &mut V4Client, object: &[u8], attribute: Attribute) -> String {
    let wanted = getattr::Args { request: AttributeSet::of(&[attribute]) };
    let reply = client.ok(&[put(object), ArgOp::GetAttr(wanted)]);
    format!("{:?}", reply.attribute(attribute).unwrap())
}

fn names(client: &mut V4Client, dir: &[u8]) -> Vec<String> {
    let request = AttributeSet::of(&[Attribute::FileId, Attribute::Fsid, Attribute::RdattrError]);
    let args = |cookie| readdir::Args {
        cookie,
        cookie_verifier: Verifier([0; 8]),
        dir_count: 0,
        max_count: 4096,
        request,
    };
    let reply = client.ok(&[put(dir), ArgOp::ReadDir(args(0))]);
    let ResOp::ReadDir(Ok(ok)) = reply.last() else { panic!("{reply:?}") };
    ok.listing.entries.iter().map(|entry| String::from_utf8(entry.name.0.to_vec()).unwrap()).collect()
}

#[test]
fn a_directory_shows_what_was_in_it() {
    let (server, mut client, snapshot) = start();
    let root = client.path("/data");
    let folder = client.path("/data/.snapshot");
    assert_eq!(names(&mut client, &root), ["file"]);
    assert_eq!(names(&mut client, &folder), [snapshot.name.as_str()]);
    server.data.set_terms(Terms::SNAPSHOT_FOLDER | Terms::SNAPSHOT_FOLDER_SHOWN);
    assert_eq!(names(&mut client, &root), [FOLDER, "file"]);
    let then = client.path(&format!("/data/.snapshot/{}", snapshot.name));
    assert_eq!(names(&mut client, &then), ["file"]);
    let old = client.path(&format!("/data/.snapshot/{}/file", snapshot.name));
    assert_eq!(client.read(&old, Stateid::ANONYMOUS, 0, 10), b"old");

    let file = client.path("/data/file");
    assert_eq!(told(&mut client, &old, Attribute::FileId), told(&mut client, &file, Attribute::FileId));
    assert_ne!(told(&mut client, &old, Attribute::Fsid), told(&mut client, &file, Attribute::Fsid));
    assert_eq!(told(&mut client, &folder, Attribute::Fsid), told(&mut client, &root, Attribute::Fsid));
    assert_ne!(told(&mut client, &folder, Attribute::FileId), told(&mut client, &root, Attribute::FileId));
    let reply = client.ok(&[put(&folder), ArgOp::LookupP, ArgOp::GetFh]);
    assert_eq!(reply.file_handle(), root);
    let wanted = getattr::Args { request: AttributeSet::of(&[Attribute::FileHandle]) };
    let reply = client.ok(&[put(&folder), ArgOp::GetAttr(wanted)]);
    let Some(Value::FileHandle(handle)) = reply.attribute(Attribute::FileHandle) else { panic!("{reply:?}") };
    assert_eq!(handle.0, folder);
    let missing = ArgOp::Lookup(lookup::Args { name: Name(b"nothing") });
    assert_eq!(client.fails(&[put(&folder), missing]), Status::NoEnt);
}

#[test]
fn a_version_is_opened_and_read_beside_the_file() {
    let (server, mut client, snapshot) = start();
    let root = client.path("/data");
    let then = client.path(&format!("/data/.snapshot/{}", snapshot.name));
    let (old, file) =
        (client.path(&format!("/data/.snapshot/{}/file", snapshot.name)), client.path("/data/file"));
    let mut opened = |dir: &[u8]| {
        let modes = (ShareAccess::READ.with_want(Want::None), ShareDeny::NONE);
        let open = ArgOp::Open(client.open_args(b"reader", "file", modes, How::NoCreate));
        client.ok(&[put(dir), open]).opened().stateid
    };
    let (of_new, of_old) = (opened(&root), opened(&then));
    assert_ne!(of_new.other, of_old.other);
    assert_eq!(client.read(&old, of_old, 0, 10), b"old");
    assert_eq!(client.read(&file, of_new, 0, 10), b"new");
    client.close(&old, of_old);
    let modes = (ShareAccess::BOTH.with_want(Want::None), ShareDeny::NONE);
    let writing = ArgOp::Open(client.open_args(b"writer", "file", modes, How::NoCreate));
    assert_eq!(client.fails(&[put(&then), writing]), Status::RoFs);
    // A name in the folder is a directory.
    let folder = client.path("/data/.snapshot");
    let modes = (ShareAccess::READ.with_want(Want::None), ShareDeny::NONE);
    for (name, status) in [(snapshot.name.as_str(), Status::IsDir), ("file", Status::NoEnt)] {
        let open = ArgOp::Open(client.open_args(b"reader", name, modes, How::NoCreate));
        assert_eq!(client.fails(&[put(&folder), open]), status);
    }
    for dir in [&folder, &then] {
        let removed = ArgOp::Remove(remove::Args { target: Name(b"file") });
        assert_eq!(client.fails(&[put(dir), removed]), Status::RoFs);
    }
    // Held when the snapshot is removed. There is no delegation, which the client would keep.
    let modes = (ShareAccess::READ.with_want(Want::Read), ShareDeny::NONE);
    let open = ArgOp::Open(client.open_args(b"reader", "file", modes, How::NoCreate));
    let reply = client.ok(&[put(&then), open]);
    let held = reply.opened();
    assert!(matches!(held.delegation, Delegation::NoneExt(_)), "{held:?}");
    let held = held.stateid;
    server.store.snapshots().unwrap().remove(snapshot.id, MAY).unwrap();
    std::thread::sleep(Duration::from_millis(1100));
    assert_eq!(client.fails(&[put(&old)]), Status::Stale);
    // The client cannot close the file, so it has lost it.
    let freed = ArgOp::FreeStateid(free_stateid::Args { stateid: held });
    client.ok(&[freed]);
}

#[test]
fn the_folder_is_there_without_sessions_too() {
    let (server, _, snapshot) = start();
    let root = server.mounted().1;
    let mut client = server.client();
    let folder = client.lookup(root, FOLDER).unwrap().object;
    let then = client.lookup(folder, &snapshot.name).unwrap().object;
    // The same handles in every version of the protocol.
    let mut of_4_1 = V4Client::start_minor(server.address, "two", 1);
    assert_eq!(of_4_1.path("/data/.snapshot"), folder.as_bytes());
    assert_eq!(of_4_1.path(&format!("/data/.snapshot/{}", snapshot.name)), then.as_bytes());
}
