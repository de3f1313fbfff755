//! An object of a snapshot in a share that takes changes: STATUS_MEDIA_WRITE_PROTECTED for all that would change it.

use std::sync::Arc;

use anabranch_smb_server::Config;
use smb_wire::create::{CreateAction, CreateDisposition, CreateOptions};
use smb_wire::create_context::RequestContext;
use smb_wire::fscc::file_info::{Rename, RenameFlags};
use smb_wire::fscc::fs_info::{Attribute, FileSystemAttributes};
use smb_wire::fscc::{FileInfoClass, FsInfoClass};
use smb_wire::query_info::InfoType;
use smb_wire::{AccessMask, FileId, NtStatus};
use storage::memory::MemoryStore;
use storage::{Name, Storage};

use crate::client::{Client, TestServer};
use crate::information::{Query, set};
use crate::opening::{ALL, Opening, make_file};

const READ: AccessMask = AccessMask::FILE_READ.union(AccessMask::FILE_EXECUTE);
const PROTECTED: NtStatus = NtStatus::MEDIA_WRITE_PROTECTED;

/// A server whose share has the file `d\f` with the stream `s`, and `then`, a snapshot of that.
fn with_snapshot() -> (TestServer, Client) {
    let store = Arc::new(MemoryStore::new());
    let server = TestServer::start_on(Config::default(), Arc::clone(&store) as Arc<dyn Storage>);
    let mut client = server.client();
    Opening::directory().try_out(&mut client, "d").unwrap();
    make_file(&mut client, r"d\f", b"old");
    make_file(&mut client, r"d\f:s", b"stream");
    store.add_snapshot(Name::new(b"then").unwrap()).unwrap();
    let file = Opening::default().send(&mut client, r"d\f").unwrap().id;
    client.write(file, 0, b"new").unwrap();
    client.close(file).unwrap();
    (server, client)
}

fn is_on_read_only_volume(client: &mut Client, file: FileId) -> bool {
    let class = FsInfoClass::Attribute.into();
    let query = Query { info_type: InfoType::FileSystem, class, additional: 0, limit: 65536 };
    let data = query.get(client, file).unwrap();
    let told = Attribute::decode(&data).unwrap().file_system_attributes;
    told.contains(FileSystemAttributes::READ_ONLY_VOLUME)
}

#[test]
fn what_is_of_a_snapshot_is_read() {
    let (_server, mut client) = with_snapshot();
    for (name, data) in [(r"then\d\f", b"old".to_vec()), (r"then\d\f:s", b"stream".to_vec())] {
        let contexts = vec![RequestContext::QueryMaximalAccess { timestamp: None }];
        let access = AccessMask::MAXIMUM_ALLOWED;
        let opened = Opening { access, contexts, ..Opening::default() }.send(&mut client, name).unwrap();
        let (_, maximal) = opened.maximal_access.unwrap();
        assert!(maximal.contains(READ), "{maximal:?}");
        assert!(!maximal.intersects(ALL.difference(READ)), "{maximal:?}");
        assert_eq!(client.read(opened.id, 0, 10), Ok(data));
        assert_eq!(client.write(opened.id, 0, b"new"), Err(PROTECTED));
        assert!(is_on_read_only_volume(&mut client, opened.id));
        client.close(opened.id).unwrap();
    }
    let live = Opening::default().send(&mut client, r"d\f").unwrap().id;
    assert!(!is_on_read_only_volume(&mut client, live));
}

#[test]
fn what_is_of_a_snapshot_is_not_opened_for_changes() {
    let (_server, mut client) = with_snapshot();
    let rights = [
        AccessMask::WRITE_DATA,
        AccessMask::APPEND_DATA,
        AccessMask::WRITE_EA,
        AccessMask::WRITE_ATTRIBUTES,
        AccessMask::DELETE,
        AccessMask::WRITE_DAC,
        AccessMask::WRITE_OWNER,
    ];
    for right in rights {
        for name in [r"then", r"then\d", r"then\d\f", r"then\d\f:s"] {
            let opening = Opening { access: READ | right, ..Opening::default() };
            assert_eq!(opening.try_out(&mut client, name), Err(PROTECTED), "{name} {right:?}");
        }
    }
    let dispositions = [
        CreateDisposition::Overwrite,
        CreateDisposition::OverwriteIf,
        CreateDisposition::Supersede,
        CreateDisposition::Create,
        CreateDisposition::OpenIf,
    ];
    for disposition in dispositions {
        let opening = Opening { access: READ, ..Opening::with(disposition) };
        let is_there = match disposition {
            CreateDisposition::Create => Err(NtStatus::OBJECT_NAME_COLLISION),
            CreateDisposition::OpenIf => Ok(CreateAction::Opened),
            _ => Err(PROTECTED),
        };
        for name in [r"then\d\f", r"then\d\f:s"] {
            assert_eq!(opening.try_out(&mut client, name), is_there, "{name} {disposition:?}");
        }
        let is_missing = match disposition {
            CreateDisposition::Overwrite => Err(NtStatus::OBJECT_NAME_NOT_FOUND),
            _ => Err(PROTECTED),
        };
        for name in [r"then\d\g", r"then\d\g:s", r"then\d\f:t"] {
            assert_eq!(opening.try_out(&mut client, name), is_missing, "{name} {disposition:?}");
        }
    }
    let options = CreateOptions::DELETE_ON_CLOSE;
    let deleting = Opening { access: AccessMask::MAXIMUM_ALLOWED, options, ..Opening::default() };
    assert_eq!(deleting.try_out(&mut client, r"then\d\f"), Err(PROTECTED));
}

#[test]
fn names_neither_leave_a_snapshot_nor_come_into_one() {
    let (_server, mut client) = with_snapshot();
    make_file(&mut client, "other", b"stays");
    let wanted = |name: &str| {
        let mut out = Vec::new();
        let flags = RenameFlags::REPLACE_IF_EXISTS;
        Rename { flags, root_directory: 0, name: name.into() }.encode_into(&mut out).unwrap();
        out
    };
    let live = Opening::default().send(&mut client, r"d\f").unwrap().id;
    let old = Opening { access: READ, ..Opening::default() }.send(&mut client, r"then\d\f").unwrap().id;
    for class in [FileInfoClass::Rename, FileInfoClass::Link] {
        assert_eq!(set(&mut client, live, class, &wanted(r"then\d\g")), Err(PROTECTED));
    }
    for name in ["new", "other"] {
        assert_eq!(set(&mut client, old, FileInfoClass::Link, &wanted(name)), Err(PROTECTED));
    }
    let other = Opening::default().send(&mut client, "other").unwrap().id;
    assert_eq!(client.read(other, 0, 10), Ok(b"stays".to_vec()), "what had the name is still there");
}
