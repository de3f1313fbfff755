//! SMB over QUIC: the same server, and whether its clients may rely on what QUIC encrypts. [MS-SMB2] 2.2.3.1.5, 3.3.5.4.

use anabranch_smb_server::{Config, Dialect, Protection};
use net::Transport;
use share::Terms;
use smb_wire::create::CreateDisposition;
use smb_wire::negotiate::Response;
use smb_wire::negotiate_context::{NegotiateContext, TransportFlags};
use smb_wire::session_setup::SessionFlags;
use smb_wire::tree_connect::ShareFlags;
use smb_wire::{Command, NtStatus};

use crate::client::{Client, PASSWORD, Reply, SHARE, TestServer, USER};

const ACCEPT: TransportFlags = TransportFlags::ACCEPT_TRANSPORT_LEVEL_SECURITY;

/// Encryption is required, and QUIC is enough for clients that ask for it.
fn relying() -> Config {
    Config { encryption: Protection::Required, encryption_over_quic: false, ..Config::default() }
}

/// The transport context of a reply to NEGOTIATE.
fn transport_of(reply: &Reply) -> Option<TransportFlags> {
    let response = Response::decode(&reply.message).unwrap();
    response.contexts.iter().find_map(|context| match context {
        NegotiateContext::Transport(flags) => Some(*flags),
        _ => None,
    })
}

/// Negotiates with this transport context, and logs on.
fn log_in(mut client: Client, transport: Option<TransportFlags>) -> (Client, Option<TransportFlags>) {
    client.transport = transport;
    let reply = client.negotiate(&[Dialect::Smb311]);
    let told = transport_of(&reply);
    client.log_in(USER, PASSWORD).unwrap();
    (client, told)
}

#[test]
fn files_are_read_and_written_over_quic() {
    let server = TestServer::start(Config::default());
    let (mut client, told) = log_in(server.connect_over_quic(), Some(ACCEPT));
    assert_eq!(told, None, "unless the server is told to, it does not rely on QUIC");
    client.tree_connect(SHARE).unwrap();
    let file = client.create("large", CreateDisposition::Create).unwrap();
    let data: Vec<u8> = (0..60_000_u32).map(|n| n.to_le_bytes()[1]).collect();
    for round in 0..80 {
        client.write(file, round * 60_000, &data).unwrap();
    }
    for round in 0..80 {
        assert!(client.read(file, round * 60_000, 60_000).unwrap() == data, "{round}");
    }
    client.close(file).unwrap();
    let reports = server.server.report();
    assert_eq!(reports.len(), 1);
    assert_eq!(reports[0].channels[0].transport, Transport::Quic);
    // What one client wrote over QUIC, another sees over TCP.
    let mut other = server.client();
    let file = other.create("large", CreateDisposition::Open).unwrap();
    assert!(other.read(file, 79 * 60_000, 60_000).unwrap() == data);
}

#[test]
fn a_client_that_relies_on_quic_need_not_encrypt() {
    let server = TestServer::on_terms(relying(), Terms::ENCRYPTED);
    let (mut client, told) = log_in(server.connect_over_quic(), Some(ACCEPT));
    assert_eq!(told, Some(ACCEPT));
    assert!(!client.session_flags.contains(SessionFlags::ENCRYPT_DATA));
    let tree = client.tree_connect(SHARE).unwrap();
    assert!(!tree.share_flags.contains(ShareFlags::ENCRYPT_DATA));
    let file = client.create("plain", CreateDisposition::Create).unwrap();
    client.write(file, 0, b"only QUIC encrypts this").unwrap();
    assert_eq!(client.read(file, 0, 100).unwrap(), b"only QUIC encrypts this");
    // It may encrypt all the same.
    client.encrypt = true;
    assert_eq!(client.read(file, 0, 4).unwrap(), b"only");
    assert!(client.call(Command::Echo, &[4, 0, 0, 0]).encrypted);
}

#[test]
fn who_does_not_ask_has_to_encrypt_over_quic_too() {
    let server = TestServer::start(relying());
    for transport in [None, Some(TransportFlags::empty())] {
        let (mut client, told) = log_in(server.connect_over_quic(), transport);
        assert_eq!(told, None);
        assert!(client.session_flags.contains(SessionFlags::ENCRYPT_DATA));
        assert_eq!(client.tree_connect(SHARE).unwrap_err(), NtStatus::ACCESS_DENIED);
        client.encrypt = true;
        client.tree_connect(SHARE).unwrap();
    }
}

#[test]
fn nobody_relies_on_tcp() {
    let server = TestServer::start(relying());
    let (mut client, told) = log_in(server.connect(), Some(ACCEPT));
    assert_eq!(told, None);
    assert_eq!(client.tree_connect(SHARE).unwrap_err(), NtStatus::ACCESS_DENIED);
}

#[test]
fn a_channel_over_tcp_of_a_session_that_relies_on_quic_has_to_encrypt() {
    let server = TestServer::start(relying());
    let mut client = server.connect_over_quic();
    client.capabilities |= smb_wire::negotiate::Capabilities::MULTI_CHANNEL;
    let (mut client, _) = log_in(client, Some(ACCEPT));
    client.tree_connect(SHARE).unwrap();
    let mut channel = server.connect();
    channel.capabilities = client.capabilities;
    channel.negotiate(&[Dialect::Smb311]);
    channel.bind(&client, USER, PASSWORD).unwrap();
    channel.tree_id = client.tree_id;
    assert_eq!(channel.create("refused", CreateDisposition::Create), Err(NtStatus::ACCESS_DENIED));
    channel.encrypt = true;
    channel.create("sealed", CreateDisposition::Create).unwrap();
    client.create("over QUIC", CreateDisposition::Create).unwrap();
    let transports: Vec<_> =
        server.server.report()[0].channels.iter().map(|channel| channel.transport).collect();
    assert_eq!(transports, [Transport::Quic, Transport::Tcp]);
}
