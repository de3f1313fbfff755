//! Delegations: given with an OPEN, recalled for whoever needs the file, returned, and revoked.

use std::sync::Arc;
use std::time::Duration;

use share::Squash;

use nfs_wire::v4::attr::{Attribute, AttributeSet, Attributes, Value};
use nfs_wire::v4::callback;
use nfs_wire::v4::compound::{ArgOp, ResOp};
use nfs_wire::v4::open::{self, Claim, CreateHow, Delegation, How, ShareAccess, ShareDeny, Want, WhyNone};
use nfs_wire::v4::sequence::StatusFlags;
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::{Stateid, Time};
use nfs_wire::v4::{delegreturn, free_stateid, getattr, read, test_stateid};
use share::{Access, Case, Settings, Sharing};

use crate::client::{CallbackAnswer, Reply, V4Client, put};
use crate::opens::{smb_open, started};
use crate::server::{TestServer, by_smb, export};

/// What came with an OPEN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Came {
    Read(Stateid),
    Write(Stateid),
    Nothing(Option<WhyNone>),
}

impl Came {
    pub(crate) fn read(self) -> Stateid {
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
    (opened.stateid, came(opened.delegation))
}

pub(crate) fn came(delegation: Delegation<'_>) -> Came {
    match delegation {
        Delegation::Read(delegation) => Came::Read(delegation.stateid),
        Delegation::Write(delegation) => Came::Write(delegation.stateid),
        Delegation::None => Came::Nothing(None),
        Delegation::NoneExt(why) => Came::Nothing(Some(why)),
    }
}

/// OPEN for somebody who wants no delegation.
pub(crate) fn quietly<'a>(client: &V4Client, root: &'a [u8], access: ShareAccess) -> [ArgOp<'a>; 2] {
    let modes = (access.with_want(Want::None), ShareDeny::NONE);
    [put(root), ArgOp::Open(client.open_args(b"quiet", "file", modes, How::NoCreate))]
}

