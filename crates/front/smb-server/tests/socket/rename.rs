//! SET_INFO with a new name. [MS-FSA] 2.1.5.15.11, 2.1.5.15.6.

use anabranch_smb_server::Config;
use smb_wire::create::{CreateAction, CreateOptions, ShareAccess};
use smb_wire::fscc::file_info::{All, Rename, RenameFlags};
use smb_wire::fscc::{FileAttributes, FileInfoClass};
use smb_wire::{AccessMask, FileId, NtStatus};

use crate::client::{Client, TestServer};
use crate::information::{query, set};
use crate::opening::{Opening, make_file};

const REPLACE: RenameFlags = RenameFlags::REPLACE_IF_EXISTS;
const KEEP: RenameFlags = RenameFlags::empty();

fn wanted(name: &str, flags: RenameFlags) -> Vec<u8> {
    let mut out = Vec::new();
    Rename { flags, root_directory: 0, name: name.into() }.encode_into(&mut out).unwrap();
    out
}

fn rename(client: &mut Client, file: FileId, name: &str, flags: RenameFlags) -> Result<(), NtStatus> {
    set(client, file, FileInfoClass::Rename, &wanted(name, flags))
}

fn open(client: &mut Client, name: &str) -> FileId {
    Opening::default().send(client, name).unwrap().id
}

fn content(client: &mut Client, name: &str) -> Result<Vec<u8>, NtStatus> {
    let file = Opening::default().send(client, name)?.id;
    let data = client.read(file, 0, 100);
    client.close(file).unwrap();
    data
}

#[test]
fn a_file_moves_and_stays_open() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    Opening::directory().try_out(&mut client, "d").unwrap();
    make_file(&mut client, "old", b"data");
    let file = open(&mut client, "old");
    rename(&mut client, file, r"D\new", KEEP).unwrap();
    assert_eq!(client.read(file, 0, 10).unwrap(), b"data");
    let all = query(&mut client, file, FileInfoClass::All).unwrap();
    assert_eq!(All::decode(&all).unwrap().name.name, r"\d\new");
    rename(&mut client, file, r"\d\NEW", KEEP).unwrap();
    client.close(file).unwrap();
    assert_eq!(content(&mut client, "old"), Err(NtStatus::OBJECT_NAME_NOT_FOUND));
    let all = open(&mut client, r"d\new");
    let all = query(&mut client, all, FileInfoClass::All).unwrap();
    assert_eq!(All::decode(&all).unwrap().name.name, r"\d\NEW", "only the case has changed");
}

#[test]
fn what_is_in_the_way_stays_unless_it_may_be_replaced() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    for name in ["a", "b", "busy"] {
        make_file(&mut client, name, name.as_bytes());
    }
    let read_only = Opening {
        attributes: FileAttributes::READONLY,
        ..Opening::with(smb_wire::create::CreateDisposition::Create)
    };
    assert_eq!(read_only.try_out(&mut client, "fixed"), Ok(CreateAction::Created));
    Opening::directory().try_out(&mut client, "d").unwrap();
    let file = open(&mut client, "a");
    let busy = open(&mut client, "busy");
    for name in ["B", "d", "fixed", "busy"] {
        assert_eq!(rename(&mut client, file, name, KEEP), Err(NtStatus::OBJECT_NAME_COLLISION), "{name}");
    }
    for name in ["d", "fixed", "busy"] {
        assert_eq!(rename(&mut client, file, name, REPLACE), Err(NtStatus::ACCESS_DENIED), "{name}");
    }
    client.close(busy).unwrap();
    assert_eq!(rename(&mut client, file, "busy", REPLACE), Ok(()));
    assert_eq!(rename(&mut client, file, "busy", REPLACE), Ok(()), "its own name");
    client.close(file).unwrap();
    assert_eq!(content(&mut client, "busy").unwrap(), b"a");
}

#[test]
fn directories_move_when_nothing_below_is_open() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    Opening::directory().try_out(&mut client, "d").unwrap();
    Opening::directory().try_out(&mut client, r"d\sub").unwrap();
    make_file(&mut client, r"d\sub\file", b"x");
    let dir = open(&mut client, "d");
    let below = open(&mut client, r"d\sub\file");
    assert_eq!(rename(&mut client, dir, "e", KEEP), Err(NtStatus::ACCESS_DENIED));
    client.close(below).unwrap();
    assert!(rename(&mut client, dir, r"d\sub\inside", KEEP).is_err(), "not into itself");
    assert_eq!(rename(&mut client, dir, "e", KEEP), Ok(()));
    assert_eq!(content(&mut client, r"e\sub\file").unwrap(), b"x");
}

