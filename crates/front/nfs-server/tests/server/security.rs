//! Access control lists that an SMB client has set, and what they mean to NFS clients.

use std::sync::Arc;

use acl::{AccessMask, Ace, AceFlags, Acl, Control, SecurityDescriptor, Sid};
use nfs_wire::v3::access::{self, Access};
use nfs_wire::v3::attr::SetAttributes;
use nfs_wire::v3::status::Status;
use nfs_wire::v3::types::FileHandle;
use nfs_wire::v3::{Procedure, create, read, remove, setattr};
use nfs_wire::xdr::Decode;
use share::{Case, File, Found, SecurityChange};
use storage::Want;
use tokio::runtime::Runtime;

use crate::client::{Client, TestServer, by_smb, place, with_mode};

const READ: AccessMask = AccessMask::FILE_READ;
const WRITE: AccessMask = AccessMask::WRITE_DATA.union(AccessMask::APPEND_DATA);
const NONE: AceFlags = AceFlags::empty();
const EVERYONE: Sid = Sid::EVERYONE;

/// What an SMB client of the superuser does.
struct Smb {
    runtime: Runtime,
    server: TestServer,
    call: share::Call,
}

impl Smb {
    fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let call = by_smb(0, 0);
        Self { runtime, server: TestServer::start(), call }
    }

    fn find(&self, name: &str) -> Found {
        let data = &self.server.data;
        let found = data.lookup(&self.call, data.root(), name.as_bytes(), Case::Insensitive, Want::empty());
        self.runtime.block_on(found).unwrap()
    }

    fn set_dacl(&self, name: &str, aces: Vec<Ace>) {
        let dacl = Some((Control::DACL_PRESENT, Some(Acl { revision: 2, aces })));
        let file = File::Stateless(Arc::clone(&self.find(name).node));
        let change = SecurityChange { dacl, ..SecurityChange::default() };
        self.runtime.block_on(self.server.data.set_security(&self.call, &file, change)).unwrap();
    }

    fn security(&self, name: &str) -> SecurityDescriptor {
        self.runtime.block_on(self.server.data.security(&by_smb(0, 0), &self.find(name).node)).unwrap()
    }
}

fn allowed(client: &mut Client, object: FileHandle) -> Access {
    let result: access::Res = client.nfs(Procedure::Access, &access::Args { object, access: Access::all() });
    result.unwrap().access
}

fn read(client: &mut Client, file: FileHandle) -> Result<(), Status> {
    let results = client.raw(Procedure::Read, &read::Args { file, offset: 0, count: 4 });
    read::Res::from_bytes(&results).unwrap().map(|_| ()).map_err(|failure| failure.status)
}

fn write(client: &mut Client, file: FileHandle) -> Result<(), Status> {
    client.write(file, 0, b"nfs").map(|_| ()).map_err(|failure| failure.status)
}

fn remove(client: &mut Client, dir: FileHandle, name: &str) -> Result<(), Status> {
    let result: remove::Res = client.nfs(Procedure::Remove, &remove::Args { object: place(dir, name) });
    result.map(|_| ()).map_err(|failure| failure.status)
}

fn set(client: &mut Client, object: FileHandle, new_attributes: SetAttributes) -> Result<(), Status> {
    let args = setattr::Args { object, new_attributes, guard: None };
    let result: setattr::Res = client.nfs(Procedure::SetAttr, &args);
    result.map(|_| ()).map_err(|failure| failure.status)
}

fn create(client: &mut Client, dir: FileHandle, name: &str, mode: u32) -> Result<(), Status> {
    let how = create::How::Guarded(with_mode(mode));
    let result: create::Res = client.nfs(Procedure::Create, &create::Args { place: place(dir, name), how });
    result.map(|_| ()).map_err(|failure| failure.status)
}

