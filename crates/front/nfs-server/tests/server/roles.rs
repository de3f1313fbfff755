//! The roles of a share's users over NFSv3: who changes files, who permissions, and who everything.

use nfs_wire::v3::access::{self, Access};
use nfs_wire::v3::attr::{SetAttributes, SetTime};
use nfs_wire::v3::create::{self, How};
use nfs_wire::v3::mknod::{self, What};
use nfs_wire::v3::status::Status;
use nfs_wire::v3::types::{FileHandle, SpecData};
use nfs_wire::v3::{Procedure, read, remove, setattr};
use nfs_wire::xdr::Decode;
use share::{Group, Names, Right, Role, Rules, Squash};
use storage::conformance::MAY;

use crate::client::{Client, TestServer, export, place, with_mode};

fn set(client: &mut Client, object: FileHandle, new_attributes: SetAttributes) -> Result<(), Status> {
    let args = setattr::Args { object, new_attributes, guard: None };
    let result: setattr::Res = client.nfs(Procedure::SetAttr, &args);
    result.map(|_| ()).map_err(|failure| failure.status)
}

fn create(client: &mut Client, dir: FileHandle, name: &str, how: How) -> Result<FileHandle, Status> {
    let result: create::Res = client.nfs(Procedure::Create, &create::Args { place: place(dir, name), how });
    result.map(|made| made.object.unwrap()).map_err(|failure| failure.status)
}

fn read(client: &mut Client, file: FileHandle) -> Result<(), Status> {
    let results = client.raw(Procedure::Read, &read::Args { file, offset: 0, count: 4 });
    read::Res::from_bytes(&results).unwrap().map(|_| ()).map_err(|failure| failure.status)
}

fn remove(client: &mut Client, dir: FileHandle, name: &str) -> Result<(), Status> {
    let result: remove::Res = client.nfs(Procedure::Remove, &remove::Args { object: place(dir, name) });
    result.map(|_| ()).map_err(|failure| failure.status)
}

fn write(client: &mut Client, file: FileHandle) -> Result<(), Status> {
    client.write(file, 0, b"nfs").map(|_| ()).map_err(|failure| failure.status)
}

fn owner(uid: u32) -> SetAttributes {
    SetAttributes { uid: Some(uid), ..SetAttributes::default() }
}

/// A server whose share everybody may write to by its mode, with a file of root's that nobody else may read, and of which the
/// roles are given to otto, 1001, who is in the group staff.
fn started(squash: Squash) -> (TestServer, FileHandle, FileHandle) {
    let server = TestServer::start();
    let (mut root_client, root) = server.mounted();
    let secret = root_client.make_file(root, "secret", 0o600, b"data");
    let store = std::sync::Arc::clone(&server.store);
    drop(server);
    let server = TestServer::over(store, export(squash), 2);
    let mode = storage::SetAttributes { mode: Some(0o777), ..Default::default() };
    server.data.root().set_attributes(&mode, MAY).unwrap();
    let account = |uid, name: &str| (uid, vec![name.to_owned()]);
    server.data.set_names(Names {
        groups: [("staff".to_owned(), Group { gid: 50, members: Vec::new() })].into(),
        accounts: [account(1000, "anna"), account(1001, "otto")].into(),
        ..Names::default()
    });
    (server, root, secret)
}

/// Gives this user or group the role, and somebody else that of an administrator.
fn give(server: &TestServer, who: &str, role: Role) {
    let right = |who: &str, role| Right { who: who.parse().unwrap(), role };
    let rights = vec![right(who, role), right("anna", Role::Admin)];
    server.data.set_rules(Rules { rights, ..Rules::default() });
}

#[test]
fn each_role_has_its_own_by_user_and_by_group() {
    let (server, root, secret) = started(Squash::None);
    let mut otto = server.client_of(1001, 1001, &[50]);
    for who in ["otto", "@staff"] {
        let mut tried = |role| {
            give(&server, who, role);
            let made = create(&mut otto, root, "mine", How::Unchecked(with_mode(0o640)));
            let set = made.and_then(|file| {
                let set = set(&mut otto, file, with_mode(0o604));
                remove(&mut otto, root, "mine").unwrap();
                set
            });
            [made.map(drop), set, read(&mut otto, secret)]
        };
        let (read_only, denied) = (Err(Status::RoFs), Err(Status::Acces));
        assert_eq!(tried(Role::Reader), [read_only, read_only, denied], "{who}");
        assert_eq!(tried(Role::Contributor), [Ok(()), denied, denied], "{who}");
        assert_eq!(tried(Role::Elevated), [Ok(()), Ok(()), denied], "{who}");
        assert_eq!(tried(Role::Admin), [Ok(()), Ok(()), Ok(())], "{who}");
    }
    // Without a role for it, whoever writes changes permissions, as before there were roles.
    let rights = vec![Right { who: "otto".parse().unwrap(), role: Role::Contributor }];
    server.data.set_rules(Rules { rights, ..Rules::default() });
    let file = create(&mut otto, root, "mine", How::Unchecked(with_mode(0o640))).unwrap();
    assert_eq!(set(&mut otto, file, with_mode(0o600)), Ok(()));
}

