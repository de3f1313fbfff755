//! MOUNT (RFC 1813 appendix I).

use std::sync::Arc;

use nfs_proto::export::{ClientRule, Export, Squash};
use nfs_wire::mount::{DirPath, ExportEntry, List, MountEntry, Procedure, Status};
use nfs_wire::v3::symlink;
use nfs_wire::v3::types::{FileType, Path};
use nfs_wire::v3::{self, attr::SetAttributes};
use nfs_wire::xdr::Decode;
use storage::memory::MemoryStore;

use crate::client::{Client, TestServer, export, place};

#[test]
fn a_share_is_mounted_by_its_name() {
    let server = TestServer::start();
    let mut client = server.client();
    let mounted = client.mount("/data").unwrap();
    assert_eq!(mounted.auth_flavors, [1]);
    assert_eq!(client.attributes(mounted.file_handle).file_type, FileType::Directory);
    for same in ["/data/", "data", "//data/.", "/data/.."] {
        assert_eq!(client.mount(same).unwrap().file_handle, mounted.file_handle, "{same}");
    }
    let other = client.mount("/other").unwrap().file_handle;
    assert_ne!(client.attributes(other).fsid, client.attributes(mounted.file_handle).fsid);
}

#[test]
fn a_directory_below_a_share_is_mounted() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let sub = client.make_dir(root, "sub", 0o755);
    let deep = client.make_dir(sub, "deep", 0o755);
    assert_eq!(client.mount("/data/sub/deep").unwrap().file_handle, deep);
}

#[test]
fn what_cannot_be_mounted() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    client.make_file(root, "file", 0o644, b"");
    let attributes = SetAttributes::default();
    let args = symlink::Args { place: place(root, "out"), attributes, data: Path(b"/etc") };
    let made: symlink::Res = client.nfs(v3::Procedure::SymLink, &args);
    made.unwrap();
    for (path, status) in [
        ("", Status::NoEnt),
        ("/", Status::NoEnt),
        ("/Data", Status::NoEnt),
        ("/data/none", Status::NoEnt),
        ("/data/none/below", Status::NoEnt),
        ("/data/file", Status::NotDir),
        ("/data/file/below", Status::NotDir),
        ("/data/out", Status::Acces),
    ] {
        assert_eq!(client.mount(path), Err(status), "{path:?}");
    }
    let long_name = format!("/data/{}", "n".repeat(256));
    assert_eq!(client.mount(&long_name), Err(Status::NameTooLong));
}

#[test]
fn a_client_that_is_not_permitted_is_refused() {
    let elsewhere = ClientRule { network: "192.0.2.0/24".parse().unwrap(), ..ClientRule::default() };
    let server = TestServer::exporting(Export { rules: vec![elsewhere] });
    let mut client = server.client();
    assert_eq!(client.mount("/data"), Err(Status::Acces));
    client.mount("/other").unwrap();
}

#[test]
fn a_handle_is_void_where_the_client_is_not_permitted_any_more() {
    let store = Arc::new(MemoryStore::new());
    let before = TestServer::over(Arc::clone(&store), export(Squash::None), 1);
    let (_, root) = before.mounted();
    let after = TestServer::over(store, Export { rules: Vec::new() }, 2);
    let args = v3::getattr::Args { object: root };
    let result: v3::getattr::Res = after.client().nfs(v3::Procedure::GetAttr, &args);
    assert_eq!(result.unwrap_err().status, v3::status::Status::Stale);
}

fn dump(client: &mut Client) -> Vec<(String, String)> {
    let results = client.mount_raw(Procedure::Dump, &());
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let List(entries) = List::<MountEntry<'_>>::from_bytes(&results).unwrap();
    entries.iter().map(|entry| (text(entry.host_name.0), text(entry.directory.0))).collect()
}

#[test]
fn mounts_are_told_until_they_are_taken_back() {
    let server = TestServer::start();
    let mut client = server.client();
    client.mount("/data").unwrap();
    client.mount("/data").unwrap();
    client.mount("/other").unwrap();
    let line = |path: &str| ("127.0.0.1".to_owned(), path.to_owned());
    assert_eq!(dump(&mut client), [line("/data"), line("/other")]);
    assert_eq!(server.server.mounts().len(), 2);
    client.mount_raw(Procedure::Umnt, &DirPath(b"/data"));
    assert_eq!(dump(&mut client), [line("/other")]);
    client.mount_raw(Procedure::UmntAll, &());
    assert_eq!(dump(&mut client), []);
}

#[test]
fn exports_are_told_with_who_may_mount_them() {
    let elsewhere = ClientRule { network: "192.0.2.0/24".parse().unwrap(), ..ClientRule::default() };
    let server = TestServer::exporting(Export { rules: vec![elsewhere] });
    let results = server.client().mount_raw(Procedure::Export, &());
    let List(exports) = List::<ExportEntry<'_>>::from_bytes(&results).unwrap();
    let told: Vec<_> = exports
        .iter()
        .map(|export| (export.directory.0, export.groups.0.iter().map(|group| group.0).collect::<Vec<_>>()))
        .collect();
    assert_eq!(told, [(&b"/data"[..], vec![&b"192.0.2.0/24"[..]]), (b"/other", vec![])]);
}
