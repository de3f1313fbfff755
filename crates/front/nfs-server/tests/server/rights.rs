//! The list of a share's users: who is on it, what the others may have, and what changes with it.

use nfs_wire::mount;
use nfs_wire::v3::access::{self, Access};
use nfs_wire::v3::status::Status;
use nfs_wire::v3::types::FileHandle;
use nfs_wire::v3::{Procedure, fsinfo, fsstat, getattr, lookup, mkdir, pathconf};
use share::{Group, Names, Right, Role, Rules, Squash};
use storage::conformance::MAY;

use crate::client::{Client, TestServer, export, place};

/// anna writes, the group staff reads; anna is 1000, otto 1001, staff 50.
fn listed(server: &TestServer) {
    let right = |who: &str, role| Right { who: who.parse().unwrap(), role };
    let rights = vec![right("@staff", Role::Reader), right("anna", Role::Contributor)];
    let account = |uid, name: &str| (uid, vec![name.to_owned()]);
    server.data.set_names(Names {
        groups: [("staff".to_owned(), Group { gid: 50, members: Vec::new() })].into(),
        accounts: [account(1000, "anna"), account(1001, "otto"), account(0, "admin")].into(),
        ..Names::default()
    });
    server.data.set_rules(Rules { rights, ..Rules::default() });
}

/// What a caller gets of a file, and when it wants to make a directory.
fn tries(client: &mut Client, root: FileHandle, name: &str) -> [Result<(), Status>; 2] {
    let found: lookup::Res = client.nfs(Procedure::Lookup, &lookup::Args { what: place(root, "file") });
    let args = mkdir::Args { place: place(root, name), attributes: Default::default() };
    let made: mkdir::Res = client.nfs(Procedure::MkDir, &args);
    [found.map(|_| ()).map_err(|e| e.status), made.map(|_| ()).map_err(|e| e.status)]
}

#[test]
fn who_is_not_on_the_list_has_nothing_and_readers_change_nothing() {
    let server = TestServer::start();
    let (mut admin, root) = server.mounted();
    admin.make_file(root, "file", 0o666, b"");
    let mode = storage::SetAttributes { mode: Some(0o777), ..Default::default() };
    server.data.root().set_attributes(&mode, MAY).unwrap();
    let mut anna = server.client_of(1000, 1000, &[]);
    let mut otto = server.client_of(1001, 1001, &[50]);
    assert_eq!(tries(&mut otto, root, "before"), [Ok(()), Ok(())]);
    listed(&server);
    assert_eq!(tries(&mut anna, root, "annas"), [Ok(()), Ok(())]);
    assert_eq!(tries(&mut otto, root, "ottos"), [Ok(()), Err(Status::RoFs)]);
    let refused = [Err(Status::Acces); 2];
    // The group without an account, the account without the group, and root, which is no account of the list.
    assert_eq!(tries(&mut server.client_of(1002, 50, &[50]), root, "eves"), refused);
    assert_eq!(tries(&mut server.client_of(1001, 1001, &[51]), root, "ottos"), refused);
    assert_eq!(tries(&mut admin, root, "roots"), refused);
    server.data.set_rules(Rules::default());
    assert_eq!(tries(&mut otto, root, "after"), [Ok(()), Ok(())]);
}

#[test]
fn root_of_a_client_mounts_for_its_users_and_sees_nothing() {
    let server = TestServer::exporting(export(Squash::Root));
    listed(&server);
    let mut root_user = server.client();
    let root = root_user.mount("/data").unwrap().file_handle;
    let object = root;
    let looked: getattr::Res = root_user.nfs(Procedure::GetAttr, &getattr::Args { object });
    assert!(looked.is_ok());
    let told: fsinfo::Res = root_user.nfs(Procedure::FsInfo, &fsinfo::Args { root });
    assert!(told.is_ok());
    let told: fsstat::Res = root_user.nfs(Procedure::FsStat, &fsstat::Args { root });
    assert!(told.is_ok());
    let told: pathconf::Res = root_user.nfs(Procedure::PathConf, &pathconf::Args { object });
    assert!(told.is_ok());
    let may: access::Res = root_user.nfs(Procedure::Access, &access::Args { object, access: Access::all() });
    assert_eq!(may.unwrap().access, Access::empty());
    let found: lookup::Res = root_user.nfs(Procedure::Lookup, &lookup::Args { what: place(root, "any") });
    assert_eq!(found.unwrap_err().status, Status::Acces);
    assert_eq!(root_user.mount("/data/below"), Err(mount::Status::Acces));
}
