//! Channels: further connections of a session. [MS-SMB2] 3.3.5.5, step 4, and 3.3.7.1.

use std::time::{Duration, Instant};

use anabranch_smb_server::report::BindingRefusal;
use anabranch_smb_server::{Config, Dialect, GivenInterface, Interfaces, Limits, Protection as Required};
use auth::{Credentials, Initiator, InitiatorStep, Randomness, nt_hash};
use smb_proto::dialect::{Cipher, SigningAlgorithm};
use smb_wire::create::{CreateDisposition, CreateOptions, OplockLevel};
use smb_wire::fscc::fsctl::{Fsctl, InterfaceCapabilities, NetworkInterface, ValidateNegotiateRequest};
use smb_wire::ioctl::{IoctlFlags, Request as IoctlRequest};
use smb_wire::negotiate::{Capabilities, Dialect as WireDialect, SecurityMode};
use smb_wire::{Command, FileId, Guid, NtStatus, chain, session_setup};

use crate::client::{
    CLIENT_GUID, Client, OTHER_USER, PASSWORD, Protection, Reply, SHARE, TestServer, USER, create_body,
    read_body, write_body,
};
use crate::durable::Asking;
use crate::ioctl::{ioctl, output};

const LOGOFF: [u8; 4] = [4, 0, 0, 0];
const SMB3: [Dialect; 3] = [Dialect::Smb300, Dialect::Smb302, Dialect::Smb311];

/// A connection that has negotiated this dialect.
fn connection(server: &TestServer, dialect: Dialect) -> Client {
    negotiated(server.connect(), dialect)
}

fn negotiated(mut client: Client, dialect: Dialect) -> Client {
    client.capabilities |= Capabilities::MULTI_CHANNEL;
    client.negotiate(&[dialect]);
    client
}

/// A session of [`USER`] on a connection of its own, with a tree.
fn session(server: &TestServer, dialect: Dialect) -> Client {
    let mut client = connection(server, dialect);
    client.log_in(USER, PASSWORD).unwrap();
    client.tree_connect(SHARE).unwrap();
    client
}

/// A further channel of it.
fn channel(server: &TestServer, owner: &Client) -> Client {
    let mut client = connection(server, owner.dialect);
    client.bind(owner, USER, PASSWORD).unwrap();
    client
}

fn refusals(server: &TestServer) -> Vec<(BindingRefusal, u64)> {
    let reports = server.server.report();
    reports.iter().flat_map(|session| &session.refused_bindings).map(|r| (r.reason, r.count)).collect()
}

fn works(client: &mut Client) -> bool {
    client.create("works", CreateDisposition::OpenIf).and_then(|file| client.close(file)).is_ok()
}

fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn what_is_opened_on_one_channel_is_there_on_all() {
    let server = TestServer::start(Config::default());
    for dialect in SMB3 {
        let mut first = session(&server, dialect);
        let mut second = channel(&server, &first);
        let file = first.create("shared", CreateDisposition::OpenIf).unwrap();
        second.write(file, 0, b"from the second").unwrap();
        assert_eq!(first.read(file, 0, 100).unwrap(), b"from the second");
        let reply = second.call(Command::Read, &read_body(file, 0, 100));
        assert!(reply.is_signed() && reply.status() == NtStatus::SUCCESS, "with the channel's own key");
        second.close(file).unwrap();
        assert_eq!(first.close(file), Err(NtStatus::FILE_CLOSED));
        let reports = server.server.report();
        let report = reports.iter().find(|report| report.id == first.session_id).unwrap();
        let peers: Vec<_> = report.channels.iter().map(|channel| channel.peer).collect();
        assert_eq!(peers, [first.address(), second.address()]);
        assert!(report.multichannel && report.client_multichannel);
        first.call(Command::Logoff, &LOGOFF).ok().unwrap();
    }
}

