//! Whose name a call is carried out in.

use nfs_wire::v3::attr::Attributes;
use nfs_wire::v3::status::Status;
use share::Squash;

use crate::client::{Client, TestServer, export};

/// Who a new file of this client belongs to.
fn owner(client: &mut Client) -> (u32, u32) {
    let root = client.mount("/data").unwrap().file_handle;
    let file = client.make_file(root, "file", 0o600, b"");
    let Attributes { uid, gid, .. } = client.attributes(file);
    (uid, gid)
}

#[test]
fn users_are_believed_but_for_the_superuser() {
    let server = TestServer::exporting(export(Squash::Root));
    assert_eq!(owner(&mut server.client()), (5000, 5001));
    let server = TestServer::exporting(export(Squash::Root));
    assert_eq!(owner(&mut server.client_of(1000, 100, &[])), (1000, 100));
}

#[test]
fn everybody_is_the_anonymous_user() {
    let server = TestServer::exporting(export(Squash::All));
    assert_eq!(owner(&mut server.client_of(1000, 100, &[7])), (5000, 5001));
}

#[test]
fn a_client_without_credentials_is_the_anonymous_user() {
    let server = TestServer::exporting(export(Squash::None));
    let mut client = server.client();
    client.user = None;
    assert_eq!(owner(&mut client), (5000, 5001));
}

#[test]
fn users_of_one_connection_are_told_apart() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    client.user = Some((1000, 100, vec![]));
    let file = client.make_file(root, "file", 0o640, b"secret");
    client.user = Some((1001, 101, vec![]));
    assert_eq!(client.write(file, 0, b"x").unwrap_err().status, Status::Acces);
    client.user = Some((1000, 100, vec![]));
    client.write(file, 0, b"x").unwrap();
    // More users than a connection remembers.
    for uid in 2000..2600 {
        client.user = Some((uid, uid, vec![]));
        assert_eq!(client.write(file, 0, b"x").unwrap_err().status, Status::Acces);
    }
}
