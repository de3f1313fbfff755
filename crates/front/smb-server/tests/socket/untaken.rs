//! Answers that a client has not taken, and those that are being made for it: both together are few.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_smb_server::Config;
use smb_wire::create::CreateDisposition;
use smb_wire::fscc::FileInfoClass;
use smb_wire::fscc::notify::Action;
use smb_wire::query_info::SecurityInformation;
use smb_wire::{Command, Header, NtStatus};
use storage::fault::{Call, FaultyStore, Stall};
use storage::memory::MemoryStore;

use crate::client::{Client, Reply, TestServer, read_body};
use crate::directory::{self, open_directory};
use crate::information;
use crate::ioctl::ranges_body;
use crate::notify::{Watch, changes, one};
use crate::opening::{Opening, make_file};

/// READs of half a MiB.
const READS: usize = 16;
const BYTES: u32 = 512 << 10;
const CHARGE: u16 = 8;
/// So many of them have room at once.
const IN_ROOM: usize = 7;

/// A client whose READs hang, with all the room for large answers that it may have.
struct Busy {
    server: TestServer,
    client: Client,
    hanging: Option<Stall>,
}

impl Busy {
    /// The first READs have all the room, others wait for it. There is a file `file` and a directory `d` with another.
    fn new() -> Self {
        let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::new())));
        let server = TestServer::start_on(Config::default(), Arc::clone(&store) as _);
        let mut maker = server.client();
        make_file(&mut maker, "file", b"content");
        Opening::directory().try_out(&mut maker, "d").unwrap();
        make_file(&mut maker, r"d\another", b"");
        let mut client = server.client();
        client.credits_asked = 512;
        assert!(client.is_alive(), "it has the credits now");
        let hanging = Some(store.hang(Call::Read));
        Self { server, client, hanging }
    }

    fn send_reads(&mut self, count: usize) {
        let file = self.client.create("file", CreateDisposition::Open).unwrap();
        for _ in 0..count {
            self.send(Command::Read, &read_body(file, 0, BYTES));
        }
        let deadline = Instant::now() + Duration::from_secs(60);
        while self.under_way() < IN_ROOM {
            assert!(Instant::now() < deadline, "{:?}", self.server.share.store_health());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Sends a request whose answer may have half a MiB.
    fn send(&mut self, command: Command, body: &[u8]) -> Header {
        let mut header = self.client.header(command);
        header.credit_charge = CHARGE;
        self.client.next_message_id += u64::from(CHARGE) - 1;
        self.client.send_with(&header, body);
        header
    }

    /// Calls to the store.
    fn under_way(&self) -> usize {
        self.server.share.store_health().under_way
    }

    /// The READs come to their end, and all that waits for them.
    fn receive(&mut self, count: usize) -> Vec<Reply> {
        drop(self.hanging.take());
        (0..count).map(|_| self.client.receive()).collect()
    }
}

#[test]
fn no_more_reads_go_to_the_disk_than_there_is_room_for_their_answers() {
    let mut busy = Busy::new();
    busy.send_reads(READS);
    for _ in 0..20 {
        assert!(busy.client.is_alive(), "answered behind the look at all those before it");
        assert_eq!(busy.under_way(), IN_ROOM, "of {READS}");
    }
    for reply in busy.receive(READS) {
        assert_eq!(reply.status(), NtStatus::SUCCESS);
    }
}

/// The request is not answered while there is no room for what it asks for, and is afterwards.
fn check_waits(busy: &mut Busy, command: Command, body: &[u8]) -> Reply {
    busy.send_reads(IN_ROOM);
    let sent = busy.send(command, body);
    for _ in 0..3 {
        assert!(busy.client.is_alive(), "the only answer");
    }
    let mut replies = busy.receive(IN_ROOM + 1);
    let at = replies.iter().position(|reply| reply.header.message_id == sent.message_id);
    replies.swap_remove(at.unwrap())
}

#[test]
fn listings_wait_for_room() {
    let mut busy = Busy::new();
    let dir = open_directory(&mut busy.client, "d");
    let body = directory::Query { limit: BYTES, ..directory::Query::of("*") }.body(dir);
    assert_eq!(check_waits(&mut busy, Command::QueryDirectory, &body).status(), NtStatus::SUCCESS);
}

#[test]
fn lists_of_ranges_wait_for_room() {
    let mut busy = Busy::new();
    let file = Opening::default().send(&mut busy.client, "file").unwrap().id;
    let body = ranges_body(file, 0, 100, BYTES);
    assert_eq!(check_waits(&mut busy, Command::Ioctl, &body).status(), NtStatus::SUCCESS);
}

#[test]
fn what_an_object_says_of_itself_waits_for_room_where_it_may_be_long() {
    let file = |class| information::Query { limit: BYTES, ..information::Query::file(class) };
    let parts = SecurityInformation::OWNER | SecurityInformation::DACL;
    let security = information::Query { limit: BYTES, ..information::Query::security(parts) };
    for (query, status) in [
        (file(FileInfoClass::All), NtStatus::SUCCESS),
        (file(FileInfoClass::NormalizedName), NtStatus::SUCCESS),
        (file(FileInfoClass::Stream), NtStatus::SUCCESS),
        (file(FileInfoClass::FullEa), NtStatus::NO_EAS_ON_FILE),
        (security, NtStatus::SUCCESS),
    ] {
        let mut busy = Busy::new();
        let file = Opening::default().send(&mut busy.client, "file").unwrap().id;
        let reply = check_waits(&mut busy, Command::QueryInfo, &query.body(file));
        assert_eq!(reply.status(), status, "{query:?}");
    }
}

#[test]
fn what_an_object_says_of_itself_in_short_waits_for_nothing() {
    let mut busy = Busy::new();
    let file = Opening::default().send(&mut busy.client, "file").unwrap().id;
    busy.send_reads(READS);
    let query = information::Query { limit: BYTES, ..information::Query::file(FileInfoClass::Basic) };
    let sent = busy.send(Command::QueryInfo, &query.body(file));
    let reply = busy.client.receive();
    assert_eq!((reply.header.message_id, reply.status()), (sent.message_id, NtStatus::SUCCESS));
}

#[test]
fn changes_are_told_when_there_is_room() {
    for is_there_before in [true, false] {
        let mut busy = Busy::new();
        let dir = open_directory(&mut busy.client, "d");
        let watch = Watch { room: BYTES, ..Watch::names(dir) };
        let first = busy.send(Command::ChangeNotify, &watch.body()); // it begins to collect
        assert_eq!(busy.client.receive().status(), NtStatus::PENDING);
        let mut other = busy.server.client();
        if is_there_before {
            make_file(&mut other, r"d\first", b"");
            assert_eq!(changes(&busy.client.receive()), one(Action::Added, "first"));
            make_file(&mut other, r"d\second", b"");
            let told = changes(&check_waits(&mut busy, Command::ChangeNotify, &watch.body()));
            assert_eq!(told, one(Action::Added, "second"));
        } else {
            busy.send_reads(IN_ROOM);
            make_file(&mut other, r"d\first", b"");
            for _ in 0..20 {
                assert!(busy.client.is_alive(), "the only answer");
            }
            let replies = busy.receive(IN_ROOM + 1);
            let told = replies.iter().find(|reply| reply.header.message_id == first.message_id).unwrap();
            assert_eq!(changes(told), one(Action::Added, "first"));
        }
    }
}
