//! Answers that a client has not taken, and those that are being made for it: both together are few.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nfs_wire::v4::attr::Attribute;
use nfs_wire::v4::compound::{ArgOp, ResOp};
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::{Name, Stateid};
use nfs_wire::v4::{getattr, getxattr, listxattrs, read};
use storage::fault::{Call, FaultyStore};

use crate::client::{Session, V4Client, put};
use crate::server::TestServer;

/// As much as fits into an answer.
const BYTES: u32 = (1 << 20) - 1000;

/// A client of two sessions on one connection, with an open file, whose store hangs.
struct Busy {
    server: TestServer,
    store: Arc<FaultyStore>,
    client: V4Client,
    /// The other session.
    other: Session,
    stateid: Stateid,
    file: Vec<u8>,
}

impl Busy {
    fn new() -> Self {
        let (server, store) = TestServer::faulty(|store| FaultyStore::distant(store).into());
        let mut client = V4Client::start_minor(server.address, "one", 2);
        let root = client.path("/data");
        let (stateid, file) = client.open(&root, "file");
        client.write(&file, stateid, u64::from(BYTES) - 1, b"7");
        let first = client.session.clone();
        client.establish("two", 1);
        let other = std::mem::replace(&mut client.session, first);
        Self { server, store, client, other, stateid, file }
    }

    fn read(&self, count: u32) -> ArgOp<'static> {
        ArgOp::Read(read::Args { stateid: self.stateid, offset: 0, count })
    }

    /// Sends an operation on the file in these slots of the first session.
    fn send(&mut self, slots: Range<u32>, operation: &ArgOp<'_>) -> Vec<u32> {
        slots.map(|slot| self.client.send_on(slot, &[put(&self.file), operation.clone()])).collect()
    }

    /// And in all slots of the other one.
    fn send_in_other(&mut self, operation: &ArgOp<'_>) -> Vec<u32> {
        std::mem::swap(&mut self.client.session, &mut self.other);
        let sent = self.send(0..8, operation);
        std::mem::swap(&mut self.client.session, &mut self.other);
        sent
    }

    /// So many calls to the store are under way in the end, and no more.
    fn check_under_way(&mut self, calls: usize) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while self.server.data.store_health().under_way < calls {
            assert!(Instant::now() < deadline, "{:?}", self.server.data.store_health());
            std::thread::sleep(Duration::from_millis(5));
        }
        for _ in 0..20 {
            self.client.ok(&[ArgOp::PutRootFh]); // answered behind the look at all those before it
            assert_eq!(self.server.data.store_health().under_way, calls);
        }
    }

    /// All of these are answered now.
    fn receive(&mut self, sent: Vec<u32>, status: Result<(), Status>) {
        for xid in sent {
            assert_eq!(self.client.receive(xid).status, status);
        }
    }
}

#[test]
fn no_more_reads_go_to_the_disk_than_there_is_room_for_their_answers() {
    let mut busy = Busy::new();
    let hanging = busy.store.hang(Call::Read);
    let sent = busy.send(1..8, &busy.read(BYTES));
    busy.check_under_way(3);
    drop(hanging);
    for xid in sent {
        let reply = busy.client.receive(xid);
        let ResOp::Read(Ok(ok)) = reply.last() else { panic!("{:?}", reply.status) };
        assert!(ok.data.len() == BYTES as usize && ok.data.ends_with(b"7"));
    }
}

/// Answers of 64 KiB at most: so many have room when READs have all that larger ones may have.
const SMALL_IN_ROOM: usize = 8;

/// All that larger answers may have is taken; then no more of these operations go to the disk than have room.
fn check_small(call: Call, operation: &ArgOp<'_>, outcome: Result<(), Status>) {
    let mut busy = Busy::new();
    let hanging = [Call::Read, call].map(|call| busy.store.hang(call));
    let mut reads = busy.send(1..4, &busy.read(BYTES));
    reads.extend(busy.send(4..5, &busy.read(500_000)));
    busy.check_under_way(4);
    let mut sent = busy.send(5..8, operation);
    sent.extend(busy.send_in_other(operation));
    busy.check_under_way(4 + SMALL_IN_ROOM);
    drop(hanging);
    busy.receive(reads, Ok(()));
    busy.receive(sent, outcome);
}

#[test]
fn values_of_extended_attributes_wait_for_room() {
    let get = ArgOp::GetXattr(getxattr::Args { name: Name(b"none") });
    check_small(Call::Xattr, &get, Err(Status::NoXattr));
}

#[test]
fn access_control_lists_wait_for_room() {
    let request = [Attribute::Acl].into_iter().collect();
    check_small(Call::Security, &ArgOp::GetAttr(getattr::Args { request }), Ok(()));
}

#[test]
fn names_of_extended_attributes_wait_for_room() {
    let mut busy = Busy::new();
    let hanging = [Call::Read, Call::Xattrs].map(|call| busy.store.hang(call));
    let mut sent = busy.send(1..4, &busy.read(BYTES));
    busy.check_under_way(3);
    sent.extend(busy.send(4..8, &ArgOp::ListXattrs(listxattrs::Args { cookie: 0, count: 400_000 })));
    busy.check_under_way(4);
    drop(hanging);
    busy.receive(sent, Ok(()));
}
