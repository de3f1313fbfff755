//! Delegations: given with an OPEN, recalled for whoever needs the file, returned, and revoked.

use std::sync::Arc;
use std::time::Duration;

use nfs_proto::export::Squash;

use nfs_wire::v4::attr::Attributes;
use nfs_wire::v4::callback;
use nfs_wire::v4::compound::{ArgOp, ResOp};
use nfs_wire::v4::open::{self, Claim, CreateHow, Delegation, How, ShareAccess, ShareDeny, Want, WhyNone};
use nfs_wire::v4::sequence::StatusFlags;
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::Stateid;
use nfs_wire::v4::{delegreturn, free_stateid, read, test_stateid};
use share::{Access, Settings, Sharing};

use crate::client::{CallbackAnswer, V4Client, put};
use crate::opens::{smb_open, started};
use crate::server::{TestServer, export};

/// What came with an OPEN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Came {
    Read(Stateid),
    Write(Stateid),
    Nothing(Option<WhyNone>),
}

impl Came {
    fn read(self) -> Stateid {
        let Self::Read(stateid) = self else { panic!("{self:?}") };
        stateid
    }
}

/// Opens the file and wants a delegation of it: the open's stateid, and what came with it.
fn open(client: &mut V4Client, root: &[u8], access: ShareAccess, want: Want) -> (Stateid, Came) {
    let how = How::Create(CreateHow::Unchecked(Attributes::EMPTY));
    let args = client.open_args(b"owner", "file", (access.with_want(want), ShareDeny::NONE), how);
    let reply = client.patiently(&[put(root), ArgOp::Open(args)]);
    assert_eq!(reply.status, Ok(()), "{reply:?}");
    let opened = reply.opened();
    let came = match opened.delegation {
        Delegation::Read(delegation) => Came::Read(delegation.stateid),
        Delegation::Write(delegation) => Came::Write(delegation.stateid),
        Delegation::None => Came::Nothing(None),
        Delegation::NoneExt(why) => Came::Nothing(Some(why)),
    };
    (opened.stateid, came)
}

/// OPEN for somebody who wants no delegation.
fn quietly<'a>(client: &V4Client, root: &'a [u8], access: ShareAccess) -> [ArgOp<'a>; 2] {
    let modes = (access.with_want(Want::None), ShareDeny::NONE);
    [put(root), ArgOp::Open(client.open_args(b"quiet", "file", modes, How::NoCreate))]
}

fn give_back(file: &[u8], stateid: Stateid) -> [ArgOp<'_>; 2] {
    [put(file), ArgOp::DelegReturn(delegreturn::Args { stateid })]
}

/// A client with a read delegation of a file, which it has closed: the file, and the delegation.
fn delegated(client: &mut V4Client, root: &[u8]) -> (Vec<u8>, Stateid) {
    let (stateid, file) = client.open(root, "file");
    client.close(&file, stateid);
    let (stateid, came) = open(client, root, ShareAccess::READ, Want::NoPreference);
    client.close(&file, stateid);
    (file, came.read())
}

fn recalled(client: &mut V4Client, file: &[u8]) -> Stateid {
    let told = client.callback();
    let operations = told.operations();
    let callback::ArgOp::Recall(args) = &operations[1] else { panic!("{operations:?}") };
    assert_eq!(args.file.0, file);
    args.stateid
}

#[test]
fn readers_have_delegations_side_by_side_and_a_writer_recalls_them() {
    let (server, mut client, root) = started();
    let mut other = V4Client::start(server.address, "two");
    let (file, stateid) = delegated(&mut client, &root);
    let of_other = open(&mut other, &root, ShareAccess::READ, Want::Read).1.read();
    assert_eq!(client.read(&file, stateid, 0, 1), b"");
    let writes = quietly(&other, &root, ShareAccess::BOTH);
    assert_eq!(other.fails(&writes), Status::Delay, "the other client's, not its own");
    let told = recalled(&mut client, &file);
    assert_eq!((told.other, told.seqid), (stateid.other, 0));
    // What the client has opened by itself it opens at the server before it returns the delegation.
    let modes = (ShareAccess::READ.with_want(Want::None), ShareDeny::NONE);
    let own = client.open_args(b"own", "", modes, How::NoCreate);
    let own = open::Args { claim: Claim::DelegCurFh(stateid), ..own };
    client.ok(&[put(&file), ArgOp::Open(own)]);
    client.ok(&give_back(&file, told));
    assert_eq!(client.fails(&give_back(&file, told)), Status::BadStateId);
    other.ok(&writes);
    assert!(other.callbacks.is_empty());
    other.ok(&give_back(&file, of_other));
}

