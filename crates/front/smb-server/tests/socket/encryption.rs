//! Encryption: every cipher, who must encrypt, and what becomes of what does not open. [MS-SMB2] 3.3.5.2.1.1,
//! 3.3.5.2.9, 3.3.5.2.11.

use anabranch_smb_server::{Config, Dialect, Protection};
use share::Terms;
use smb_proto::dialect::Cipher;
use smb_wire::create::{CreateDisposition, CreateOptions};
use smb_wire::negotiate::Response;
use smb_wire::negotiate_context::NegotiateContext;
use smb_wire::session_setup::SessionFlags;
use smb_wire::tree_connect::ShareFlags;
use smb_wire::{Command, FileId, NtStatus};

use crate::client::{Element, PASSWORD, SHARE, TestServer, USER, close_body, create_body, write_body};

const ECHO: [u8; 4] = [4, 0, 0, 0];

fn required() -> Config {
    Config { encryption: Protection::Required, ..Config::default() }
}

#[test]
fn a_client_that_lists_no_cipher_works_without_encryption() {
    let server = TestServer::start(Config::default());
    let mut client = server.connect();
    client.ciphers = Vec::new();
    client.negotiate(&[Dialect::Smb311]);
    client.log_in(USER, PASSWORD).unwrap();
    client.tree_connect(SHARE).unwrap();
    // Where it is required, it cannot log on.
    let server = TestServer::start(required());
    let mut client = server.connect();
    client.ciphers = Vec::new();
    client.negotiate(&[Dialect::Smb311]);
    assert_eq!(client.log_in(USER, PASSWORD).unwrap_err(), NtStatus::ACCESS_DENIED);
}

#[test]
fn every_cipher_encrypts() {
    let server = TestServer::start(Config::default());
    for cipher in Cipher::ALL {
        let mut client = server.connect();
        client.ciphers = vec![cipher];
        client.negotiate(&[Dialect::Smb311]);
        client.log_in(USER, PASSWORD).unwrap();
        client.encrypt = true;
        client.tree_connect(SHARE).unwrap();
        let file = client.create("sealed", CreateDisposition::OpenIf).unwrap();
        let data: Vec<u8> = (0..60_000_u32).map(|n| n.to_le_bytes()[0]).collect();
        client.write(file, 0, &data).unwrap();
        assert_eq!(client.read(file, 0, 60_000).unwrap(), data);
        let reply = client.call(Command::Echo, &ECHO);
        assert!(reply.encrypted && !reply.is_signed(), "what is encrypted is not signed");
        client.close(file).unwrap();
    }
}

#[test]
fn smb30_encrypts_with_ccm() {
    let server = TestServer::start(required());
    for dialect in [Dialect::Smb300, Dialect::Smb302] {
        let mut client = server.connect();
        client.negotiate(&[dialect]);
        client.log_in(USER, PASSWORD).unwrap();
        assert!(client.session_flags.contains(SessionFlags::ENCRYPT_DATA));
        client.encrypt = true;
        client.tree_connect(SHARE).unwrap();
    }
}

#[test]
fn an_encrypted_session_refuses_what_is_not() {
    let server = TestServer::start(required());
    let mut client = server.log_in();
    assert!(client.session_flags.contains(SessionFlags::ENCRYPT_DATA));
    client.encrypt = true;
    client.tree_connect(SHARE).unwrap();
    client.encrypt = false;
    assert_eq!(client.create("plain", CreateDisposition::Create), Err(NtStatus::ACCESS_DENIED));
    client.encrypt = true;
    assert_eq!(client.create("plain", CreateDisposition::Open), Err(NtStatus::OBJECT_NAME_NOT_FOUND));
}

#[test]
fn who_cannot_encrypt_gets_no_session_where_it_is_required() {
    let server = TestServer::start(required());
    for dialect in [Dialect::Smb202, Dialect::Smb210] {
        let mut client = server.connect();
        client.negotiate(&[dialect]);
        assert_eq!(client.log_in(USER, PASSWORD).unwrap_err(), NtStatus::ACCESS_DENIED);
    }
    let mut client = server.connect();
    client.capabilities = smb_wire::negotiate::Capabilities::LARGE_MTU;
    client.negotiate(&[Dialect::Smb302]);
    assert_eq!(client.log_in(USER, PASSWORD).unwrap_err(), NtStatus::ACCESS_DENIED);
}

#[test]
fn an_encrypted_share_refuses_what_is_not() {
    let server = TestServer::on_terms(Config::default(), Terms::ENCRYPTED);
    let mut client = server.log_in();
    assert!(!client.session_flags.contains(SessionFlags::ENCRYPT_DATA));
    let share = client.tree_connect(SHARE).unwrap();
    assert!(share.share_flags.contains(ShareFlags::ENCRYPT_DATA));
    assert_eq!(client.create("a", CreateDisposition::Create), Err(NtStatus::ACCESS_DENIED));
    client.encrypt = true;
    let file = client.create("a", CreateDisposition::Create).unwrap();
    client.close(file).unwrap();
    client.encrypt = false;
    let share = client.tree_connect("Fixed").unwrap();
    assert!(share.share_flags.is_empty());
    let mut old = server.connect();
    old.negotiate(&[Dialect::Smb210]);
    old.log_in(USER, PASSWORD).unwrap();
    assert_eq!(old.tree_connect(SHARE).unwrap_err(), NtStatus::ACCESS_DENIED);
}

