//! What an administrator is told of open files, and what the administrator ends.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use anabranch_nfs_server::OpenFile;
use nfs_wire::v4::compound::{ArgOp, ResOp};
use nfs_wire::v4::lock::{self, LockType, Locker};
use nfs_wire::v4::open::{Delegation, How, ShareAccess, ShareDeny, Want};
use nfs_wire::v4::status::Status;
use nfs_wire::v4::test_stateid;
use nfs_wire::v4::types::{OwnerId, StateOwner, Stateid};
use share::{ByteRange, LockKind};

use crate::client::{V4Client, put};
use crate::opens::{runtime, started};
use crate::server::TestServer;

const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

fn locked(client: &mut V4Client, file: &[u8], open_stateid: Stateid) -> Stateid {
    let owner = StateOwner { client_id: client.client_id, owner: OwnerId(b"locker") };
    let locker = Locker::New { open_seqid: 0, open_stateid, lock_seqid: 0, owner };
    let lock = lock::Args { lock_type: LockType::Write, reclaim: false, offset: 5, length: 10, locker };
    let reply = client.ok(&[put(file), ArgOp::Lock(lock)]);
    let ResOp::Lock(Ok(ok)) = reply.last() else { panic!("{reply:?}") };
    ok.lock_stateid
}

/// The test has closed the connection over which it mounted; a busy server learns of that later.
fn wait_for_one_connection(server: &TestServer) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while server.server.connections().iter().filter(|report| report.client.ip() == HERE).count() > 1 {
        assert!(Instant::now() < deadline, "{:?}", server.server.connections());
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn tested(client: &mut V4Client, stateids: &[Stateid]) -> Vec<Result<(), Status>> {
    let reply = client.ok(&[ArgOp::TestStateid(test_stateid::Args { stateids: stateids.to_vec() })]);
    let ResOp::TestStateid(Ok(ok)) = reply.last() else { panic!("{reply:?}") };
    ok.statuses
}

fn close(server: &TestServer, file: &OpenFile) -> bool {
    runtime().block_on(server.server.close_file(file.share.id(), file.open.key()))
}

#[test]
fn an_open_file_is_reported_with_its_locks_and_closed_by_command() {
    let (server, mut client, root) = started();
    let (kept, _) = client.open(&root, "kept");
    let (stateid, file) = client.open(&root, "file");
    let lock = locked(&mut client, &file, stateid);
    let files = server.server.open_files();
    assert_eq!(files.len(), 2, "{files:?}");
    let of = |name: &[u8]| files.iter().find(|file| file.open.node().path().unwrap() == name).unwrap();
    let open = of(b"file");
    assert_eq!((open.address, open.is_connected, open.uid), (HERE, true, 0));
    assert!(!open.is_delegation && of(b"kept").locks().is_empty());
    let locks: Vec<_> = open.locks().iter().map(|lock| (lock.range, lock.kind)).collect();
    assert_eq!(locks, [(ByteRange::new(5, 10).unwrap(), LockKind::Exclusive)]);

    assert!(close(&server, open) && !close(&server, open));
    let revoked = Err(Status::AdminRevoked);
    assert_eq!(tested(&mut client, &[stateid, lock, kept]), [revoked, revoked, Ok(())]);
    assert_eq!(server.server.open_files().len(), 1);
    assert!(server.data.locks(open.open.node().id()).is_empty());
}

#[test]
fn a_delegation_is_reported_and_revoked_by_command() {
    let (server, mut client, root) = started();
    let (made, file) = client.open(&root, "file");
    client.close(&file, made);
    let modes = (ShareAccess::READ.with_want(Want::Read), ShareDeny::NONE);
    let args = client.open_args(b"owner", "file", modes, How::NoCreate);
    let reply = client.ok(&[put(&root), ArgOp::Open(args)]);
    let Delegation::Read(delegation) = reply.opened().delegation else { panic!("{reply:?}") };
    client.close(&file, reply.opened().stateid);
    let files = server.server.open_files();
    let [file] = files.as_slice() else { panic!("one delegation: {files:?}") };
    assert!(file.is_delegation && close(&server, file));
    assert_eq!(tested(&mut client, &[delegation.stateid]), [Err(Status::AdminRevoked)]);
    assert!(server.server.open_files().is_empty());
}

#[test]
fn a_client_that_is_disconnected_loses_what_it_had_and_comes_back() {
    let (server, mut client, root) = started();
    client.open(&root, "file");
    let mut other = V4Client::start_at([127, 0, 0, 2].into(), server.address, "other");
    let (kept, kept_file) = other.open(&root, "kept");
    assert_eq!(runtime().block_on(server.server.disconnect([127, 0, 0, 9].into())), (0, 0));
    wait_for_one_connection(&server);
    assert_eq!(runtime().block_on(server.server.disconnect(HERE)), (1, 1));
    let files = server.server.open_files();
    assert!(files.len() == 1 && files[0].open.node().path().unwrap() == b"kept", "{files:?}");
    other.write(&kept_file, kept, 0, b"goes on");
    let mut again = V4Client::start(server.address, "one");
    let (stateid, file) = again.open(&root, "file");
    again.write(&file, stateid, 0, b"anew");
}
