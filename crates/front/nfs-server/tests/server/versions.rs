//! The folder `.snapshot`: what of a directory is in snapshots.

use std::sync::Arc;
use std::time::Duration;

use nfs_wire::v3::access::{self, Access};
use nfs_wire::v3::status::Status;
use nfs_wire::v3::types::FileHandle;
use nfs_wire::v3::{
    Procedure, create, fsinfo, getattr, link, mkdir, read, readdirplus, remove, rename, rmdir, setattr,
};
use nfs_wire::xdr::Decode;
use share::{Rules, Squash, Terms};
use storage::conformance::MAY;
use storage::{Snapshot, Storage};

use crate::client::{Client, TestServer, export, place, with_mode};
use crate::listing::names;

const FOLDER: &str = ".snapshot";

fn start(terms: Terms) -> TestServer {
    let server = TestServer::start();
    server.data.set_terms(terms);
    server
}

fn take(server: &TestServer) -> Snapshot {
    let snapshot = server.store.snapshots().unwrap().take("test", MAY).unwrap();
    // Until the server looks again.
    std::thread::sleep(Duration::from_millis(1100));
    snapshot
}

fn find(client: &mut Client, dir: FileHandle, path: &[&str]) -> Result<FileHandle, Status> {
    path.iter()
        .try_fold(dir, |dir, name| Ok(client.lookup(dir, name).map_err(|failure| failure.status)?.object))
}

fn content(client: &mut Client, file: FileHandle) -> Result<Vec<u8>, Status> {
    let results = client.raw(Procedure::Read, &read::Args { file, offset: 0, count: 10 });
    let ok = read::Res::from_bytes(&results).unwrap().map_err(|failure| failure.status)?;
    Ok(ok.data.to_vec())
}

fn all_names(client: &mut Client, dir: FileHandle) -> Vec<String> {
    let mut all = names(client, dir, 4096).0;
    all.sort();
    all
}

#[test]
fn a_directory_shows_what_was_in_it() {
    let server = start(Terms::SNAPSHOT_FOLDER);
    let (mut client, root) = server.mounted();
    let dir = client.make_dir(root, "dir", 0o755);
    let file = client.make_file(dir, "file", 0o644, b"old");
    let first = take(&server);
    client.write(file, 0, b"new").unwrap();
    client.make_file(dir, "since", 0o644, b"");
    let later = client.make_dir(root, "later", 0o755);
    let second = take(&server);

    let folder = find(&mut client, dir, &[FOLDER]).unwrap();
    assert_eq!(all_names(&mut client, folder), [".", "..", first.name.as_str(), second.name.as_str()]);
    let of_later = find(&mut client, later, &[FOLDER]).unwrap();
    assert_eq!(all_names(&mut client, of_later), [".", "..", second.name.as_str()]);
    assert_eq!(find(&mut client, of_later, &[&first.name]), Err(Status::NoEnt), "it was not there then");
    assert_eq!(find(&mut client, folder, &["nothing"]), Err(Status::NoEnt));

    let then = find(&mut client, folder, &[&first.name]).unwrap();
    assert_eq!(all_names(&mut client, then), [".", "..", "file"]);
    let old = find(&mut client, then, &["file"]).unwrap();
    assert_eq!(content(&mut client, old).unwrap(), b"old");
    assert_eq!(content(&mut client, file).unwrap(), b"new");
    let by_root = find(&mut client, root, &[FOLDER, &first.name, "dir", "file"]).unwrap();
    assert_eq!(by_root, old);
    // There is no folder in what is of a snapshot, nor in the folder.
    assert_eq!(find(&mut client, then, &[FOLDER]), Err(Status::NoEnt));
    assert_eq!(find(&mut client, folder, &[FOLDER]), Err(Status::NoEnt));
    assert_eq!(find(&mut client, folder, &["."]), Ok(folder));
    assert_eq!(find(&mut client, folder, &[".."]), Ok(dir));
}

