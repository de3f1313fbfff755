//! Answers that a client has not taken, and those that are being made for it: both together are few.

use std::time::{Duration, Instant};

use nfs_wire::v3::types::FileHandle;
use nfs_wire::v3::{self, Procedure, read, readdirplus};
use nfs_wire::xdr::Encode;
use storage::fault::{Call, FaultyStore};

use crate::client::{Client, Raw, TestServer};

const MIB: u32 = 1 << 20;
/// Calls that a client makes without taking an answer.
const CALLS: u32 = 64;

/// How often it is looked whether more calls get to the store.
const LOOKS: usize = 20;

/// Has the store hang, makes many calls, and sees that three of them get to the store; the replies once it goes on.
fn with_hanging<A: Encode>(
    call: Call,
    procedure: Procedure,
    args: impl Fn(FileHandle, FileHandle) -> A,
) -> Vec<Vec<u8>> {
    let (server, store) = TestServer::faulty(|store| FaultyStore::distant(store).into());
    let (mut client, root) = server.mounted();
    let file = client.make_file(root, "file", 0o600, &vec![7; MIB as usize]);
    let hanging = store.hang(call);
    let first = client.xid;
    for _ in 0..CALLS {
        client.send((v3::PROGRAM, v3::VERSION, procedure as u32), &args(root, file));
    }
    // Looking up their filehandles takes calls, too.
    let (mut looks, deadline) = (0, Instant::now() + Duration::from_secs(60));
    while looks < LOOKS {
        null(&mut client);
        let under_way = server.data.store_health().under_way;
        looks = if under_way == 3 { looks + 1 } else { 0 };
        assert!(Instant::now() < deadline, "{under_way} of {CALLS}");
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(hanging);
    let mut replies: Vec<Vec<u8>> = (0..CALLS).map(|_| client.receive_record()).collect();
    replies.sort_unstable_by_key(|reply| xid(reply));
    assert!(replies.iter().map(|reply| xid(reply)).eq(first..first + CALLS));
    replies
}

fn xid(reply: &[u8]) -> u32 {
    u32::from_be_bytes(reply[..4].try_into().unwrap())
}

/// A call that needs nothing: it is answered behind the look at all those before it.
fn null(client: &mut Client) {
    let sent = client.xid;
    client.send((v3::PROGRAM, v3::VERSION, 0), &Raw(&[]));
    assert_eq!(xid(&client.receive_record()), sent);
}

#[test]
fn no_more_reads_go_to_the_disk_than_there_is_room_for_their_answers() {
    let read = |_, file| read::Args { file, offset: 0, count: MIB };
    for reply in with_hanging(Call::Read, Procedure::Read, read) {
        assert!(reply.len() > MIB as usize && reply.ends_with(&[7; 1000]));
    }
}

#[test]
fn nor_listings() {
    let list = |dir, _| {
        let (cookie, cookie_verifier) = (0, [0; 8]);
        let (dir_count, max_count) = (MIB, MIB);
        readdirplus::Args { dir, cookie, cookie_verifier, dir_count, max_count }
    };
    for reply in with_hanging(Call::ReadDir, Procedure::ReadDirPlus, list) {
        assert_eq!(reply[24..28], [0; 4], "NFS3_OK");
    }
}
