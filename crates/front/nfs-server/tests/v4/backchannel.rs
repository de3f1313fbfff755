//! The back channel: over which connections callbacks come, and what SEQUENCE says when none works (RFC 8881 2.10.3.1,
//! 18.46.3).

use std::time::Duration;

use nfs_wire::v4::attr::Attributes;
use nfs_wire::v4::bind_conn_to_session::{self, ClientDirection, ServerDirection};
use nfs_wire::v4::callback::{ArgOp as CallbackOp, SequenceArgs};
use nfs_wire::v4::compound::{ArgOp, ResOp};
use nfs_wire::v4::delegreturn;
use nfs_wire::v4::open::{CreateHow, Delegation, How, ShareAccess, ShareDeny, Want};
use nfs_wire::v4::sequence::StatusFlags;
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::Stateid;
use share::Squash;

use crate::client::{Callback, CallbackAnswer, V4Client, put};
use crate::opens::started;
use crate::server::{TestServer, export};

const DOWN: StatusFlags = StatusFlags::CB_PATH_DOWN;
const DOWN_SESSION: StatusFlags = StatusFlags::CB_PATH_DOWN_SESSION;

/// Makes the connection part of both channels of its session.
fn bind(connection: &mut V4Client) {
    let session_id = connection.session.id;
    let direction = ClientDirection::BackOrBoth;
    let args = bind_conn_to_session::Args { session_id, direction, use_rdma: false };
    let reply = connection.alone(ArgOp::BindConnToSession(args));
    let ResOp::BindConnToSession(Ok(ok)) = reply.last() else { panic!("{reply:?}") };
    assert_eq!(ok.direction, ServerDirection::Both);
}

/// What SEQUENCE says on this connection, which has slot 1 for itself.
fn flags(connection: &mut V4Client) -> StatusFlags {
    let xid = connection.send_on(1, &[ArgOp::PutRootFh]);
    connection.receive(xid).sequence().status_flags
}

