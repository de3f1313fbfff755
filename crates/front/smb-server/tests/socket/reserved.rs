//! Names to which the file system gives a meaning of its own, over SMB: there are none, in any case or short form.

use std::sync::Arc;

use anabranch_smb_server::Config;
use smb_wire::create::{CreateAction, CreateDisposition};
use smb_wire::{AccessMask, NtStatus};
use storage_local::{LocalOptions, LocalStore};

use crate::client::TestServer;
use crate::opening::{Opening, make_file};

#[test]
fn names_of_the_file_system_cannot_be_opened_made_or_listed() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(directory.path().join(".snapshots/inside")).unwrap();
    let options = LocalOptions { reserved_names: vec![".snapshots".to_owned()], ..LocalOptions::default() };
    let store = LocalStore::open(directory.path(), options).unwrap();
    let server = TestServer::start_on(Config::default(), Arc::new(store));
    let mut client = server.client();
    make_file(&mut client, "file", b"");
    let short = String::from_utf8(share::short_name(b".snapshots").unwrap()).unwrap();
    let looking = Opening { access: AccessMask::READ_ATTRIBUTES, ..Opening::default() };
    for name in [".snapshots", ".SnapShots", ".SNAPSHOTS", &short] {
        assert_eq!(looking.try_out(&mut client, name), Err(NtStatus::OBJECT_NAME_NOT_FOUND), "{name}");
        let inside = looking.try_out(&mut client, &format!("{name}\\inside"));
        assert_eq!(inside, Err(NtStatus::OBJECT_PATH_NOT_FOUND), "{name}");
    }
    for name in [".snapshots", ".SnapShots"] {
        let directory = Opening { disposition: CreateDisposition::Create, ..Opening::directory() };
        assert_eq!(directory.try_out(&mut client, name), Err(NtStatus::ACCESS_DENIED), "{name}");
        let file = Opening::with(CreateDisposition::OpenIf);
        assert_eq!(file.try_out(&mut client, name), Err(NtStatus::ACCESS_DENIED), "{name}");
    }
    assert_eq!(looking.try_out(&mut client, "FILE"), Ok(CreateAction::Opened));
    assert!(directory.path().join(".snapshots/inside").is_dir());
}