#[test]
fn contributors_make_files_with_a_mode_and_keep_it() {
    let (server, root, _) = started(Squash::None);
    give(&server, "otto", Role::Contributor);
    let mut otto = server.client_of(1001, 1001, &[50]);
    let file = create(&mut otto, root, "guarded", How::Guarded(with_mode(0o640))).unwrap();
    assert_eq!(write(&mut otto, file), Ok(()));
    assert_eq!(set(&mut otto, file, with_mode(0o640)), Ok(()), "it is so already");
    assert_eq!(set(&mut otto, file, owner(1001)), Ok(()), "it is so already");
    for refused in [with_mode(0o644), with_mode(0), owner(1000)] {
        assert_eq!(set(&mut otto, file, refused), Err(Status::Acces), "{refused:?}");
    }
    let group = SetAttributes { gid: Some(50), ..SetAttributes::default() };
    assert_eq!(set(&mut otto, file, group), Err(Status::Acces));
    let cut = SetAttributes { size: Some(0), mtime: SetTime::ServerTime, ..SetAttributes::default() };
    assert_eq!(set(&mut otto, file, cut), Ok(()), "size and times are contents");
    // The mode of an exclusive creation comes with a call of its own (RFC 1813 3.3.8).
    let file = create(&mut otto, root, "exclusive", How::Exclusive([7; 8])).unwrap();
    let dressed =
        SetAttributes { atime: SetTime::ServerTime, mtime: SetTime::ServerTime, ..with_mode(0o644) };
    assert_eq!(set(&mut otto, file, dressed), Ok(()));
    assert_eq!(set(&mut otto, file, with_mode(0o600)), Err(Status::Acces), "once");
    // The bits that a change of the data takes away are no change that the caller asks for.
    let program = create(&mut otto, root, "program", How::Guarded(with_mode(0o4755))).unwrap();
    assert_eq!(otto.attributes(program).mode, 0o4755);
    assert_eq!((set(&mut otto, program, cut), otto.attributes(program).mode), (Ok(()), 0o755));
}

#[test]
fn elevated_contributors_are_still_bound_by_permissions() {
    let (server, root, secret) = started(Squash::None);
    give(&server, "otto", Role::Elevated);
    let mut otto = server.client_of(1001, 1001, &[50]);
    assert_eq!(set(&mut otto, secret, with_mode(0o666)), Err(Status::Perm));
    assert_eq!(set(&mut otto, secret, owner(1001)), Err(Status::Perm));
    let file = create(&mut otto, root, "mine", How::Guarded(with_mode(0o640))).unwrap();
    let group = SetAttributes { gid: Some(50), ..SetAttributes::default() };
    assert_eq!(set(&mut otto, file, group), Ok(()));
}

#[test]
fn administrators_are_exempt_from_permissions_and_have_no_other_privilege_of_root() {
    let (server, root, secret) = started(Squash::None);
    give(&server, "otto", Role::Admin);
    let mut otto = server.client_of(1001, 1001, &[50]);
    assert_eq!((read(&mut otto, secret), write(&mut otto, secret)), (Ok(()), Ok(())));
    let may: access::Res =
        otto.nfs(Procedure::Access, &access::Args { object: secret, access: Access::all() });
    assert!(may.unwrap().access.contains(Access::READ | Access::MODIFY));
    assert_eq!(set(&mut otto, secret, with_mode(0o6755)), Ok(()));
    assert_eq!(otto.attributes(secret).mode, 0o755, "no bits that lend the rights of the owner");
    assert_eq!(set(&mut otto, secret, owner(1001)), Ok(()), "takes ownership");
    assert_eq!(set(&mut otto, secret, owner(1000)), Ok(()), "and gives it away");
    let file = create(&mut otto, root, "mine", How::Guarded(with_mode(0o640))).unwrap();
    assert_eq!(otto.attributes(file).uid, 1001);
    let device = What::BlockDevice(with_mode(0o600), SpecData { major: 8, minor: 0 });
    let args = mknod::Args { place: place(root, "disk"), what: device };
    let made: mknod::Res = otto.nfs(Procedure::MkNod, &args);
    assert_eq!(made.unwrap_err().status, Status::Perm);
    assert_eq!(remove(&mut otto, root, "secret"), Ok(()));
}

#[test]
fn an_administrator_who_is_only_stated_is_one_where_root_of_the_client_is() {
    let (server, _, secret) = started(Squash::Root);
    give(&server, "otto", Role::Admin);
    let mut otto = server.client_of(1001, 1001, &[50]);
    assert_eq!(read(&mut otto, secret), Err(Status::Acces));
    let clients = vec!["127.0.0.1 squash=none".parse().unwrap()];
    let rules = Rules { clients, ..(*server.data.rules()).clone() };
    server.data.set_rules(rules);
    assert_eq!(read(&mut otto, secret), Ok(()));
}

#[test]
fn a_default_role_is_for_accounts() {
    let (server, root, _) = started(Squash::None);
    server.data.set_rules(Rules { default_role: Some(Role::Reader), ..Rules::default() });
    let looks = |uid| server.client_of(uid, 7, &[]).lookup(root, "secret").map(drop).map_err(|e| e.status);
    assert_eq!((looks(1001), looks(1002)), (Ok(()), Err(Status::Acces)));
    let made = create(&mut server.client_of(1001, 7, &[]), root, "new", How::Guarded(with_mode(0o644)));
    assert_eq!(made, Err(Status::RoFs));
}
