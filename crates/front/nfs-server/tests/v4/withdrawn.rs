//! A share that is withdrawn takes along what clients hold in it, and nothing else.

use nfs_wire::v4::compound::{ArgOp, ResOp};
use nfs_wire::v4::lock::{self, LockType, Locker};
use nfs_wire::v4::open::{Delegation, How, ShareAccess, ShareDeny, Want};
use nfs_wire::v4::status::Status;
use nfs_wire::v4::test_stateid;
use nfs_wire::v4::types::{OwnerId, StateOwner};
use share::{Access, Sharing};

use crate::client::put;
use crate::opens::{runtime, smb_open, started};
use crate::server::by_smb;

#[test]
fn opens_locks_and_delegations_end_with_their_share() {
    let (server, mut client, root) = started();
    let other = client.path("/other");
    let (kept, kept_file) = client.open(&other, "kept");
    let (stateid, file) = client.open(&root, "file");
    let owner = StateOwner { client_id: client.client_id, owner: OwnerId(b"locker") };
    let locker = Locker::New { open_seqid: 0, open_stateid: stateid, lock_seqid: 0, owner };
    let lock = lock::Args { lock_type: LockType::Write, reclaim: false, offset: 0, length: 10, locker };
    let reply = client.ok(&[put(&file), ArgOp::Lock(lock)]);
    let ResOp::Lock(Ok(locked)) = reply.last() else { panic!("{reply:?}") };
    let (made, delegated) = client.open(&root, "delegated");
    client.close(&delegated, made);
    let modes = (ShareAccess::READ.with_want(Want::Read), ShareDeny::NONE);
    let read = client.open_args(b"owner", "delegated", modes, How::NoCreate);
    let reply = client.ok(&[put(&root), ArgOp::Open(read)]);
    let Delegation::Read(delegation) = reply.opened().delegation else { panic!("{reply:?}") };
    let alone = || smb_open(&server, Access::WRITE_DATA, Sharing::empty());
    assert_eq!(alone().unwrap_err(), share::Error::SharingViolation);

    let gone = server.table.withdraw(server.data.id()).unwrap();
    server.end_share(&gone);
    let open = alone().expect("nobody else has it open");
    runtime().block_on(gone.close(&by_smb(0, 0), &open)).unwrap();
    assert_eq!(client.fails(&[put(&file)]), Status::Stale);
    let stateids = vec![stateid, locked.lock_stateid, delegation.stateid, kept];
    let reply = client.ok(&[ArgOp::TestStateid(test_stateid::Args { stateids })]);
    let ResOp::TestStateid(Ok(ok)) = reply.last() else { panic!("{reply:?}") };
    let unknown = Err(Status::BadStateId);
    assert_eq!(ok.statuses, [unknown, unknown, unknown, Ok(())]);
    client.write(&kept_file, kept, 0, b"goes on");
    client.close(&kept_file, kept);
    client.leave();
}
