//! MOUNT (RFC 1813 appendix I).

use std::sync::Arc;

use nfs_wire::mount::{DirPath, ExportEntry, List, MountEntry, Procedure, Status};
use nfs_wire::v3::types::{FileType, Path};
use nfs_wire::v3::{self, attr::SetAttributes};
use nfs_wire::v3::{getattr, symlink};
use nfs_wire::xdr::Decode;
use share::{Protocols, Rules, Settings, Share, ShareId};
use storage::conformance::MAY;
use storage::memory::MemoryStore;

use crate::client::{Client, TestServer, listed, place, rules};

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

fn exports(client: &mut Client) -> Vec<String> {
    let results = client.mount_raw(Procedure::Export, &());
    let List(exports) = List::<ExportEntry<'_>>::from_bytes(&results).unwrap();
    exports.iter().map(|export| String::from_utf8(export.directory.0.to_vec()).unwrap()).collect()
}

#[test]
fn shares_come_and_go_while_clients_are_connected() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let file = client.make_file(root, "file", 0o644, b"kept");
    assert_eq!(client.mount("/later"), Err(Status::NoEnt));
    let later = Share::new(ShareId(9), Settings::new("later"), Arc::new(MemoryStore::new()));
    server.table.enter(&later).unwrap();
    let new_root = client.mount("/later").unwrap().file_handle;
    client.make_file(new_root, "file", 0o644, b"new");
    assert_eq!(exports(&mut client), ["/data", "/later", "/other"]);

    let gone = server.table.withdraw(server.data.id()).unwrap();
    server.end_share(&gone);
    assert_eq!(exports(&mut client), ["/later", "/other"]);
    assert_eq!(client.mount("/data"), Err(Status::NoEnt));
    for handle in [root, file] {
        let res: getattr::Res = client.nfs(v3::Procedure::GetAttr, &getattr::Args { object: handle });
        assert_eq!(res.unwrap_err().status, v3::status::Status::Stale);
    }
    // Nobody has mounted it any more, as far as this server goes.
    let mounted: Vec<_> = server.server.mounts().into_iter().map(|mounted| mounted.path).collect();
    assert_eq!(mounted, ["/later"]);
    // A share of that name that comes later is another one.
    let again = Share::new(ShareId(10), Settings::new("data"), Arc::clone(&server.store) as _);
    server.table.enter(&again).unwrap();
    let res: getattr::Res = client.nfs(v3::Procedure::GetAttr, &getattr::Args { object: root });
    assert_eq!(res.unwrap_err().status, v3::status::Status::Stale);
    assert_ne!(client.mount("/data").unwrap().file_handle, root);
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
    let server = TestServer::exporting(listed(&["192.0.2.0/24"]));
    let mut client = server.client();
    assert_eq!(client.mount("/data"), Err(Status::Acces));
    client.mount("/other").unwrap();
}

#[test]
fn a_handle_is_of_no_use_while_its_client_is_not_let_in() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let mut looks = || {
        let result: getattr::Res = client.nfs(v3::Procedure::GetAttr, &getattr::Args { object: root });
        result.map(|_| ()).map_err(|refused| refused.status)
    };
    assert_eq!(looks(), Ok(()));
    server.data.set_rules(rules(&["192.0.2.0/24", "127.0.0.1 protocols=smb"]));
    assert_eq!(looks(), Err(v3::status::Status::Acces));
    server.data.set_rules(Rules { protocols: Protocols::SMB, ..Rules::default() });
    assert_eq!(looks(), Err(v3::status::Status::Acces));
    server.data.set_rules(rules(&["192.0.2.0/24", "127.0.0.0/8"]));
    assert_eq!(looks(), Ok(()));
}

#[test]
fn who_a_user_is_changes_with_the_rules() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let mut owner = |name: &str| {
        let file = client.make_file(root, name, 0o666, b"");
        client.attributes(file).uid
    };
    assert_eq!(owner("before"), 0);
    server.data.set_rules(rules(&["* squash=root"]));
    let mode = storage::SetAttributes { mode: Some(0o777), ..Default::default() };
    server.data.root().set_attributes(&mode, MAY).unwrap();
    assert_eq!(owner("after"), 5000);
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
    let server = TestServer::exporting(listed(&["192.0.2.0/24", "192.0.3.0/24 protocols=smb"]));
    let results = server.client().mount_raw(Procedure::Export, &());
    let List(exports) = List::<ExportEntry<'_>>::from_bytes(&results).unwrap();
    let told: Vec<_> = exports
        .iter()
        .map(|export| (export.directory.0, export.groups.0.iter().map(|group| group.0).collect::<Vec<_>>()))
        .collect();
    assert_eq!(told, [(&b"/data"[..], vec![&b"192.0.2.0/24"[..]]), (b"/other", vec![])]);
}
