//! QUERY_INFO. [MS-SMB2] 3.3.5.20, [MS-FSA] 2.1.5.12 to 2.1.5.14.

use anabranch_smb_server::Config;
use smb_proto::dialect::Dialect;
use smb_wire::create::{CreateDisposition, CreateOptions};
use smb_wire::fscc::ea::{self, EaFlags, FullEa};
use smb_wire::fscc::file_info::{Access, All, Basic, Id, Internal, Name, Standard, StandardLink, Stream};
use smb_wire::fscc::fs_info::{Attribute, FullSize, SectorSize, Volume};
use smb_wire::fscc::{FileAttributes, FileInfoClass, FsInfoClass};
use smb_wire::query_info::{InfoType, SecurityInformation};
use smb_wire::security_descriptor::{Control, SecurityDescriptor};
use smb_wire::{AccessMask, FileId, NtStatus};

use crate::client::{Client, PASSWORD, SHARE, TestServer, USER};
use crate::information::{Query, query, set};
use crate::opening::{ALL, Opening, make_file};

fn open_file(client: &mut Client) -> FileId {
    make_file(client, "file.txt", b"12345");
    Opening::default().send(client, "file.txt").unwrap().id
}

fn filesystem(class: FsInfoClass) -> Query {
    Query { info_type: InfoType::FileSystem, class: class.into(), additional: 0, limit: 65536 }
}

/// [MS-FSA] 2.1.5.12: too short for the fixed part, for all, and enough.
fn check_room(client: &mut Client, file: FileId, ask: Query, fixed: usize) {
    let (status, whole) = ask.send(client, file);
    assert_eq!(status, NtStatus::SUCCESS, "{ask:?}");
    for limit in 0..=whole.len() {
        let asked = Query { limit: u32::try_from(limit).unwrap(), ..ask };
        let (status, data) = asked.send(client, file);
        if limit < fixed {
            assert_eq!(status, NtStatus::INFO_LENGTH_MISMATCH, "{asked:?}");
        } else if limit < whole.len() {
            assert_eq!(status, NtStatus::BUFFER_OVERFLOW, "{asked:?}");
            assert_eq!(data, whole[..limit], "{asked:?}");
        } else {
            assert_eq!((status, &data), (NtStatus::SUCCESS, &whole), "{asked:?}");
        }
    }
}

#[test]
fn answers_take_the_room_that_they_need() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let file = open_file(&mut client);
    // smbtorture smb2.getinfo.qfile_buffercheck and qfs_buffercheck: what Windows answers
    for (class, fixed) in
        [(4, 40), (5, 24), (6, 8), (7, 4), (8, 4), (16, 4), (17, 4), (18, 104), (28, 16), (34, 56), (35, 8)]
    {
        check_room(&mut client, file, Query::file(FileInfoClass::from(class)), fixed);
    }
    for (class, fixed) in [(1, 24), (3, 24), (4, 8), (5, 16), (6, 48), (7, 32), (11, 28)] {
        check_room(&mut client, file, filesystem(FsInfoClass::from(class)), fixed);
    }
}

#[test]
fn a_file_says_what_it_is() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let file = open_file(&mut client);
    let basic = Basic::decode(&query(&mut client, file, FileInfoClass::Basic).unwrap()).unwrap();
    assert_eq!(basic.file_attributes, FileAttributes::ARCHIVE);
    let standard = Standard::decode(&query(&mut client, file, FileInfoClass::Standard).unwrap()).unwrap();
    assert_eq!((standard.end_of_file, standard.number_of_links, standard.directory), (5, 1, false));
    let access = Access::decode(&query(&mut client, file, FileInfoClass::Access).unwrap()).unwrap();
    assert_eq!(access.access_flags, ALL);
    let data = query(&mut client, file, FileInfoClass::All).unwrap();
    let all = All::decode(&data).unwrap();
    assert_eq!(all.name.name, r"\file.txt");
    assert_eq!((all.basic, all.standard, all.access), (basic, standard, access));
    let id = Id::decode(&query(&mut client, file, FileInfoClass::Id).unwrap()).unwrap();
    let number = Internal::decode(&query(&mut client, file, FileInfoClass::Internal).unwrap()).unwrap();
    assert_eq!(id.file_id, u128::from(number.index_number));
    let data = query(&mut client, file, FileInfoClass::Stream).unwrap();
    let streams: Vec<_> = Stream::list(&data).map(Result::unwrap).collect();
    assert!(streams.len() == 1 && streams[0].name == "::$DATA" && streams[0].stream_size == 5);
    let data = query(&mut client, file, FileInfoClass::AlternateName).unwrap();
    assert_eq!(Name::decode(&data).unwrap().name, "file.txt");
}

