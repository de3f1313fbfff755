//! Frames that no honest client sends. Whatever comes, the connection ends or the request fails with the status that
//! the specification names, and the server and its other clients go on.

use anabranch_smb_server::{Config, Dialect};
use proptest::prelude::*;
use smb_wire::create::{CreateDisposition, CreateOptions};
use smb_wire::{Command, FileId, HeaderFlags, NtStatus};

use crate::client::{Client, Element, TestServer, close_body, create_body, read_body, write_body};

const ECHO: [u8; 4] = [4, 0, 0, 0];

/// Every command with its number.
fn commands() -> Vec<Command> {
    (0..=0x12).map(Command::from).collect()
}

#[test]
fn frames_of_no_protocol_end_the_connection() {
    let server = TestServer::start(Config::default());
    let mut witness = server.client();
    for frame in
        [&b"GET / HTTP/1.1\r\n\r\n"[..], b"", b"\xfe", b"\xfeSM", b"\xfcSMB compressed....", &[0; 200]]
    {
        let mut client = server.client();
        client.send_frame(frame);
        client.expect_closed();
    }
    for raw in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0x81, 0, 0, 0], &[0, 0xff, 0xff, 0xff, 0xfe]] {
        let mut client = server.client();
        client.send_raw(raw);
        client.expect_closed();
    }
    assert!(witness.is_alive());
}

#[test]
fn a_frame_is_no_longer_than_the_largest_write() {
    let server = TestServer::start(Config::default());
    // there is no large one before anybody has logged on
    for length in [[0, 0x10, 0, 0], [0, 1, 0, 1]] {
        let mut client = server.connect();
        client.send_raw(&length);
        client.expect_closed();
    }
    let mut client = server.connect();
    client.negotiate(&[Dialect::Smb311]);
    client.send_raw(&[0, 0x10, 0, 0]);
    client.expect_closed();
    let mut client = server.client();
    client.send_raw(&[0, 0x90, 0, 0]);
    client.expect_closed();
}

#[test]
fn truncated_messages() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    for length in [0, 4, 20, 63] {
        let mut client = server.client();
        let message = client.header(Command::Echo).to_bytes();
        client.send_frame(&message[..length]);
        client.expect_closed();
    }
    for command in commands() {
        if matches!(command, Command::Negotiate | Command::Cancel) {
            continue;
        }
        for body in [&[][..], &[9], &[0, 0, 0, 0], &[0xff; 8]] {
            let status = client.call(command, body).status();
            assert_eq!(status, NtStatus::INVALID_PARAMETER, "{command:?} {body:?}");
        }
    }
    assert!(client.is_alive());
}

#[test]
fn unknown_commands_and_responses_end_the_connection() {
    let server = TestServer::start(Config::default());
    for command in [0x13, 0x14, 0xff, 0xffff] {
        let mut client = server.client();
        client.send(Command::from(command), &ECHO);
        client.expect_closed();
    }
    let mut client = server.client();
    let mut header = client.header(Command::Echo);
    header.flags |= HeaderFlags::SERVER_TO_REDIR;
    client.sign = false;
    client.send_with(&header, &ECHO);
    client.expect_closed();
}

#[test]
fn chains_that_lead_nowhere_end_the_connection() {
    let server = TestServer::start(Config::default());
    // into itself, backwards, unaligned, behind the end, into the middle of a header
    for next in [1_u32, 8, 32, 63, 68, 100, 0x1000, u32::MAX, u32::MAX - 7] {
        let mut client = server.client();
        let mut header = client.header(Command::Echo);
        header.next_command = next;
        client.send_with(&header, &[4, 0, 0, 0, 0, 0, 0, 0]);
        client.expect_closed();
    }
    // a second message that is none
    let mut client = server.client();
    let mut frame = client.header(Command::Echo).to_bytes().to_vec();
    frame[20..24].copy_from_slice(&72_u32.to_le_bytes());
    frame.extend_from_slice(&[4, 0, 0, 0, 0, 0, 0, 0]);
    frame.extend_from_slice(&[0xAA; 80]);
    client.send_frame(&frame);
    client.expect_closed();
}