#[test]
fn channels_encrypt_with_the_keys_of_the_session() {
    let server = TestServer::start(Config::default());
    for cipher in Cipher::ALL {
        let connection = || {
            let mut client = server.connect();
            client.ciphers = vec![cipher];
            client.negotiate(&[Dialect::Smb311]);
            client
        };
        let mut first = connection();
        first.log_in(USER, PASSWORD).unwrap();
        first.tree_connect(SHARE).unwrap();
        let mut second = connection();
        second.bind(&first, USER, PASSWORD).unwrap();
        second.encrypt = true;
        let file = second.create("sealed", CreateDisposition::OpenIf).unwrap();
        let reply = second.call(Command::Write, &write_body(file, 0, b"sealed"));
        assert!(reply.encrypted && reply.status() == NtStatus::SUCCESS);
        assert_eq!(first.read(file, 0, 10).unwrap(), b"sealed");
    }
}

#[test]
fn signing_algorithms_may_differ_unless_one_is_gmac() {
    use SigningAlgorithm::{AesCmac, AesGmac, HmacSha256};
    let server = TestServer::start(Config::default());
    let connection = |algorithm| {
        let mut client = server.connect();
        client.signing_algorithms = vec![algorithm];
        client.negotiate(&[Dialect::Smb311]);
        client
    };
    for (of_session, of_channel, expected) in [
        (AesCmac, HmacSha256, Ok(())),
        (HmacSha256, AesCmac, Ok(())),
        (AesGmac, AesGmac, Ok(())),
        (AesGmac, AesCmac, Err(NtStatus::REQUEST_OUT_OF_SEQUENCE)),
        (AesGmac, HmacSha256, Err(NtStatus::REQUEST_OUT_OF_SEQUENCE)),
        (AesCmac, AesGmac, Err(NtStatus::NOT_SUPPORTED)),
    ] {
        let mut first = connection(of_session);
        first.log_in(USER, PASSWORD).unwrap();
        first.tree_connect(SHARE).unwrap();
        let mut second = connection(of_channel);
        let bound = second.bind(&first, USER, PASSWORD);
        assert_eq!(bound, expected, "{of_session:?} {of_channel:?}");
        assert!(bound.is_err() || works(&mut second));
        assert!(works(&mut first));
    }
}

#[test]
fn a_connection_that_is_unlike_the_session_is_refused() {
    let server = TestServer::start(Config::default());
    let mut first = session(&server, Dialect::Smb302);
    for (dialect, status) in
        [(Dialect::Smb210, NtStatus::REQUEST_NOT_ACCEPTED), (Dialect::Smb300, NtStatus::INVALID_PARAMETER)]
    {
        assert_eq!(connection(&server, dialect).bind(&first, USER, PASSWORD), Err(status), "{dialect:?}");
    }
    let mut without_cipher = server.connect();
    without_cipher.capabilities = Capabilities::LARGE_MTU;
    without_cipher.negotiate(&[Dialect::Smb302]);
    assert_eq!(without_cipher.bind(&first, USER, PASSWORD), Err(NtStatus::INVALID_PARAMETER));
    let reasons = [BindingRefusal::NotMultichannel, BindingRefusal::Dialect, BindingRefusal::Cipher];
    assert_eq!(refusals(&server), reasons.map(|reason| (reason, 1)));
    assert!(works(&mut first));
    // the other way round
    let old = session(&server, Dialect::Smb210);
    let mut newer = connection(&server, Dialect::Smb302);
    assert_eq!(newer.bind(&old, USER, PASSWORD), Err(NtStatus::INVALID_PARAMETER));
}

#[test]
fn ciphers_and_their_order_of_preference_cannot_be_changed_by_binding() {
    let server = TestServer::start(Config::default());
    let first = session(&server, Dialect::Smb311);
    let mut weaker = server.connect();
    weaker.ciphers = vec![Cipher::Aes128Ccm];
    weaker.negotiate(&[Dialect::Smb311]);
    assert_eq!(weaker.bind(&first, USER, PASSWORD), Err(NtStatus::INVALID_PARAMETER));
    let mut none = server.connect();
    none.ciphers = Vec::new();
    none.negotiate(&[Dialect::Smb311]);
    assert_eq!(none.bind(&first, USER, PASSWORD), Err(NtStatus::INVALID_PARAMETER));
}

