//! ACCESS (RFC 1813 3.3.4).

use nfs_wire::v3::Procedure;
use nfs_wire::v3::access::{self, Access};
use nfs_wire::v3::types::FileHandle;

use crate::client::{Client, TestServer, listed};

fn ask(client: &mut Client, object: FileHandle, access: Access) -> Access {
    let result: access::Res = client.nfs(Procedure::Access, &access::Args { object, access });
    let told = result.unwrap();
    assert!(told.object_attributes.is_some());
    told.access
}

#[test]
fn rights_follow_the_mode() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let mut owner = server.client_of(1000, 100, &[]);
    let file = owner.make_file(root, "file", 0o754, b"");
    let dir = owner.make_dir(root, "dir", 0o754);
    let change = Access::MODIFY | Access::EXTEND;
    let all = Access::all();
    let mut group = server.client_of(1001, 5, &[100]);
    let mut stranger = server.client_of(1001, 5, &[]);
    assert_eq!(ask(&mut owner, file, all), Access::READ | change | Access::EXECUTE);
    assert_eq!(ask(&mut group, file, all), Access::READ | Access::EXECUTE);
    assert_eq!(ask(&mut stranger, file, all), Access::READ);
    assert_eq!(ask(&mut owner, dir, all), Access::READ | Access::LOOKUP | change | Access::DELETE);
    assert_eq!(ask(&mut group, dir, all), Access::READ | Access::LOOKUP);
    assert_eq!(ask(&mut stranger, dir, all), Access::READ);
    assert_eq!(ask(&mut client, file, all), Access::READ | change | Access::EXECUTE);
}

#[test]
fn only_what_was_asked_is_told() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let file = client.make_file(root, "file", 0o600, b"");
    assert_eq!(ask(&mut client, file, Access::READ), Access::READ);
    assert_eq!(ask(&mut client, file, Access::LOOKUP | Access::DELETE), Access::empty());
}

#[test]
fn a_read_only_export_grants_no_change() {
    let server = TestServer::exporting(listed(&["* access=ro"]));
    let (mut client, root) = server.mounted();
    assert_eq!(ask(&mut client, root, Access::all()), Access::READ | Access::LOOKUP);
}
