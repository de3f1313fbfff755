//! LOOKUP, REMOVE, RMDIR, RENAME, LINK (RFC 1813 3.3.3, 3.3.12 to 3.3.15).

use std::sync::Arc;

use nfs_wire::v3::attr::WccAttributes;
use nfs_wire::v3::status::Status;
use nfs_wire::v3::types::FileHandle;
use nfs_wire::v3::{Procedure, getattr, link, remove, rename, rmdir};
use share::Squash;
use storage::conformance::MAY;
use storage::{Name, Storage, Wait};

use crate::client::{Client, TestServer, export, place};

fn remove(client: &mut Client, dir: FileHandle, name: &str) -> remove::Res {
    client.nfs(Procedure::Remove, &remove::Args { object: place(dir, name) })
}

fn rmdir(client: &mut Client, dir: FileHandle, name: &str) -> rmdir::Res {
    client.nfs(Procedure::RmDir, &rmdir::Args { object: place(dir, name) })
}

fn rename(client: &mut Client, from: (FileHandle, &str), to: (FileHandle, &str)) -> rename::Res {
    let args = rename::Args { from: place(from.0, from.1), to: place(to.0, to.1) };
    client.nfs(Procedure::Rename, &args)
}

fn link(client: &mut Client, file: FileHandle, dir: FileHandle, name: &str) -> link::Res {
    client.nfs(Procedure::Link, &link::Args { file, link: place(dir, name) })
}

fn is_stale(client: &mut Client, object: FileHandle) -> bool {
    let result: getattr::Res = client.nfs(Procedure::GetAttr, &getattr::Args { object });
    result.is_err_and(|failure| failure.status == Status::Stale)
}

#[test]
fn a_name_leads_to_its_object() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let dir = client.make_dir(root, "dir", 0o755);
    let file = client.make_file(dir, "File", 0o600, b"");
    let found = client.lookup(dir, "File").unwrap();
    assert_eq!(found.object, file);
    assert_eq!(found.object_attributes, Some(client.attributes(file)));
    assert_eq!(found.dir_attributes, Some(client.attributes(dir)));
    assert_eq!(client.lookup(dir, ".").unwrap().object, dir);
    assert_eq!(client.lookup(dir, "..").unwrap().object, root);
    assert_eq!(client.lookup(root, "..").unwrap().object, root, "nothing is above the root");
}

#[test]
fn a_removed_directory_is_stale_though_somebody_has_it() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    for name in ["dir", "other"] {
        let dir = client.make_dir(root, name, 0o755);
        let held = server.store.root().lookup(Name::new(name.as_bytes()).unwrap(), Wait::May(MAY)).unwrap();
        rmdir(&mut client, root, name).unwrap();
        assert!(is_stale(&mut client, dir), "{:?}", held.id());
        let made = client.make_dir(root, name, 0o755);
        assert_ne!(made, dir);
        assert!(is_stale(&mut client, dir) && !is_stale(&mut client, made));
    }
}

#[test]
fn names_that_lead_nowhere() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let file = client.make_file(root, "file", 0o600, b"");
    let failure = client.lookup(root, "FILE").unwrap_err();
    assert_eq!((failure.status, failure.body), (Status::NoEnt, Some(client.attributes(root))));
    let long = "n".repeat(256);
    for (dir, name, status) in [
        (root, "", Status::Acces),
        (root, "a/b", Status::Acces),
        (root, &long, Status::NameTooLong),
        (file, "below", Status::NotDir),
    ] {
        assert_eq!(client.lookup(dir, name).unwrap_err().status, status, "{name:?}");
    }
    let closed = client.make_dir(root, "closed", 0o700);
    let mut user = server.client_of(1000, 100, &[]);
    assert_eq!(user.lookup(closed, "any").unwrap_err().status, Status::Acces);
}

#[test]
fn a_removed_file_is_gone() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let file = client.make_file(root, "file", 0o600, b"");
    let before = client.attributes(root);
    let wcc = remove(&mut client, root, "file").unwrap().dir_wcc;
    assert_eq!(wcc.before, Some(WccAttributes::from(&before)));
    assert_eq!(wcc.after, Some(client.attributes(root)));
    assert!(is_stale(&mut client, file));
    let failure = remove(&mut client, root, "file").unwrap_err();
    assert_eq!((failure.status, failure.body.after), (Status::NoEnt, Some(client.attributes(root))));
}

#[test]
fn directories_are_removed_by_rmdir_when_they_are_empty() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let dir = client.make_dir(root, "dir", 0o755);
    let inner = client.make_dir(dir, "inner", 0o755);
    assert_eq!(rmdir(&mut client, root, "dir").unwrap_err().status, Status::NotEmpty);
    assert_eq!(remove(&mut client, root, "dir").unwrap_err().status, Status::IsDir);
    rmdir(&mut client, dir, "inner").unwrap();
    assert!(is_stale(&mut client, inner));
    rmdir(&mut client, root, "dir").unwrap();
    client.make_file(root, "file", 0o600, b"");
    assert_eq!(rmdir(&mut client, root, "file").unwrap_err().status, Status::NotDir);
    for dots in [".", ".."] {
        assert_eq!(rmdir(&mut client, root, dots).unwrap_err().status, Status::Inval);
        assert_eq!(remove(&mut client, root, dots).unwrap_err().status, Status::Inval);
    }
}