pub(crate) fn give_back(file: &[u8], stateid: Stateid) -> [ArgOp<'_>; 2] {
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

pub(crate) fn recalled(client: &mut V4Client, file: &[u8]) -> Stateid {
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
fn a_delegation_gives_no_more_than_the_permissions_of_the_file() {
    let (server, mut client, root) = started();
    let (mut old, top) = server.mounted();
    client.become_user(1000, 100, &[]);
    let mut came = |name, mode, access: ShareAccess| {
        old.make_file(top, name, mode, b"data");
        let modes = (access.with_want(Want::Write), ShareDeny::NONE);
        let args = client.open_args(b"owner", name, modes, How::NoCreate);
        came(client.ok(&[put(&root), ArgOp::Open(args)]).opened().delegation)
    };
    assert!(matches!(came("readable", 0o644, ShareAccess::READ), Came::Read(_)));
    let none = Came::Nothing(Some(WhyNone::Resource { will_signal: false }));
    assert_eq!(came("writable", 0o622, ShareAccess::WRITE), none);
    assert!(matches!(came("both", 0o666, ShareAccess::READ), Came::Write(_)));
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
        settings.retry_after = Duration::from_millis(20);
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

/// GETATTR of the change, the size and the time of the last change.
fn looks(file: &[u8]) -> [ArgOp<'_>; 2] {
    let request = AttributeSet::of(&[Attribute::Change, Attribute::Size, Attribute::TimeModify]);
    [put(file), ArgOp::GetAttr(getattr::Args { request })]
}

fn seen(reply: &Reply) -> (u64, u64, Time) {
    let Some(Value::Change(change)) = reply.attribute(Attribute::Change) else { panic!("{reply:?}") };
    let Some(Value::Size(size)) = reply.attribute(Attribute::Size) else { panic!("{reply:?}") };
    let Some(Value::TimeModify(time)) = reply.attribute(Attribute::TimeModify) else { panic!("{reply:?}") };
    (change, size, time)
}

/// A client that holds a write delegation, and what it has seen of the file then.
fn writer(client: &mut V4Client, root: &[u8]) -> (Vec<u8>, Stateid, (u64, u64, Time)) {
    let (_, file) = client.open(root, "file");
    let (_, came) = open(client, root, ShareAccess::BOTH, Want::Write);
    let Came::Write(stateid) = came else { panic!("{came:?}") };
    let as_given = seen(&client.ok(&looks(&file)));
    assert!(client.callbacks.is_empty(), "it knows that by itself");
    (file, stateid, as_given)
}

fn asked(client: &mut V4Client, file: &[u8]) {
    let told = client.callback();
    let operations = told.operations();
    let callback::ArgOp::GetAttr(args) = &operations[1] else { panic!("{operations:?}") };
    assert_eq!(args.file.0, file);
    assert_eq!(args.request, AttributeSet::of(&[Attribute::Change, Attribute::Size]));
}

#[test]
fn who_asks_for_a_file_that_another_client_writes_is_told_what_that_one_has() {
    let (server, mut client, root) = started();
    let mut other = V4Client::start(server.address, "two");
    let (file, stateid, as_given) = writer(&mut client, &root);
    client.keeps = [Value::Change(as_given.0), Value::Size(as_given.1)].into_iter().collect();
    let ask = |client: &mut V4Client, other: &mut V4Client| {
        let xid = other.send_on(0, &looks(&file));
        asked(client, &file);
        seen(&other.receive(xid))
    };
    assert_eq!(ask(&mut client, &mut other), as_given, "it has changed nothing");
    // It has, and says so in the same way each time; besides it tells its times, which nobody has asked for.
    let time = Time { seconds: 1, nanoseconds: 0 };
    let dirty = [Value::Change(as_given.0 + 1), Value::Size(7), Value::TimeDelegModify(time)];
    client.keeps = dirty.into_iter().collect();
    let first = ask(&mut client, &mut other);
    let second = ask(&mut client, &mut other);
    assert!(first.0 > as_given.0 && second.0 > first.0, "{as_given:?} {first:?} {second:?}");
    assert_eq!((first.1, second.1), (7, 7));
    assert!(first.2 != as_given.2 && first.2 != time);
    // It writes, and has nothing more to say.
    client.write(&file, stateid, 0, b"written");
    client.keeps = [Value::Change(as_given.0), Value::Size(7)].into_iter().collect();
    let third = ask(&mut client, &mut other);
    assert!(third.0 > second.0 && third.1 == 7);
    assert_eq!(ask(&mut client, &mut other), third);
    client.ok(&give_back(&file, stateid));
    assert_eq!(seen(&other.ok(&looks(&file))), third);
    assert!(client.callbacks.is_empty());
}

#[test]
fn a_writer_that_does_not_say_what_it_has_gives_the_delegation_back() {
    gives_back_after(CallbackAnswer::Fail(Status::BadHandle));
}

#[test]
fn a_writer_whose_answer_is_none_gives_the_delegation_back() {
    gives_back_after(CallbackAnswer::Truncated);
}

/// As often as the back channel has slots, and once more: such an answer takes none of them away.
fn gives_back_after(answer: CallbackAnswer) {
    let (server, mut client, root) = started();
    let mut other = V4Client::start(server.address, "two");
    for _ in 0..=client.session.back_channel.requests_max {
        client.callback_answer = CallbackAnswer::Ok;
        let (file, stateid, _) = writer(&mut client, &root);
        client.callback_answer = answer;
        let xid = other.send_on(0, &looks(&file));
        asked(&mut client, &file);
        client.callback_answer = CallbackAnswer::Ok;
        assert_eq!(recalled(&mut client, &file).other, stateid.other);
        client.write(&file, stateid, 0, b"data");
        client.ok(&give_back(&file, stateid));
        let reply = other.receive(xid);
        assert_eq!(reply.status, Ok(()), "it has waited");
        assert_eq!(seen(&reply).1, 4);
        client.remove(&root, "file");
    }
}

#[test]
fn clients_of_the_other_protocols_are_told_what_a_writer_has() {
    let (server, mut client, root) = started();
    let (file, _, as_given) = writer(&mut client, &root);
    client.keeps = [Value::Change(as_given.0 + 1), Value::Size(9)].into_iter().collect();
    let handle = nfs_wire::v3::types::FileHandle::new(&file).unwrap();
    let top = server.mounted().1;
    std::thread::scope(|scope| {
        let mut old = server.client();
        type Look<'a> = Box<dyn FnMut() -> u64 + Send + 'a>;
        let ways: [(&str, Look<'_>); 4] = [
            ("GETATTR", Box::new(move || old.attributes(handle).size)),
            ("LOOKUP", {
                let mut old = server.client();
                Box::new(move || old.lookup(top, "file").unwrap().object_attributes.unwrap().size)
            }),
            ("SMB, by a handle", Box::new(|| smb_sizes(&server)[0])),
            ("SMB, by a listing", Box::new(|| smb_sizes(&server)[1])),
        ];
        for (way, look) in ways {
            let size = scope.spawn(look);
            while !size.is_finished() {
                if client.is_told_within(Duration::from_millis(10)) {
                    asked(&mut client, &file);
                }
            }
            assert_eq!(size.join().unwrap(), 9, "{way}");
        }
    });
}

/// The size of the file as SMB clients see it: with an open for attributes, and in a listing.
fn smb_sizes(server: &TestServer) -> [u64; 2] {
    let caller = by_smb(0, 0);
    let share = &server.data;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let want = storage::Want::empty();
        let found = share.lookup(&caller, share.root(), b"file", Case::Sensitive, want).await.unwrap();
        let seen = share.present_attributes(&caller, &found.node, want).await.unwrap();
        let listing = share.list(&caller, share.root(), 0, 10, Some(want)).await.unwrap();
        let listed = listing.entries.iter().find(|entry| entry.name == b"file").unwrap();
        [seen.size, listed.node.as_ref().unwrap().1.size]
    })
}
