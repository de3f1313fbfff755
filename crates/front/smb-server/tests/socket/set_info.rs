//! SET_INFO, new names apart. [MS-SMB2] 3.3.5.21, [MS-FSA] 2.1.5.15 to 2.1.5.17.

use anabranch_smb_server::Config;
use smb_wire::create::CreateAction;
use smb_wire::fscc::file_info::{Basic, DispositionFlags, Position, Standard};
use smb_wire::fscc::{FileAttributes, FileInfoClass, FsInfoClass};
use smb_wire::query_info::InfoType;
use smb_wire::{AccessMask, FileId, FileTime, NtStatus};

use crate::client::{Client, TestServer};
use crate::information::{query, set, set_any};
use crate::opening::{Opening, make_file};

const UNCHANGED: Basic = Basic {
    creation_time: FileTime::UNSET,
    last_access_time: FileTime::UNSET,
    last_write_time: FileTime::UNSET,
    change_time: FileTime::UNSET,
    file_attributes: FileAttributes::empty(),
};

fn open_file(client: &mut Client) -> FileId {
    make_file(client, "file", b"0123456789");
    Opening::default().send(client, "file").unwrap().id
}

fn set_basic(client: &mut Client, file: FileId, basic: Basic) -> Result<(), NtStatus> {
    let mut out = Vec::new();
    basic.encode_into(&mut out);
    set(client, file, FileInfoClass::Basic, &out)
}

fn basic(client: &mut Client, file: FileId) -> Basic {
    Basic::decode(&query(client, file, FileInfoClass::Basic).unwrap()).unwrap()
}

fn standard(client: &mut Client, file: FileId) -> Standard {
    Standard::decode(&query(client, file, FileInfoClass::Standard).unwrap()).unwrap()
}

fn time(seconds: i64) -> FileTime {
    FileTime::from_unix(seconds, 100)
}

#[test]
fn times_and_attributes() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let file = open_file(&mut client);
    let wanted = Basic {
        creation_time: time(1000),
        last_access_time: time(-5),
        last_write_time: time(3000),
        change_time: time(4000),
        file_attributes: FileAttributes::HIDDEN | FileAttributes::READONLY,
    };
    set_basic(&mut client, file, wanted).unwrap();
    assert_eq!(basic(&mut client, file), wanted);
    set_basic(&mut client, file, UNCHANGED).unwrap();
    assert_eq!(basic(&mut client, file), wanted, "0 changes nothing");
    set_basic(&mut client, file, Basic { file_attributes: FileAttributes::NORMAL, ..UNCHANGED }).unwrap();
    let now = basic(&mut client, file);
    assert_eq!(now.file_attributes, FileAttributes::NORMAL);
    assert_eq!(now.change_time, time(4000), "it stays for what this open does");
    let other = Opening::default().send(&mut client, "file").unwrap().id;
    set_basic(&mut client, other, Basic { file_attributes: FileAttributes::HIDDEN, ..UNCHANGED }).unwrap();
    assert!(basic(&mut client, file).change_time > time(4000), "something has changed");
}

#[test]
fn what_is_no_time_or_attribute_is_refused() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let file = open_file(&mut client);
    let invalid = Err(NtStatus::INVALID_PARAMETER);
    let before = Basic { last_write_time: FileTime(u64::MAX - 2), ..UNCHANGED };
    assert_eq!(set_basic(&mut client, file, before), invalid);
    let directory = Basic { file_attributes: FileAttributes::DIRECTORY, ..UNCHANGED };
    assert_eq!(set_basic(&mut client, file, directory), invalid);
    let dir = Opening::directory().send(&mut client, "d").unwrap().id;
    let temporary = Basic { file_attributes: FileAttributes::TEMPORARY, ..UNCHANGED };
    assert_eq!(set_basic(&mut client, dir, temporary), invalid);
    let reader = Opening { access: AccessMask::READ_DATA, ..Opening::default() };
    let reader = reader.send(&mut client, "file").unwrap().id;
    assert_eq!(set_basic(&mut client, reader, UNCHANGED), Err(NtStatus::ACCESS_DENIED));
}