#[test]
fn deletion_shows() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let file = open_file(&mut client);
    set(&mut client, file, FileInfoClass::Disposition, &[1]).unwrap();
    let standard = Standard::decode(&query(&mut client, file, FileInfoClass::Standard).unwrap()).unwrap();
    assert!(standard.delete_pending && standard.number_of_links == 0);
    let link = StandardLink::decode(&query(&mut client, file, FileInfoClass::StandardLink).unwrap()).unwrap();
    assert_eq!((link.number_of_accessible_links, link.total_number_of_links), (0, 1));
}

#[test]
fn some_classes_need_a_right() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let file = open_file(&mut client);
    client.close(file).unwrap();
    let mut ask = |access, class| {
        let file = Opening { access, ..Opening::default() }.send(&mut client, "file.txt").unwrap().id;
        query(&mut client, file, class).map(|_| ())
    };
    let little = AccessMask::READ_DATA;
    for class in
        [FileInfoClass::Basic, FileInfoClass::All, FileInfoClass::NetworkOpen, FileInfoClass::AttributeTag]
    {
        assert_eq!(ask(little, class), Err(NtStatus::ACCESS_DENIED), "{class:?}");
        assert_eq!(ask(AccessMask::READ_ATTRIBUTES, class), Ok(()), "{class:?}");
    }
    for class in [FileInfoClass::Standard, FileInfoClass::Internal, FileInfoClass::Stream] {
        assert_eq!(ask(little, class), Ok(()), "{class:?}");
    }
    assert_eq!(ask(AccessMask::READ_ATTRIBUTES, FileInfoClass::FullEa), Err(NtStatus::ACCESS_DENIED));
    assert_eq!(ask(AccessMask::READ_EA, FileInfoClass::FullEa), Err(NtStatus::NO_EAS_ON_FILE));
    for class in [FileInfoClass::Rename, FileInfoClass::Name, FileInfoClass::Unknown(250)] {
        assert_eq!(ask(ALL, class), Err(NtStatus::INVALID_INFO_CLASS), "{class:?}");
    }
}

#[test]
fn extended_attributes_are_listed() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let file = open_file(&mut client);
    let mut list = Vec::new();
    let mut writer = ea::writer(&mut list, 100);
    for (name, value) in [(b"ONE", b"1"), (b"TWO", b"2")] {
        FullEa { flags: EaFlags::empty(), name, value }.push(&mut writer).unwrap();
    }
    set(&mut client, file, FileInfoClass::FullEa, &list).unwrap();
    let kept = query(&mut client, file, FileInfoClass::FullEa).unwrap();
    let kept: Vec<_> = FullEa::list(&kept).map(|ea| ea.map(|ea| (ea.name, ea.value)).unwrap()).collect();
    assert_eq!(kept, [(&b"ONE"[..], &b"1"[..]), (b"TWO", b"2")]);
    let size = query(&mut client, file, FileInfoClass::Ea).unwrap();
    assert_eq!(size, [4 + 9 + 9, 0, 0, 0]);
    let reader = Opening { access: AccessMask::READ_DATA, ..Opening::default() };
    let reader = reader.send(&mut client, "file.txt").unwrap().id;
    assert_eq!(set(&mut client, reader, FileInfoClass::FullEa, &list), Err(NtStatus::ACCESS_DENIED));
}

#[test]
fn names_as_they_are() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    Opening::directory().try_out(&mut client, "Dir").unwrap();
    make_file(&mut client, r"Dir\File", b"");
    let file = Opening::default().send(&mut client, r"dir\FILE").unwrap().id;
    let data = query(&mut client, file, FileInfoClass::NormalizedName).unwrap();
    assert_eq!(Name::decode(&data).unwrap().name, r"Dir\File");
    let mut older = server.connect();
    older.negotiate(&[Dialect::Smb302]);
    older.log_in(USER, PASSWORD).unwrap();
    older.tree_connect(SHARE).unwrap();
    let file = Opening::default().send(&mut older, r"dir\FILE").unwrap().id;
    assert_eq!(
        query(&mut older, file, FileInfoClass::NormalizedName),
        Err(NtStatus::NOT_SUPPORTED),
        "a class of SMB 3.1.1"
    );
}

