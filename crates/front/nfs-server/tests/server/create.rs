//! CREATE, MKDIR, SYMLINK, READLINK, MKNOD (RFC 1813 3.3.5, 3.3.8 to 3.3.11).

use std::sync::Arc;

use nfs_wire::v3::attr::{SetAttributes, SetTime, WccAttributes};
use nfs_wire::v3::create::{self, How};
use nfs_wire::v3::mknod::{self, OtherType, What};
use nfs_wire::v3::status::Status;
use nfs_wire::v3::types::{CreatedOk, FileHandle, FileType, Path, SpecData};
use nfs_wire::v3::{Procedure, mkdir, readlink, setattr, symlink};
use nfs_wire::xdr::Decode;

use share::{Squash, Terms};

use crate::client::{Client, TestServer, export, listed, place, with_mode};

fn create(client: &mut Client, dir: FileHandle, name: &str, how: How) -> Result<CreatedOk, Status> {
    let result: create::Res = client.nfs(Procedure::Create, &create::Args { place: place(dir, name), how });
    result.map_err(|failure| failure.status)
}

fn mknod(client: &mut Client, dir: FileHandle, name: &str, what: What) -> Result<CreatedOk, Status> {
    let result: mknod::Res = client.nfs(Procedure::MkNod, &mknod::Args { place: place(dir, name), what });
    result.map_err(|failure| failure.status)
}

fn symlink(client: &mut Client, dir: FileHandle, name: &str, text: &[u8]) -> Result<CreatedOk, Status> {
    let attributes = SetAttributes::default();
    let args = symlink::Args { place: place(dir, name), attributes, data: Path(text) };
    let result: symlink::Res = client.nfs(Procedure::SymLink, &args);
    result.map_err(|failure| failure.status)
}

#[test]
fn a_new_file_comes_with_handle_attributes_and_its_directory() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let before = client.attributes(root);
    let mut user = server.client_of(1000, 100, &[]);
    let made = create(&mut user, root, "file", How::Guarded(with_mode(0o640))).unwrap();
    let file = made.object.unwrap();
    let attributes = made.object_attributes.unwrap();
    assert_eq!((attributes.mode, attributes.uid, attributes.gid, attributes.size), (0o640, 1000, 100, 0));
    assert_eq!(client.attributes(file), attributes);
    assert_eq!(client.lookup(root, "file").unwrap().object, file);
    assert_eq!(made.dir_wcc.before, Some(WccAttributes::from(&before)));
    assert_eq!(made.dir_wcc.after, Some(client.attributes(root)));
}

#[test]
fn guarded_creation_refuses_an_existing_name() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    client.make_file(root, "file", 0o600, b"kept");
    let args = create::Args { place: place(root, "file"), how: How::Guarded(with_mode(0o644)) };
    let result: create::Res = client.nfs(Procedure::Create, &args);
    let failure = result.unwrap_err();
    assert_eq!(failure.status, Status::Exist);
    assert_eq!(failure.body.after, Some(client.attributes(root)));
}

#[test]
fn unchecked_creation_takes_the_file_that_is_there() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let file = client.make_file(root, "file", 0o604, b"kept");
    let made = create(&mut client, root, "file", How::Unchecked(with_mode(0o777))).unwrap();
    assert_eq!(made.object, Some(file));
    let attributes = made.object_attributes.unwrap();
    assert_eq!((attributes.mode, attributes.size), (0o604, 4), "only a size is set");
    let cut = SetAttributes { size: Some(0), ..with_mode(0o777) };
    let made = create(&mut client, root, "file", How::Unchecked(cut)).unwrap();
    assert_eq!(made.object_attributes.unwrap().size, 0);
    assert_eq!(client.attributes(file).size, 0);
    client.make_dir(root, "dir", 0o755);
    assert_eq!(create(&mut client, root, "dir", How::Unchecked(cut)), Err(Status::Exist));
}