#[test]
fn entries_for_users_and_groups_hold() {
    let smb = Smb::start();
    let (mut root_client, root) = smb.server.mounted();
    let file = root_client.make_file(root, "file", 0o666, b"data");
    smb.set_dacl(
        "file",
        vec![
            Ace::deny(Sid::of_user(1000), WRITE, NONE),
            Ace::deny(Sid::of_group(70), READ | WRITE, NONE),
            Ace::allow(Sid::of_group(80), AccessMask::EXECUTE, NONE),
            Ace::allow(EVERYONE, READ | WRITE, NONE),
        ],
    );
    let mut denied = smb.server.client_of(1000, 100, &[]);
    assert_eq!(allowed(&mut denied, file), Access::READ);
    assert_eq!((read(&mut denied, file), write(&mut denied, file)), (Ok(()), Err(Status::Acces)));
    let mut member = smb.server.client_of(1001, 100, &[70]);
    assert_eq!(allowed(&mut member, file), Access::empty());
    assert_eq!((read(&mut member, file), write(&mut member, file)), (Err(Status::Acces), Err(Status::Acces)));
    let mut other = smb.server.client_of(1002, 80, &[]);
    assert_eq!(allowed(&mut other, file), Access::READ | Access::MODIFY | Access::EXTEND | Access::EXECUTE);
    assert_eq!((read(&mut other, file), write(&mut other, file)), (Ok(()), Ok(())));
}

#[test]
fn a_list_tells_executing_from_reading() {
    let smb = Smb::start();
    let (mut root_client, root) = smb.server.mounted();
    let file = root_client.make_file(root, "program", 0o711, b"data");
    let mut user = smb.server.client_of(1000, 100, &[]);
    assert_eq!(
        read(&mut user, file),
        Ok(()),
        "by mode, who may execute may read: its client pages the program in"
    );
    let executes = Ace::allow(EVERYONE, AccessMask::EXECUTE, NONE);
    smb.set_dacl("program", vec![executes.clone()]);
    assert_eq!(allowed(&mut user, file), Access::EXECUTE);
    assert_eq!(read(&mut user, file), Err(Status::Acces), "not granted");
    let denies = Ace::deny(Sid::of_user(1000), AccessMask::READ_DATA, NONE);
    smb.set_dacl("program", vec![denies, executes, Ace::allow(EVERYONE, READ, NONE)]);
    assert_eq!(read(&mut user, file), Err(Status::Acces), "denied");
    assert_eq!(read(&mut smb.server.client_of(1001, 100, &[]), file), Ok(()));
    assert_eq!(read(&mut root_client, file), Ok(()));
}

#[test]
fn a_denial_binds_the_owner_too() {
    let smb = Smb::start();
    let (_, root) = smb.server.mounted();
    set(&mut smb.server.client(), root, with_mode(0o777)).unwrap();
    let mut owner = smb.server.client_of(1000, 100, &[]);
    let file = owner.make_file(root, "file", 0o400, b"data");
    assert_eq!(write(&mut owner, file), Ok(()), "its client has checked the mode when it was opened");
    smb.set_dacl("file", vec![Ace::allow(EVERYONE, READ, NONE), Ace::allow(Sid::of_user(7), WRITE, NONE)]);
    assert_eq!(write(&mut owner, file), Err(Status::Acces));
    assert_eq!(set(&mut owner, file, with_mode(0o600)), Ok(()), "but it may change the mode");
    assert_eq!(write(&mut owner, file), Ok(()));
}

#[test]
fn chmod_shows_in_the_descriptor() {
    let smb = Smb::start();
    let (mut client, root) = smb.server.mounted();
    let file = client.make_file(root, "file", 0o666, b"data");
    let deny = Ace::deny(Sid::of_user(1000), READ, NONE);
    smb.set_dacl("file", vec![deny.clone(), Ace::allow(EVERYONE, READ, NONE)]);
    assert_eq!(client.attributes(file).mode, 0o444, "the list shows in the mode");
    assert!(smb.security("file").dacl.unwrap().aces.contains(&deny));
    set(&mut client, file, with_mode(0o444)).unwrap();
    assert!(smb.security("file").dacl.unwrap().aces.contains(&deny), "nothing has changed");
    set(&mut client, file, with_mode(0o640)).unwrap();
    assert_eq!(smb.security("file"), SecurityDescriptor::of_mode(0o640, false, 0, 0));
    set(&mut client, file, with_mode(0o444)).unwrap();
    assert_eq!(smb.security("file"), SecurityDescriptor::of_mode(0o444, false, 0, 0), "it does not return");
}