#[test]
fn a_compound_does_not_use_an_identifier_twice() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let element = |related| Element { command: Command::Echo, related, body: ECHO.to_vec() };
    let mut frame = client.compound(&[element(false), element(false)]);
    let second = u32::from_le_bytes(frame[20..24].try_into().unwrap()) as usize;
    let first_id: [u8; 8] = frame[24..32].try_into().unwrap();
    frame[second + 24..second + 32].copy_from_slice(&first_id);
    client.send_frame(&frame);
    client.expect_closed();
}

#[test]
fn an_async_header_names_no_tree() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let mut header = client.header(Command::Create);
    header.target = smb_wire::Target::Async { async_id: 1 << 32 };
    client.send_with(&header, &create_body("x", CreateDisposition::Create, CreateOptions::empty()));
    assert_eq!(client.receive().status(), NtStatus::NETWORK_NAME_DELETED);
}

#[test]
fn files_of_others_are_closed_to_a_client() {
    let server = TestServer::start(Config::default());
    let mut owner = server.client();
    let file = owner.create("own", CreateDisposition::Create).unwrap();
    let mut thief = server.client();
    for id in [
        file,
        FileId { persistent: file.volatile, volatile: file.persistent },
        FileId { volatile: 0, ..file },
        FileId::ANY,
        FileId { persistent: 0, volatile: 0 },
    ] {
        assert_eq!(thief.call(Command::Close, &close_body(id)).status(), NtStatus::FILE_CLOSED, "{id:?}");
        if id != file {
            assert_eq!(owner.call(Command::Close, &close_body(id)).status(), NtStatus::FILE_CLOSED);
        }
    }
    owner.close(file).unwrap();
}

/// Sends a request with any body, and sees whether the server answers it or ends the connection; in either case it
/// lives.
fn survives(server: &TestServer, client: &mut Client, command: Command, body: &[u8]) {
    client.send(command, body);
    if command == Command::Cancel {
        return;
    }
    match client.try_receive_all() {
        Some(_) => {}
        None => *client = server.client(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_body_harms_the_server(
        bodies in prop::collection::vec((1_u16..0x13, prop::collection::vec(any::<u8>(), 0..200)), 1..8)
    ) {
        thread_local!(static SERVER: TestServer = TestServer::start(Config::default()));
        SERVER.with(|server| {
            let mut client = server.client();
            for (command, mut body) in bodies {
                let command = Command::from(command);
                if matches!(command, Command::Logoff | Command::TreeDisconnect) {
                    continue;
                }
                // The right StructureSize, so that there is something behind it to look at.
                if let Some(size) = body.first_chunk_mut::<2>() {
                    *size = structure_size(command).to_le_bytes();
                }
                survives(server, &mut client, command, &body);
            }
            assert!(server.client().is_alive());
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_change_on_the_way_harms_the_server(
        changes in prop::collection::vec((0_usize..500, any::<u8>()), 1..6),
        cut in prop::option::of(0_usize..500),
    ) {
        thread_local!(static SERVER: TestServer = TestServer::start(Config::default()));
        SERVER.with(|server| {
            let mut client = server.client();
            client.sign = false;
            let element = |command, related, body| Element { command, related, body };
            let open = create_body("changed", CreateDisposition::OpenIf, CreateOptions::DELETE_ON_CLOSE);
            let mut frame = client.compound(&[
                element(Command::Create, false, open),
                element(Command::Write, true, write_body(FileId::ANY, 0, b"some bytes")),
                element(Command::Read, true, read_body(FileId::ANY, 0, 10)),
                element(Command::Close, true, close_body(FileId::ANY)),
            ]);
            for (at, value) in changes {
                let at = at % frame.len();
                frame[at] = value;
            }
            if let Some(cut) = cut {
                frame.truncate(cut);
            }
            client.send_frame(&frame);
            // Some changes turn it into a request that waits; whatever it is, the server serves others.
            assert!(server.client().is_alive());
        });
    }
}

/// StructureSize of a request, [MS-SMB2] 2.2.
fn structure_size(command: Command) -> u16 {
    match command {
        Command::SessionSetup => 25,
        Command::TreeConnect => 9,
        Command::Create | Command::Ioctl => 57,
        Command::Close | Command::Flush | Command::OplockBreak => 24,
        Command::Read | Command::Write => 49,
        Command::Lock => 48,
        Command::QueryDirectory | Command::SetInfo => 33,
        Command::ChangeNotify => 32,
        Command::QueryInfo => 41,
        _ => 4,
    }
}
