//! Requests that are sent again, over the same connection or another one, and what a session refuses (RFC 8881 2.10.6).

use std::time::{Duration, Instant};

use nfs_wire::v4::compound::ArgOp;
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::SessionId;
use nfs_wire::v4::{bind_conn_to_session, destroy_clientid, destroy_session, read, sequence};
use storage::fault::{Call, FaultyStore};

use crate::client::{V4Client, create_session_args, exchange_id_args, put};
use crate::server::TestServer;

fn kept(client: &mut V4Client, slot: u32) -> sequence::Args {
    sequence::Args { cache_this: true, ..client.next_sequence(slot) }
}

#[test]
fn a_retry_over_another_connection_has_the_first_answer() {
    let server = TestServer::start();
    let mut client = V4Client::start(server.address, "one");
    let mut other = client.another_connection(server.address);
    let operations = [ArgOp::Sequence(kept(&mut client, 0)), ArgOp::PutRootFh, ArgOp::GetFh];
    let first = client.raw(&operations);
    assert_eq!(first.status, Ok(()));
    let again = other.raw(&operations);
    assert_eq!(again.body, first.body);
    // It is part of the session now, as any connection that is used.
    let reports = server.server.sessions();
    assert_eq!(reports.len(), 1);
    assert_eq!((reports[0].connections.len(), reports[0].slots.granted), (2, 8));
}

#[test]
fn a_retry_of_something_else_or_by_somebody_else_is_a_false_one() {
    let server = TestServer::start();
    let mut client = V4Client::start(server.address, "one");
    let sequence = ArgOp::Sequence(kept(&mut client, 0));
    assert_eq!(client.raw(&[sequence.clone(), ArgOp::PutRootFh, ArgOp::GetFh]).status, Ok(()));
    let something_else = client.raw(&[sequence.clone(), ArgOp::PutRootFh, ArgOp::SaveFh]);
    assert_eq!(something_else.status, Err(Status::SeqFalseRetry));
    client.become_user(1000, 1000, &[]);
    let somebody_else = client.raw(&[sequence, ArgOp::PutRootFh, ArgOp::GetFh]);
    assert_eq!(somebody_else.status, Err(Status::SeqFalseRetry));
}

#[test]
fn what_was_not_kept_is_not_run_again() {
    let server = TestServer::start();
    let mut client = V4Client::start(server.address, "one");
    let sequence = ArgOp::Sequence(client.next_sequence(0));
    assert_eq!(client.raw(&[sequence.clone(), ArgOp::PutRootFh]).status, Ok(()));
    let again = client.raw(&[sequence, ArgOp::PutRootFh]);
    assert_eq!((again.status, again.results().len()), (Err(Status::RetryUncachedRep), 2));
    let alone = ArgOp::Sequence(client.next_sequence(0));
    assert_eq!(client.raw(std::slice::from_ref(&alone)).status, Ok(()));
    assert_eq!(client.raw(&[alone]).status, Ok(()), "there is nothing else to answer");
}

/// A request that is sent again while its first run goes on is answered when that ends. The Linux client waits for 15 s where it
/// is told NFS4ERR_DELAY.
#[test]
fn a_retry_of_a_request_that_runs_waits_for_its_end() {
    let (server, store) = TestServer::faulty(|store| FaultyStore::new(store).into());
    let mut client = V4Client::start(server.address, "one");
    let root = client.path("/data");
    let (stateid, file) = client.open(&root, "file");
    client.write(&file, stateid, 0, b"data");
    let read = [put(&file), ArgOp::Read(read::Args { stateid, offset: 0, count: 4 })];
    let in_slot = |sequence| [&[ArgOp::Sequence(sequence)][..], &read].concat();
    let hanging = store.hang(Call::Read);
    let (one, two) = (in_slot(kept(&mut client, 1)), in_slot(kept(&mut client, 2)));
    let mut other = client.another_connection(server.address);
    let (first, second) = (client.send(&one), client.send(&two));
    let deadline = Instant::now() + Duration::from_secs(60);
    while server.data.store_health().under_way < 2 {
        assert!(Instant::now() < deadline, "{:?}", server.data.store_health());
        std::thread::sleep(Duration::from_millis(5));
    }
    let again = (other.send(&one), other.send(&two));
    // The connection is not held up by what waits.
    other.ok(&[ArgOp::PutRootFh]);
    drop(hanging);
    for (first, again) in [(first, again.0), (second, again.1)] {
        let (first, again) = (client.receive(first), other.receive(again));
        assert_eq!((first.status, &again.body), (Ok(()), &first.body));
    }
}

