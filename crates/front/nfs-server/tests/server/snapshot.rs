//! An object of a snapshot in a share that takes changes: NFS3ERR_ROFS for all that would change it.

use nfs_wire::v3::access::{self, Access};
use nfs_wire::v3::status::Status;
use nfs_wire::v3::types::FileHandle;
use nfs_wire::v3::{Procedure, create, link, read, remove, rename, setattr};
use nfs_wire::xdr::Decode;
use storage::Name;

use crate::client::{Client, TestServer, place, with_mode};

fn ask(client: &mut Client, object: FileHandle) -> Access {
    let result: access::Res = client.nfs(Procedure::Access, &access::Args { object, access: Access::all() });
    result.unwrap().access
}

fn find(client: &mut Client, dir: FileHandle, name: &str) -> FileHandle {
    client.lookup(dir, name).unwrap().object
}

#[test]
fn what_is_of_a_snapshot_is_read_and_takes_no_changes() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let dir = client.make_dir(root, "dir", 0o755);
    let file = client.make_file(dir, "file", 0o644, b"old");
    server.store.add_snapshot(Name::new(b"then").unwrap()).unwrap();
    client.write(file, 0, b"new").unwrap();

    let then = find(&mut client, root, "then");
    let old_dir = find(&mut client, then, "dir");
    let old = find(&mut client, old_dir, "file");
    let results = client.raw(Procedure::Read, &read::Args { file: old, offset: 0, count: 10 });
    assert_eq!(read::Res::from_bytes(&results).unwrap().unwrap().data, b"old");
    assert_eq!(ask(&mut client, old), Access::READ);
    assert_eq!(ask(&mut client, old_dir), Access::READ | Access::LOOKUP);
    let change = Access::MODIFY | Access::EXTEND;
    assert_eq!(ask(&mut client, dir), Access::READ | Access::LOOKUP | change | Access::DELETE);

    assert_eq!(client.write(old, 0, b"new").unwrap_err().status, Status::RoFs);
    let args = setattr::Args { object: old, new_attributes: with_mode(0o600), guard: None };
    let set: setattr::Res = client.nfs(Procedure::SetAttr, &args);
    assert_eq!(set.unwrap_err().status, Status::RoFs);
    let how = create::How::Guarded(with_mode(0o644));
    let made: create::Res =
        client.nfs(Procedure::Create, &create::Args { place: place(old_dir, "other"), how });
    assert_eq!(made.unwrap_err().status, Status::RoFs);
    let removed: remove::Res =
        client.nfs(Procedure::Remove, &remove::Args { object: place(old_dir, "file") });
    assert_eq!(removed.unwrap_err().status, Status::RoFs);
    for (from, to) in [(old_dir, dir), (dir, old_dir)] {
        let args = rename::Args { from: place(from, "file"), to: place(to, "other") };
        let renamed: rename::Res = client.nfs(Procedure::Rename, &args);
        assert_eq!(renamed.unwrap_err().status, Status::RoFs);
    }
    for (file, dir) in [(old, dir), (file, old_dir)] {
        let linked: link::Res = client.nfs(Procedure::Link, &link::Args { file, link: place(dir, "other") });
        assert_eq!(linked.unwrap_err().status, Status::RoFs);
    }
}