#[test]
fn a_version_is_mounted() {
    let server = start(Terms::SNAPSHOT_FOLDER);
    let (mut client, root) = server.mounted();
    let dir = client.make_dir(root, "dir", 0o755);
    client.make_file(dir, "file", 0o644, b"old");
    let snapshot = take(&server);
    let then = find(&mut client, dir, &[FOLDER, &snapshot.name]).unwrap();
    for path in [
        format!("/data/dir/.snapshot/{}", snapshot.name),
        format!("/data/.snapshot/{}/dir", snapshot.name),
        format!("/data//dir/.snapshot/./{}/", snapshot.name),
    ] {
        assert_eq!(client.mount(&path).unwrap().file_handle, then, "{path}");
    }
    let folder = find(&mut client, root, &[FOLDER]).unwrap();
    assert_eq!(client.mount("/data/.snapshot").unwrap().file_handle, folder);
    for path in ["/data/.snapshot/nothing", "/data/dir/file/.snapshot", "/data/nothing/.snapshot"] {
        assert!(client.mount(path).is_err(), "{path}");
    }
    assert!(client.mount(&format!("/data/.snapshot/{}/dir/file", snapshot.name)).is_err(), "no directory");
}

#[test]
fn numbers_tell_versions_from_files() {
    let server = start(Terms::SNAPSHOT_FOLDER);
    let (mut client, root) = server.mounted();
    let file = client.make_file(root, "file", 0o644, b"old");
    let snapshots = [take(&server), take(&server)];
    let folder = find(&mut client, root, &[FOLDER]).unwrap();
    let of = [root, folder].map(|dir| client.attributes(dir));
    assert_eq!(of[0].fsid, of[1].fsid);
    assert_ne!(of[0].fileid, of[1].fileid);
    let live = client.attributes(file);
    let mut fsids = vec![live.fsid];
    for snapshot in &snapshots {
        let old = find(&mut client, folder, &[&snapshot.name, "file"]).unwrap();
        assert!(old.as_bytes().len() <= 64 && old != file);
        let told = client.attributes(old);
        assert_eq!(told.fileid, live.fileid);
        assert!(!fsids.contains(&told.fsid));
        fsids.push(told.fsid);
    }
    let info: fsinfo::Res = client.nfs(Procedure::FsInfo, &fsinfo::Args { root: folder });
    assert_eq!(info.unwrap().object_attributes.unwrap().fileid, of[1].fileid);
}

