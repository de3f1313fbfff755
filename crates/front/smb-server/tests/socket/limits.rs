//! What clients may take up: each limit at its edge. Beyond it the request fails, and the others go on.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_smb_server::{Config, Dialect, Limits};
use auth::{Credentials, Initiator, Randomness, nt_hash};
use share::Settings;
use smb_wire::create::{CreateDisposition, CreateOptions};
use smb_wire::{Command, FileId, Guid, NtStatus};
use storage::conformance::MAY;
use storage::memory::MemoryStore;
use storage::{SetAttributes, Storage};

use crate::client::{Element, OTHER_USER, PASSWORD, SHARE, TestServer, USER, create_body, read_body};

fn server(limits: Limits) -> TestServer {
    TestServer::start(Config { limits, ..Config::default() })
}

#[test]
fn sessions_of_a_connection() {
    let server = server(Limits { sessions_per_connection_max: 2, ..Limits::default() });
    let mut client = server.log_in();
    let first = (client.session_id, client.protection.take());
    client.session_id = 0;
    client.log_in(USER, PASSWORD).unwrap();
    let second = (client.session_id, client.protection.take());
    client.session_id = 0;
    client.sign = false;
    assert_eq!(client.log_in(USER, PASSWORD).unwrap_err(), NtStatus::INSUFFICIENT_RESOURCES);
    // one that ends makes room
    (client.session_id, client.protection) = first;
    client.sign = true;
    client.call(Command::Logoff, &[4, 0, 0, 0]).ok().unwrap();
    (client.session_id, client.protection) = (0, None);
    client.log_in(USER, PASSWORD).unwrap();
    (client.session_id, client.protection) = second;
    client.tree_connect("Data").unwrap();
    server.log_in();
}

#[test]
fn sessions_of_the_server() {
    let server = server(Limits { sessions_max: 16, ..Limits::default() });
    let log_in = |last: u8, user| {
        let mut client = server.connect_from([127, 0, 0, last].into());
        client.negotiate(&[Dialect::Smb311]);
        let outcome = client.log_in(user, PASSWORD).map(drop);
        (client, outcome)
    };
    let full = Err(NtStatus::INSUFFICIENT_RESOURCES);
    let mut clients: Vec<_> = (0..12).map(|_| log_in(1, USER)).collect();
    // The last quarter is for users and addresses that have few.
    for (last, user) in [(1, USER), (2, USER), (1, OTHER_USER)] {
        assert_eq!(log_in(last, user).1, full, "{user} from {last}");
    }
    clients.extend([2, 2, 2, 3].map(|last| log_in(last, OTHER_USER)));
    assert!(clients.iter_mut().all(|(client, outcome)| outcome.is_ok() && client.is_alive()));
    assert_eq!(log_in(4, OTHER_USER).1, full, "nothing is left");
    drop(clients.pop());
    let begun = Instant::now();
    while log_in(3, OTHER_USER).1.is_err() {
        assert!(begun.elapsed() < Duration::from_secs(60), "a session that has ended makes room");
    }
}

/// Who only begins to log on takes no room from those who do.
#[test]
fn sessions_that_are_being_set_up() {
    let limits = Limits { sessions_max: 16, logons_per_connection_max: 3, ..Limits::default() };
    let server = server(limits);
    let mut strangers: Vec<_> = (0..10).map(|_| server.connect()).collect();
    let credentials = Credentials { user: USER.into(), domain: String::new(), nt_hash: nt_hash(PASSWORD) };
    let randomness = Randomness { client_challenge: [3; 8], session_key: [4; 16], timestamp: 1 << 57 };
    let (token, _) = Initiator::start(credentials, randomness);
    for stranger in &mut strangers {
        stranger.negotiate(&[Dialect::Smb311]);
        for logon in 0..4 {
            stranger.session_id = 0;
            let status = stranger.session_setup(&token).1.status();
            let goes_on = status == NtStatus::MORE_PROCESSING_REQUIRED;
            assert!(goes_on || status == NtStatus::INSUFFICIENT_RESOURCES);
            assert_eq!(goes_on, logon < 3, "{logon}");
        }
    }
    server.log_in();
}

#[test]
fn tree_connects_of_a_session() {
    let server = server(Limits { trees_per_session_max: 2, ..Limits::default() });
    let mut client = server.log_in();
    client.tree_connect("Data").unwrap();
    client.tree_connect("Data").unwrap();
    assert_eq!(client.tree_connect("Data").unwrap_err(), NtStatus::INSUFFICIENT_RESOURCES);
    client.call(Command::TreeDisconnect, &[4, 0, 0, 0]).ok().unwrap();
    client.tree_connect("Data").unwrap();
}

#[test]
fn opens_of_a_session() {
    let server = server(Limits { opens_per_session_max: 2, ..Limits::default() });
    let mut client = server.client();
    let first = client.create("a", CreateDisposition::Create).unwrap();
    client.create("b", CreateDisposition::Create).unwrap();
    let refused = client.create("a", CreateDisposition::Open);
    assert_eq!(refused, Err(NtStatus::INSUFFICIENT_RESOURCES));
    client.close(first).unwrap();
    // nothing of the refused open is left: the file can be opened by everybody, and deleted
    client.create("a", CreateDisposition::Open).unwrap();
    server.client().create("a", CreateDisposition::Open).unwrap();
}