#[test]
fn the_file_system() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let file = open_file(&mut client);
    let mut ask = |class| filesystem(class).get(&mut client, file);
    let data = ask(FsInfoClass::Volume).unwrap();
    assert_eq!(Volume::decode(&data).unwrap().volume_label, SHARE);
    let data = ask(FsInfoClass::Attribute).unwrap();
    let attribute = Attribute::decode(&data).unwrap();
    assert!(attribute.file_system_name == "NTFS" && attribute.maximum_component_name_length == 255);
    let size = FullSize::decode(&ask(FsInfoClass::FullSize).unwrap()).unwrap();
    assert!(size.total_allocation_units >= size.actual_available_allocation_units);
    assert!(size.bytes_per_sector > 0 && size.sectors_per_allocation_unit > 0);
    let sectors = SectorSize::decode(&ask(FsInfoClass::SectorSize).unwrap()).unwrap();
    assert_eq!(sectors.logical_bytes_per_sector, size.bytes_per_sector);
    assert_eq!(ask(FsInfoClass::Label), Err(NtStatus::INVALID_INFO_CLASS));
    assert_eq!(ask(FsInfoClass::Unknown(99)), Err(NtStatus::INVALID_INFO_CLASS));
}

#[test]
fn security_descriptors() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let file = open_file(&mut client);
    let all = SecurityInformation::OWNER | SecurityInformation::GROUP | SecurityInformation::DACL;
    let whole = Query::security(all).get(&mut client, file).unwrap();
    let descriptor = SecurityDescriptor::decode(&whole).unwrap();
    assert_eq!(descriptor.owner.unwrap().to_string(), "S-1-22-1-0");
    assert!(descriptor.control.contains(Control::DACL_PRESENT));
    let short = u32::try_from(whole.len() - 1).unwrap();
    let reply = Query { limit: short, ..Query::security(all) }.ask(&mut client, file);
    assert_eq!(reply.status(), NtStatus::BUFFER_TOO_SMALL);
    let needed = u32::try_from(whole.len()).unwrap().to_le_bytes();
    assert!(reply.message.ends_with(&needed), "the client is told how much it takes");
    let owner = Query::security(SecurityInformation::OWNER).get(&mut client, file).unwrap();
    let owner = SecurityDescriptor::decode(&owner).unwrap();
    assert!(owner.owner.is_some() && owner.group.is_none() && owner.dacl.is_none());
    let sacl = Query::security(SecurityInformation::SACL).get(&mut client, file);
    assert_eq!(sacl, Err(NtStatus::ACCESS_DENIED));
    let reader = Opening { access: AccessMask::READ_DATA, ..Opening::default() };
    let reader = reader.send(&mut client, "file.txt").unwrap().id;
    assert_eq!(Query::security(all).get(&mut client, reader), Err(NtStatus::ACCESS_DENIED));
    let nothing = Query::security(SecurityInformation::empty()).get(&mut client, reader);
    assert_eq!(SecurityDescriptor::decode(&nothing.unwrap()).unwrap().owner, None, "nothing was asked for");
}

#[test]
fn directories() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let options = CreateOptions::DIRECTORY_FILE;
    let dir = Opening { options, ..Opening::with(CreateDisposition::Create) };
    let dir = dir.send(&mut client, "d").unwrap().id;
    let standard = Standard::decode(&query(&mut client, dir, FileInfoClass::Standard).unwrap()).unwrap();
    assert!(standard.directory && standard.end_of_file == 0 && standard.number_of_links == 1);
    assert!(query(&mut client, dir, FileInfoClass::Stream).unwrap().is_empty(), "no streams");
    let quota = Query { info_type: InfoType::Quota, ..Query::file(FileInfoClass::Quota) };
    assert_eq!(quota.get(&mut client, dir), Err(NtStatus::NOT_SUPPORTED));
    let odd = Query { info_type: InfoType::Unknown(9), ..Query::file(FileInfoClass::Basic) };
    assert_eq!(odd.get(&mut client, dir), Err(NtStatus::INVALID_PARAMETER));
    let huge = Query { limit: u32::MAX, ..Query::file(FileInfoClass::Basic) };
    assert_eq!(huge.get(&mut client, dir), Err(NtStatus::INVALID_PARAMETER));
}