#[test]
fn a_time_that_was_set_stays_through_writes_of_the_same_open() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let file = open_file(&mut client);
    let write_time = |last_write_time| Basic { last_write_time, ..UNCHANGED };
    set_basic(&mut client, file, write_time(time(3000))).unwrap();
    client.write(file, 0, b"x").unwrap();
    assert_eq!(basic(&mut client, file).last_write_time, time(3000));
    set(&mut client, file, FileInfoClass::EndOfFile, &20_u64.to_le_bytes()).unwrap();
    assert_eq!(basic(&mut client, file).last_write_time, time(3000));
    set_basic(&mut client, file, write_time(FileTime::RESUME_UPDATES)).unwrap();
    client.write(file, 0, b"x").unwrap();
    let now = basic(&mut client, file).last_write_time;
    assert!(now > time(3000));
    set_basic(&mut client, file, write_time(FileTime::SUSPEND_UPDATES)).unwrap();
    client.write(file, 0, b"x").unwrap();
    assert_eq!(basic(&mut client, file).last_write_time, now);
}

#[test]
fn sizes() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let file = open_file(&mut client);
    let resize = |client: &mut Client, class, size: u64| set(client, file, class, &size.to_le_bytes());
    resize(&mut client, FileInfoClass::EndOfFile, 4).unwrap();
    assert_eq!(client.read(file, 0, 100).unwrap(), b"0123");
    resize(&mut client, FileInfoClass::EndOfFile, 6).unwrap();
    assert_eq!(client.read(file, 0, 100).unwrap(), b"0123\0\0");
    resize(&mut client, FileInfoClass::Allocation, 100_000).unwrap();
    assert_eq!(standard(&mut client, file).end_of_file, 6, "space is no length");
    resize(&mut client, FileInfoClass::Allocation, 2).unwrap();
    assert_eq!(standard(&mut client, file).end_of_file, 2, "less than the file has cuts it off");
    let invalid = Err(NtStatus::INVALID_PARAMETER);
    assert_eq!(resize(&mut client, FileInfoClass::EndOfFile, 1 << 63), invalid);
    assert_eq!(resize(&mut client, FileInfoClass::ValidDataLength, 1), Err(NtStatus::PRIVILEGE_NOT_HELD));
    let dir = Opening::directory().send(&mut client, "d").unwrap().id;
    assert_eq!(set(&mut client, dir, FileInfoClass::EndOfFile, &[0; 8]), invalid);
    let reader = Opening { access: AccessMask::READ_DATA, ..Opening::default() };
    let reader = reader.send(&mut client, "file").unwrap().id;
    for class in [FileInfoClass::EndOfFile, FileInfoClass::Allocation, FileInfoClass::ValidDataLength] {
        assert_eq!(set(&mut client, reader, class, &[0; 8]), Err(NtStatus::ACCESS_DENIED), "{class:?}");
    }
}

#[test]
fn position_and_mode_belong_to_the_open() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let file = open_file(&mut client);
    set(&mut client, file, FileInfoClass::Position, &123_456_u64.to_le_bytes()).unwrap();
    let position = query(&mut client, file, FileInfoClass::Position).unwrap();
    assert_eq!(Position::decode(&position).unwrap().current_byte_offset, 123_456);
    assert_eq!(set(&mut client, file, FileInfoClass::Position, &[0xFF; 8]), Err(NtStatus::INVALID_PARAMETER));
    set(&mut client, file, FileInfoClass::Mode, &[2, 0, 0, 0]).unwrap();
    assert_eq!(query(&mut client, file, FileInfoClass::Mode).unwrap(), [2, 0, 0, 0]);
    for mode in [1, 0x10, 0x20, 0x30, 0x1000] {
        let refused = set(&mut client, file, FileInfoClass::Mode, &u32::to_le_bytes(mode));
        assert_eq!(refused, Err(NtStatus::INVALID_PARAMETER), "{mode:#x}");
    }
    let other = Opening::default().send(&mut client, "file").unwrap().id;
    assert_eq!(query(&mut client, other, FileInfoClass::Mode).unwrap(), [0; 4]);
}

