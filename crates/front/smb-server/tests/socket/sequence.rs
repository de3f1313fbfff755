//! Channel sequence numbers: what was sent again on another channel is not overtaken by what came late, and nothing is
//! done twice. [MS-SMB2] 3.3.5.2.10.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anabranch_smb_server::{Config, Dialect};
use smb_wire::create::CreateDisposition;
use smb_wire::fscc::fsctl::Fsctl;
use smb_wire::ioctl::{IoctlFlags, Request as IoctlRequest};
use smb_wire::write::{Request as WriteRequest, WriteFlags};
use smb_wire::{Command, FileId, HeaderFlags, NtStatus};
use storage::fault::{Call, Fault, FaultyStore, Rule};
use storage::memory::MemoryStore;

use crate::client::{Client, PASSWORD, SHARE, TestServer, USER, close_body, read_body, write_body};

/// Two channels of one session, in its order.
fn channels(server: &TestServer, dialect: Dialect) -> (Client, Client) {
    let mut first = server.connect();
    first.negotiate(&[dialect]);
    first.log_in(USER, PASSWORD).unwrap();
    first.tree_connect(SHARE).unwrap();
    let mut second = server.connect();
    second.negotiate(&[dialect]);
    second.bind(&first, USER, PASSWORD).unwrap();
    (first, second)
}

/// Sends a request with this ChannelSequence.
fn send(client: &mut Client, sequence: u16, replay: bool, command: Command, body: &[u8]) {
    let mut header = client.header(command);
    header.status_or_channel_sequence = sequence.into();
    header.flags.set(HeaderFlags::REPLAY_OPERATION, replay);
    client.send_with(&header, body);
}

fn call(client: &mut Client, sequence: u16, command: Command, body: &[u8]) -> NtStatus {
    send(client, sequence, false, command, body);
    client.receive().status()
}

/// A WRITE whose data is to be stable: it is done on the pool.
fn write_through(file: FileId, data: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    WriteRequest::new(file, 0, data, WriteFlags::WRITE_THROUGH).encode(&mut body).unwrap();
    body
}

fn ioctl_body(file_id: FileId) -> Vec<u8> {
    let request = IoctlRequest {
        ctl_code: Fsctl::SrvRequestResumeKey,
        file_id,
        input: &[],
        max_input_response: 0,
        output_count: 0,
        max_output_response: 64,
        flags: IoctlFlags::IS_FSCTL,
    };
    let mut body = Vec::new();
    request.encode(&mut body).unwrap();
    body
}

#[test]
fn a_late_request_changes_nothing() {
    let server = TestServer::start(Config::default());
    let (mut first, mut second) = channels(&server, Dialect::Smb311);
    let file = first.create("late", CreateDisposition::Create).unwrap();
    let late = NtStatus::FILE_NOT_AVAILABLE;
    assert_eq!(call(&mut first, 0, Command::Write, &write_body(file, 0, b"old")), NtStatus::SUCCESS);
    assert_eq!(call(&mut second, 1, Command::Write, &write_body(file, 0, b"new")), NtStatus::SUCCESS);
    assert_eq!(call(&mut first, 0, Command::Write, &write_body(file, 0, b"old")), late);
    assert_eq!(call(&mut first, 0, Command::Ioctl, &ioctl_body(file)), late);
    assert_eq!(
        call(&mut first, 0x8001, Command::Write, &write_body(file, 0, b"old")),
        late,
        "half way round"
    );
    assert_eq!(second.read(file, 0, 10).unwrap(), b"new", "what changes nothing is served");
    assert_eq!(call(&mut first, 0, Command::Read, &read_body(file, 0, 10)), NtStatus::SUCCESS);
    assert_eq!(call(&mut first, 1, Command::Write, &write_body(file, 0, b"NEW")), NtStatus::SUCCESS);
    assert_eq!(call(&mut first, 0, Command::Close, &close_body(file)), NtStatus::SUCCESS);
}

#[test]
fn an_open_begins_with_the_sequence_of_its_create() {
    let server = TestServer::start(Config::default());
    let (mut first, _) = channels(&server, Dialect::Smb300);
    let mut header = first.header(Command::Create);
    header.status_or_channel_sequence = 7;
    let body = crate::client::create_body(
        "begun",
        CreateDisposition::Create,
        smb_wire::create::CreateOptions::empty(),
    );
    first.send_with(&header, &body);
    let reply = first.receive().ok().unwrap();
    let file = smb_wire::create::Response::decode(&reply.message).unwrap().file_id;
    let write = write_body(file, 0, b"x");
    assert_eq!(call(&mut first, 6, Command::Write, &write), NtStatus::FILE_NOT_AVAILABLE);
    assert_eq!(call(&mut first, 7, Command::Write, &write), NtStatus::SUCCESS);
}

#[test]
fn older_dialects_have_no_sequence() {
    let server = TestServer::start(Config::default());
    let mut client = server.connect();
    client.negotiate(&[Dialect::Smb210]);
    client.log_in(USER, PASSWORD).unwrap();
    client.tree_connect(SHARE).unwrap();
    let file = client.create("old", CreateDisposition::Create).unwrap();
    for sequence in [5, 1, 0] {
        assert_eq!(
            call(&mut client, sequence, Command::Write, &write_body(file, 0, b"x")),
            NtStatus::SUCCESS
        );
    }
}

/// A store in which the first write waits until the test says so.
fn held_store() -> (Arc<FaultyStore>, Sender<()>) {
    let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::new())));
    let (release, held): (_, Receiver<()>) = channel();
    let held = Mutex::new(held);
    let wait = move || {
        let _ = held.lock().unwrap().recv();
    };
    store.inject(Rule::once(Call::Write, Fault::Slow(Arc::new(wait))));
    (store, release)
}

fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_replay_waits_until_the_write_on_the_dead_channel_is_over() {
    let (store, release) = held_store();
    let server = TestServer::start_on(Config::default(), Arc::clone(&store) as _);
    let (mut first, mut second) = channels(&server, Dialect::Smb311);
    let file = first.create("held", CreateDisposition::Create).unwrap();
    send(&mut first, 0, false, Command::Write, &write_through(file, b"once"));
    wait_for("the write begins", || store.calls(Call::Write) == 1);
    drop(first);
    wait_for("the channel goes", || server.server.report()[0].channels.len() == 1);
    let replay = |client: &mut Client, data: &[u8]| {
        send(client, 1, true, Command::Write, &write_through(file, data));
        client.receive().status()
    };
    for _ in 0..3 {
        assert_eq!(replay(&mut second, b"once"), NtStatus::FILE_NOT_AVAILABLE);
    }
    assert_eq!(store.calls(Call::Write), 1, "nothing was written meanwhile");
    release.send(()).unwrap();
    wait_for("the write is over", || replay(&mut second, b"once") == NtStatus::SUCCESS);
    assert_eq!(call(&mut second, 1, Command::Write, &write_body(file, 0, b"newer")), NtStatus::SUCCESS);
    assert_eq!(second.read(file, 0, 10).unwrap(), b"newer", "nothing late comes over it");
    assert_eq!(store.calls(Call::Write), 3);
}
