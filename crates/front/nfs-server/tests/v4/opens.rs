//! OPEN, CLOSE, OPEN_DOWNGRADE, READ, WRITE and the stateids that they use.

use acl::{AccessMask, Ace, AceFlags, Acl, Control, Sid};
use nfs_wire::v4::attr::{Attribute, Attributes};
use nfs_wire::v4::compound::{ArgOp, ResOp};
use nfs_wire::v4::open::{Claim, CreateHow, How, ShareAccess, ShareDeny, Want};
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::{Stateid, Verifier};
use nfs_wire::v4::{close, free_stateid, open, open_downgrade, read, test_stateid, write};
use share::{Access, Case, File, OpenRequest, SecurityChange, Sharing};
use storage::Want as AttributesWanted;

use crate::client::{V4Client, put};
use crate::server::{TestServer, by_smb};

const NONE: ShareDeny = ShareDeny::NONE;
const CREATE: How<'static> = How::Create(CreateHow::Unchecked(Attributes::EMPTY));

/// A server, a client of it, and the filehandle of a share's top.
pub(crate) fn started() -> (TestServer, V4Client, Vec<u8>) {
    let server = TestServer::start();
    let client = V4Client::start(server.address, "one");
    let root = server.mounted().1.as_bytes().to_vec();
    (server, client, root)
}

fn quietly(access: ShareAccess) -> ShareAccess {
    access.with_want(Want::None)
}

fn read_at(file: &[u8], stateid: Stateid) -> [ArgOp<'_>; 2] {
    [put(file), ArgOp::Read(read::Args { stateid, offset: 0, count: 100 })]
}

fn write_at(file: &[u8], stateid: Stateid) -> [ArgOp<'_>; 2] {
    let stable = nfs_wire::v4::types::StableHow::Unstable;
    [put(file), ArgOp::Write(write::Args { stateid, offset: 0, stable, data: b"data" })]
}

#[test]
fn a_file_is_made_written_read_and_closed() {
    let (_server, mut client, root) = started();
    let (stateid, file) = client.open(&root, "file");
    assert_eq!(stateid.seqid, 1);
    client.write(&file, stateid, 5, b"hello");
    assert_eq!(client.read(&file, Stateid { seqid: 0, ..stateid }, 0, 100), b"\0\0\0\0\0hello");
    assert_eq!(client.read(&file, Stateid::ANONYMOUS, 6, 3), b"ell");
    assert_eq!(client.read(&file, Stateid::READ_BYPASS, 6, 3), b"ell");
    let commit = ArgOp::Commit(nfs_wire::v4::commit::Args { offset: 0, count: 0 });
    client.ok(&[put(&file), commit]);
    client.close(&file, stateid);
    assert_eq!(client.fails(&read_at(&file, stateid)), Status::BadStateId);
    let again = ArgOp::Close(close::Args { seqid: 0, open_stateid: stateid });
    assert_eq!(client.fails(&[put(&file), again]), Status::BadStateId);
}

#[test]
fn opens_of_an_owner_are_one_and_are_downgraded() {
    let (_server, mut client, root) = started();
    let modes = (quietly(ShareAccess::READ), NONE);
    let first = client.open_args(b"owner", "file", modes, CREATE);
    let reply = client.ok(&[put(&root), ArgOp::Open(first), ArgOp::GetFh]);
    let (stateid, file) = (reply.opened().stateid, reply.file_handle());
    assert_eq!(client.fails(&write_at(&file, stateid)), Status::OpenMode);
    let second = client.open_args(b"owner", "file", (quietly(ShareAccess::BOTH), NONE), How::NoCreate);
    let upgraded = client.ok(&[put(&root), ArgOp::Open(second)]).opened().stateid;
    assert_eq!((upgraded.other, upgraded.seqid), (stateid.other, 2));
    client.ok(&write_at(&file, upgraded));
    assert_eq!(client.fails(&read_at(&file, stateid)), Status::OldStateId);
    let downgrade = |open_stateid, share_access| {
        let share_deny = NONE;
        ArgOp::OpenDowngrade(open_downgrade::Args { open_stateid, seqid: 0, share_access, share_deny })
    };
    let only_write = [put(&file), downgrade(upgraded, ShareAccess::WRITE)];
    assert_eq!(client.fails(&only_write), Status::Inval, "no OPEN was for that");
    let reply = client.ok(&[put(&file), downgrade(upgraded, ShareAccess::READ)]);
    let ResOp::OpenDowngrade(Ok(ok)) = reply.last() else { panic!("{reply:?}") };
    assert_eq!(ok.open_stateid.seqid, 3);
    assert_eq!(client.fails(&write_at(&file, ok.open_stateid)), Status::OpenMode);
    client.close(&file, ok.open_stateid);
}

