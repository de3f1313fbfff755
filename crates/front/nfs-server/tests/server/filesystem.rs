//! FSSTAT, FSINFO, PATHCONF (RFC 1813 3.3.18 to 3.3.20), and that calls are counted.

use nfs_wire::v3::fsinfo::{self, Properties};
use nfs_wire::v3::{Procedure, fsstat, pathconf};
use storage::Storage;
use storage::conformance::MAY;

use crate::client::TestServer;

#[test]
fn limits_are_told() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let result: fsinfo::Res = client.nfs(Procedure::FsInfo, &fsinfo::Args { root });
    let info = result.unwrap();
    assert_eq!((info.read_bytes_max, info.write_bytes_max), (1 << 20, 1 << 20));
    assert_eq!(info.readdir_bytes_preferred, 64 * 1024);
    assert_eq!(info.file_bytes_max, i64::MAX as u64);
    assert!(info.properties.contains(Properties::LINK | Properties::SYMLINK | Properties::CAN_SET_TIME));
    assert_eq!(info.object_attributes, Some(client.attributes(root)));
}

#[test]
fn space_is_told() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let result: fsstat::Res = client.nfs(Procedure::FsStat, &fsstat::Args { root });
    let told = result.unwrap();
    let space = server.store.space(MAY).unwrap();
    assert_eq!((told.total_bytes, told.free_bytes), (space.total, space.free));
    assert_eq!((told.available_bytes, told.free_files), (space.available, space.files_free));
}

#[test]
fn rules_for_names_are_told() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let result: pathconf::Res = client.nfs(Procedure::PathConf, &pathconf::Args { object: root });
    let rules = result.unwrap();
    assert_eq!(rules.name_bytes_max, 255);
    assert!(rules.no_trunc && rules.chown_restricted && rules.case_preserving && !rules.case_insensitive);
}

#[test]
fn calls_are_counted_for_their_share() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let file = client.make_file(root, "file", 0o600, &[7; 1000]);
    client.lookup(root, "none").unwrap_err();
    client.attributes(file);
    let total = |api| server.data.accounting().total("nfs3", api);
    let count = |api| (total(api).calls, total(api).errors);
    assert_eq!(count("Mount"), (1, 0));
    assert_eq!(count("Create"), (1, 0));
    assert_eq!(count("Lookup"), (1, 1));
    assert_eq!(count("GetAttr"), (1, 0));
    assert_eq!(count("Write"), (1, 0));
    assert_eq!(total("Write").bytes, 1000);
}