#[test]
fn what_does_not_open_ends_the_connection() {
    let server = TestServer::start(Config::default());
    let sealed = |client: &mut crate::client::Client| {
        let header = client.header(Command::Echo);
        let mut message = header.to_bytes().to_vec();
        message.extend_from_slice(&ECHO);
        client.protection.as_ref().unwrap().seal(&message)
    };
    // flipped in the signature, the nonce, the size, the flags, the session and the message
    for byte in [5, 22, 36, 42, 44, 60, 115] {
        let mut client = server.client();
        let mut frame = sealed(&mut client);
        frame[byte] ^= 0x10;
        client.send_frame(&frame);
        client.expect_closed();
    }
    for length in [4, 51, 52, 53, 100] {
        let mut client = server.client();
        let frame = sealed(&mut client);
        client.send_frame(&frame[..length]);
        client.expect_closed();
    }
    assert!(server.client().is_alive());
}

#[test]
fn a_message_of_another_session_does_not_hide_in_an_encrypted_frame() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let first = (client.session_id, client.protection.take().unwrap());
    client.session_id = 0;
    client.log_in(USER, PASSWORD).unwrap();
    // sealed with the first session's key, but about the second
    let mut message = client.header(Command::Echo).to_bytes().to_vec();
    message.extend_from_slice(&ECHO);
    let frame = first.1.seal(&message);
    client.send_frame(&frame);
    client.expect_closed();
}

/// A related SESSION_SETUP is about the session of the request before it: naming another one does not get at that.
#[test]
fn a_related_session_setup_of_another_session_does_not_hide_in_an_encrypted_frame() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let first = (client.session_id, client.protection.take().unwrap());
    client.session_id = 0;
    client.log_in(USER, PASSWORD).unwrap();
    let second = std::mem::replace(&mut client.session_id, first.0);
    let second = (second, client.protection.replace(first.1).unwrap());
    client.encrypt = true;
    // without a token that anybody could log on with
    let setup = [25, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 88, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4];
    let element = |command, related, body: &[u8]| Element { command, related, body: body.to_vec() };
    let mut frame = client
        .compound(&[element(Command::Echo, false, &ECHO), element(Command::SessionSetup, true, &setup)]);
    let start = smb_wire::Header::decode(&frame).unwrap().next_command as usize;
    frame[start + 40..start + 48].copy_from_slice(&second.0.to_le_bytes());
    let sealed = client.protection.as_ref().unwrap().seal(&frame);
    client.send_frame(&sealed);
    let replies = client.receive_all();
    assert_ne!(replies[1].status(), NtStatus::SUCCESS);
    (client.session_id, client.encrypt) = (second.0, false);
    client.protection = Some(second.1);
    client.tree_connect(SHARE).unwrap();
}

#[test]
fn encryption_off_is_not_offered() {
    let server = TestServer::start(Config { encryption: Protection::Off, ..Config::default() });
    let reply = server.connect().negotiate(&[Dialect::Smb311]);
    let response = Response::decode(&reply.message).unwrap();
    let cipher = response.contexts.iter().find_map(|context| match context {
        NegotiateContext::Encryption(ciphers) => Some(u16::from(ciphers[0])),
        _ => None,
    });
    assert_eq!(cipher, Some(0), "no cipher in common");
}

#[test]
fn an_encrypted_share_is_nobodys_where_encryption_is_off() {
    let off = Config { encryption: Protection::Off, ..Config::default() };
    let server = TestServer::on_terms(off, Terms::ENCRYPTED);
    let mut client = server.log_in();
    assert_eq!(client.tree_connect(SHARE).unwrap_err(), NtStatus::ACCESS_DENIED);
    client.tree_connect("Fixed").unwrap();
}

#[test]
fn an_encrypted_compound_is_answered_in_one_frame() {
    let server = TestServer::start(required());
    let mut client = server.log_in();
    client.encrypt = true;
    client.tree_connect(SHARE).unwrap();
    let element = |command, related, body| Element { command, related, body };
    let frame = client.compound(&[
        element(Command::Create, false, create_body("c", CreateDisposition::Create, CreateOptions::empty())),
        element(Command::Write, true, write_body(FileId::ANY, 0, b"abc")),
        element(Command::Close, true, close_body(FileId::ANY)),
    ]);
    let sealed = client.protection.as_ref().unwrap().seal(&frame);
    client.send_frame(&sealed);
    let replies = client.receive_all();
    let statuses: Vec<_> = replies.iter().map(|reply| (reply.status(), reply.encrypted)).collect();
    assert_eq!(statuses, [(NtStatus::SUCCESS, true); 3]);
}

#[test]
fn nobody_slips_an_authentication_into_an_encrypted_session() {
    let server = TestServer::start(required());
    let mut client = server.log_in();
    (client.encrypt, client.sign) = (false, false);
    let (_, reply) = client.session_setup(b"whatever");
    assert_eq!(reply.status(), NtStatus::ACCESS_DENIED);
    client.encrypt = true;
    client.tree_connect(SHARE).unwrap();
    client.log_in(USER, PASSWORD).unwrap();
    assert!(client.is_alive());
}