#[test]
fn the_stateid_of_an_open_is_current_in_its_compound() {
    let (_server, mut client, root) = started();
    let args = client.open_args(b"owner", "file", (quietly(ShareAccess::BOTH), NONE), CREATE);
    let stable = nfs_wire::v4::types::StableHow::Unstable;
    let current = Stateid::CURRENT;
    let write = ArgOp::Write(write::Args { stateid: current, offset: 0, stable, data: b"x" });
    let close = ArgOp::Close(close::Args { seqid: 0, open_stateid: current });
    client.ok(&[put(&root), ArgOp::Open(args), write, close]);
    let read = ArgOp::Read(read::Args { stateid: current, offset: 0, count: 1 });
    assert_eq!(client.fails(&[put(&root), read.clone()]), Status::IsDir);
    let (_, file) = client.open(&root, "file");
    assert_eq!(client.fails(&[put(&file), read]), Status::BadStateId, "there is none");
}

#[test]
fn what_is_denied_is_denied_to_all_whatever_their_protocol() {
    let (server, mut client, root) = started();
    let mut other = V4Client::start(server.address, "two");
    let args = client.open_args(b"owner", "file", (quietly(ShareAccess::BOTH), ShareDeny::WRITE), CREATE);
    let reply = client.ok(&[put(&root), ArgOp::Open(args), ArgOp::GetFh]);
    let (stateid, file) = (reply.opened().stateid, reply.file_handle());
    let open = |client: &V4Client, access| {
        let args = client.open_args(b"other", "file", (quietly(access), NONE), How::NoCreate);
        [put(&root), ArgOp::Open(args)]
    };
    let (of_two, of_one) = (open(&other, ShareAccess::WRITE), open(&client, ShareAccess::WRITE));
    assert_eq!(other.fails(&of_two), Status::ShareDenied);
    assert_eq!(client.fails(&of_one), Status::ShareDenied, "its own client is no exception");
    let anonymous = write_at(&file, Stateid::ANONYMOUS);
    assert_eq!(other.fails(&anonymous), Status::ShareDenied);
    client.ok(&write_at(&file, stateid));
    assert_eq!(other.read(&file, Stateid::ANONYMOUS, 0, 4), b"data");
    let refused = smb_open(&server, Access::WRITE_DATA, Sharing::all());
    assert_eq!(refused.unwrap_err(), share::Error::SharingViolation);
    assert!(smb_open(&server, Access::READ_DATA, Sharing::READ).is_err(), "it would deny what is open");
    let smb = smb_open(&server, Access::READ_DATA, Sharing::READ | Sharing::WRITE).unwrap();
    client.close(&file, stateid);
    // The other way round.
    runtime().block_on(server.data.close(&by_smb(0, 0), &smb)).unwrap();
    let smb = smb_open(&server, Access::READ_DATA, Sharing::READ).unwrap();
    assert_eq!(other.fails(&of_two), Status::ShareDenied);
    assert_eq!(other.fails(&anonymous), Status::ShareDenied);
    runtime().block_on(server.data.close(&by_smb(0, 0), &smb)).unwrap();
    other.ok(&of_two);
}

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
}

/// As an SMB client opens the file.
pub(crate) fn smb_open(
    server: &TestServer,
    access: Access,
    sharing: Sharing,
) -> share::Result<std::sync::Arc<share::Open>> {
    let caller = by_smb(0, 0);
    runtime().block_on(async {
        let root = server.data.root();
        let wanted = AttributesWanted::empty();
        let found = server.data.lookup(&caller, root, b"file", Case::Insensitive, wanted).await?;
        server.data.open(&caller, &found, &OpenRequest::new(access, sharing)).await
    })
}

#[test]
fn files_are_made_in_four_ways() {
    let (_server, mut client, root) = started();
    let modes = (quietly(ShareAccess::BOTH), NONE);
    let (one, two) = (Verifier(*b"verifie1"), Verifier(*b"verifie2"));
    let guarded = How::Create(CreateHow::Guarded(Attributes::EMPTY));
    let exclusive = |verifier| How::Create(CreateHow::ExclusiveWithAttributes(verifier, Attributes::EMPTY));
    let plain = |verifier| How::Create(CreateHow::Exclusive(verifier));
    let mut made = |name: &str, how| {
        let args = client.open_args(b"owner", name, modes, how);
        let reply = client.compound(&[put(&root), ArgOp::Open(args)]);
        reply.status.map(|()| reply.opened().attributes_set)
    };
    assert!(made("guarded", guarded).unwrap().is_empty());
    assert_eq!(made("guarded", guarded), Err(Status::Exist));
    assert!(made("guarded", CREATE).is_ok());
    let used = made("exclusive", exclusive(one)).unwrap();
    assert!(used.contains(Attribute::TimeAccessSet) && used.contains(Attribute::TimeModifySet));
    assert_eq!(made("exclusive", exclusive(one)).unwrap(), used, "the same call again");
    assert_eq!(made("exclusive", exclusive(two)), Err(Status::Exist));
    assert!(made("plain", plain(one)).is_ok() && made("plain", plain(one)).is_ok());
    assert_eq!(made("plain", plain(two)), Err(Status::Exist));
    assert_eq!(made("missing", How::NoCreate), Err(Status::NoEnt));
    assert_eq!(made("", How::NoCreate), Err(Status::Inval));
}

