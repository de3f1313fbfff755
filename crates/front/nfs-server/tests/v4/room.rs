//! Nobody takes all opens of a share, and clients whose lease is over make room for others (RFC 8881 8.4.3).

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use nfs_wire::v4::attr::Attributes;
use nfs_wire::v4::compound::ArgOp;
use nfs_wire::v4::open::{CreateHow, How, ShareAccess, ShareDeny, Want};
use nfs_wire::v4::status::Status;
use share::Squash;
use share::{Access, Case, Error, OpenRequest, Opener, Sharing};
use storage::memory::MemoryStore;

use crate::client::{V4Client, put};
use crate::server::{TestServer, by_smb, export};

/// Opens of the share: the last quarter are four.
const OPENS: usize = 16;
const ELSEWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

fn server(lease: Duration) -> (TestServer, Vec<u8>) {
    let few = |settings: &mut share::Settings| {
        settings.opens_max = OPENS;
        settings.retry_after = Duration::from_millis(20);
    };
    let store = Arc::new(MemoryStore::new());
    let server =
        TestServer::with(store, export(Squash::None), 1, few, |config| config.lease_times.lease = lease);
    let root = server.mounted().1.as_bytes().to_vec();
    (server, root)
}

/// Opens a file as a new owner.
fn open(client: &mut V4Client, root: &[u8], owner: usize) -> Result<(), Status> {
    let owner = owner.to_string();
    let modes = (ShareAccess::READ.with_want(Want::None), ShareDeny::NONE);
    let how = How::Create(CreateHow::Unchecked(Attributes::EMPTY));
    let args = client.open_args(owner.as_bytes(), "file", modes, how);
    client.compound(&[put(root), ArgOp::Open(args)]).status
}

fn smb_open(server: &TestServer, user: &str) -> share::Result<Arc<share::Open>> {
    let mut call = by_smb(0, 0);
    call.caller = call.caller.clone().counted_for_user(Opener::named(("user", user)));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let root = server.data.root();
        let found =
            server.data.lookup(&call, root, b"file", Case::Insensitive, storage::Want::empty()).await?;
        let request = OpenRequest {
            openers: call.caller.openers,
            ..OpenRequest::new(Access::READ_DATA, Sharing::all())
        };
        server.data.open(&call, &found, &request).await
    })
}

#[test]
fn an_address_takes_three_quarters_however_many_clients_it_is() {
    let (server, root) = server(Duration::from_secs(3600));
    let mut greedy = V4Client::start_at(ELSEWHERE, server.address, "greedy");
    for owner in 0..12 {
        assert_eq!(open(&mut greedy, &root, owner), Ok(()), "{owner}");
    }
    assert_eq!(open(&mut greedy, &root, 12), Err(Status::Delay));
    let mut again = V4Client::start_at(ELSEWHERE, server.address, "another one");
    assert_eq!(open(&mut again, &root, 0), Err(Status::Delay));

    let mut other = V4Client::start(server.address, "other");
    assert_eq!(open(&mut other, &root, 0), Ok(()));
    let held: Vec<_> = (0..2).map(|_| smb_open(&server, "ann").unwrap()).collect();
    assert_eq!(open(&mut other, &root, 1), Ok(()));
    assert_eq!(open(&mut other, &root, 2), Err(Status::Delay), "all are taken");
    assert_eq!(smb_open(&server, "bob").unwrap_err(), Error::LimitReached("opens"));
    assert_eq!(held.len(), 2);
    assert_eq!(greedy.compound(&[]).status, Ok(()), "its lease runs: it keeps what it has");
}

#[test]
fn clients_whose_lease_is_over_make_room() {
    let (server, root) = server(Duration::from_secs(3));
    let mut silent = V4Client::start_at(ELSEWHERE, server.address, "silent");
    for owner in 0..12 {
        assert_eq!(open(&mut silent, &root, owner), Ok(()), "{owner}");
    }
    drop(silent.connection.stream.shutdown(std::net::Shutdown::Both));
    let mut other = V4Client::start(server.address, "other");
    // Four are there for it; for the fifth somebody must give way.
    for owner in 0..12 {
        let owner = owner.to_string();
        let modes = (ShareAccess::READ.with_want(Want::None), ShareDeny::NONE);
        let how = How::Create(CreateHow::Unchecked(Attributes::EMPTY));
        let args = other.open_args(owner.as_bytes(), "file", modes, how);
        assert_eq!(other.patiently(&[put(&root), ArgOp::Open(args)]).status, Ok(()), "{owner}");
    }
    smb_open(&server, "ann").unwrap();
    let owners = server.server.sessions().into_iter().map(|session| session.client);
    assert_eq!(owners.collect::<Vec<_>>(), [b"other"], "who was silent is forgotten");
}

#[test]
fn thousands_of_opens_of_one_file_stand_in_nobodys_way() {
    let server = TestServer::start();
    let root = server.mounted().1.as_bytes().to_vec();
    let mut one = V4Client::start_at(ELSEWHERE, server.address, "one");
    for owner in 0..2000 {
        assert_eq!(open(&mut one, &root, owner), Ok(()), "{owner}");
    }
    let mut other = V4Client::start(server.address, "other");
    let (stateid, file) = other.open(&root, "file");
    other.write(&file, stateid, 0, b"data");
    assert_eq!(other.read(&file, stateid, 0, 10), b"data");
    other.close(&file, stateid);
    smb_open(&server, "ann").unwrap();
    drop(one);
    let mut again = V4Client::start_again(server.address, "one");
    assert_eq!(open(&mut again, &root, 0), Ok(()), "a new run of the client: what the old one had is closed");
}
