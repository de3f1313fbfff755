//! NEGOTIATE: which dialect, what is said about it, and what an SMB1 client is told.

use anabranch_smb_server::{Config, Dialect};
use smb_wire::negotiate::{Capabilities, Dialect as WireDialect, Response, SecurityMode};
use smb_wire::negotiate_context::NegotiateContext;
use smb_wire::{Command, NtStatus};

use crate::client::{PASSWORD, SHARE, TestServer, USER};

const ALL: [Dialect; 5] = Dialect::ALL;

#[test]
fn every_dialect_is_spoken() {
    let server = TestServer::start(Config::default());
    for dialect in ALL {
        let mut client = server.connect();
        let reply = client.negotiate(&[dialect]);
        let response = Response::decode(&reply.message).unwrap();
        assert_eq!(u16::from(response.dialect), dialect.revision());
        assert_eq!(response.security_mode, SecurityMode::SIGNING_ENABLED | SecurityMode::SIGNING_REQUIRED);
        let large = dialect > Dialect::Smb202;
        assert_eq!(response.capabilities.contains(Capabilities::LARGE_MTU), large);
        assert_eq!(response.max_read_size, if large { 8 << 20 } else { 64 << 10 });
        assert_eq!(response.max_write_size, response.max_transact_size);
        client.log_in(USER, PASSWORD).unwrap();
        client.tree_connect(SHARE).unwrap();
        assert!(client.is_alive());
    }
}

#[test]
fn the_newest_common_dialect_wins() {
    let server = TestServer::start(Config::default());
    let reply = server.connect().negotiate(&ALL);
    assert_eq!(Response::decode(&reply.message).unwrap().dialect, WireDialect::Smb311);
    let narrow = Config { dialects: Dialect::Smb210..=Dialect::Smb302, ..Config::default() };
    let server = TestServer::start(narrow);
    let reply = server.connect().negotiate(&ALL);
    assert_eq!(Response::decode(&reply.message).unwrap().dialect, WireDialect::Smb302);
    assert_eq!(server.connect().negotiate(&[Dialect::Smb311]).status(), NtStatus::NOT_SUPPORTED);
    assert_eq!(server.connect().negotiate(&[]).status(), NtStatus::INVALID_PARAMETER);
}

#[test]
fn smb311_answers_each_context_once() {
    let server = TestServer::start(Config::default());
    let reply = server.connect().negotiate(&[Dialect::Smb311]);
    let response = Response::decode(&reply.message).unwrap();
    let kinds: Vec<u16> = response.contexts.iter().map(NegotiateContext::context_type).collect();
    assert_eq!(kinds, [1, 2, 8]);
    assert!(!response.security_buffer.is_empty(), "the mechanisms of authentication");
}

#[test]
fn a_second_negotiate_ends_the_connection() {
    let server = TestServer::start(Config::default());
    let mut client = server.connect();
    client.negotiate(&[Dialect::Smb311]);
    client.send(Command::Negotiate, &[36, 0]);
    client.expect_closed();
}

#[test]
fn nothing_else_comes_before_negotiate() {
    let server = TestServer::start(Config::default());
    let mut client = server.connect();
    client.send(Command::Echo, &[4, 0, 0, 0]);
    client.expect_closed();
}

/// An SMB1 NEGOTIATE with these dialect strings, laid out as [MS-CIFS] 2.2.4.52.1 says.
fn smb1(dialects: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for dialect in dialects {
        bytes.push(2);
        bytes.extend_from_slice(dialect);
        bytes.push(0);
    }
    let mut message = b"\xffSMB\x72".to_vec();
    message.extend_from_slice(&[0; 27]);
    message.push(0);
    message.extend_from_slice(&u16::try_from(bytes.len()).unwrap().to_le_bytes());
    message.extend_from_slice(&bytes);
    message
}

#[test]
fn an_smb1_client_is_told_to_go_on_in_smb2() {
    let server = TestServer::start(Config::default());
    let mut client = server.connect();
    client.send_frame(&smb1(&[b"NT LM 0.12", b"SMB 2.002", b"SMB 2.???"]));
    let reply = client.receive();
    assert_eq!(reply.header.message_id, 0);
    assert_eq!(Response::decode(&reply.message).unwrap().dialect, WireDialect::Wildcard);
    client.next_message_id = 1;
    client.negotiate(&ALL);
    assert_eq!(client.dialect, Dialect::Smb311);
    client.log_in(USER, PASSWORD).unwrap();
    client.tree_connect(SHARE).unwrap();
}

#[test]
fn an_smb1_client_of_smb202_goes_on_with_its_session() {
    let server = TestServer::start(Config::default());
    let mut client = server.connect();
    client.send_frame(&smb1(&[b"NT LM 0.12", b"SMB 2.002"]));
    let reply = client.receive();
    assert_eq!(Response::decode(&reply.message).unwrap().dialect, WireDialect::Smb202);
    client.next_message_id = 1;
    client.log_in(USER, PASSWORD).unwrap();
    client.tree_connect(SHARE).unwrap();
}

#[test]
fn smb1_alone_is_not_spoken() {
    let server = TestServer::start(Config::default());
    for dialects in [&[b"NT LM 0.12".as_slice()][..], &[]] {
        let mut client = server.connect();
        client.send_frame(&smb1(dialects));
        client.expect_closed();
    }
    // nor in place of SMB 2.1 and later, when those are not offered
    let newer = Config { dialects: Dialect::Smb300..=Dialect::Smb311, ..Config::default() };
    let server = TestServer::start(newer);
    let mut client = server.connect();
    client.send_frame(&smb1(&[b"SMB 2.002"]));
    client.expect_closed();
    let mut client = server.connect();
    client.negotiate(&ALL);
    client.send_frame(&smb1(&[b"SMB 2.???"]));
    client.expect_closed();
}