#[test]
fn what_means_nothing_is_invalid() {
    let (_server, mut client, root) = started();
    let (stateid, file) = client.open(&root, "file");
    let args = client.open_args(b"owner", "file", (quietly(ShareAccess::READ), NONE), How::NoCreate);
    let no_access = open::Args { share_access: ShareAccess::empty(), ..args };
    let no_deny = open::Args { share_deny: ShareDeny::from_bits_retain(4), ..args };
    let want = open::Args { share_access: ShareAccess::from_bits_retain(0x601), ..args };
    for args in [no_access, no_deny, want] {
        assert_eq!(client.fails(&[put(&root), ArgOp::Open(args)]), Status::Inval);
    }
    let by_handle = open::Args { claim: Claim::Fh, ..args };
    client.ok(&[put(&file), ArgOp::Open(by_handle)]);
    let made = open::Args { how: CREATE, ..by_handle };
    assert_eq!(client.fails(&[put(&file), ArgOp::Open(made)]), Status::Inval);
    assert_eq!(client.fails(&[put(&root), ArgOp::Open(by_handle)]), Status::IsDir);
    assert_eq!(client.fails(&[put(&file), ArgOp::Open(args)]), Status::NotDir);
    let previous = open::Args { claim: Claim::Previous(open::DelegationType::None), ..args };
    assert_eq!(client.fails(&[put(&file), ArgOp::Open(previous)]), Status::NoGrace);
    let _ = stateid;
}

#[test]
fn stateids_are_tested_and_stolen_ones_are_refused() {
    let (server, mut client, root) = started();
    let mut thief = V4Client::start(server.address, "two");
    let (stateid, file) = client.open(&root, "file");
    assert_eq!(thief.fails(&read_at(&file, stateid)), Status::BadStateId);
    let close = ArgOp::Close(close::Args { seqid: 0, open_stateid: stateid });
    assert_eq!(thief.fails(&[put(&file), close]), Status::BadStateId);
    let ahead = Stateid { seqid: 9, ..stateid };
    let test = ArgOp::TestStateid(test_stateid::Args { stateids: vec![stateid, ahead, Stateid::ANONYMOUS] });
    let reply = client.ok(&[test]);
    let ResOp::TestStateid(Ok(ok)) = reply.last() else { panic!("{reply:?}") };
    assert_eq!(ok.statuses, [Ok(()), Err(Status::BadStateId), Err(Status::BadStateId)]);
    let free = ArgOp::FreeStateid(free_stateid::Args { stateid });
    assert_eq!(client.fails(&[free]), Status::LocksHeld);
    // A client that leaves takes everything along, and may not leave before.
    let client_id = client.client_id;
    let leaving = ArgOp::DestroyClientId(nfs_wire::v4::destroy_clientid::Args { client_id });
    assert_eq!(thief.alone(leaving).status, Err(Status::ClientIdBusy));
}

#[test]
fn a_list_tells_executing_from_reading() {
    let (server, mut client, root) = started();
    let (stateid, file) = client.open(&root, "file");
    client.write(&file, stateid, 0, b"data");
    client.close(&file, stateid);
    let caller = by_smb(0, 0);
    let list = |aces: Vec<Ace>| {
        let dacl = Some((Control::DACL_PRESENT, Some(Acl { revision: 2, aces })));
        let change = SecurityChange { dacl, ..SecurityChange::default() };
        runtime().block_on(async {
            let wanted = AttributesWanted::empty();
            let data = &server.data;
            let found = data.lookup(&caller, data.root(), b"file", Case::Insensitive, wanted).await.unwrap();
            data.set_security(&caller, &File::Stateless(found.node), change).await.unwrap();
        });
    };
    let everyone = |mask| Ace::allow(Sid::EVERYONE, mask, AceFlags::empty());
    let mut user = V4Client::start(server.address, "two");
    user.become_user(1000, 100, &[]);
    let args = user.open_args(b"o", "file", (quietly(ShareAccess::READ), NONE), How::NoCreate);
    let open = [put(&root), ArgOp::Open(args)];
    list(vec![everyone(AccessMask::EXECUTE)]);
    assert_eq!(user.fails(&open), Status::Access, "not granted");
    assert_eq!(user.fails(&read_at(&file, Stateid::ANONYMOUS)), Status::Access);
    let denies = Ace::deny(Sid::of_user(1000), AccessMask::READ_DATA, AceFlags::empty());
    list(vec![denies, everyone(AccessMask::EXECUTE), everyone(AccessMask::FILE_READ)]);
    assert_eq!(user.fails(&open), Status::Access, "denied");
    list(vec![everyone(AccessMask::FILE_READ)]);
    user.ok(&open);
}
