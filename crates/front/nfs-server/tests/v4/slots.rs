//! Slots that the server takes back, RFC 8881 2.10.6.1, 20.8.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nfs_proto::v4::session::SessionLimits;
use nfs_wire::v4::callback;
use nfs_wire::v4::compound::{ArgOp, ResOp};
use nfs_wire::v4::sequence;
use nfs_wire::v4::status::Status;
use storage::memory::MemoryStore;

use crate::client::V4Client;
use crate::server::{TestServer, export};

const PATIENCE: Duration = Duration::from_secs(60);

/// A server whose sessions may keep so much together, and that looks after them.
fn server(all_kept_bytes_max: u64) -> TestServer {
    let everybody = export(share::Squash::None);
    let server = TestServer::with(
        Arc::new(MemoryStore::new()),
        everybody,
        1,
        |_| {},
        |config| {
            config.sessions = SessionLimits { all_kept_bytes_max, ..SessionLimits::default() };
            config.lease_times.lease = Duration::from_secs(9);
        },
    );
    let looked_after = Arc::clone(&server.server);
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(looked_after.look_after_clients());
    });
    server
}

/// SEQUENCE of a slot: the highest slots that it may use, and is to use.
fn sequence_of(client: &mut V4Client, slot: u32) -> Result<(u32, u32), Status> {
    let sequence = client.next_sequence(slot);
    let reply = client.raw(&[ArgOp::Sequence(sequence)]);
    match reply.last() {
        ResOp::Sequence(Ok(sequence::ResOk { highest_slot_id, target_highest_slot_id, .. })) => {
            Ok((highest_slot_id, target_highest_slot_id))
        }
        _ => Err(reply.status.unwrap_err()),
    }
}

#[test]
fn a_client_gives_slots_back_when_many_come_and_has_them_again() {
    // Replies of 4 KiB: 128 slots.
    let server = server(128 * 4096);
    let mut idle = V4Client::start(server.address, "idle");
    assert_eq!(idle.session.fore_channel.requests_max, 8);
    assert_eq!(sequence_of(&mut idle, 7), Ok((7, 7)));
    // One half is 64 slots: two for each of 32.
    let mut others: Vec<_> =
        (0..31).map(|number| V4Client::start(server.address, &format!("other {number}"))).collect();
    let recalled = idle.callback();
    let [_, callback::ArgOp::RecallSlot(told)] = &recalled.operations()[..] else { panic!("{recalled:?}") };
    assert!(told.target_highest_slot_id < 7, "{told:?}");
    let begun = Instant::now();
    let target = loop {
        let (_, target) = sequence_of(&mut idle, 0).unwrap();
        if target == 1 {
            break target;
        }
        assert!(begun.elapsed() < PATIENCE, "{target}");
        std::thread::sleep(Duration::from_millis(50));
    };
    assert_eq!(sequence_of(&mut idle, 0), Ok((1, target)), "it has heard of it");
    assert_eq!(sequence_of(&mut idle, 7), Err(Status::BadSlot));
    idle.session.slots[7] = 0;
    while let Some(other) = others.pop() {
        other.leave();
    }
    let begun = Instant::now();
    while sequence_of(&mut idle, 0) != Ok((7, 7)) {
        assert!(begun.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(sequence_of(&mut idle, 7), Ok((7, 7)), "from one on");
}
