//! Repeated calls (RFC 1813 4.5).

use nfs_wire::rpc::{OpaqueAuth, Reply, flavor};
use nfs_wire::v3::{self, Procedure, remove, status::Status};
use nfs_wire::xdr::{Decode, Reader};

use crate::client::{Client, TestServer, call_record, place};

/// Sends a REMOVE with this xid; the whole reply and what it says.
fn remove(client: &mut Client, dir: v3::types::FileHandle, name: &str, xid: u32) -> (Vec<u8>, remove::Res) {
    let body = client.credential().unwrap();
    let ids = (v3::PROGRAM, v3::VERSION, Procedure::Remove as u32);
    let args = remove::Args { object: place(dir, name) };
    client.send_record(&call_record(xid, ids, OpaqueAuth { flavor: flavor::AUTH_SYS, body: &body }, &args));
    let record = client.receive_record();
    let mut reader = Reader::new(&record);
    assert_eq!(Reply::decode(&mut reader).unwrap().xid, xid);
    let result = remove::Res::from_bytes(reader.rest()).unwrap();
    (record, result)
}

#[test]
fn a_repeated_call_gets_the_first_reply_also_over_another_connection() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    client.make_file(root, "file", 0o600, b"");
    let (first, result) = remove(&mut client, root, "file", 1000);
    result.unwrap();
    let (second, _) = remove(&mut client, root, "file", 1000);
    assert_eq!(first, second);
    let (third, _) = remove(&mut server.client(), root, "file", 1000);
    assert_eq!(first, third);
}

#[test]
fn another_xid_or_other_arguments_are_another_call() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    client.make_file(root, "file", 0o600, b"");
    client.make_file(root, "other", 0o600, b"");
    remove(&mut client, root, "file", 1000).1.unwrap();
    assert_eq!(remove(&mut client, root, "file", 1001).1.unwrap_err().status, Status::NoEnt);
    remove(&mut client, root, "other", 1000).1.unwrap();
}

/// Sends a WRITE at the beginning of a file with this xid; the whole reply.
fn write(client: &mut Client, file: v3::types::FileHandle, data: &[u8], xid: u32) -> Vec<u8> {
    let body = client.credential().unwrap();
    let ids = (v3::PROGRAM, v3::VERSION, Procedure::Write as u32);
    let (count, stable) = (u32::try_from(data.len()).unwrap(), v3::types::StableHow::Unstable);
    let args = v3::write::Args { file, offset: 0, count, stable, data };
    client.send_record(&call_record(xid, ids, OpaqueAuth { flavor: flavor::AUTH_SYS, body: &body }, &args));
    client.receive_record()
}

#[test]
fn a_repeated_write_does_not_undo_what_another_client_has_written_since() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let file = client.make_file(root, "file", 0o666, b"");
    let first = write(&mut client, file, b"first", 1000);
    write(&mut server.client(), file, b"later", 2000);
    assert_eq!(write(&mut server.client(), file, b"first", 1000), first);
    let results = client.raw(Procedure::Read, &v3::read::Args { file, offset: 0, count: 5 });
    assert_eq!(v3::read::Res::from_bytes(&results).unwrap().unwrap().data, b"later");
}