#[test]
fn a_binding_is_signed_with_the_key_of_the_session() {
    let server = TestServer::start(Config::default());
    let mut first = session(&server, Dialect::Smb311);
    let other = session(&server, Dialect::Smb311);
    // unsigned
    let mut second = connection(&server, Dialect::Smb311);
    second.session_id = first.session_id;
    second.protection = first.protection.as_ref().map(Protection::of_session);
    assert_eq!(second.bind_with_keys(USER, PASSWORD), Err(NtStatus::INVALID_PARAMETER));
    // with the key of another session, although of the same user
    let mut second = connection(&server, Dialect::Smb311);
    second.session_id = first.session_id;
    second.protection = other.protection.as_ref().map(Protection::of_session);
    second.sign = true;
    assert_eq!(second.bind_with_keys(USER, PASSWORD), Err(NtStatus::ACCESS_DENIED));
    assert_eq!(refusals(&server), [(BindingRefusal::NotSigned, 1), (BindingRefusal::Signature, 1)]);
    assert!(works(&mut first));
}

#[test]
fn only_the_sessions_user_may_add_a_channel() {
    let server = TestServer::start(Config::default());
    let mut first = session(&server, Dialect::Smb311);
    let mut second = connection(&server, Dialect::Smb311);
    assert_eq!(second.bind(&first, OTHER_USER, PASSWORD), Err(NtStatus::ACCESS_DENIED));
    assert_eq!(second.bind(&first, USER, "wrong"), Err(NtStatus::LOGON_FAILURE));
    assert_eq!(second.create("x", CreateDisposition::Create), Err(NtStatus::USER_SESSION_DELETED));
    assert_eq!(refusals(&server), [(BindingRefusal::User, 1), (BindingRefusal::Authentication, 1)]);
    assert!(works(&mut first), "a binding that fails leaves the session alone");
    second.bind(&first, USER, PASSWORD).expect("the same connection may try again");
    assert!(works(&mut second));
}

#[test]
fn there_is_no_binding_to_a_session_that_is_not_there() {
    let server = TestServer::start(Config::default());
    let mut first = session(&server, Dialect::Smb311);
    let mut second = connection(&server, Dialect::Smb311);
    first.session_id ^= 0x4000;
    assert_eq!(second.bind(&first, USER, PASSWORD), Err(NtStatus::USER_SESSION_DELETED), "unknown");
    first.session_id ^= 0x4000;
    first.call(Command::Logoff, &LOGOFF).ok().unwrap();
    assert_eq!(second.bind(&first, USER, PASSWORD), Err(NtStatus::USER_SESSION_DELETED), "logged off");
    let mut dropped = session(&server, Dialect::Smb311);
    second.bind(&dropped, USER, PASSWORD).unwrap();
    assert!(works(&mut dropped));
}

#[test]
fn a_session_is_bound_to_a_connection_once() {
    let server = TestServer::start(Config::default());
    let first = session(&server, Dialect::Smb311);
    let mut second = channel(&server, &first);
    assert_eq!(second.bind_with_keys(USER, PASSWORD), Err(NtStatus::REQUEST_NOT_ACCEPTED));
}

#[test]
fn a_binding_with_a_malformed_token_fails_alone() {
    let server = TestServer::start(Config::default());
    let mut first = session(&server, Dialect::Smb311);
    for token in [&b""[..], b"NTLMSSP\0\x09\0\0\0", &[0x60; 40], &[0xff; 1000]] {
        let mut second = connection(&server, Dialect::Smb311);
        second.session_id = first.session_id;
        second.protection = first.protection.as_ref().map(Protection::of_session);
        (second.sign, second.binding) = (true, true);
        let (_, reply) = second.session_setup(token);
        assert_eq!((reply.status(), reply.is_signed()), (NtStatus::INVALID_PARAMETER, true));
        second.bind(&first, USER, PASSWORD).unwrap();
        assert!(works(&mut second) && works(&mut first));
    }
}