/// The same once it is what is waited for.
fn wait_for(connection: &mut V4Client, awaited: StatusFlags) {
    let begin = std::time::Instant::now();
    loop {
        let said = flags(connection);
        if said == awaited {
            return;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "{said:?} and not {awaited:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A read delegation of a new file.
fn delegated(client: &mut V4Client, root: &[u8], name: &str) -> (Vec<u8>, Stateid) {
    let (stateid, file) = client.open(root, name);
    client.close(&file, stateid);
    let modes = (ShareAccess::READ.with_want(Want::Read), ShareDeny::NONE);
    let args = client.open_args(b"owner", name, modes, How::NoCreate);
    let reply = client.ok(&[put(root), ArgOp::Open(args)]);
    let Delegation::Read(delegation) = reply.opened().delegation else { panic!("{reply:?}") };
    (file, delegation.stateid)
}

/// Another client's wish to write a file, refused: its delegation is being recalled.
fn wants_to_write(other: &mut V4Client, root: &[u8], name: &str) {
    let how = How::Create(CreateHow::Unchecked(Attributes::EMPTY));
    let args = other.open_args(b"other", name, (ShareAccess::WRITE, ShareDeny::NONE), how);
    assert_eq!(other.fails(&[put(root), ArgOp::Open(args)]), Status::Delay);
}

/// The delegation that a callback recalls, and its CB_SEQUENCE.
fn recalled(callback: &Callback) -> (Stateid, SequenceArgs) {
    let operations = callback.operations();
    let [CallbackOp::Sequence(sequence), CallbackOp::Recall(recall)] = &operations[..] else {
        panic!("{operations:?}")
    };
    (recall.stateid, sequence.clone())
}

fn give_back(client: &mut V4Client, file: &[u8], stateid: Stateid) {
    client.ok(&[put(file), ArgOp::DelegReturn(delegreturn::Args { stateid })]);
}

#[test]
fn a_callback_comes_again_over_another_connection_when_its_own_is_lost() {
    let (server, mut client, root) = started();
    let mut other = V4Client::start(server.address, "two");
    let (file, stateid) = delegated(&mut client, &root, "file");
    let mut last = client.another_connection(server.address);
    bind(&mut last);
    last.callback_answer = CallbackAnswer::Never;
    wants_to_write(&mut other, &root, "file");
    let first = last.callback();
    drop(last);
    let second = client.callback();
    assert_eq!(second.xid, first.xid, "the same call");
    assert_eq!(recalled(&second), recalled(&first), "with the same sequence ID of the same slot");
    assert_eq!(recalled(&second).0.other, stateid.other);
    give_back(&mut client, &file, stateid);
    assert_eq!(flags(&mut client), StatusFlags::empty());
}

#[test]
fn a_client_without_a_back_channel_hears_of_it_until_it_brings_a_connection() {
    let (server, client, _) = started();
    let mut fore = client.another_connection(server.address);
    assert_eq!(flags(&mut fore), StatusFlags::empty());
    drop(client);
    wait_for(&mut fore, DOWN);
    bind(&mut fore);
    assert_eq!(flags(&mut fore), StatusFlags::empty());
}

#[test]
fn a_callback_whose_connections_are_lost_comes_over_the_next_one() {
    let (server, mut client, root) = started();
    let mut other = V4Client::start(server.address, "two");
    let (file, stateid) = delegated(&mut client, &root, "file");
    let mut fore = client.another_connection(server.address);
    client.callback_answer = CallbackAnswer::Never;
    wants_to_write(&mut other, &root, "file");
    let first = client.callback();
    drop(client);
    wait_for(&mut fore, DOWN | DOWN_SESSION);
    bind(&mut fore);
    let second = fore.callback();
    assert_eq!((second.xid, recalled(&second)), (first.xid, recalled(&first)), "the same call");
    wait_for(&mut fore, StatusFlags::empty());
    let xid = fore.send_on(1, &[put(&file), ArgOp::DelegReturn(delegreturn::Args { stateid })]);
    assert_eq!(fore.receive(xid).status, Ok(()));
}

#[test]
fn a_callback_that_is_not_answered_is_sent_again_and_its_slot_rests() {
    let timeout = Duration::from_millis(100);
    let server = TestServer::with(
        Default::default(),
        export(Squash::None),
        1,
        |_| {},
        |config| {
            config.callback_timeout = timeout;
        },
    );
    let root = server.mounted().1.as_bytes().to_vec();
    let mut client = V4Client::start(server.address, "one");
    let mut other = V4Client::start(server.address, "two");
    let (file, stateid) = delegated(&mut client, &root, "file");
    client.callback_answer = CallbackAnswer::Never;
    wants_to_write(&mut other, &root, "file");
    let first = client.callback();
    let second = client.callback();
    let (slots, xids) = ([&first, &second].map(|call| recalled(call).1.slot_id), [first.xid, second.xid]);
    assert_ne!(slots[0], slots[1], "the first may be answered yet");
    assert_ne!(xids[0], xids[1]);
    assert_eq!(flags(&mut client), StatusFlags::empty(), "its connection is there");
    client.answer_with(&first, Ok(()));
    client.answer_with(&second, Ok(()));
    client.callback_answer = CallbackAnswer::Ok;
    give_back(&mut client, &file, stateid);
    // All slots are free again: the next call takes the first.
    let (file, stateid) = delegated(&mut client, &root, "next");
    wants_to_write(&mut other, &root, "next");
    let again =
        std::iter::repeat_with(|| client.callback()).find(|call| recalled(call).0.other == stateid.other);
    assert_eq!(recalled(&again.unwrap()).1.slot_id, slots[0]);
    give_back(&mut client, &file, stateid);
}

#[test]
fn callbacks_of_two_runs_of_a_server_are_numbered_apart() {
    let first_call = |run| {
        let server = TestServer::over(Default::default(), export(Squash::None), run);
        let root = server.mounted().1.as_bytes().to_vec();
        let mut client = V4Client::start(server.address, "one");
        let mut other = V4Client::start(server.address, "two");
        delegated(&mut client, &root, "file");
        wants_to_write(&mut other, &root, "file");
        client.callback().xid
    };
    let xids = [1, 2, 3].map(first_call);
    assert!(
        xids.iter().all(|xid| xids.iter().filter(|other| xid.abs_diff(**other) < 100).count() == 1),
        "{xids:?}"
    );
}