#[test]
fn who_may_rename() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    make_file(&mut client, "a", b"");
    let reader = Opening { access: AccessMask::READ_DATA, ..Opening::default() };
    let reader = reader.send(&mut client, "a").unwrap().id;
    assert_eq!(rename(&mut client, reader, "b", KEEP), Err(NtStatus::ACCESS_DENIED));
    let file = open(&mut client, "a");
    assert_eq!(rename(&mut client, file, r"none\b", KEEP), Err(NtStatus::OBJECT_PATH_NOT_FOUND));
    assert_eq!(rename(&mut client, file, r"a\b", KEEP), Err(NtStatus::OBJECT_PATH_NOT_FOUND));
    assert_eq!(rename(&mut client, file, "b\\", KEEP), Err(NtStatus::OBJECT_NAME_INVALID));
    assert_eq!(rename(&mut client, file, "b?", KEEP), Err(NtStatus::OBJECT_NAME_INVALID));
    assert_eq!(rename(&mut client, file, r"..\b", KEEP), Err(NtStatus::OBJECT_PATH_SYNTAX_BAD));
    assert_eq!(rename(&mut client, file, "", KEEP), Err(NtStatus::INVALID_PARAMETER));
    let short = &wanted("b", KEEP)[..19];
    assert_eq!(set(&mut client, file, FileInfoClass::Rename, short), Err(NtStatus::INFO_LENGTH_MISMATCH));
    assert_eq!(rename(&mut client, file, "b", KEEP), Ok(()));
}

#[test]
fn an_open_directory_may_keep_names_out() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    Opening::directory().try_out(&mut client, "d").unwrap();
    make_file(&mut client, r"d\a", b"");
    let file = open(&mut client, r"d\a");
    let options = CreateOptions::DIRECTORY_FILE;
    let alone = Opening {
        options,
        sharing: ShareAccess::empty(),
        access: AccessMask::READ_DATA,
        ..Opening::default()
    };
    let alone = alone.send(&mut client, "d").unwrap().id;
    assert_eq!(rename(&mut client, file, r"d\b", KEEP), Err(NtStatus::SHARING_VIOLATION));
    client.close(alone).unwrap();
    assert_eq!(rename(&mut client, file, r"d\b", KEEP), Ok(()));
}

#[test]
fn links() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    make_file(&mut client, "a", b"1");
    make_file(&mut client, "other", b"2");
    let file = open(&mut client, "a");
    let mut link = |name, flags| set(&mut client, file, FileInfoClass::Link, &wanted(name, flags));
    assert_eq!(link("b", KEEP), Ok(()));
    assert_eq!(link("other", KEEP), Err(NtStatus::OBJECT_NAME_COLLISION));
    assert_eq!(link("b", REPLACE), Ok(()), "it has this name");
    assert_eq!(link("other", REPLACE), Ok(()));
    assert_eq!(content(&mut client, "b").unwrap(), b"1");
    assert_eq!(content(&mut client, "other").unwrap(), b"1");
    let all = query(&mut client, file, FileInfoClass::All).unwrap();
    assert_eq!(All::decode(&all).unwrap().standard.number_of_links, 3);
    Opening::directory().try_out(&mut client, "d").unwrap();
    let dir = open(&mut client, "d");
    assert_eq!(
        set(&mut client, dir, FileInfoClass::Link, &wanted("r", KEEP)),
        Err(NtStatus::FILE_IS_A_DIRECTORY)
    );
}

#[test]
fn the_ex_form_says_more() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    make_file(&mut client, "a", b"");
    let read_only = Opening {
        attributes: FileAttributes::READONLY,
        ..Opening::with(smb_wire::create::CreateDisposition::Create)
    };
    read_only.try_out(&mut client, "fixed").unwrap();
    let file = open(&mut client, "a");
    let mut rename_ex = |flags| {
        let mut out = Vec::new();
        Rename { flags, root_directory: 0, name: "fixed".into() }.encode_ex_into(&mut out).unwrap();
        set(&mut client, file, FileInfoClass::RenameEx, &out)
    };
    assert_eq!(rename_ex(REPLACE | RenameFlags::POSIX_SEMANTICS), Err(NtStatus::NOT_SUPPORTED));
    assert_eq!(rename_ex(REPLACE), Err(NtStatus::ACCESS_DENIED));
    assert_eq!(rename_ex(REPLACE | RenameFlags::IGNORE_READONLY_ATTRIBUTE), Ok(()));
}