#[test]
fn nothing_in_it_changes() {
    let server = start(Terms::SNAPSHOT_FOLDER);
    let (mut client, root) = server.mounted();
    let dir = client.make_dir(root, "dir", 0o777);
    let file = client.make_file(dir, "file", 0o666, b"old");
    let snapshot = take(&server);
    let folder = find(&mut client, dir, &[FOLDER]).unwrap();
    let then = find(&mut client, folder, &[&snapshot.name]).unwrap();
    let old = find(&mut client, then, &["file"]).unwrap();
    for (object, expected) in
        [(folder, Access::READ | Access::LOOKUP), (then, Access::READ | Access::LOOKUP), (old, Access::READ)]
    {
        let told: access::Res =
            client.nfs(Procedure::Access, &access::Args { object, access: Access::all() });
        let told = told.unwrap();
        assert_eq!(told.access, expected);
        assert_eq!(told.object_attributes.unwrap().fileid, client.attributes(object).fileid);
        let args = setattr::Args { object, new_attributes: with_mode(0o700), guard: None };
        let set: setattr::Res = client.nfs(Procedure::SetAttr, &args);
        assert_eq!(set.unwrap_err().status, Status::RoFs);
    }
    assert_eq!(client.write(old, 0, b"new").unwrap_err().status, Status::RoFs);
    for at in [folder, then] {
        let how = create::How::Guarded(with_mode(0o644));
        let made: create::Res = client.nfs(Procedure::Create, &create::Args { place: place(at, "new"), how });
        assert_eq!(made.unwrap_err().status, Status::RoFs);
        for name in ["file", snapshot.name.as_str()] {
            let removed: remove::Res =
                client.nfs(Procedure::Remove, &remove::Args { object: place(at, name) });
            assert_eq!(removed.unwrap_err().status, Status::RoFs);
            let removed: rmdir::Res = client.nfs(Procedure::RmDir, &rmdir::Args { object: place(at, name) });
            assert_eq!(removed.unwrap_err().status, Status::RoFs);
        }
        let args = rename::Args { from: place(at, "file"), to: place(dir, "other") };
        let renamed: rename::Res = client.nfs(Procedure::Rename, &args);
        assert_eq!(renamed.unwrap_err().status, Status::RoFs);
        // The directory that takes the name is in the share itself.
        let args = rename::Args { from: place(dir, "file"), to: place(at, "other") };
        let renamed: rename::Res = client.nfs(Procedure::Rename, &args);
        assert!(matches!(renamed.unwrap_err().status, Status::RoFs | Status::XDev));
        let linked: link::Res = client.nfs(Procedure::Link, &link::Args { file, link: place(at, "other") });
        assert!(matches!(linked.unwrap_err().status, Status::RoFs | Status::XDev));
    }
    assert_eq!(content(&mut client, folder), content(&mut client, dir), "as of any directory");
    assert_eq!(content(&mut client, old).unwrap(), b"old");
}

#[test]
fn it_is_listed_in_the_root_alone_and_only_if_the_share_says_so() {
    let server = start(Terms::SNAPSHOT_FOLDER);
    let (mut client, root) = server.mounted();
    let dir = client.make_dir(root, "dir", 0o755);
    let snapshot = take(&server);
    assert_eq!(all_names(&mut client, root), [".", "..", "dir"]);
    server.data.set_terms(Terms::SNAPSHOT_FOLDER | Terms::SNAPSHOT_FOLDER_SHOWN);
    assert_eq!(all_names(&mut client, root), [".", "..", FOLDER, "dir"]);
    // One by one, too.
    let mut each = names(&mut client, root, 160).0;
    each.sort();
    assert_eq!(each, [".", "..", FOLDER, "dir"]);
    assert_eq!(all_names(&mut client, dir), [".", ".."]);
    let then = find(&mut client, root, &[FOLDER, &snapshot.name]).unwrap();
    assert_eq!(all_names(&mut client, then), [".", "..", "dir"]);
    // READDIRPLUS has no attributes of what is of other file systems.
    let folder = find(&mut client, root, &[FOLDER]).unwrap();
    let args = readdirplus::Args {
        dir: folder,
        cookie: 0,
        cookie_verifier: [0; 8],
        dir_count: 4096,
        max_count: 4096,
    };
    let results = client.raw(Procedure::ReadDirPlus, &args);
    let listed = readdirplus::Res::from_bytes(&results).unwrap().unwrap().listing;
    let names: Vec<_> = listed.entries.iter().map(|entry| entry.name.0.to_vec()).collect();
    assert_eq!(names, [b".".to_vec(), b"..".to_vec(), snapshot.name.clone().into_bytes()]);
    assert!(listed.entries[2].attributes.is_none() && listed.entries[2].file_handle.is_none());
}