#[test]
fn a_new_owner_shows_in_the_descriptor() {
    let smb = Smb::start();
    let (mut client, root) = smb.server.mounted();
    let file = client.make_file(root, "file", 0o666, b"data");
    let deny = Ace::deny(Sid::of_user(1000), READ, NONE);
    smb.set_dacl("file", vec![deny.clone(), Ace::allow(EVERYONE, READ, NONE)]);
    set(&mut client, file, SetAttributes { uid: Some(1000), ..SetAttributes::default() }).unwrap();
    let now = smb.security("file");
    assert_eq!(now.owner, Some(Sid::of_user(1000)));
    assert!(now.dacl.unwrap().aces.contains(&deny), "the list stays");
}

#[test]
fn what_is_made_inherits_within_its_mode() {
    let smb = Smb::start();
    let (mut client, root) = smb.server.mounted();
    let dir = client.make_dir(root, "dir", 0o777);
    let down = AceFlags::OBJECT_INHERIT | AceFlags::CONTAINER_INHERIT;
    smb.set_dacl(
        "dir",
        vec![
            Ace::allow(EVERYONE, AccessMask::FILE_ALL, AceFlags::CONTAINER_INHERIT),
            Ace::allow(Sid::of_user(7), READ | WRITE, down),
            Ace::allow(Sid::CREATOR_OWNER, AccessMask::FILE_ALL, down | AceFlags::INHERIT_ONLY),
        ],
    );
    let mut user = smb.server.client_of(1000, 100, &[]);
    let closed = user.make_file(dir, "closed", 0o600, b"data");
    let shared = user.make_file(dir, "shared", 0o664, b"data");
    let mut seven = smb.server.client_of(7, 7, &[]);
    assert_eq!(read(&mut seven, closed), Err(Status::Acces));
    assert_eq!((read(&mut seven, shared), write(&mut seven, shared)), (Ok(()), Ok(())));
    assert_eq!(user.attributes(shared).mode, 0o600, "no bit speaks of user 7");
    assert_eq!(write(&mut user, shared), Ok(()));
}

#[test]
fn directories_give_each_right_by_itself() {
    let smb = Smb::start();
    let (mut client, root) = smb.server.mounted();
    let dir = client.make_dir(root, "dir", 0o777);
    client.make_file(dir, "old", 0o666, b"");
    let go = AccessMask::TRAVERSE | AccessMask::LIST_DIRECTORY;
    smb.set_dacl("dir", vec![Ace::allow(EVERYONE, go | AccessMask::ADD_FILE, NONE)]);
    let mut user = smb.server.client_of(1000, 100, &[]);
    assert_eq!(allowed(&mut user, dir), Access::READ | Access::LOOKUP | Access::MODIFY | Access::EXTEND);
    assert_eq!(create(&mut user, dir, "new", 0o644), Ok(()));
    assert_eq!(remove(&mut user, dir, "old"), Err(Status::Acces));
    smb.set_dacl("dir", vec![Ace::allow(EVERYONE, go | AccessMask::DELETE_CHILD, NONE)]);
    assert_eq!(create(&mut user, dir, "newer", 0o644), Err(Status::Acces));
    assert_eq!(remove(&mut user, dir, "old"), Ok(()));
    smb.set_dacl("dir", vec![Ace::allow(EVERYONE, AccessMask::LIST_DIRECTORY, NONE)]);
    let found = user.lookup(dir, "new").map(|_| ()).map_err(|failure| failure.status);
    assert_eq!(found, Err(Status::Acces));
}
