//! LOCK, LOCKT, LOCKU, and who waits for a lock; against locks of SMB clients too.

use nfs_wire::v4::callback;
use nfs_wire::v4::compound::{ArgOp, ResOp};
use nfs_wire::v4::lock::{self, Failure, LockType, Locker};
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::{OwnerId, StateOwner, Stateid};
use nfs_wire::v4::{free_stateid, lockt, locku};
use share::{Access, ByteRange, LockKind, LockWait, Sharing};

use crate::client::{V4Client, put};
use crate::opens::{runtime, smb_open, started};

/// The first lock of an owner under an open.
fn first<'a>(client: &V4Client, open_stateid: Stateid, owner: &'a [u8], lock_type: LockType) -> ArgOp<'a> {
    let owner = StateOwner { client_id: client.client_id, owner: OwnerId(owner) };
    let locker = Locker::New { open_seqid: 0, open_stateid, lock_seqid: 0, owner };
    ArgOp::Lock(lock::Args { lock_type, reclaim: false, offset: 0, length: 10, locker })
}

fn further(lock_stateid: Stateid, lock_type: LockType, offset: u64, length: u64) -> ArgOp<'static> {
    let locker = Locker::Existing { lock_stateid, lock_seqid: 0 };
    ArgOp::Lock(lock::Args { lock_type, reclaim: false, offset, length, locker })
}

fn unlock(lock_stateid: Stateid) -> ArgOp<'static> {
    let (offset, length) = (0, u64::MAX);
    ArgOp::LockU(locku::Args { lock_type: LockType::Read, seqid: 0, lock_stateid, offset, length })
}

fn test<'a>(client: &V4Client, owner: &'a [u8]) -> ArgOp<'a> {
    let owner = StateOwner { client_id: client.client_id, owner: OwnerId(owner) };
    ArgOp::LockT(lockt::Args { lock_type: LockType::Write, offset: 5, length: 1, owner })
}

fn lock(client: &mut V4Client, file: &[u8], operation: ArgOp<'_>) -> Stateid {
    let reply = client.ok(&[put(file), operation]);
    let ResOp::Lock(Ok(ok)) = reply.last() else { panic!("{reply:?}") };
    ok.lock_stateid
}

#[test]
fn locks_are_granted_told_and_given_up() {
    let (server, mut client, root) = started();
    let mut other = V4Client::start(server.address, "two");
    let (open, file) = client.open(&root, "file");
    let (open_of_other, _) = other.open(&root, "file");
    let op = first(&client, open, b"l", LockType::Write);
    let held = lock(&mut client, &file, op);
    assert_eq!(held.seqid, 1);
    let refused = first(&other, open_of_other, b"m", LockType::Read);
    let reply = other.compound(&[put(&file), refused.clone()]);
    let ResOp::Lock(Err(Failure::Denied(denied))) = reply.last() else { panic!("{reply:?}") };
    assert_eq!((denied.offset, denied.length, denied.lock_type), (0, 10, LockType::Write));
    assert_eq!((denied.owner.client_id, denied.owner.owner), (client.client_id, OwnerId(b"l")));
    let asked = test(&other, b"m");
    let reply = other.compound(&[put(&file), asked]);
    assert!(matches!(reply.last(), ResOp::LockT(Err(Failure::Denied(_)))), "{reply:?}");
    let own = test(&client, b"l");
    client.ok(&[put(&file), own]);
    let grown = lock(&mut client, &file, further(held, LockType::Write, 100, u64::MAX));
    assert_eq!((grown.other, grown.seqid), (held.other, 2));
    assert_eq!(client.fails(&[put(&file), unlock(held)]), Status::OldStateId);
    let free = ArgOp::FreeStateid(free_stateid::Args { stateid: grown });
    assert_eq!(client.fails(std::slice::from_ref(&free)), Status::LocksHeld);
    client.ok(&[put(&file), unlock(grown)]);
    client.ok(&[ArgOp::FreeStateid(free_stateid::Args { stateid: Stateid { seqid: 0, ..grown } })]);
    let theirs = lock(&mut other, &file, refused);
    other.close(&file, open_of_other);
    assert_eq!(other.fails(&[put(&file), unlock(theirs)]), Status::BadStateId, "it went with the open");
    let again = first(&client, open, b"l", LockType::Write);
    lock(&mut client, &file, again);
    for (offset, length) in [(0, 0), (2, u64::MAX - 1)] {
        let invalid = further(grown, LockType::Write, offset, length);
        assert_eq!(client.fails(&[put(&file), invalid]), Status::Inval);
    }
}

#[test]
fn who_waits_for_a_lock_is_told() {
    let (server, mut client, root) = started();
    let mut other = V4Client::start(server.address, "two");
    let (open, file) = client.open(&root, "file");
    let (open_of_other, _) = other.open(&root, "file");
    let op = first(&client, open, b"l", LockType::Write);
    let held = lock(&mut client, &file, op);
    let waits = first(&other, open_of_other, b"waiter", LockType::WriteWait);
    assert_eq!(other.compound(&[put(&file), waits.clone()]).status, Err(Status::Denied));
    client.ok(&[put(&file), unlock(held)]);
    let told = other.callback();
    let operations = told.operations();
    let callback::ArgOp::NotifyLock(args) = &operations[1] else { panic!("{operations:?}") };
    assert_eq!((args.file.0, args.lock_owner.owner), (&*file, OwnerId(b"waiter")));
    lock(&mut other, &file, waits);
}

#[test]
fn locks_of_smb_clients_and_of_nfs_clients_are_one() {
    let (server, mut client, root) = started();
    let (open, file) = client.open(&root, "file");
    client.write(&file, open, 0, b"data");
    let smb = smb_open(&server, Access::READ_DATA | Access::WRITE_DATA, Sharing::all()).unwrap();
    let range = ByteRange::new(0, 10).unwrap();
    let smb_lock = || runtime().block_on(server.data.lock(&smb, range, LockKind::Exclusive, LockWait::Never));
    let ours = first(&client, open, b"l", LockType::Write);
    let held = lock(&mut client, &file, ours.clone());
    assert_eq!(smb_lock(), Err(share::Error::LockNotGranted));
    client.ok(&[put(&file), unlock(held)]);
    smb_lock().unwrap();
    let reply = client.compound(&[put(&file), ours]);
    let ResOp::Lock(Err(Failure::Denied(denied))) = reply.last() else { panic!("{reply:?}") };
    assert_eq!(denied.owner.client_id.0, 0, "of no NFS client");
    // It keeps NFS clients from reading and writing too: it is mandatory.
    for stateid in [open, Stateid::ANONYMOUS] {
        let read = ArgOp::Read(nfs_wire::v4::read::Args { stateid, offset: 0, count: 1 });
        assert_eq!(client.fails(&[put(&file), read]), Status::Locked);
    }
    server.data.unlock(&smb, range).unwrap();
    assert_eq!(client.read(&file, open, 0, 4), b"data");
}