#[test]
fn removal_needs_a_writable_directory_and_respects_the_sticky_bit() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let closed = client.make_dir(root, "closed", 0o755);
    client.make_file(closed, "file", 0o666, b"");
    let sticky = client.make_dir(root, "sticky", 0o1777);
    client.make_file(sticky, "file", 0o666, b"");
    let mut user = server.client_of(1000, 100, &[]);
    assert_eq!(remove(&mut user, closed, "file").unwrap_err().status, Status::Acces);
    assert_eq!(remove(&mut user, sticky, "file").unwrap_err().status, Status::Perm);
}

#[test]
fn a_rename_tells_both_directories() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let one = client.make_dir(root, "one", 0o755);
    let two = client.make_dir(root, "two", 0o755);
    let file = client.make_file(one, "a", 0o600, b"");
    let (one_before, two_before) = (client.attributes(one), client.attributes(two));
    let wcc = rename(&mut client, (one, "a"), (two, "b")).unwrap();
    assert_eq!(wcc.from_dir_wcc.before, Some(WccAttributes::from(&one_before)));
    assert_eq!(wcc.from_dir_wcc.after, Some(client.attributes(one)));
    assert_eq!(wcc.to_dir_wcc.before, Some(WccAttributes::from(&two_before)));
    assert_eq!(wcc.to_dir_wcc.after, Some(client.attributes(two)));
    assert_eq!(client.lookup(two, "b").unwrap().object, file, "the handle stays");
    assert_eq!(client.lookup(one, "a").unwrap_err().status, Status::NoEnt);
}

#[test]
fn a_rename_replaces_what_has_the_name() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let new = client.make_file(root, "new", 0o600, b"new");
    let old = client.make_file(root, "old", 0o600, b"old");
    rename(&mut client, (root, "new"), (root, "old")).unwrap();
    assert_eq!(client.lookup(root, "old").unwrap().object, new);
    assert!(is_stale(&mut client, old));
}

#[test]
fn renames_that_are_refused() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let dir = client.make_dir(root, "dir", 0o755);
    let full = client.make_dir(root, "full", 0o755);
    client.make_file(full, "x", 0o600, b"");
    client.make_file(root, "file", 0o600, b"");
    for (from, to, status) in [
        ((root, "none"), (root, "x"), Status::NoEnt),
        ((root, "dir"), (dir, "below"), Status::Inval),
        ((root, "dir"), (root, "full"), Status::NotEmpty),
        ((root, "dir"), (root, "file"), Status::NotDir),
        ((root, "file"), (root, "dir"), Status::IsDir),
        ((root, "."), (root, "x"), Status::Inval),
        ((root, "file"), (root, ".."), Status::Inval),
        ((root, "file"), (root, ""), Status::Acces),
    ] {
        let failure = rename(&mut client, from, to).unwrap_err();
        assert_eq!(failure.status, status, "{} -> {}", from.1, to.1);
        assert!(failure.body.from_dir_wcc.after.is_some() && failure.body.to_dir_wcc.after.is_some());
    }
}

#[test]
fn a_link_is_a_further_name() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let dir = client.make_dir(root, "dir", 0o755);
    let file = client.make_file(root, "file", 0o600, b"");
    let before = client.attributes(dir);
    let linked = link(&mut client, file, dir, "link").unwrap();
    assert_eq!(linked.file_attributes, Some(client.attributes(file)));
    assert_eq!(linked.file_attributes.unwrap().links, 2);
    assert_eq!(linked.link_dir_wcc.before, Some(WccAttributes::from(&before)));
    assert_eq!(client.lookup(dir, "link").unwrap().object, file);
    remove(&mut client, root, "file").unwrap();
    assert_eq!(client.attributes(file).links, 1);
    let failure = link(&mut client, file, dir, "link").unwrap_err();
    assert_eq!(failure.status, Status::Exist);
    assert!(failure.body.file_attributes.is_some() && failure.body.link_dir_wcc.after.is_some());
}

#[test]
fn nothing_goes_from_one_share_to_another() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let other = client.mount("/other").unwrap().file_handle;
    let file = client.make_file(root, "file", 0o600, b"");
    let moved = rename(&mut client, (root, "file"), (other, "file")).unwrap_err();
    assert_eq!(moved.status, Status::XDev);
    assert_eq!(link(&mut client, file, other, "link").unwrap_err().status, Status::XDev);
}

#[test]
fn handles_survive_a_restart() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let file = client.make_file(root, "file", 0o600, b"data");
    let restarted = TestServer::over(Arc::clone(&server.store), export(Squash::None), 2);
    drop(server);
    let mut client = restarted.client();
    assert_eq!(client.attributes(file).size, 4);
    assert_eq!(client.lookup(root, "file").unwrap().object, file);
}