#[test]
fn deleting() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let file = open_file(&mut client);
    let reader = Opening { access: AccessMask::READ_DATA, ..Opening::default() };
    let reader = reader.send(&mut client, "file").unwrap().id;
    let mark =
        |client: &mut Client, file, on: bool| set(client, file, FileInfoClass::Disposition, &[u8::from(on)]);
    assert_eq!(mark(&mut client, reader, true), Err(NtStatus::ACCESS_DENIED));
    client.close(reader).unwrap();
    mark(&mut client, file, true).unwrap();
    assert_eq!(Opening::default().try_out(&mut client, "file"), Err(NtStatus::DELETE_PENDING));
    mark(&mut client, file, false).unwrap();
    assert_eq!(Opening::default().try_out(&mut client, "file"), Ok(CreateAction::Opened));
    let mut mark_ex = |flags: DispositionFlags| {
        set(&mut client, file, FileInfoClass::DispositionEx, &flags.bits().to_le_bytes())
    };
    assert_eq!(
        mark_ex(DispositionFlags::DELETE | DispositionFlags::POSIX_SEMANTICS),
        Err(NtStatus::NOT_SUPPORTED)
    );
    assert_eq!(mark_ex(DispositionFlags::DELETE), Ok(()));
    client.close(file).unwrap();
    assert_eq!(Opening::default().try_out(&mut client, "file"), Err(NtStatus::OBJECT_NAME_NOT_FOUND));
}

#[test]
fn what_cannot_be_deleted() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let file = open_file(&mut client);
    let read_only = Basic { file_attributes: FileAttributes::READONLY, ..UNCHANGED };
    set_basic(&mut client, file, read_only).unwrap();
    assert_eq!(set(&mut client, file, FileInfoClass::Disposition, &[1]), Err(NtStatus::CANNOT_DELETE));
    let dir = Opening::directory().send(&mut client, "d").unwrap().id;
    make_file(&mut client, r"d\f", b"");
    assert_eq!(set(&mut client, dir, FileInfoClass::Disposition, &[1]), Err(NtStatus::DIRECTORY_NOT_EMPTY));
}

#[test]
fn what_is_too_short_or_cannot_be_set() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let file = open_file(&mut client);
    for (class, length) in [
        (FileInfoClass::Basic, 39),
        (FileInfoClass::EndOfFile, 7),
        (FileInfoClass::Allocation, 7),
        (FileInfoClass::ValidDataLength, 7),
        (FileInfoClass::Position, 7),
        (FileInfoClass::Mode, 3),
        (FileInfoClass::Disposition, 0),
        (FileInfoClass::DispositionEx, 3),
        (FileInfoClass::Link, 19),
    ] {
        let refused = set(&mut client, file, class, &vec![0; length]);
        assert_eq!(refused, Err(NtStatus::INFO_LENGTH_MISMATCH), "{class:?}");
    }
    for class in [FileInfoClass::Standard, FileInfoClass::All, FileInfoClass::Unknown(222)] {
        assert_eq!(set(&mut client, file, class, &[0; 64]), Err(NtStatus::INVALID_INFO_CLASS), "{class:?}");
    }
    assert_eq!(set(&mut client, file, FileInfoClass::ShortName, &[0; 64]), Err(NtStatus::NOT_SUPPORTED));
    let label = (InfoType::FileSystem, FsInfoClass::Label.into(), 0);
    assert_eq!(set_any(&mut client, file, label, &[0; 64]), Err(NtStatus::NOT_SUPPORTED));
    let size = (InfoType::FileSystem, FsInfoClass::Size.into(), 0);
    assert_eq!(set_any(&mut client, file, size, &[0; 64]), Err(NtStatus::INVALID_INFO_CLASS));
    assert_eq!(set_any(&mut client, file, (InfoType::Quota, 32, 0), &[0; 64]), Err(NtStatus::NOT_SUPPORTED));
}
