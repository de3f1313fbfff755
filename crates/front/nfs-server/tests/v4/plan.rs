//! What clients see of a share's plan: the largest file, the numbers of opens.

use std::time::SystemTime;

use nfs_wire::v4::attr::{Attribute, AttributeSet, Attributes, Value};
use nfs_wire::v4::compound::ArgOp;
use nfs_wire::v4::open::{CreateHow, How, ShareAccess, ShareDeny, Want};
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::StableHow;
use nfs_wire::v4::{getattr, write};

use crate::client::{V4Client, put};
use crate::opens::started;
use crate::server::TestServer;

fn plan(server: &TestServer, plan: &str) {
    server.data.set_plan(plan.parse().unwrap(), SystemTime::now()).unwrap();
}

#[test]
fn the_largest_file_is_as_large_as_the_plan_says() {
    let (server, mut client, root) = started();
    plan(&server, "custom file-size=64KiB");
    let request = AttributeSet::of(&[Attribute::MaxFileSize]);
    let told = client.ok(&[put(&root), ArgOp::GetAttr(getattr::Args { request })]);
    assert!(matches!(told.attribute(Attribute::MaxFileSize), Some(Value::MaxFileSize(65_536))), "{told:?}");
    let (stateid, file) = client.open(&root, "file");
    let beyond = write::Args { stateid, offset: 65_535, stable: StableHow::Unstable, data: b"ab" };
    assert_eq!(client.fails(&[put(&file), ArgOp::Write(beyond)]), Status::FBig);
    assert_eq!(client.read(&file, stateid, 0, 10), b"", "nothing of it is written");
    client.write(&file, stateid, 65_535, b"a");
}

#[test]
fn as_many_opens_as_the_plan_says() {
    let (server, mut one, root) = started();
    plan(&server, "custom file-handles=2");
    let mut two = V4Client::start(server.address, "two");
    let mut three = V4Client::start(server.address, "three");
    let (stateid, file) = one.open(&root, "file");
    two.open(&root, "file");
    let modes = (ShareAccess::BOTH.with_want(Want::None), ShareDeny::NONE);
    let how = How::Create(CreateHow::Unchecked(Attributes::EMPTY));
    let open = three.open_args(b"owner", "file", modes, how);
    assert_eq!(three.fails(&[put(&root), ArgOp::Open(open)]), Status::DQuot);
    one.close(&file, stateid);
    three.open(&root, "file");
}
