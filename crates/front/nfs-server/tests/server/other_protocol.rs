//! What an open file of another protocol does to NFS clients: they are to try again (NFS3ERR_JUKEBOX).

use std::sync::Arc;

use nfs_wire::v3::status::Status;
use nfs_wire::v3::types::FileHandle;
use nfs_wire::v3::{Procedure, read, remove};
use nfs_wire::xdr::Decode;
use share::{
    Access, Break, ByteRange, Caching, Case, GrantHolder, GrantKey, GrantRequest, LockKind, LockWait, Open,
    OpenRequest, Sharing,
};
use storage::Want;
use tokio::runtime::Runtime;

use crate::client::{Client, TestServer, by_smb, place};

struct Smb {
    runtime: Runtime,
    server: TestServer,
    open: Arc<Open>,
}

/// A file with data, opened by an SMB client that shares this much.
fn opened(sharing: Sharing) -> (Smb, Client, FileHandle, FileHandle) {
    opened_caching(sharing, None)
}

fn opened_caching(sharing: Sharing, grant: Option<GrantRequest>) -> (Smb, Client, FileHandle, FileHandle) {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let file = client.make_file(root, "file", 0o666, b"data");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let caller = by_smb(0, 0);
    let open = runtime.block_on(async {
        let root = server.data.root();
        let found =
            server.data.lookup(&caller, root, b"file", Case::Insensitive, Want::empty()).await.unwrap();
        let access = Access::READ_DATA | Access::WRITE_DATA;
        let request = OpenRequest { grant, ..OpenRequest::new(access, sharing) };
        server.data.open(&caller, &found, &request).await.unwrap()
    });
    (Smb { runtime, server, open }, client, root, file)
}

fn read(client: &mut Client, file: FileHandle) -> Result<(), Status> {
    let results = client.raw(Procedure::Read, &read::Args { file, offset: 0, count: 4 });
    read::Res::from_bytes(&results).unwrap().map(|_| ()).map_err(|failure| failure.status)
}

fn write(client: &mut Client, file: FileHandle) -> Result<(), Status> {
    client.write(file, 0, b"nfs").map(|_| ()).map_err(|failure| failure.status)
}

fn remove(client: &mut Client, root: FileHandle) -> Result<(), Status> {
    let result: remove::Res = client.nfs(Procedure::Remove, &remove::Args { object: place(root, "file") });
    result.map(|_| ()).map_err(|failure| failure.status)
}

#[test]
fn an_open_that_shares_nothing_keeps_nfs_clients_waiting() {
    let (smb, mut client, root, file) = opened(Sharing::empty());
    assert_eq!(read(&mut client, file), Err(Status::JukeBox));
    assert_eq!(write(&mut client, file), Err(Status::JukeBox));
    assert_eq!(remove(&mut client, root), Err(Status::JukeBox));
    smb.runtime.block_on(smb.server.data.close(&by_smb(0, 0), &smb.open)).unwrap();
    assert_eq!(read(&mut client, file), Ok(()));
    assert_eq!(write(&mut client, file), Ok(()));
    assert_eq!(remove(&mut client, root), Ok(()));
}

#[test]
fn an_open_that_shares_everything_is_in_nobodys_way() {
    let (_smb, mut client, root, file) = opened(Sharing::all());
    assert_eq!(read(&mut client, file), Ok(()));
    assert_eq!(write(&mut client, file), Ok(()));
    assert_eq!(remove(&mut client, root), Ok(()));
}

#[test]
fn a_locked_range_keeps_nfs_clients_waiting() {
    let (smb, mut client, _, file) = opened(Sharing::all());
    let range = ByteRange::new(0, 2).unwrap();
    let lock = smb.server.data.lock(&smb.open, range, LockKind::Exclusive, LockWait::Never);
    smb.runtime.block_on(lock).unwrap();
    assert_eq!(read(&mut client, file), Err(Status::JukeBox));
    assert_eq!(write(&mut client, file), Err(Status::JukeBox));
    client.write(file, 2, b"x").unwrap();
    smb.runtime.block_on(smb.server.data.close(&by_smb(0, 0), &smb.open)).unwrap();
    assert_eq!(write(&mut client, file), Ok(()));
}

/// A client that hears and does not answer.
#[derive(Debug)]
struct Silent;

impl GrantHolder for Silent {
    fn shrink(&self, _: &Break) {}
    fn revoked(&self, _: Caching) {}
}

#[test]
fn what_a_client_caches_keeps_nfs_clients_waiting() {
    let wanted = Caching::READ | Caching::WRITE;
    let grant = GrantRequest { key: GrantKey::Open, wanted, client: Arc::new(Silent) };
    let (smb, mut client, _, file) = opened_caching(Sharing::all(), Some(grant));
    assert_eq!(smb.open.granted().state, wanted);
    assert_eq!(read(&mut client, file), Err(Status::JukeBox), "after a while");
    smb.server.data.acknowledge(smb.open.node().id(), smb.open.holder(), Caching::READ).unwrap();
    assert_eq!(read(&mut client, file), Ok(()));
    assert_eq!(write(&mut client, file), Ok(()));
    assert_eq!(smb.server.data.granted(&smb.open).state, Caching::empty());
}