#[test]
fn a_negotiation_that_was_changed_ends_its_channel_only() {
    let server = TestServer::start(Config::default());
    let mut first = session(&server, Dialect::Smb302);
    let mut second = channel(&server, &first);
    let changed = ValidateNegotiateRequest {
        // what was sent had SMB2_GLOBAL_CAP_MULTI_CHANNEL and SMB2_GLOBAL_CAP_ENCRYPTION
        capabilities: Capabilities::LARGE_MTU,
        guid: CLIENT_GUID,
        security_mode: SecurityMode::SIGNING_ENABLED,
        dialects: vec![WireDialect::Smb302],
    };
    let mut input = Vec::new();
    changed.encode_into(&mut input).unwrap();
    let request = IoctlRequest {
        ctl_code: Fsctl::ValidateNegotiateInfo,
        file_id: FileId::ANY,
        input: &input,
        max_input_response: 0,
        output_count: 0,
        max_output_response: 24,
        flags: IoctlFlags::IS_FSCTL,
    };
    let mut body = Vec::new();
    request.encode(&mut body).unwrap();
    second.send(Command::Ioctl, &body);
    second.expect_closed();
    assert!(works(&mut first));
}

#[test]
fn channels_come_and_go_under_load() {
    let server = TestServer::start(Config::default());
    let first = session(&server, Dialect::Smb311);
    let file = {
        let mut second = channel(&server, &first);
        second.create("load", CreateDisposition::Create).unwrap()
    };
    std::thread::scope(|scope| {
        for worker in 0..3_u8 {
            let (server, first) = (&server, &first);
            scope.spawn(move || {
                for turn in 0..20_u8 {
                    let mut second = connection(server, Dialect::Smb311);
                    // one of the other two may not have been noticed to be gone
                    wait_for("room for a channel", || second.bind(first, USER, PASSWORD).is_ok());
                    let offset = u64::from(worker) * 16;
                    for byte in 0..16_u8 {
                        second.write(file, offset + u64::from(byte), &[turn ^ byte]).unwrap();
                    }
                    let expected: Vec<u8> = (0..16).map(|byte| turn ^ byte).collect();
                    assert_eq!(second.read(file, offset, 16).unwrap(), expected);
                }
            });
        }
    });
    let mut first = first;
    assert_eq!(first.read(file, 0, 100).unwrap().len(), 48);
    wait_for("the channels that ended go", || server.server.report()[0].channels.len() == 1);
    first.close(file).unwrap();
}

#[test]
fn another_client_guid_does_not_matter() {
    let server = TestServer::start(Config::default());
    let first = session(&server, Dialect::Smb311);
    let mut second = server.connect();
    second.client_guid = Guid([0xC2; 16]);
    second.negotiate(&[Dialect::Smb311]);
    second.bind(&first, USER, PASSWORD).unwrap();
    assert!(works(&mut second));
}

#[test]
fn a_session_has_no_more_channels_than_the_limit() {
    let limits = Limits { channels_per_session_max: 3, ..Limits::default() };
    let server = TestServer::start(Config { limits, ..Config::default() });
    let first = session(&server, Dialect::Smb311);
    let mut channels = vec![channel(&server, &first), channel(&server, &first)];
    let mut fourth = connection(&server, Dialect::Smb311);
    assert_eq!(fourth.bind(&first, USER, PASSWORD), Err(NtStatus::INSUFFICIENT_RESOURCES));
    assert_eq!(refusals(&server), [(BindingRefusal::TooManyChannels, 1)]);
    assert!(channels.iter_mut().all(works));
    channels.pop();
    wait_for("the channel that ended makes room", || fourth.bind(&first, USER, PASSWORD).is_ok());
}

#[test]
fn at_the_limit_a_silent_channel_gives_way_to_a_new_one() {
    let limits = Limits { channels_per_session_max: 2, ..Limits::default() };
    let server = TestServer::start(Config { limits, ..Config::default() });
    let mut first = session(&server, Dialect::Smb311);
    let _lost = channel(&server, &first);
    let mut third = connection(&server, Dialect::Smb311);
    assert_eq!(third.bind(&first, USER, PASSWORD), Err(NtStatus::INSUFFICIENT_RESOURCES));
    wait_for("the silent channel gives way", || {
        assert!(works(&mut first));
        third.bind(&first, USER, PASSWORD).is_ok()
    });
    assert!(works(&mut first) && works(&mut third));
}

