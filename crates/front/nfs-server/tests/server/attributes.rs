//! GETATTR and SETATTR (RFC 1813 3.3.1, 3.3.2).

use nfs_wire::v3::attr::{SetAttributes, SetTime, WccAttributes};
use nfs_wire::v3::status::Status;
use nfs_wire::v3::types::{FileHandle, FileType, Time};
use nfs_wire::v3::{Procedure, getattr, setattr};

use crate::client::{Client, TestServer, with_mode};

fn set(client: &mut Client, object: FileHandle, new_attributes: SetAttributes) -> setattr::Res {
    client.nfs(Procedure::SetAttr, &setattr::Args { object, new_attributes, guard: None })
}

#[test]
fn attributes_tell_the_object() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let mut user = server.client_of(1000, 100, &[]);
    let file = user.make_file(root, "file", 0o4640, b"hello");
    let attributes = client.attributes(file);
    assert_eq!(attributes.file_type, FileType::Regular);
    assert_eq!((attributes.uid, attributes.gid, attributes.links), (1000, 100, 1));
    assert_eq!(attributes.size, 5);
    assert!(attributes.used >= 5);
    assert_ne!(attributes.fileid, client.attributes(root).fileid);
    assert_eq!(attributes.fsid, client.attributes(root).fsid);
}

#[test]
fn a_change_tells_before_and_after() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let file = client.make_file(root, "file", 0o600, b"hello");
    let before = client.attributes(file);
    let wcc = set(&mut client, file, with_mode(0o644)).unwrap().object_wcc;
    assert_eq!(wcc.before, Some(WccAttributes::from(&before)));
    let after = client.attributes(file);
    assert_eq!(wcc.after, Some(after));
    assert_eq!(after.mode, 0o644);
    assert_ne!(after.ctime, before.ctime);
}

#[test]
fn each_attribute_is_set() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let file = client.make_file(root, "file", 0o600, b"hello");
    let time = |seconds| Time { seconds, nanoseconds: 123_456_789 };
    let all = SetAttributes {
        mode: Some(0o100_751), // with a type, as some clients send it
        uid: Some(1000),
        gid: Some(100),
        size: Some(3),
        atime: SetTime::ClientTime(time(1_000_000_000)),
        mtime: SetTime::ClientTime(time(4_000_000_000)),
    };
    set(&mut client, file, all).unwrap();
    let now = client.attributes(file);
    assert_eq!((now.mode, now.uid, now.gid, now.size), (0o751, 1000, 100, 3));
    assert_eq!((now.atime, now.mtime), (time(1_000_000_000), time(4_000_000_000)));

    let touch = SetAttributes { mtime: SetTime::ServerTime, ..SetAttributes::default() };
    set(&mut client, file, touch).unwrap();
    let touched = client.attributes(file);
    assert_eq!(touched.mtime, touched.ctime);
    assert_eq!(touched.atime, now.atime);
}

#[test]
fn a_guard_lets_only_the_expected_state_be_changed() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let object = client.make_file(root, "file", 0o600, b"");
    let ctime = client.attributes(object).ctime;
    let mut guarded = |guard| -> setattr::Res {
        let args = setattr::Args { object, new_attributes: with_mode(0o640), guard: Some(guard) };
        client.nfs(Procedure::SetAttr, &args)
    };
    let wrong = Time { seconds: ctime.seconds, nanoseconds: ctime.nanoseconds ^ 1 };
    assert_eq!(guarded(wrong).unwrap_err().status, Status::NotSync);
    guarded(ctime).unwrap();
    assert_eq!(guarded(ctime).unwrap_err().status, Status::NotSync, "the first change has moved it");
    let none = Time { seconds: 1, nanoseconds: 1_000_000_000 };
    assert_eq!(guarded(none).unwrap_err().status, Status::Inval);
}

#[test]
fn changes_that_are_refused() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let file = client.make_file(root, "file", 0o666, b"hello");
    let size = |size| SetAttributes { size: Some(size), ..SetAttributes::default() };
    let failure = set(&mut client, file, size(u64::MAX)).unwrap_err();
    assert_eq!(failure.status, Status::FBig);
    assert_eq!(failure.body.after, Some(client.attributes(file)), "a failure tells the attributes too");
    assert_eq!(set(&mut client, root, size(0)).unwrap_err().status, Status::Inval);
    let time = SetTime::ClientTime(Time { seconds: 0, nanoseconds: 1_000_000_000 });
    let bad_time = SetAttributes { atime: time, ..SetAttributes::default() };
    assert_eq!(set(&mut client, file, bad_time).unwrap_err().status, Status::Inval);

    let mut user = server.client_of(1000, 100, &[]);
    assert_eq!(set(&mut user, file, with_mode(0o777)).unwrap_err().status, Status::Perm);
    let owner = SetAttributes { uid: Some(1000), ..SetAttributes::default() };
    assert_eq!(set(&mut user, file, owner).unwrap_err().status, Status::Perm);
    set(&mut user, file, size(2)).unwrap();
    set(&mut client, file, with_mode(0o600)).unwrap();
    assert_eq!(set(&mut user, file, size(1)).unwrap_err().status, Status::Acces);
}

#[test]
fn handles_that_this_server_did_not_make_are_refused() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let mut status = |object| {
        let result: getattr::Res = client.nfs(Procedure::GetAttr, &getattr::Args { object });
        result.unwrap_err().status
    };
    let mut forged = root.as_bytes().to_vec();
    *forged.last_mut().unwrap() ^= 1;
    assert_eq!(status(FileHandle::new(&forged).unwrap()), Status::BadHandle);
    assert_eq!(status(FileHandle::new(&[]).unwrap()), Status::BadHandle);
    assert_eq!(status(FileHandle::new(&[0xff; 64]).unwrap()), Status::BadHandle);
}
