//! A store that has stopped answering.

use std::time::{Duration, Instant};

use nfs_wire::v3::types::FileHandle;
use nfs_wire::v3::{self, Procedure, create, getattr, lookup, read, write};
use storage::fault::FaultyStore;

use crate::client::{Client, TestServer, place, with_mode};

/// Connections are dealt to the shards in turn: so many reach each of the two.
const EACH_SHARD: usize = 4;

fn send(client: &mut Client, procedure: Procedure, root: FileHandle, file: FileHandle) {
    let ids = (v3::PROGRAM, v3::VERSION, procedure as u32);
    match procedure {
        Procedure::Create => {
            let how = create::How::Guarded(with_mode(0o600));
            client.send(ids, &create::Args { place: place(root, "new"), how });
        }
        Procedure::Write => {
            let stable = v3::types::StableHow::Unstable;
            client.send(ids, &write::Args { file, offset: 0, count: 4, stable, data: b"DATA" });
        }
        Procedure::Read => client.send(ids, &read::Args { file, offset: 0, count: 4 }),
        Procedure::GetAttr => client.send(ids, &getattr::Args { object: file }),
        _ => client.send(ids, &lookup::Args { what: place(root, "file") }),
    }
}

fn use_other_share(server: &TestServer) -> Duration {
    let begun = Instant::now();
    let mut client = server.client();
    let root = client.mount("/other").unwrap().file_handle;
    let name = format!("{begun:?}");
    let file = client.make_file(root, &name, 0o600, b"content");
    assert_eq!(client.attributes(file).size, 7);
    begun.elapsed()
}

#[test]
fn a_store_that_hangs_holds_up_no_client_of_another() {
    let (server, store) = TestServer::faulty(|store| FaultyStore::distant(store).into());
    let (mut first, root) = server.mounted();
    let file = first.make_file(root, "file", 0o600, b"data");
    let stall = store.stall();
    let asked = [Procedure::Create, Procedure::Write, Procedure::Read, Procedure::GetAttr, Procedure::Lookup];
    let mut clients: Vec<Client> = asked.iter().map(|_| server.client()).collect();
    for (client, procedure) in clients.iter_mut().zip(asked) {
        send(client, procedure, root, file);
    }
    let deadline = Instant::now() + Duration::from_secs(60);
    while server.data.store_health().under_way < asked.len() {
        assert!(Instant::now() < deadline, "{:?}", server.data.store_health());
        std::thread::sleep(Duration::from_millis(10));
    }
    let gaps: Vec<_> = (0..EACH_SHARD).map(|_| use_other_share(&server)).collect();
    println!("others were served after {gaps:?}");
    assert_eq!(server.data.store_health().under_way, asked.len(), "nothing has returned");
    drop(stall);
    for (client, procedure) in clients.iter_mut().zip(asked) {
        // xid, REPLY, accepted, AUTH_NONE, success; then the status.
        assert_eq!(
            client.receive_record()[4..28],
            [1, 0, 0, 0, 0, 0].map(u32::to_be_bytes).concat(),
            "{procedure:?}"
        );
    }
}