#[test]
fn at_the_limit_a_silent_channel_gives_way_to_one_from_another_address() {
    let limits = Limits { channels_per_session_max: 3, ..Limits::default() };
    let server = TestServer::start(Config { limits, ..Config::default() });
    let mut first = session(&server, Dialect::Smb311);
    let bound = |source: [u8; 4]| negotiated(server.connect_from(source.into()), Dialect::Smb311);
    let mut lost = bound([127, 0, 0, 2]);
    lost.bind(&first, USER, PASSWORD).unwrap();
    let mut lost_beside = bound([127, 0, 0, 3]);
    lost_beside.bind(&first, USER, PASSWORD).unwrap();
    // The server counts the silence of a channel from the last frame, which was that of its binding.
    let bound_at = Instant::now();
    wait_for("both have been silent for long", || {
        assert!(works(&mut first));
        bound_at.elapsed() > Duration::from_secs(6)
    });
    let mut newcomer = bound([127, 0, 0, 3]);
    newcomer.bind(&first, USER, PASSWORD).expect("the one from the same address gives way");
    lost_beside.expect_closed();
    let mut other_way = bound([127, 0, 0, 4]);
    other_way.bind(&first, USER, PASSWORD).expect("the one from another address gives way, too");
    lost.expect_closed();
    assert!(works(&mut first) && works(&mut newcomer) && works(&mut other_way));
}

#[test]
fn a_message_is_signed_with_the_key_of_its_own_channel() {
    let server = TestServer::start(Config::default());
    let mut first = session(&server, Dialect::Smb311);
    let mut second = channel(&server, &first);
    let file = first.create("forged", CreateDisposition::OpenIf).unwrap();
    std::mem::swap(&mut first.protection, &mut second.protection);
    for client in [&mut first, &mut second] {
        let header = client.header(Command::Write);
        let keys = client.protection.take().unwrap();
        let mut message = header.to_bytes().to_vec();
        message.extend_from_slice(&write_body(file, 0, b"forged"));
        keys.sign(&mut message);
        client.send_frame(&message);
        assert_eq!(client.receive().status(), NtStatus::ACCESS_DENIED, "signed with the other channel's key");
        client.protection = Some(keys);
    }
    std::mem::swap(&mut first.protection, &mut second.protection);
    assert_eq!(first.read(file, 0, 10), Err(NtStatus::END_OF_FILE), "nothing was written");
}

#[test]
fn a_message_is_not_taken_twice() {
    let server = TestServer::start(Config::default());
    let first = session(&server, Dialect::Smb311);
    let mut second = channel(&server, &first);
    let file = second.create("replayed", CreateDisposition::OpenIf).unwrap();
    let header = second.header(Command::Write);
    let sent = second.send_with(&header, &write_body(file, 0, b"once"));
    second.receive().ok().unwrap();
    second.send_frame(&sent);
    second.expect_closed();
}

#[test]
fn what_the_server_demands_it_demands_on_every_channel() {
    let signing = Config { signing: Required::Required, ..Config::default() };
    let server = TestServer::start(signing);
    let mut second = channel(&server, &session(&server, Dialect::Smb311));
    second.sign = false;
    let refused = second.create("unsigned", CreateDisposition::Create);
    assert!(matches!(refused, Err(NtStatus::ACCESS_DENIED | NtStatus::USER_SESSION_DELETED)), "{refused:?}");

    let server = TestServer::start(Config { encryption: Required::Required, ..Config::default() });
    let mut first = connection(&server, Dialect::Smb311);
    first.log_in(USER, PASSWORD).unwrap();
    first.encrypt = true;
    first.tree_connect(SHARE).unwrap();
    let mut second = channel(&server, &first);
    assert_eq!(second.create("plain", CreateDisposition::Create), Err(NtStatus::ACCESS_DENIED));
    second.encrypt = true;
    assert!(works(&mut second) && works(&mut first));
}

#[test]
fn a_session_outlives_its_first_connection_and_ends_with_its_last() {
    let server = TestServer::start(Config::default());
    let mut witness = session(&server, Dialect::Smb311);
    let mut first = session(&server, Dialect::Smb311);
    let mut second = channel(&server, &first);
    let body = create_body("doomed", CreateDisposition::Create, CreateOptions::DELETE_ON_CLOSE);
    first.call(Command::Create, &body).ok().unwrap();
    let id = first.session_id;
    drop(first);
    let channels = || {
        let reports = server.server.report();
        reports.iter().find(|report| report.id == id).map_or(0, |report| report.channels.len())
    };
    wait_for("the first channel goes", || channels() == 1);
    assert!(works(&mut second));
    let file = witness.create("doomed", CreateDisposition::Open).expect("it is still open, and not deleted");
    witness.close(file).unwrap();
    let mut third = channel(&server, &second);
    assert!(works(&mut third));
    drop((second, third));
    wait_for("the session goes", || channels() == 0);
    wait_for("its file goes", || {
        witness.create("doomed", CreateDisposition::Open) == Err(NtStatus::OBJECT_NAME_NOT_FOUND)
    });
}

