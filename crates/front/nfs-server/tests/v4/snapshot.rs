//! An object of a snapshot in a share that takes changes: NFS4ERR_ROFS for all that would change it.

use nfs_wire::v4::access::{self, Access};
use nfs_wire::v4::attr::{Attributes, AttributesBuf, Value};
use nfs_wire::v4::compound::{ArgOp, ResOp};
use nfs_wire::v4::open::{CreateHow, How, ShareAccess, ShareDeny, Want};
use nfs_wire::v4::setxattr::SetOption;
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::{Name, Stateid};
use nfs_wire::v4::{close, link, read, remove, rename, setattr, setxattr};

use crate::client::{V4Client, put};
use crate::server::TestServer;

fn rights(client: &mut V4Client, object: &[u8]) -> Access {
    let reply = client.ok(&[put(object), ArgOp::Access(access::Args { access: Access::all() })]);
    let ResOp::Access(Ok(ok)) = reply.last() else { panic!("{reply:?}") };
    ok.access
}

#[test]
fn what_is_of_a_snapshot_is_read_and_takes_no_changes() {
    let server = TestServer::start();
    let mut client = V4Client::start_minor(server.address, "one", 2);
    let root = server.mounted().1.as_bytes().to_vec();
    let (stateid, file) = client.open(&root, "file");
    client.write(&file, stateid, 0, b"old");
    server.store.add_snapshot(storage::Name::new(b"then").unwrap()).unwrap();
    client.write(&file, stateid, 0, b"new");

    let (then, old) = (client.path("/data/then"), client.path("/data/then/file"));
    let open = |client: &V4Client, access: ShareAccess, how| {
        let modes = (access.with_want(Want::None), ShareDeny::NONE);
        ArgOp::Open(client.open_args(b"reader", "file", modes, how))
    };
    let reading = open(&client, ShareAccess::READ, How::NoCreate);
    let of_old = client.ok(&[put(&then), reading]).opened().stateid;
    assert_eq!(client.read(&old, of_old, 0, 10), b"old");
    assert_eq!(client.read(&file, stateid, 0, 10), b"new");
    let changes = Access::MODIFY | Access::EXTEND | Access::DELETE | Access::XATTR_WRITE;
    for object in [&then, &old] {
        let rights = rights(&mut client, object);
        assert!(rights.contains(Access::READ) && !rights.intersects(changes));
    }
    assert!(rights(&mut client, &root).contains(changes));

    let read_only = |client: &mut V4Client, object: &[u8], operation| {
        assert_eq!(client.fails(&[put(object), operation]), Status::RoFs);
    };
    let writing = open(&client, ShareAccess::BOTH, How::NoCreate);
    read_only(&mut client, &then, writing);
    let modes = (ShareAccess::READ.with_want(Want::None), ShareDeny::NONE);
    let how = How::Create(CreateHow::Guarded(Attributes::EMPTY));
    let making = ArgOp::Open(client.open_args(b"reader", "other", modes, how));
    read_only(&mut client, &then, making);
    let mode: AttributesBuf = [Value::Mode(0o600)].into_iter().collect();
    let set = setattr::Args { stateid: Stateid::ANONYMOUS, attributes: mode.as_attributes() };
    read_only(&mut client, &old, ArgOp::SetAttr(set));
    let xattr = setxattr::Args { option: SetOption::Either, name: Name(b"x"), value: b"1" };
    read_only(&mut client, &old, ArgOp::SetXattr(xattr));
    read_only(&mut client, &then, ArgOp::Remove(remove::Args { target: Name(b"file") }));
    let renamed = || ArgOp::Rename(rename::Args { old_name: Name(b"file"), new_name: Name(b"other") });
    let linked = || ArgOp::Link(link::Args { new_name: Name(b"other") });
    for (from, to) in [(&then, &root), (&root, &then)] {
        assert_eq!(client.fails(&[put(from), ArgOp::SaveFh, put(to), renamed()]), Status::RoFs);
    }
    for (file, dir) in [(&old, &root), (&file, &then)] {
        assert_eq!(client.fails(&[put(file), ArgOp::SaveFh, put(dir), linked()]), Status::RoFs);
    }
}

/// The number of a file in a snapshot is that of the live file: what a client holds of one is not held of the other.
#[test]
fn an_owner_holds_a_file_and_its_picture_apart() {
    let server = TestServer::start();
    let mut client = V4Client::start_minor(server.address, "one", 2);
    let root = server.mounted().1.as_bytes().to_vec();
    let (_, file) = client.open(&root, "file");
    server.store.add_snapshot(storage::Name::new(b"then").unwrap()).unwrap();
    let (then, old) = (client.path("/data/then"), client.path("/data/then/file"));
    let mut opened = |dir: &[u8]| {
        let modes = (ShareAccess::READ.with_want(Want::None), ShareDeny::NONE);
        let open = ArgOp::Open(client.open_args(b"reader", "file", modes, How::NoCreate));
        client.ok(&[put(dir), open]).opened().stateid
    };
    let (of_new, of_old) = (opened(&root), opened(&then));
    assert_ne!(of_new.other, of_old.other);
    let read = |stateid| ArgOp::Read(read::Args { stateid, offset: 0, count: 10 });
    for (object, stateid) in [(&file, of_old), (&old, of_new)] {
        assert_eq!(client.fails(&[put(object), read(stateid)]), Status::BadStateId);
    }
    client.ok(&[put(&old), ArgOp::Close(close::Args { seqid: 0, open_stateid: of_old })]);
    client.ok(&[put(&file), read(of_new)]);
}