#[test]
fn a_retry_that_waits_ends_with_its_session() {
    let (server, store) = TestServer::faulty(|store| FaultyStore::new(store).into());
    let mut client = V4Client::start(server.address, "one");
    let root = client.path("/data");
    let (stateid, file) = client.open(&root, "file");
    client.write(&file, stateid, 0, b"data");
    let hanging = store.hang(Call::Read);
    let read = [put(&file), ArgOp::Read(read::Args { stateid, offset: 0, count: 4 })];
    let operations = [&[ArgOp::Sequence(kept(&mut client, 1))][..], &read].concat();
    let first = client.send(&operations);
    let deadline = Instant::now() + Duration::from_secs(60);
    while server.data.store_health().under_way < 1 {
        assert!(Instant::now() < deadline, "{:?}", server.data.store_health());
        std::thread::sleep(Duration::from_millis(5));
    }
    let again = client.send(&operations);
    let session_id = client.session.id;
    let destroyed = client.raw(&[ArgOp::DestroySession(destroy_session::Args { session_id })]);
    assert_eq!(destroyed.status, Ok(()));
    assert_eq!(client.receive(again).status, Err(Status::BadSession));
    drop(hanging);
    client.receive(first);
}

#[test]
fn a_session_keeps_its_limits() {
    let server = TestServer::start();
    let mut client = V4Client::start(server.address, "one");
    let granted = client.session.fore_channel;
    let slot = sequence::Args {
        session_id: client.session.id,
        sequence_id: 1,
        slot_id: granted.requests_max,
        highest_slot_id: granted.requests_max,
        cache_this: false,
    };
    assert_eq!(client.raw(&[ArgOp::Sequence(slot)]).status, Err(Status::BadSlot));
    let high = sequence::Args { slot_id: 3, ..slot };
    assert_eq!(client.raw(&[ArgOp::Sequence(high)]).status, Err(Status::BadHighSlot));
    let most = granted.operations_max as usize;
    client.ok(&vec![ArgOp::PutRootFh; most - 1]);
    let next = ArgOp::Sequence(client.next_sequence(0));
    let too_many: Vec<_> = std::iter::once(next).chain(vec![ArgOp::PutRootFh; most]).collect();
    let refused = client.raw(&too_many);
    assert_eq!((refused.status, refused.results().len()), (Err(Status::TooManyOps), 1));
    assert_eq!(client.raw(&too_many[..2]).status, Ok(()), "the slot is as before");
    assert_eq!(client.fails(&[ArgOp::Sequence(slot)]), Status::SequencePos);
}

#[test]
fn nobody_uses_a_session_that_is_not_there() {
    let server = TestServer::start();
    let mut client = V4Client::start(server.address, "one");
    let session_id = client.session.id;
    let stolen = sequence::Args { session_id: SessionId([7; 16]), ..client.next_sequence(0) };
    assert_eq!(client.raw(&[ArgOp::Sequence(stolen)]).status, Err(Status::BadSession));
    // To end a session takes one of its connections.
    let mut stranger = V4Client::connect(server.address);
    let destroy = || ArgOp::DestroySession(destroy_session::Args { session_id });
    assert_eq!(stranger.alone(destroy()).status, Err(Status::ConnNotBoundToSession));
    let direction = bind_conn_to_session::ClientDirection::ForeOrBoth;
    let bind = bind_conn_to_session::Args { session_id, direction, use_rdma: false };
    assert_eq!(stranger.alone(ArgOp::BindConnToSession(bind)).status, Ok(()));
    assert_eq!(stranger.alone(destroy()).status, Ok(()));
    let gone = ArgOp::Sequence(client.next_sequence(1));
    assert_eq!(client.raw(&[gone]).status, Err(Status::BadSession), "though its connection remembers it");
}

#[test]
fn a_client_that_starts_anew_ends_what_it_had() {
    let server = TestServer::start();
    let mut before = V4Client::start(server.address, "one");
    let mut after = V4Client::connect(server.address);
    after.establish("one", 2);
    assert_ne!(after.client_id, before.client_id);
    let next = ArgOp::Sequence(before.next_sequence(0));
    assert_eq!(before.raw(&[next]).status, Err(Status::BadSession));
    let busy = ArgOp::DestroyClientId(destroy_clientid::Args { client_id: after.client_id });
    assert_eq!(before.alone(busy).status, Err(Status::ClientIdBusy));
    let client_id = before.client_id;
    let stale = ArgOp::DestroyClientId(destroy_clientid::Args { client_id });
    assert_eq!(before.alone(stale).status, Err(Status::StaleClientId));
    after.leave();
}

#[test]
fn what_makes_sessions_stands_alone_or_in_a_session() {
    let server = TestServer::start();
    let mut client = V4Client::start(server.address, "one");
    let exchange = || ArgOp::ExchangeId(exchange_id_args(b"two", 1));
    assert_eq!(client.raw(&[exchange(), ArgOp::PutRootFh]).status, Err(Status::NotOnlyOp));
    client.ok(&[exchange(), ArgOp::PutRootFh]);
    let more = ArgOp::CreateSession(create_session_args(client.client_id, 2));
    client.ok(&[more]);
    assert_eq!(server.server.sessions().len(), 2);
}

#[test]
fn other_minor_versions_have_no_results() {
    let server = TestServer::start();
    let mut client = V4Client::connect(server.address);
    for minor_version in [3, u32::MAX] {
        client.minor_version = minor_version;
        let reply = client.alone(ArgOp::PutRootFh);
        assert_eq!((reply.status, reply.results().len()), (Err(Status::MinorVersMismatch), 0));
    }
    client.minor_version = 2;
    client.establish("one", 1);
    client.ok(&[ArgOp::PutRootFh]);
}
