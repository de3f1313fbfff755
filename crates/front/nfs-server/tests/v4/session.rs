//! EXCHANGE_ID, CREATE_SESSION, SEQUENCE and what ends them.

use nfs_wire::v4::compound::{ArgOp, ResOp};
use nfs_wire::v4::exchange_id::Flags;
use nfs_wire::v4::status::Status;

use crate::client::{V4Client, create_session_args, exchange_id_args};
use crate::server::TestServer;

#[test]
fn a_client_makes_a_session_uses_it_and_leaves() {
    let server = TestServer::start();
    let mut client = V4Client::start(server.address, "one");
    let reply = client.ok(&[ArgOp::PutRootFh, ArgOp::GetFh]);
    let sequence = reply.sequence();
    assert_eq!((sequence.session_id, sequence.slot_id, sequence.sequence_id), (client.session.id, 0, 2));
    assert!(!reply.file_handle().is_empty());
    client.leave();
}

#[test]
fn a_retry_is_answered_from_the_slot_and_not_done_again() {
    let server = TestServer::start();
    let mut client = V4Client::start(server.address, "one");
    let mut sequence = client.next_sequence(0);
    sequence.cache_this = true;
    let operations = [ArgOp::Sequence(sequence), ArgOp::PutRootFh, ArgOp::GetFh];
    let first = client.raw(&operations);
    let second = client.raw(&operations);
    assert_eq!(first.status, Ok(()));
    assert_eq!(first.body, second.body);
    sequence.sequence_id += 2;
    let misordered = client.raw(&[ArgOp::Sequence(sequence)]);
    assert_eq!(misordered.status, Err(Status::SeqMisordered));
}

#[test]
fn a_session_needs_the_client_id_and_its_sequence() {
    let server = TestServer::start();
    let mut client = V4Client::connect(server.address);
    let reply = client.alone(ArgOp::ExchangeId(exchange_id_args(b"one", 1)));
    let ResOp::ExchangeId(Ok(ok)) = reply.last() else { panic!("{reply:?}") };
    let (client_id, sequence_id) = (ok.client_id, ok.sequence_id);
    let misordered = client.alone(ArgOp::CreateSession(create_session_args(client_id, sequence_id + 1)));
    assert_eq!(misordered.status, Err(Status::SeqMisordered));
    let other = nfs_wire::v4::types::ClientId(client_id.0 ^ 1);
    let stale = client.alone(ArgOp::CreateSession(create_session_args(other, sequence_id)));
    assert_eq!(stale.status, Err(Status::StaleClientId));
    let made = client.alone(ArgOp::CreateSession(create_session_args(client_id, sequence_id)));
    assert_eq!(made.status, Ok(()));
}

#[test]
fn flags_without_a_meaning_are_refused() {
    let server = TestServer::start();
    let mut client = V4Client::connect(server.address);
    let mut exchange = exchange_id_args(b"one", 1);
    let refused = Err(Status::Inval);
    for (minor_version, flags, expected) in [
        (1, Flags::SUPP_FENCE_OPS, refused),
        (2, Flags::SUPP_FENCE_OPS, Ok(())),
        (1, Flags::from_bits_retain(8), refused),
        (2, Flags::from_bits_retain(8), refused),
    ] {
        client.minor_version = minor_version;
        exchange.flags = flags;
        assert_eq!(client.alone(ArgOp::ExchangeId(exchange.clone())).status, expected, "{flags:?}");
    }
    exchange.flags = Flags::empty();
    let reply = client.alone(ArgOp::ExchangeId(exchange));
    let ResOp::ExchangeId(Ok(ok)) = reply.last() else { panic!("{reply:?}") };
    let mut create = create_session_args(ok.client_id, ok.sequence_id);
    create.flags = nfs_wire::v4::create_session::Flags::from_bits_retain(0xf);
    assert_eq!(client.alone(ArgOp::CreateSession(create)).status, Err(Status::Inval));
}

#[test]
fn what_needs_a_session_is_refused_without_one() {
    let server = TestServer::start();
    let mut client = V4Client::connect(server.address);
    let reply = client.alone(ArgOp::PutRootFh);
    assert_eq!(reply.status, Err(Status::OpNotInSession));
}