#[test]
fn logoff_ends_the_session_on_every_channel() {
    let server = TestServer::start(Config::default());
    let mut first = session(&server, Dialect::Smb311);
    let mut second = channel(&server, &first);
    second.call(Command::Logoff, &LOGOFF).ok().unwrap();
    for client in [&mut first, &mut second] {
        assert_eq!(client.create("x", CreateDisposition::Create), Err(NtStatus::USER_SESSION_DELETED));
        (client.session_id, client.sign) = (0, false);
        assert!(client.is_alive(), "the connection goes on");
    }
}

#[test]
fn authenticating_again_works_on_any_channel_and_failing_ends_the_session() {
    let server = TestServer::start(Config::default());
    let mut first = session(&server, Dialect::Smb311);
    let mut second = channel(&server, &first);
    second.log_in(USER, PASSWORD).unwrap();
    assert!(works(&mut second) && works(&mut first));
    second.log_in(USER, "wrong").unwrap_err();
    assert_eq!(first.create("x", CreateDisposition::Create), Err(NtStatus::USER_SESSION_DELETED));
}

#[test]
fn a_new_session_replaces_the_previous_one_with_all_its_channels() {
    let server = TestServer::start(Config::default());
    let mut first = session(&server, Dialect::Smb311);
    let mut second = channel(&server, &first);
    let mut new = connection(&server, Dialect::Smb311);
    new.previous_session_id = first.session_id;
    new.log_in(USER, PASSWORD).unwrap();
    for client in [&mut first, &mut second] {
        assert_eq!(client.create("x", CreateDisposition::Create), Err(NtStatus::USER_SESSION_DELETED));
    }
}

#[test]
fn the_capability_is_confirmed_to_clients_of_smb3_unless_it_is_off() {
    let one = Limits { channels_per_session_max: 1, ..Limits::default() };
    for (limits, expected) in [(Limits::default(), true), (one, false)] {
        let server = TestServer::start(Config { limits, ..Config::default() });
        for dialect in [Dialect::Smb210, Dialect::Smb300, Dialect::Smb311] {
            let mut client = server.connect();
            client.capabilities |= Capabilities::MULTI_CHANNEL;
            let reply = client.negotiate(&[dialect]);
            let response = smb_wire::negotiate::Response::decode(&reply.message).unwrap();
            let confirmed = response.capabilities.contains(Capabilities::MULTI_CHANNEL);
            assert_eq!(confirmed, expected && dialect >= Dialect::Smb300, "{dialect:?}");
        }
        let mut client = server.connect();
        let reply = client.negotiate(&[Dialect::Smb311]);
        let response = smb_wire::negotiate::Response::decode(&reply.message).unwrap();
        assert!(!response.capabilities.contains(Capabilities::MULTI_CHANNEL), "it did not ask");
    }
}

fn interfaces(client: &mut Client, room: u32) -> Reply {
    ioctl(client, Fsctl::QueryNetworkInterfaceInfo, FileId::ANY, &[], room)
}