#[test]
fn unchecked_creation_of_an_existing_file_needs_no_writable_directory() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let dir = client.make_dir(root, "dir", 0o755);
    let file = client.make_file(dir, "file", 0o666, b"");
    let mut user = server.client_of(1000, 100, &[]);
    let made = create(&mut user, dir, "file", How::Unchecked(with_mode(0o644))).unwrap();
    assert_eq!(made.object, Some(file));
    assert_eq!(create(&mut user, dir, "new", How::Unchecked(with_mode(0o644))), Err(Status::Acces));
}

#[test]
fn exclusive_creation_is_recognised_when_it_is_repeated_after_a_restart() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let verifier = [0x81, 2, 3, 4, 5, 6, 7, 8];
    let made = create(&mut client, root, "file", How::Exclusive(verifier)).unwrap();

    let restarted = TestServer::over(Arc::clone(&server.store), export(Squash::None), 2);
    let mut client = restarted.client();
    let again = create(&mut client, root, "file", How::Exclusive(verifier)).unwrap();
    assert_eq!(again.object, made.object);
    let other = [1, 2, 3, 4, 5, 6, 7, 9];
    assert_eq!(create(&mut client, root, "file", How::Exclusive(other)), Err(Status::Exist));

    // The client now sets the attributes; that ends the time in which a repetition can come.
    let now = SetAttributes { atime: SetTime::ServerTime, mtime: SetTime::ServerTime, ..with_mode(0o644) };
    let args = setattr::Args { object: made.object.unwrap(), new_attributes: now, guard: None };
    let set: setattr::Res = client.nfs(Procedure::SetAttr, &args);
    set.unwrap();
    assert_eq!(create(&mut client, root, "file", How::Exclusive(verifier)), Err(Status::Exist));
}

#[test]
fn only_the_superuser_makes_files_for_others() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let for_seven = SetAttributes { uid: Some(7), gid: Some(8), ..with_mode(0o600) };
    let owner = |made: CreatedOk| made.object_attributes.map(|attributes| (attributes.uid, attributes.gid));
    let made = create(&mut client, root, "one", How::Guarded(for_seven)).unwrap();
    assert_eq!(owner(made), Some((7, 8)));
    let mut user = server.client_of(1000, 100, &[]);
    let made = create(&mut user, root, "two", How::Guarded(for_seven)).unwrap();
    assert_eq!(owner(made), Some((1000, 100)));
}

#[test]
fn names_that_cannot_be_made() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let longest = "n".repeat(255);
    create(&mut client, root, &longest, How::Guarded(with_mode(0o600))).unwrap();
    for (name, status) in [
        ("", Status::Acces),
        (".", Status::Exist),
        ("..", Status::Exist),
        ("a/b", Status::Acces),
        ("a\0b", Status::Acces),
        (&"n".repeat(256), Status::NameTooLong),
        (&"n".repeat(5000), Status::NameTooLong),
    ] {
        let made = create(&mut client, root, name, How::Guarded(with_mode(0o600)));
        assert_eq!(made, Err(status), "{name:?}");
        let args = mkdir::Args { place: place(root, name), attributes: with_mode(0o700) };
        let made: mkdir::Res = client.nfs(Procedure::MkDir, &args);
        assert_eq!(made.unwrap_err().status, status, "{name:?}");
    }
}

#[test]
fn directories() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let links = client.attributes(root).links;
    let args = mkdir::Args { place: place(root, "dir"), attributes: with_mode(0o750) };
    let made: mkdir::Res = client.nfs(Procedure::MkDir, &args);
    let attributes = made.unwrap().object_attributes.unwrap();
    assert_eq!((attributes.file_type, attributes.mode), (FileType::Directory, 0o750));
    assert_eq!(client.attributes(root).links, links + 1);
    let again: mkdir::Res = client.nfs(Procedure::MkDir, &args);
    assert_eq!(again.unwrap_err().status, Status::Exist);
}

