//! Answers that a client has not taken, and those that are being made for it: both together are few.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_smb_server::Config;
use smb_wire::create::CreateDisposition;
use smb_wire::{Command, NtStatus};
use storage::fault::{Call, FaultyStore};
use storage::memory::MemoryStore;

use crate::client::{TestServer, read_body};
use crate::opening::make_file;

/// READs of half a MiB.
const READS: usize = 16;
const BYTES: u32 = 512 << 10;
const CHARGE: u16 = 8;

#[test]
fn no_more_reads_go_to_the_disk_than_there_is_room_for_their_answers() {
    let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::new())));
    let server = TestServer::start_on(Config::default(), Arc::clone(&store) as _);
    make_file(&mut server.client(), "file", b"content");
    let mut client = server.client();
    let file = client.create("file", CreateDisposition::Open).unwrap();
    client.credits_asked = 512;
    assert!(client.is_alive(), "it has the credits now");
    let hanging = store.hang(Call::Read);
    for _ in 0..READS {
        let mut header = client.header(Command::Read);
        header.credit_charge = CHARGE;
        client.next_message_id += u64::from(CHARGE) - 1;
        client.send_with(&header, &read_body(file, 0, BYTES));
    }
    let deadline = Instant::now() + Duration::from_secs(60);
    while server.share.store_health().under_way < 7 {
        assert!(Instant::now() < deadline, "{:?}", server.share.store_health());
        std::thread::sleep(Duration::from_millis(5));
    }
    for _ in 0..20 {
        assert!(client.is_alive(), "answered behind the look at all those before it");
        assert_eq!(server.share.store_health().under_way, 7, "of {READS}");
    }
    drop(hanging);
    for _ in 0..READS {
        assert_eq!(client.receive().status(), NtStatus::SUCCESS);
    }
}
