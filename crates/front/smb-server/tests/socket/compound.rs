//! Compounds: related, unrelated, and broken in the middle. [MS-SMB2] 3.3.5.2.7.

use anabranch_smb_server::{Config, Limits};
use smb_wire::create::{CreateDisposition, CreateOptions};
use smb_wire::{Command, FileId, NtStatus, read};

use crate::client::{Element, Reply, TestServer, close_body, create_body, read_body, write_body};

fn create(related: bool, name: &str, disposition: CreateDisposition) -> Element {
    Element {
        command: Command::Create,
        related,
        body: create_body(name, disposition, CreateOptions::empty()),
    }
}

fn element(command: Command, related: bool, body: Vec<u8>) -> Element {
    Element { command, related, body }
}

fn statuses(replies: &[Reply]) -> Vec<NtStatus> {
    replies.iter().map(Reply::status).collect()
}

#[test]
fn related_requests_share_their_file() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let replies = client.call_compound(&[
        create(false, "related", CreateDisposition::Create),
        element(Command::Write, true, write_body(FileId::ANY, 0, b"seven b")),
        element(Command::Read, true, read_body(FileId::ANY, 0, 100)),
        element(Command::Close, true, close_body(FileId::ANY)),
    ]);
    assert_eq!(statuses(&replies), [NtStatus::SUCCESS; 4]);
    assert_eq!(read::Response::decode(&replies[2].message).unwrap().data, b"seven b");
    for reply in &replies {
        assert_eq!(reply.header.session_id, client.session_id);
        assert_eq!(reply.header.tree_id(), Some(client.tree_id));
        assert!(reply.is_signed() && reply.header.credits > 0);
        assert_eq!(reply.message.len() % 8, 0, "padded to 8 bytes, also the last");
    }
    assert!(client.is_alive());
}

#[test]
fn what_a_compound_reads_is_bounded() {
    let limits = Limits { io_bytes_max: 64 << 10, ..Limits::default() };
    let server = TestServer::start(Config { limits, ..Config::default() });
    let mut client = server.client();
    let file = client.create("large", CreateDisposition::Create).unwrap();
    client.write(file, 0, &vec![7; 64 << 10]).unwrap();
    let read = |length| element(Command::Read, false, read_body(file, 0, length));
    let replies = client.call_compound(&[read(64 << 10), read(32 << 10), read(64 << 10), read(1)]);
    let refused = NtStatus::INSUFFICIENT_RESOURCES;
    let expected = [NtStatus::SUCCESS, NtStatus::SUCCESS, refused, NtStatus::SUCCESS];
    assert_eq!(statuses(&replies), expected);
}

#[test]
fn unrelated_requests_stand_for_themselves() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let file = client.create("u", CreateDisposition::Create).unwrap();
    let gone = FileId { persistent: 1, volatile: 2 };
    let replies = client.call_compound(&[
        element(Command::Write, false, write_body(gone, 0, b"a")),
        element(Command::Write, false, write_body(file, 0, b"b")),
        element(Command::Close, false, close_body(file)),
        element(Command::Close, false, close_body(file)),
    ]);
    let expected = [NtStatus::FILE_CLOSED, NtStatus::SUCCESS, NtStatus::SUCCESS, NtStatus::FILE_CLOSED];
    assert_eq!(statuses(&replies), expected);
}

#[test]
fn a_failed_create_fails_what_is_related_to_it() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let replies = client.call_compound(&[
        create(false, "missing", CreateDisposition::Open),
        element(Command::Read, true, read_body(FileId::ANY, 0, 1)),
        element(Command::Close, true, close_body(FileId::ANY)),
        create(true, "found", CreateDisposition::Create),
        element(Command::Close, true, close_body(FileId::ANY)),
    ]);
    let missing = NtStatus::OBJECT_NAME_NOT_FOUND;
    assert_eq!(statuses(&replies), [missing, missing, missing, NtStatus::SUCCESS, NtStatus::SUCCESS]);
}

#[test]
fn another_failure_does_not() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let replies = client.call_compound(&[
        create(false, "empty", CreateDisposition::Create),
        element(Command::Read, true, read_body(FileId::ANY, 0, 1)),
        element(Command::Close, true, close_body(FileId::ANY)),
    ]);
    let expected = [NtStatus::SUCCESS, NtStatus::END_OF_FILE, NtStatus::SUCCESS];
    assert_eq!(statuses(&replies), expected);
}

#[test]
fn the_first_is_related_to_nothing() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let replies = client.call_compound(&[
        element(Command::Close, true, close_body(FileId::ANY)),
        element(Command::Close, true, close_body(FileId::ANY)),
        create(false, "afresh", CreateDisposition::Create),
        element(Command::Close, true, close_body(FileId::ANY)),
    ]);
    let invalid = NtStatus::INVALID_PARAMETER;
    assert_eq!(statuses(&replies), [invalid, invalid, NtStatus::SUCCESS, NtStatus::SUCCESS]);
}

#[test]
fn without_a_session_there_is_nothing_to_be_related_to() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let session = client.session_id;
    client.session_id = 0xBAD;
    client.sign = false;
    let replies = client.call_compound(&[
        create(false, "x", CreateDisposition::Create),
        element(Command::Close, true, close_body(FileId::ANY)),
    ]);
    assert_eq!(statuses(&replies), [NtStatus::USER_SESSION_DELETED, NtStatus::INVALID_PARAMETER]);
    (client.session_id, client.sign) = (session, true);
    assert!(client.is_alive());
}

#[test]
fn a_tree_can_be_connected_and_used_in_one_compound() {
    let server = TestServer::start(Config::default());
    let mut client = server.log_in();
    let path = smb_wire::tree_connect::Request {
        flags: smb_wire::tree_connect::RequestFlags::empty(),
        path: r"\\server\Data".into(),
    };
    let mut body = Vec::new();
    path.encode(&mut body).unwrap();
    let replies = client.call_compound(&[
        element(Command::TreeConnect, false, body),
        create(true, "in one", CreateDisposition::Create),
        element(Command::Close, true, close_body(FileId::ANY)),
    ]);
    assert_eq!(statuses(&replies), [NtStatus::SUCCESS; 3]);
}