/// The opens of a share: a user, however many clients it has, takes three quarters, and the last is for others.
#[test]
fn opens_of_a_share() {
    let settings = Settings { opens_max: 8, ..Settings::new(SHARE) };
    let store = Arc::new(MemoryStore::new());
    store
        .root()
        .set_attributes(&SetAttributes { mode: Some(0o777), ..SetAttributes::default() }, MAY)
        .unwrap();
    let server = TestServer::sharing(Config::default(), settings, store);
    let mut first = connected(&server, OTHER_USER, Guid([0xC1; 16]));
    for n in 0..6 {
        first.create(&format!("{n}"), CreateDisposition::Create).unwrap();
    }
    let refused = Err(NtStatus::INSUFFICIENT_RESOURCES);
    assert_eq!(first.create("6", CreateDisposition::Create), refused);
    let mut again = connected(&server, OTHER_USER, Guid([0xC2; 16]));
    assert_eq!(again.create("0", CreateDisposition::Open), refused);
    let mut other = connected(&server, USER, Guid([0xC3; 16]));
    let file = other.create("0", CreateDisposition::Open).unwrap();
    let missing = Err(NtStatus::OBJECT_NAME_NOT_FOUND);
    assert_eq!(other.create("6", CreateDisposition::Open), missing, "what cannot be opened is not made");
    other.create("1", CreateDisposition::Open).unwrap();
    assert_eq!(other.create("2", CreateDisposition::Open), refused, "all are taken");
    other.close(file).unwrap();
    assert_eq!(first.create("0", CreateDisposition::Open), refused);
    other.create("2", CreateDisposition::Open).unwrap();
}

fn connected(server: &TestServer, user: &str, client_guid: Guid) -> crate::client::Client {
    let mut client = server.connect();
    client.client_guid = client_guid;
    client.negotiate(&[Dialect::Smb311]);
    client.log_in(user, PASSWORD).unwrap();
    client.tree_connect(SHARE).unwrap();
    client
}

#[test]
fn requests_of_a_compound() {
    let server = server(Limits { compound_max: 3, ..Limits::default() });
    let echo = || Element { command: Command::Echo, related: false, body: vec![4, 0, 0, 0] };
    let mut client = server.client();
    let replies = client.call_compound(&[echo(), echo(), echo()]);
    assert_eq!(replies.len(), 3);
    let frame = client.compound(&[echo(), echo(), echo(), echo()]);
    client.send_frame(&frame);
    client.expect_closed();
}

#[test]
fn bytes_of_a_read() {
    let server = server(Limits { io_bytes_max: 1 << 20, ..Limits::default() });
    let mut client = server.client();
    let file = client.create("f", CreateDisposition::Create).unwrap();
    client.write(file, 0, b"x").unwrap();
    for (length, status) in [(1 << 20, NtStatus::SUCCESS), ((1 << 20) + 1, NtStatus::INVALID_PARAMETER)] {
        let mut header = client.header(Command::Read);
        header.credit_charge = 17;
        client.next_message_id += 16;
        client.send_with(&header, &read_body(file, 0, length));
        assert_eq!(client.receive().status(), status, "{length}");
    }
}

#[test]
fn connections() {
    let server = server(Limits { connections_max: 2, ..Limits::default() });
    let mut first = server.client();
    let _second = server.client();
    let mut third = server.connect();
    third.send(Command::Negotiate, &[36, 0]);
    third.expect_closed();
    assert!(first.is_alive());
    drop(first);
    let begun = Instant::now();
    loop {
        let mut client = server.connect();
        let request = client.negotiate_request(&[Dialect::Smb202], &[]);
        let mut body = vec![0; 64];
        request.encode(&mut body).unwrap();
        client.send(Command::Negotiate, &body[64..]);
        if client.try_receive_all().is_some() {
            break;
        }
        assert!(begun.elapsed().as_secs() < 60, "a connection that ends makes room");
    }
}

#[test]
fn a_refused_open_in_a_compound_leaves_nothing_behind() {
    let server = server(Limits { opens_per_session_max: 1, ..Limits::default() });
    let mut client = server.client();
    let open = |name| Element {
        command: Command::Create,
        related: false,
        body: create_body(name, CreateDisposition::OpenIf, CreateOptions::DELETE_ON_CLOSE),
    };
    let close =
        Element { command: Command::Close, related: true, body: crate::client::close_body(FileId::ANY) };
    let replies = client.call_compound(&[open("one"), open("two"), close]);
    let statuses: Vec<_> = replies.iter().map(crate::client::Reply::status).collect();
    let refused = NtStatus::INSUFFICIENT_RESOURCES;
    assert_eq!(statuses, [NtStatus::SUCCESS, refused, refused]);
    let two = server.client().create("two", CreateDisposition::Open);
    assert_eq!(two, Err(NtStatus::OBJECT_NAME_NOT_FOUND));
}