#[test]
fn the_name_is_taken_only_where_there_is_such_a_folder() {
    let server = start(Terms::empty());
    let (mut client, root) = server.mounted();
    let dir = client.make_dir(root, "dir", 0o755);
    client.make_file(root, "file", 0o644, b"");
    let snapshot = take(&server);
    assert_eq!(find(&mut client, root, &[FOLDER]), Err(Status::NoEnt));
    let own = client.make_dir(root, FOLDER, 0o755);
    server.data.set_terms(Terms::SNAPSHOT_FOLDER | Terms::SNAPSHOT_FOLDER_SHOWN);
    // What exists keeps the name.
    assert_eq!(find(&mut client, root, &[FOLDER]), Ok(own));
    assert_eq!(all_names(&mut client, root), [".", "..", FOLDER, "dir", "file"]);
    assert!(find(&mut client, dir, &[FOLDER, &snapshot.name]).is_ok());
    // Nothing new gets it.
    let args = mkdir::Args { place: place(dir, FOLDER), attributes: with_mode(0o755) };
    let made: mkdir::Res = client.nfs(Procedure::MkDir, &args);
    assert_eq!(made.unwrap_err().status, Status::Exist);
    let how = create::How::Unchecked(with_mode(0o644));
    let made: create::Res = client.nfs(Procedure::Create, &create::Args { place: place(dir, FOLDER), how });
    assert!(matches!(made.unwrap_err().status, Status::Exist | Status::IsDir | Status::NoEnt));
    let args = rename::Args { from: place(root, "file"), to: place(dir, FOLDER) };
    let renamed: rename::Res = client.nfs(Procedure::Rename, &args);
    assert_eq!(renamed.unwrap_err().status, Status::Exist);
}

#[test]
fn handles_survive_a_restart_and_end_with_their_snapshot() {
    let server = start(Terms::SNAPSHOT_FOLDER);
    let (mut client, root) = server.mounted();
    client.make_file(root, "file", 0o644, b"old");
    let snapshot = take(&server);
    let folder = find(&mut client, root, &[FOLDER]).unwrap();
    let old = find(&mut client, folder, &[&snapshot.name, "file"]).unwrap();
    let store = Arc::clone(&server.store);
    drop((client, server));

    let server = TestServer::over(store, export(Squash::None), 2);
    server.data.set_terms(Terms::SNAPSHOT_FOLDER);
    let mut client = server.client();
    assert_eq!(content(&mut client, old).unwrap(), b"old");
    assert_eq!(find(&mut client, folder, &[&snapshot.name, "file"]), Ok(old));
    // A share that shows none any more.
    server.data.set_terms(Terms::empty());
    assert_eq!(content(&mut client, old), Err(Status::Stale));
    assert_eq!(find(&mut client, folder, &[&snapshot.name]), Err(Status::Stale));
    server.data.set_terms(Terms::SNAPSHOT_FOLDER);
    server.store.snapshots().unwrap().remove(snapshot.id, MAY).unwrap();
    std::thread::sleep(Duration::from_millis(1100));
    assert_eq!(content(&mut client, old), Err(Status::Stale));
    let told: getattr::Res = client.nfs(Procedure::GetAttr, &getattr::Args { object: old });
    assert_eq!(told.unwrap_err().status, Status::Stale);
    assert_eq!(find(&mut client, folder, &[&snapshot.name]), Err(Status::NoEnt));
}

#[test]
fn the_rules_of_the_share_and_the_modes_of_then_count() {
    let server = start(Terms::SNAPSHOT_FOLDER);
    let (mut client, root) = server.mounted();
    let file = client.make_file(root, "file", 0o600, b"old");
    let snapshot = take(&server);
    let args = setattr::Args { object: file, new_attributes: with_mode(0o644), guard: None };
    let set: setattr::Res = client.nfs(Procedure::SetAttr, &args);
    set.unwrap();
    let old = find(&mut client, root, &[FOLDER, &snapshot.name, "file"]).unwrap();
    let mut user = server.client_of(1000, 1000, &[]);
    assert_eq!(content(&mut user, file).unwrap(), b"old");
    assert_eq!(content(&mut user, old), Err(Status::Acces));
    server.data.set_rules(Rules { clients: vec!["192.0.2.7".parse().unwrap()], ..Rules::default() });
    assert_eq!(content(&mut client, old), Err(Status::Acces));
}
