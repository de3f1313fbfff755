//! Answers to CREATE that are never sent: the client knows nothing of what it was granted.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use anabranch_smb_server::Config;
use parking_lot::Mutex;
use share::Settings;
use smb_proto::dialect::Dialect;
use smb_wire::create::OplockLevel;
use smb_wire::create_context::LeaseState;
use smb_wire::negotiate::Capabilities;
use smb_wire::oplock_break::Notification;
use smb_wire::{Command, Guid};
use storage::fault::{Call, Fault, FaultyStore, Rule};
use storage::memory::MemoryStore;

use crate::client::{Client, PASSWORD, SHARE, TestServer, USER};
use crate::durable::{Asking, finish, lease, request_v2};
use crate::oplock::{asking, notification, pending};

const GUID: Guid = Guid([0x11; 16]);
const KEY: [u8; 16] = [0x77; 16];

fn connection(server: &TestServer, guid: u8) -> Client {
    let mut client = server.connect();
    client.client_guid = Guid([guid; 16]);
    client.capabilities |= Capabilities::MULTI_CHANNEL;
    client.negotiate(&[Dialect::Smb311]);
    client
}

fn session(server: &TestServer, guid: u8) -> Client {
    let mut client = connection(server, guid);
    client.log_in(USER, PASSWORD).unwrap();
    client.tree_connect(SHARE).unwrap();
    client
}

/// A server that waits for an acknowledgment for longer than any test. The second file that is made waits until it is let go, and with
/// it the shard.
fn server() -> (TestServer, Arc<FaultyStore>, Sender<()>) {
    let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::new())));
    let (release, held) = channel();
    let held = Mutex::new(held);
    let wait = move || {
        let _ = held.lock().recv();
    };
    store.inject(Rule { skip: 1, ..Rule::once(Call::Create, Fault::Slow(Arc::new(wait))) });
    let settings = Settings { break_timeout: Duration::from_secs(3600), ..Settings::new(SHARE) };
    let server = TestServer::sharing(Config::default(), settings, Arc::clone(&store) as _);
    (server, store, release)
}

/// Over a channel of its own, which is lost before the answer is sent; what is left is the other channel of the session.
fn create_unheard(server: &TestServer, store: &FaultyStore, create: &Asking) -> Client {
    let mut first = session(server, 1);
    let mut second = connection(server, 1);
    second.bind(&first, USER, PASSWORD).unwrap();
    first.together(|first| {
        create.start(first, "file");
        asking(OplockLevel::None).start(first, "slow");
    });
    let begun = Instant::now();
    while store.calls(Call::Create) < 2 {
        assert!(begun.elapsed() < Duration::from_secs(60), "the shard is not held up");
        std::thread::sleep(Duration::from_millis(5));
    }
    first.reset();
    second
}

fn wait_for_one_channel(server: &TestServer) {
    let begun = Instant::now();
    while server.server.report().iter().any(|session| session.channels.len() > 1) {
        assert!(begun.elapsed() < Duration::from_secs(60), "the first channel does not end");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn nobody_is_asked_for_a_grant_that_was_never_heard_of() {
    let creates = [
        Asking::new(
            OplockLevel::Lease,
            vec![lease(KEY, LeaseState::READ | LeaseState::HANDLE | LeaseState::WRITE)],
        ),
        asking(OplockLevel::Batch),
    ];
    for create in creates {
        let (server, store, release) = server();
        let mut other = session(&server, 2);
        let _second = create_unheard(&server, &store, &create);
        // It may have to wait for the shard itself, and asks for the grant then.
        asking(OplockLevel::None).start(&mut other, "file");
        release.send(()).unwrap();
        assert!(finish(&mut other).is_ok());
        wait_for_one_channel(&server);
        assert!(asking(OplockLevel::None).send(&mut other, "file").is_ok());
    }
}

#[test]
fn who_asks_for_the_answer_again_has_the_grant() {
    for channel_is_gone in [true, false] {
        asks_again(channel_is_gone);
    }
}

/// Before the first channel is gone, the answer that is lost with it comes to its end after the one that is sent.
fn asks_again(channel_is_gone: bool) {
    let (server, store, release) = server();
    let mut other = session(&server, 2);
    let wanted = LeaseState::READ | LeaseState::HANDLE | LeaseState::WRITE;
    let create = Asking::new(OplockLevel::Lease, vec![lease(KEY, wanted), request_v2(GUID, 0, false)]);
    let mut second = create_unheard(&server, &store, &create);
    second.tree_id = 1;
    if channel_is_gone {
        release.send(()).unwrap();
        wait_for_one_channel(&server);
    }
    create.replayed().start(&mut second, "file");
    if !channel_is_gone {
        // Time for the other shard to answer, if the second channel is there; else both answers come now, one after the other.
        std::thread::sleep(Duration::from_millis(200));
        release.send(()).unwrap();
    }
    let again = finish(&mut second).unwrap();
    wait_for_one_channel(&server);
    assert_eq!(again.lease.unwrap().state, wanted);
    asking(OplockLevel::None).start(&mut other, "file");
    let (_, told) = notification(&mut second);
    assert!(matches!(told, Notification::Lease(told) if told.lease_key == KEY), "{told:?}");
    // The other waits for its answer.
    pending(&mut other);
    other.send(Command::Echo, &[4, 0, 0, 0]);
    assert_eq!(other.receive().header.command, Command::Echo);
    second.close(again.id).unwrap();
    assert!(finish(&mut other).is_ok());
}
