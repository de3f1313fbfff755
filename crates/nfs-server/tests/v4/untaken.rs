//! Answers that a client has not taken, and those that are being made for it: both together are few.

use std::time::{Duration, Instant};

use nfs_wire::v4::compound::{ArgOp, ResOp};
use nfs_wire::v4::read;
use storage::fault::{Call, FaultyStore};

use crate::client::{V4Client, put};
use crate::server::TestServer;

/// As much as fits into an answer.
const BYTES: u32 = (1 << 20) - 1000;

#[test]
fn no_more_reads_go_to_the_disk_than_there_is_room_for_their_answers() {
    let (server, store) = TestServer::faulty(|store| FaultyStore::new(store).into());
    let mut client = V4Client::start(server.address, "one");
    let root = client.path("/data");
    let (stateid, file) = client.open(&root, "file");
    client.write(&file, stateid, u64::from(BYTES) - 1, b"7");
    let hanging = store.hang(Call::Read);
    let read = ArgOp::Read(read::Args { stateid, offset: 0, count: BYTES });
    let sent: Vec<u32> = (1..8).map(|slot| client.send_on(slot, &[put(&file), read.clone()])).collect();
    let deadline = Instant::now() + Duration::from_secs(60);
    while server.data.store_health().under_way < 3 {
        assert!(Instant::now() < deadline, "{:?}", server.data.store_health());
        std::thread::sleep(Duration::from_millis(5));
    }
    for _ in 0..20 {
        client.ok(&[ArgOp::PutRootFh]); // answered behind the look at all those before it
        assert_eq!(server.data.store_health().under_way, 3, "of {}", sent.len());
    }
    drop(hanging);
    for xid in sent {
        let reply = client.receive(xid);
        let ResOp::Read(Ok(ok)) = reply.last() else { panic!("{:?}", reply.status) };
        assert!(ok.data.len() == BYTES as usize && ok.data.ends_with(b"7"));
    }
}
