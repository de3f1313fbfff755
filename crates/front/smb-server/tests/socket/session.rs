//! Sessions: who gets one, who may use it, and when it ends. [MS-SMB2] 3.3.5.5, 3.3.5.6, 3.3.5.2.9.

use std::time::{Duration, Instant};

use anabranch_smb_server::{Config, Dialect, Limits};
use smb_wire::create::{CreateDisposition, CreateOptions};
use smb_wire::session_setup::{RequestFlags, SecurityMode};
use smb_wire::{Command, NtStatus, session_setup};

use crate::client::{Client, OTHER_USER, PASSWORD, SHARE, TestServer, USER, create_body};

const LOGOFF: [u8; 4] = [4, 0, 0, 0];

fn negotiated(server: &TestServer) -> Client {
    let mut client = server.connect();
    client.negotiate(&[Dialect::Smb311]);
    client
}

/// Opens a file that goes when it is closed.
fn doomed_file(client: &mut Client, name: &str) {
    let body = create_body(name, CreateDisposition::Create, CreateOptions::DELETE_ON_CLOSE);
    client.call(Command::Create, &body).ok().unwrap();
}

fn exists(client: &mut Client, name: &str) -> bool {
    match client.create(name, CreateDisposition::Open) {
        Ok(file) => {
            client.close(file).unwrap();
            true
        }
        // its name is being removed at this moment
        Err(NtStatus::DELETE_PENDING) => true,
        Err(status) => {
            assert_eq!(status, NtStatus::OBJECT_NAME_NOT_FOUND);
            false
        }
    }
}

#[test]
fn only_who_knows_the_password_gets_a_session() {
    let server = TestServer::start(Config::default());
    for (user, password, status) in [
        (USER, "wrong", NtStatus::LOGON_FAILURE),
        (USER, "", NtStatus::LOGON_FAILURE),
        ("nobody", PASSWORD, NtStatus::LOGON_FAILURE),
        ("gone", PASSWORD, NtStatus::ACCOUNT_DISABLED),
        ("gone", "wrong", NtStatus::LOGON_FAILURE),
    ] {
        let mut client = negotiated(&server);
        assert_eq!(client.log_in(user, password).unwrap_err(), status, "{user} {password}");
        // the session that was begun has ended
        assert_eq!(client.call(Command::Logoff, &LOGOFF).status(), NtStatus::USER_SESSION_DELETED);
        client.session_id = 0;
        client.log_in(USER, PASSWORD).unwrap();
    }
    let mut client = negotiated(&server);
    client.log_in("ANN", PASSWORD).expect("names are compared without regard to case");
}

#[test]
fn a_malformed_token_is_refused() {
    let server = TestServer::start(Config::default());
    for token in [&b""[..], b"NTLMSSP\0\x09\0\0\0", &[0x60; 40], &[0xff; 1000]] {
        let mut client = negotiated(&server);
        let (_, reply) = client.session_setup(token);
        assert_eq!(reply.status(), NtStatus::INVALID_PARAMETER);
    }
}

#[test]
fn a_session_in_progress_serves_nothing() {
    let server = TestServer::start(Config::default());
    let mut client = negotiated(&server);
    let randomness = auth::Randomness { client_challenge: [0; 8], session_key: [0; 16], timestamp: 0 };
    let credentials = auth::Credentials { user: USER.into(), domain: String::new(), nt_hash: [0; 16] };
    let (token, _) = auth::Initiator::start(credentials, randomness);
    let (_, reply) = client.session_setup(&token);
    assert_eq!(reply.status(), NtStatus::MORE_PROCESSING_REQUIRED);
    client.session_id = reply.header.session_id;
    assert_eq!(client.tree_connect_path(r"\\server\Data").status(), NtStatus::USER_SESSION_DELETED);
}

#[test]
fn a_session_belongs_to_its_connection() {
    let server = TestServer::start(Config::default());
    let mut owner = server.client();
    let mut thief = server.client();
    let own = thief.session_id;
    thief.session_id = owner.session_id;
    thief.sign = false;
    assert_eq!(thief.create("x", CreateDisposition::Create), Err(NtStatus::USER_SESSION_DELETED));
    thief.session_id = owner.session_id ^ 0x4000;
    assert_eq!(thief.create("x", CreateDisposition::Create), Err(NtStatus::USER_SESSION_DELETED));
    thief.session_id = own;
    thief.sign = true;
    assert!(thief.is_alive() && owner.is_alive());
}