#[test]
fn who_says_what_it_wants_is_told_why_it_does_not_get_it() {
    let (server, mut client, root) = started();
    let mut other = V4Client::start(server.address, "two");
    let both = ShareAccess::BOTH;
    let why = |why| Came::Nothing(Some(why));
    assert_eq!(open(&mut client, &root, both, Want::None).1, why(WhyNone::NotWanted));
    assert_eq!(open(&mut client, &root, both, Want::Cancel).1, why(WhyNone::Cancelled));
    let contention = why(WhyNone::Contention { will_push: false });
    assert_eq!(open(&mut other, &root, ShareAccess::READ, Want::Any).1, contention);
    assert_eq!(open(&mut client, &root, both, Want::NoPreference).1, Came::Nothing(None));
}

#[test]
fn a_write_delegation_goes_for_any_other_reader_and_for_smb() {
    let (server, mut client, root) = started();
    let mut other = V4Client::start(server.address, "two");
    let (_, file) = client.open(&root, "file");
    let (_, came) = open(&mut client, &root, ShareAccess::BOTH, Want::Write);
    let Came::Write(stateid) = came else { panic!("{came:?}") };
    client.write(&file, stateid, 0, b"data");
    let reads = quietly(&other, &root, ShareAccess::READ);
    assert_eq!(other.fails(&reads), Status::Delay);
    assert_eq!(recalled(&mut client, &file).other, stateid.other);
    client.ok(&give_back(&file, stateid));
    other.ok(&reads);
}

#[test]
fn smb_clients_wait_for_a_delegation_and_are_in_the_way_of_one() {
    let (server, mut client, root) = started();
    let (file, stateid) = delegated(&mut client, &root);
    std::thread::scope(|scope| {
        let smb = scope.spawn(|| smb_open(&server, Access::WRITE_DATA, Sharing::all()));
        assert_eq!(recalled(&mut client, &file).other, stateid.other);
        client.ok(&give_back(&file, stateid));
        smb.join().unwrap().unwrap();
    });
    let contention = Came::Nothing(Some(WhyNone::Contention { will_push: false }));
    assert_eq!(open(&mut client, &root, ShareAccess::READ, Want::Read).1, contention);
}

#[test]
fn a_client_of_version_3_that_writes_recalls_a_delegation() {
    let (server, mut client, root) = started();
    let (file, stateid) = delegated(&mut client, &root);
    let handle = nfs_wire::v3::types::FileHandle::new(&file).unwrap();
    let mut old = server.client();
    assert!(old.write(handle, 0, b"x").is_err(), "NFS3ERR_JUKEBOX");
    assert_eq!(recalled(&mut client, &file).other, stateid.other);
    client.ok(&give_back(&file, stateid));
    old.write(handle, 0, b"x").unwrap();
}

#[test]
fn a_delegation_that_is_not_returned_is_revoked() {
    let quick = |settings: &mut Settings| {
        settings.break_timeout = Duration::from_millis(200);
        settings.nfs_patience = Duration::from_millis(20);
    };
    let server = TestServer::with(Arc::default(), export(Squash::None), 1, quick, |_| {});
    let root = server.mounted().1.as_bytes().to_vec();
    let mut client = V4Client::start(server.address, "one");
    let mut other = V4Client::start(server.address, "two");
    let (file, stateid) = delegated(&mut client, &root);
    client.callback_answer = CallbackAnswer::Never;
    let writes = quietly(&other, &root, ShareAccess::WRITE);
    assert_eq!(other.patiently(&writes).status, Ok(()), "its time is over");
    let revoked = |client: &mut V4Client| {
        let flags = client.ok(&[ArgOp::PutRootFh]).sequence().status_flags;
        flags.contains(StatusFlags::RECALLABLE_STATE_REVOKED)
    };
    assert!(revoked(&mut client));
    let read = ArgOp::Read(read::Args { stateid, offset: 0, count: 1 });
    assert_eq!(client.fails(&[put(&file), read]), Status::DelegRevoked);
    let test = ArgOp::TestStateid(test_stateid::Args { stateids: vec![stateid] });
    let reply = client.ok(&[test]);
    let ResOp::TestStateid(Ok(ok)) = reply.last() else { panic!("{reply:?}") };
    assert_eq!(ok.statuses, [Err(Status::DelegRevoked)]);
    client.ok(&[ArgOp::FreeStateid(free_stateid::Args { stateid })]);
    assert!(!revoked(&mut client));
    let read = ArgOp::Read(read::Args { stateid, offset: 0, count: 1 });
    assert_eq!(client.fails(&[put(&file), read]), Status::BadStateId);
}
