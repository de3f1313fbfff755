//! A store that has stopped answering.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_smb_server::Config;
use smb_wire::create::{CreateDisposition, CreateOptions};
use smb_wire::fscc::FileInfoClass;
use smb_wire::{AccessMask, Command, NtStatus};
use storage::fault::FaultyStore;
use storage::memory::MemoryStore;

use crate::client::{Client, TestServer, create_body, read_body, write_body};
use crate::information::Query;
use crate::opening::{Opening, make_file};

/// Connections are dealt to the shards in turn: so many reach each of the two.
const EACH_SHARD: usize = 4;

/// The answer of a request that may have waited.
fn answer(client: &mut Client) -> NtStatus {
    loop {
        let status = client.receive().status();
        if status != NtStatus::PENDING {
            return status;
        }
    }
}

fn use_other_share(server: &TestServer) -> Duration {
    let begun = Instant::now();
    let mut client = server.log_in();
    client.tree_connect("Fixed").unwrap();
    let opening = Opening { access: AccessMask::from_bits_retain(0x0012_0089), ..Opening::default() };
    let opened = opening.send(&mut client, "").unwrap();
    client.close(opened.id).unwrap();
    begun.elapsed()
}

#[test]
fn a_store_that_hangs_holds_up_no_client_of_another() {
    let store = Arc::new(FaultyStore::distant(Arc::new(MemoryStore::new())));
    let server = TestServer::start_on(Config::default(), Arc::clone(&store) as _);
    make_file(&mut server.client(), "file", b"content");
    let mut clients: Vec<(Client, _)> = (0..5)
        .map(|_| {
            let mut client = server.client();
            let file = client.create("file", CreateDisposition::Open).unwrap();
            (client, file)
        })
        .collect();
    let stall = store.stall();
    let options = CreateOptions::empty();
    for (index, (client, file)) in clients.iter_mut().enumerate() {
        let (command, body) = match index {
            0 => (Command::Create, create_body("new", CreateDisposition::Create, options)),
            1 => (Command::Create, create_body("file", CreateDisposition::Open, options)),
            2 => (Command::Write, write_body(*file, 0, b"CONTENT")),
            3 => (Command::Read, read_body(*file, 0, 7)),
            _ => (Command::QueryInfo, Query::file(FileInfoClass::Basic).body(*file)),
        };
        client.send(command, &body);
    }
    let deadline = Instant::now() + Duration::from_secs(60);
    while server.share.store_health().under_way < clients.len() {
        assert!(Instant::now() < deadline, "{:?}", server.share.store_health());
        std::thread::sleep(Duration::from_millis(10));
    }
    let gaps: Vec<_> = (0..EACH_SHARD).map(|_| use_other_share(&server)).collect();
    println!("others were served after {gaps:?}");
    assert_eq!(server.share.store_health().under_way, clients.len(), "nothing has returned");
    drop(stall);
    for (client, _) in &mut clients {
        assert_eq!(answer(client), NtStatus::SUCCESS);
    }
}
