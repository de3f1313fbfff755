//! The roles of a share's users over NFSv4: SETATTR of modes, owners and lists, OPEN, and CREATE with a list.

use nfs_wire::v4::acl::{Ace, AceFlags, AceMask, ace_type};
use nfs_wire::v4::attr::{AttributesBuf, Value};
use nfs_wire::v4::compound::ArgOp;
use nfs_wire::v4::open::{CreateHow, How, ShareAccess, ShareDeny, Want};
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::{Stateid, Text, Verifier};
use nfs_wire::v4::{remove, setattr};
use share::{Names, Right, Role, Rules};
use storage::conformance::MAY;

use crate::client::{V4Client, put};
use crate::server::TestServer;

fn set<'a>(file: &'a [u8], attributes: &'a AttributesBuf) -> [ArgOp<'a>; 2] {
    let attributes = attributes.as_attributes();
    [put(file), ArgOp::SetAttr(setattr::Args { stateid: Stateid::ANONYMOUS, attributes })]
}

fn one(value: Value<'_>) -> AttributesBuf {
    [value].into_iter().collect()
}

/// Everybody may read.
fn list() -> AttributesBuf {
    let mask = AceMask::READ_DATA | AceMask::READ_ATTRIBUTES | AceMask::READ_ACL;
    let everyone = Ace { ace_type: ace_type::ALLOW, flags: AceFlags::empty(), mask, who: Text(b"EVERYONE@") };
    one(Value::Acl(vec![everyone]))
}

/// A server whose share everybody may write to by its mode, with a file of root's that nobody else may read; and a client of
/// otto, 1001.
fn started() -> (TestServer, V4Client, Vec<u8>) {
    let server = TestServer::start();
    let mut client = V4Client::start(server.address, "one");
    let root = client.path("/data");
    let (stateid, file) = client.open(&root, "secret");
    client.close(&file, stateid);
    client.ok(&set(&file, &one(Value::Mode(0o600))));
    let mode = storage::SetAttributes { mode: Some(0o777), ..Default::default() };
    server.data.root().set_attributes(&mode, MAY).unwrap();
    let accounts = [(1000, vec!["anna".to_owned()]), (1001, vec!["otto".to_owned()])].into();
    server.data.set_names(Names { accounts, ..Names::default() });
    client.become_user(1001, 1001, &[]);
    (server, client, root)
}

/// Gives otto the role, and somebody else that of an administrator.
fn give(server: &TestServer, role: Role) {
    let right = |who: &str, role| Right { who: who.parse().unwrap(), role };
    let rights = vec![right("otto", role), right("anna", Role::Admin)];
    server.data.set_rules(Rules { rights, ..Rules::default() });
}

/// The status of these operations.
fn tried(client: &mut V4Client, operations: &[ArgOp<'_>]) -> Result<(), Status> {
    client.compound(operations).status
}

#[test]
fn contributors_change_files_and_no_permissions() {
    let (server, mut client, root) = started();
    give(&server, Role::Contributor);
    let (stateid, file) = client.open(&root, "mine");
    client.write(&file, stateid, 0, b"data");
    client.close(&file, stateid);
    for refused in [one(Value::Mode(0o604)), one(Value::Owner(Text(b"1000"))), list()] {
        assert_eq!(client.fails(&set(&file, &refused)), Status::Access, "{refused:?}");
    }
    client.ok(&set(&file, &one(Value::Size(0))));
    let modes = (ShareAccess::BOTH.with_want(Want::None), ShareDeny::NONE);
    let with_list = list();
    let guarded = How::Create(CreateHow::Guarded(with_list.as_attributes()));
    let args = client.open_args(b"owner", "listed", modes, guarded);
    assert_eq!(client.fails(&[put(&root), ArgOp::Open(args)]), Status::Access);
    let look = ArgOp::Lookup(nfs_wire::v4::lookup::Args { name: nfs_wire::v4::types::Name(b"listed") });
    assert_eq!(client.fails(&[put(&root), look]), Status::NoEnt, "nothing incomplete is left");
    // The mode of EXCLUSIVE4 comes with a SETATTR of its own (RFC 8881 18.16.3).
    let exclusive = How::Create(CreateHow::Exclusive(Verifier([7; 8])));
    let args = client.open_args(b"owner", "exclusive", modes, exclusive);
    let reply = client.ok(&[put(&root), ArgOp::Open(args), ArgOp::GetFh]);
    let exclusive = reply.file_handle();
    client.ok(&set(&exclusive, &one(Value::Mode(0o644))));
    assert_eq!(client.fails(&set(&exclusive, &one(Value::Mode(0o600)))), Status::Access, "once");
    let remove = ArgOp::Remove(remove::Args { target: nfs_wire::v4::types::Name(b"mine") });
    client.ok(&[put(&root), remove]);
}

#[test]
fn elevated_contributors_change_what_is_theirs_and_administrators_everything() {
    let (server, mut client, root) = started();
    let secret = client.path("/data/secret");
    give(&server, Role::Elevated);
    let (stateid, mine) = client.open(&root, "mine");
    client.close(&mine, stateid);
    client.ok(&set(&mine, &one(Value::Mode(0o604))));
    client.ok(&set(&mine, &list()));
    let modes = (ShareAccess::READ.with_want(Want::None), ShareDeny::NONE);
    let mut all = || {
        let args = client.open_args(b"owner", "secret", modes, How::NoCreate);
        [
            tried(&mut client, &[put(&root), ArgOp::Open(args)]),
            tried(&mut client, &set(&secret, &list())),
            tried(&mut client, &set(&secret, &one(Value::Owner(Text(b"1001"))))),
            tried(&mut client, &set(&secret, &one(Value::Mode(0o640)))),
        ]
    };
    assert_eq!(all(), [Err(Status::Access), Err(Status::Perm), Err(Status::Perm), Err(Status::Perm)]);
    give(&server, Role::Admin);
    assert_eq!(all(), [Ok(()); 4]);
    give(&server, Role::Reader);
    let read_only = Err(Status::RoFs);
    assert_eq!(all(), [Ok(()), read_only, read_only, read_only], "its owner now");
}