#[test]
fn symbolic_links_keep_their_text() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let longest = [b't'; 4095];
    for (name, text) in [("one", &b"../anywhere/else"[..]), ("two", b"/etc/passwd"), ("three", &longest)] {
        let made = symlink(&mut client, root, name, text).unwrap();
        assert_eq!(made.object_attributes.unwrap().file_type, FileType::SymbolicLink);
        let results = client.raw(Procedure::ReadLink, &readlink::Args { symlink: made.object.unwrap() });
        let told = readlink::Res::from_bytes(&results).unwrap().unwrap();
        assert_eq!(told.data.0, text);
        assert_eq!(told.symlink_attributes.unwrap().size, text.len() as u64);
    }
    assert_eq!(symlink(&mut client, root, "long", &[b't'; 4096]), Err(Status::NameTooLong));
    assert_eq!(symlink(&mut client, root, "empty", b""), Err(Status::Inval));
    assert_eq!(symlink(&mut client, root, "nul", b"a\0b"), Err(Status::Inval));
    let file = client.make_file(root, "file", 0o600, b"");
    let results = client.raw(Procedure::ReadLink, &readlink::Args { symlink: file });
    assert_eq!(readlink::Res::from_bytes(&results).unwrap().unwrap_err().status, Status::Inval);
}

#[test]
fn special_files() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let device = SpecData { major: 1, minor: 3 };
    let set = with_mode(0o600);
    for (name, what, file_type) in [
        ("chr", What::CharacterDevice(set, device), FileType::CharacterDevice),
        ("blk", What::BlockDevice(set, device), FileType::BlockDevice),
    ] {
        let attributes = mknod(&mut client, root, name, what).unwrap().object_attributes.unwrap();
        assert_eq!((attributes.file_type, attributes.rdev), (file_type, device));
    }
    let mut user = server.client_of(1000, 100, &[]);
    for (name, what, file_type) in
        [("fifo", What::Fifo(set), FileType::Fifo), ("socket", What::Socket(set), FileType::Socket)]
    {
        let attributes = mknod(&mut user, root, name, what).unwrap().object_attributes.unwrap();
        assert_eq!((attributes.file_type, attributes.uid), (file_type, 1000));
    }
    assert_eq!(mknod(&mut user, root, "dev", What::BlockDevice(set, device)), Err(Status::Perm));
    for other in [OtherType::Regular, OtherType::Directory, OtherType::SymbolicLink] {
        assert_eq!(mknod(&mut client, root, "x", What::Other(other)), Err(Status::BadType));
    }
}

#[test]
fn a_read_only_export_takes_nothing() {
    let server = TestServer::exporting(listed(&["* access=ro"]));
    let (mut client, root) = server.mounted();
    assert_eq!(create(&mut client, root, "x", How::Guarded(with_mode(0o600))), Err(Status::RoFs));
    assert_eq!(symlink(&mut client, root, "x", b"y"), Err(Status::RoFs));
    assert_eq!(mknod(&mut client, root, "x", What::Fifo(with_mode(0o600))), Err(Status::RoFs));
}

#[test]
fn the_superuser_of_a_listed_client_makes_no_devices_and_no_privileged_programs() {
    let server = TestServer::exporting(listed(&["* squash=none"]));
    let (mut client, root) = server.mounted();
    let device = SpecData { major: 8, minor: 1 };
    let set = with_mode(0o600);
    for what in [What::BlockDevice(set, device), What::CharacterDevice(set, device)] {
        assert_eq!(mknod(&mut client, root, "dev", what), Err(Status::Perm));
    }
    mknod(&mut client, root, "fifo", What::Fifo(set)).unwrap();
    assert_eq!(create(&mut client, root, "program", How::Guarded(with_mode(0o4755))), Err(Status::Perm));
    let file = client.make_file(root, "program", 0o755, b"");
    let mut chmod = |mode| {
        let args = setattr::Args { object: file, new_attributes: with_mode(mode), guard: None };
        let result: setattr::Res = client.nfs(Procedure::SetAttr, &args);
        result.map(|_| ()).map_err(|refused| refused.status)
    };
    assert_eq!([chmod(0o4755), chmod(0o2755), chmod(0o1755)], [Err(Status::Perm), Err(Status::Perm), Ok(())]);
    server.data.set_terms(Terms::SET_ID);
    assert_eq!(chmod(0o4755), Ok(()));
    server.data.set_terms(Terms::DEVICES);
    mknod(&mut client, root, "dev", What::BlockDevice(set, device)).unwrap();
}