#[test]
fn clients_are_told_where_they_may_open_channels() {
    let given = |address: &str, link_speed, rss| GivenInterface {
        address: address.parse().unwrap(),
        link_speed,
        rss,
    };
    let given = vec![
        given("192.0.2.1", Some(25_000_000_000), true),
        given("2001:db8::1", Some(1_000_000_000), false),
    ];
    let config = |limits| Config {
        interfaces: Interfaces { listen: Vec::new(), given: given.clone() },
        limits,
        ..Config::default()
    };
    let server = TestServer::start(config(Limits::default()));
    let mut client = session(&server, Dialect::Smb311);
    let reply = interfaces(&mut client, 4096).ok().unwrap();
    let list = NetworkInterface::decode_list(&output(&reply)).unwrap();
    let rows: Vec<_> = list
        .iter()
        .map(|entry| {
            let rss = entry.capabilities.contains(InterfaceCapabilities::RSS_CAPABLE);
            (entry.address.ip().to_string(), entry.link_speed, rss)
        })
        .collect();
    let expected = [("192.0.2.1", 25_000_000_000, true), ("2001:db8::1", 1_000_000_000, false)];
    assert_eq!(rows, expected.map(|(address, speed, rss)| (address.to_owned(), speed, rss)));
    assert!(list.iter().all(|entry| entry.if_index != 0) && list[0].if_index != list[1].if_index);
    assert_eq!(interfaces(&mut client, 100).status(), NtStatus::BUFFER_TOO_SMALL);
    let asked = server.server.report()[0].interfaces_asked.unwrap();
    assert_eq!((asked.addresses, asked.rss_addresses), (2, 1));
    // not where there are no channels, and none is told where there is none
    let mut old = session(&server, Dialect::Smb210);
    assert_eq!(interfaces(&mut old, 4096).status(), NtStatus::NOT_SUPPORTED);
    let off = TestServer::start(config(Limits { channels_per_session_max: 1, ..Limits::default() }));
    assert_eq!(interfaces(&mut off.client(), 4096).status(), NtStatus::NOT_SUPPORTED);
    let none = TestServer::start(Config::default());
    assert_eq!(interfaces(&mut none.client(), 4096).status(), NtStatus::NOT_SUPPORTED);
}

#[test]
fn a_binding_that_comes_after_its_connection_has_ended_binds_nothing() {
    let server = TestServer::start(Config::default());
    let mut holder = server.client();
    Asking::new(OplockLevel::Batch, Vec::new()).send(&mut holder, "held").unwrap();
    let (first, mut second) = (session(&server, Dialect::Smb311), session(&server, Dialect::Smb311));
    // It waits for the holder, until its session ends with the connection.
    let create = create_body("held", CreateDisposition::Open, CreateOptions::empty());
    let waits = second.header(Command::Create);
    let own = second.protection.replace(Protection::of_session(first.protection.as_ref().unwrap()));
    (second.session_id, second.sign, second.binding) = (first.session_id, true, true);
    let credentials =
        Credentials { user: USER.to_owned(), domain: String::new(), nt_hash: nt_hash(PASSWORD) };
    let randomness = Randomness { client_challenge: [3; 8], session_key: [4; 16], timestamp: 1 << 57 };
    let (token, initiator) = Initiator::start(credentials, randomness);
    let (_, reply) = second.session_setup(&token);
    assert_eq!(reply.status(), NtStatus::MORE_PROCESSING_REQUIRED);
    let challenge = session_setup::Response::decode(&reply.message).unwrap();
    let Ok(InitiatorStep::Continue { token, .. }) = initiator.step(challenge.security_buffer) else {
        panic!("the server is content too early")
    };
    let mut compound = waits.to_bytes().to_vec();
    compound.extend(create);
    let start = chain::link(&mut compound, 0).unwrap();
    own.unwrap().sign(&mut compound[..start]);
    compound.extend(second.header(Command::SessionSetup).to_bytes());
    compound.extend(second.session_setup_body(&token));
    second.protection.as_ref().unwrap().sign(&mut compound[start..]);
    second.send_frame(&compound);
    drop(second);
    wait_for("the end of the second session", || server.server.report().len() == 2);
    drop(first);
    wait_for("the end of the first session", || server.server.report().len() == 1);
}

#[test]
fn an_authentication_that_is_lost_with_its_channel_leaves_the_session_as_it_was() {
    let server = TestServer::start(Config::default());
    let mut first = session(&server, Dialect::Smb311);
    let mut second = channel(&server, &first);
    let (_, reply) = second.session_setup(&auth::ntlm::negotiate_message());
    assert_eq!(reply.status(), NtStatus::MORE_PROCESSING_REQUIRED);
    drop(second);
    wait_for("the end of the channel", || server.server.report()[0].channels.len() == 1);
    wait_for("another channel", || connection(&server, Dialect::Smb311).bind(&first, USER, PASSWORD).is_ok());
    assert!(works(&mut first));
}