#[test]
fn a_session_has_one_channel_where_multichannel_is_off() {
    let limits = Limits { channels_per_session_max: 1, ..Limits::default() };
    let server = TestServer::start(Config { limits, ..Config::default() });
    let owner = server.client();
    let mut second = negotiated(&server);
    second.session_id = owner.session_id;
    let request = session_setup::Request {
        flags: RequestFlags::BINDING,
        security_mode: SecurityMode::SIGNING_ENABLED,
        capabilities: smb_wire::negotiate::Capabilities::empty(),
        previous_session_id: 0,
        security_buffer: b"token",
    };
    let mut body = Vec::new();
    request.encode(&mut body).unwrap();
    assert_eq!(second.call(Command::SessionSetup, &body).status(), NtStatus::REQUEST_NOT_ACCEPTED);
}

#[test]
fn logoff_ends_the_session_and_closes_its_files() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let mut other = server.client();
    doomed_file(&mut client, "logoff");
    assert!(exists(&mut other, "logoff"));
    let reply = client.call(Command::Logoff, &LOGOFF);
    assert_eq!((reply.status(), reply.is_signed()), (NtStatus::SUCCESS, true));
    assert!(!exists(&mut other, "logoff"));
    client.sign = false;
    assert_eq!(client.call(Command::Logoff, &LOGOFF).status(), NtStatus::USER_SESSION_DELETED);
    assert_eq!(client.create("y", CreateDisposition::Create), Err(NtStatus::USER_SESSION_DELETED));
}

#[test]
fn a_lost_connection_closes_its_files() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let mut other = server.client();
    doomed_file(&mut client, "lost");
    drop(client);
    let begun = Instant::now();
    while exists(&mut other, "lost") {
        assert!(begun.elapsed() < Duration::from_secs(60), "the file should go with its connection");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_new_session_replaces_the_users_previous_one() {
    let server = TestServer::start(Config::default());
    let mut old = server.client();
    doomed_file(&mut old, "previous");
    let mut new = negotiated(&server);
    new.previous_session_id = old.session_id;
    new.log_in(USER, PASSWORD).unwrap();
    new.tree_connect(SHARE).unwrap();
    assert!(!exists(&mut new, "previous"), "what the old session had open is closed");
    assert_eq!(old.create("z", CreateDisposition::Create), Err(NtStatus::USER_SESSION_DELETED));
}

#[test]
fn nobody_ends_the_session_of_another_user() {
    let server = TestServer::start(Config::default());
    let mut victim = server.client();
    let mut attacker = negotiated(&server);
    attacker.previous_session_id = victim.session_id;
    attacker.log_in(OTHER_USER, PASSWORD).unwrap();
    let file = victim.create("still", CreateDisposition::OpenIf).unwrap();
    victim.close(file).unwrap();
    // nor without the password
    let mut attacker = negotiated(&server);
    attacker.previous_session_id = victim.session_id;
    attacker.log_in(USER, "wrong").unwrap_err();
    assert!(victim.is_alive());
    assert!(exists(&mut victim, "still"));
}

#[test]
fn authenticating_again_keeps_the_session() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let id = client.session_id;
    let file = client.create("again", CreateDisposition::Create).unwrap();
    client.log_in(USER, PASSWORD).unwrap();
    assert_eq!(client.session_id, id);
    client.write(file, 0, b"kept").unwrap();
    assert_eq!(client.read(file, 0, 10).unwrap(), b"kept");
    // a failure ends it
    client.log_in(USER, "wrong").unwrap_err();
    assert_eq!(client.create("gone", CreateDisposition::Create), Err(NtStatus::USER_SESSION_DELETED));
}

#[test]
fn a_connection_has_several_sessions() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let first = (client.session_id, client.tree_id, client.protection.take());
    client.session_id = 0;
    client.log_in(OTHER_USER, PASSWORD).unwrap();
    assert_ne!(client.session_id, first.0);
    let foreign = client.create("x", CreateDisposition::OpenIf);
    assert_eq!(foreign, Err(NtStatus::NETWORK_NAME_DELETED), "a tree belongs to its session");
    client.call(Command::Logoff, &LOGOFF).ok().unwrap();
    (client.session_id, client.tree_id, client.protection) = first;
    assert!(!exists(&mut client, "x"));
}
