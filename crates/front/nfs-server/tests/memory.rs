//! What NFSv4 clients cost that come, ask for something and go: a process of its own, so that nothing else is counted.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[expect(
    dead_code,
    clippy::result_large_err,
    reason = "what only the tests of NFSv3 use, and results with attributes in both arms"
)]
#[path = "server/client.rs"]
mod server;

#[expect(dead_code, reason = "what only the tests of NFSv4 use")]
#[path = "v4/client.rs"]
mod client;

use client::{V4Client, create_session_args, exchange_id_args};
use nfs_wire::v4::compound::{ArgOp, ResOp};
use nfs_wire::v4::types::{ClientId, SessionId};
use nfs_wire::v4::{create_session, destroy_clientid, destroy_session, sequence};

const CLIENTS: usize = 10_000;
/// Most bytes of a client with one session and one reply that is kept.
const CLIENT_BYTES_MAX: usize = 4096;

/// Bytes of memory that this process has.
fn memory() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

/// Sends these operations, each of its own COMPOUND, a hundred at a time; what `read` makes of the replies.
fn all<'a, T>(
    connection: &mut V4Client,
    operations: impl Iterator<Item = Vec<ArgOp<'a>>>,
    read: impl Fn(&ResOp<'_>) -> T,
) -> Vec<T> {
    let operations: Vec<_> = operations.collect();
    let mut results = Vec::with_capacity(operations.len());
    for some in operations.chunks(100) {
        let sent: Vec<_> = some.iter().map(|operations| connection.send(operations)).collect();
        for xid in sent {
            let reply = connection.receive(xid);
            assert_eq!(reply.status, Ok(()));
            results.push(read(&reply.last()));
        }
    }
    results
}

/// So many clients come, all by one connection, and each keeps the reply to a request.
fn come(connection: &mut V4Client) -> Vec<(ClientId, SessionId)> {
    let owners: Vec<_> = (0..CLIENTS).map(|number| format!("client number {number}").into_bytes()).collect();
    let exchange = owners.iter().map(|owner| vec![ArgOp::ExchangeId(exchange_id_args(owner, 1))]);
    let clients = all(connection, exchange, |result| match result {
        ResOp::ExchangeId(Ok(ok)) => (ok.client_id, ok.sequence_id),
        other => panic!("{other:?}"),
    });
    let flags = create_session::Flags::empty();
    let create = clients.iter().map(|(client_id, sequence_id)| {
        vec![ArgOp::CreateSession(create_session::Args {
            flags,
            ..create_session_args(*client_id, *sequence_id)
        })]
    });
    let sessions = all(connection, create, |result| match result {
        ResOp::CreateSession(Ok(ok)) => ok.session_id,
        other => panic!("{other:?}"),
    });
    let request = sessions.iter().map(|session_id| {
        let (sequence_id, slot_id, highest_slot_id) = (1, 0, 0);
        let session_id = *session_id;
        let sequence = sequence::Args { session_id, sequence_id, slot_id, highest_slot_id, cache_this: true };
        vec![ArgOp::Sequence(sequence), ArgOp::PutRootFh, ArgOp::GetFh]
    });
    all(connection, request, |_| ());
    clients.into_iter().map(|(client, _)| client).zip(sessions).collect()
}

fn go(connection: &mut V4Client, clients: &[(ClientId, SessionId)]) {
    let sessions = clients.iter().map(|(_, session_id)| {
        vec![ArgOp::DestroySession(destroy_session::Args { session_id: *session_id })]
    });
    all(connection, sessions, |_| ());
    let clients = clients
        .iter()
        .map(|(client_id, _)| vec![ArgOp::DestroyClientId(destroy_clientid::Args { client_id: *client_id })]);
    all(connection, clients, |_| ());
}

#[test]
fn ten_thousand_clients_come_and_go_in_bounded_memory() {
    let server = server::TestServer::start();
    let mut connection = V4Client::start(server.address, "the first");
    let before = memory();
    let clients = come(&mut connection);
    let grown = memory().saturating_sub(before);
    println!("{} bytes a client", grown / CLIENTS);
    assert!(grown / CLIENTS < CLIENT_BYTES_MAX, "{} bytes a client", grown / CLIENTS);
    go(&mut connection, &clients);
    let clients = come(&mut connection);
    go(&mut connection, &clients);
    let after = memory().saturating_sub(before);
    assert!(after < grown + grown / 4, "{grown} bytes with the first, {after} bytes after all are gone");
}
