//! Signatures: every algorithm, who must sign, and what becomes of a wrong one. [MS-SMB2] 3.3.5.2.4, 3.3.4.1.1.

use anabranch_smb_server::{Config, Dialect, Protection};
use smb_proto::dialect::SigningAlgorithm;
use smb_wire::create::{CreateDisposition, CreateOptions};
use smb_wire::negotiate::SecurityMode;
use smb_wire::{Command, HeaderFlags, NtStatus};

use crate::client::{Client, PASSWORD, SHARE, TestServer, USER, create_body};

const ECHO: [u8; 4] = [4, 0, 0, 0];

fn negotiated(server: &TestServer, dialect: Dialect) -> Client {
    let mut client = server.connect();
    client.negotiate(&[dialect]);
    client
}

#[test]
fn every_algorithm_signs() {
    let server = TestServer::start(Config { signing: Protection::Required, ..Config::default() });
    for algorithm in SigningAlgorithm::ALL {
        let mut client = server.connect();
        client.signing_algorithms = vec![algorithm];
        client.negotiate(&[Dialect::Smb311]);
        client.log_in(USER, PASSWORD).unwrap();
        assert_eq!(client.protection.as_ref().unwrap().algorithm(), algorithm);
        client.tree_connect(SHARE).unwrap();
        let reply = client.call(Command::Echo, &ECHO);
        assert!(reply.is_signed(), "and the client has verified it");
    }
}

#[test]
fn every_dialect_signs() {
    let server = TestServer::start(Config { signing: Protection::Required, ..Config::default() });
    for dialect in Dialect::ALL {
        let mut client = negotiated(&server, dialect);
        client.log_in(USER, PASSWORD).unwrap();
        client.tree_connect(SHARE).unwrap();
        let file = client.create("signed", CreateDisposition::OpenIf).unwrap();
        client.write(file, 0, &[5; 70_000][..if dialect > Dialect::Smb202 { 60_000 } else { 100 }]).unwrap();
        assert_eq!(client.read(file, 0, 100).unwrap(), [5; 100]);
        client.close(file).unwrap();
    }
}

#[test]
fn an_unsigned_request_is_refused_where_signing_is_required() {
    let by_server = Config { signing: Protection::Required, ..Config::default() };
    let by_client = Config { signing: Protection::Enabled, ..Config::default() };
    for (config, mode) in
        [(by_server, SecurityMode::SIGNING_ENABLED), (by_client, SecurityMode::SIGNING_REQUIRED)]
    {
        let server = TestServer::start(config);
        let mut client = server.connect();
        client.security_mode = mode;
        client.negotiate(&[Dialect::Smb311]);
        client.log_in(USER, PASSWORD).unwrap();
        client.tree_connect(SHARE).unwrap();
        client.sign = false;
        assert_eq!(client.create("unsigned", CreateDisposition::Create), Err(NtStatus::ACCESS_DENIED));
        client.sign = true;
        assert_eq!(
            client.create("unsigned", CreateDisposition::Open),
            Err(NtStatus::OBJECT_NAME_NOT_FOUND),
            "the refused request did nothing"
        );
    }
}

#[test]
fn an_unsigned_request_is_answered_unsigned_where_nobody_insists() {
    let server = TestServer::start(Config { signing: Protection::Enabled, ..Config::default() });
    let mut client = server.client();
    client.sign = false;
    let reply = client.call(Command::Echo, &ECHO);
    assert_eq!((reply.status(), reply.is_signed()), (NtStatus::SUCCESS, false));
    client.sign = true;
    assert!(client.call(Command::Echo, &ECHO).is_signed());
}

#[test]
fn a_wrong_signature_is_refused() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let body = create_body("forged", CreateDisposition::Create, CreateOptions::empty());
    // in the tree's number, at both ends of the signature, in the body
    for bit in [8 * 36, 8 * 48, 8 * 63 + 7, 8 * 64 + 3] {
        let header = client.header(Command::Create);
        let mut message = header.to_bytes().to_vec();
        message.extend_from_slice(&body);
        client.protection.as_ref().unwrap().sign(&mut message);
        message[bit / 8] ^= 1 << (bit % 8);
        client.send_frame(&message);
        assert_eq!(client.receive().status(), NtStatus::ACCESS_DENIED, "bit {bit}");
    }
    assert_eq!(client.create("forged", CreateDisposition::Open), Err(NtStatus::OBJECT_NAME_NOT_FOUND));
}

#[test]
fn negotiate_is_never_signed() {
    let server = TestServer::start(Config::default());
    let mut client = server.connect();
    let mut header = client.header(Command::Negotiate);
    header.flags = HeaderFlags::SIGNED;
    client.send_with(&header, &[36, 0]);
    assert_eq!(client.receive().status(), NtStatus::INVALID_PARAMETER);
}

#[test]
fn smb311_protects_every_tree_connect() {
    let server = TestServer::start(Config { signing: Protection::Enabled, ..Config::default() });
    let mut client = server.log_in();
    client.sign = false;
    let path = smb_wire::tree_connect::Request {
        flags: smb_wire::tree_connect::RequestFlags::empty(),
        path: r"\\server\Data".into(),
    };
    let mut body = Vec::new();
    path.encode(&mut body).unwrap();
    client.send(Command::TreeConnect, &body);
    client.expect_closed();
}

#[test]
fn the_signature_of_a_compound_covers_each_element() {
    let server = TestServer::start(Config { signing: Protection::Required, ..Config::default() });
    let mut client = server.client();
    let element = |body| crate::client::Element { command: Command::Create, related: false, body };
    let open = |name| element(create_body(name, CreateDisposition::Create, CreateOptions::empty()));
    let mut frame = client.compound(&[open("one"), open("two")]);
    // break the second
    let last = frame.len() - 1;
    frame[last] ^= 1;
    client.send_frame(&frame);
    let mut statuses = Vec::new();
    while statuses.len() < 2 {
        statuses.extend(client.receive_all().iter().map(|reply| (reply.status(), reply.is_signed())));
    }
    assert_eq!(statuses, [(NtStatus::SUCCESS, true), (NtStatus::ACCESS_DENIED, true)]);
}
