//! Links that clients make: CREATE, then FSCTL_SET_REPARSE_POINT.

use std::sync::Arc;

use anabranch_smb_server::Config;
use share::Settings;
use smb_wire::create::{CreateDisposition, CreateOptions, OplockLevel, ShareAccess};
use smb_wire::create_context::LeaseState;
use smb_wire::fscc::FileInfoClass;
use smb_wire::fscc::file_info::{All, Rename, RenameFlags};
use smb_wire::fscc::fsctl::Fsctl;
use smb_wire::fscc::notify::Action;
use smb_wire::fscc::reparse::{ReparsePoint, SYMLINK_FLAG_RELATIVE, tag};
use smb_wire::oplock_break::Notification;
use smb_wire::{AccessMask, FileAttributes, FileId, NtStatus};
use storage::fault::{self, Fault, FaultyStore, Rule};
use storage::memory::MemoryStore;
use storage::{FileKind, Wait, Want};

use super::{LINK, itself, make_link, stop, stored, target, text};
use crate::client::{Client, OTHER_USER, PASSWORD, SHARE, TestServer};
use crate::directory::open_directory;
use crate::durable::{Asking, lease, request_v2};
use crate::information::{query, set};
use crate::ioctl::ioctl;
use crate::notify::{Watch, changes};
use crate::opening::{Opening, delete, make_file};
use crate::oplock::notification;

/// The right that a client needs to make a link: that, and one to undo it.
const ACCESS: AccessMask =
    AccessMask::WRITE_ATTRIBUTES.union(AccessMask::READ_ATTRIBUTES).union(AccessMask::DELETE);

fn bytes(point: &ReparsePoint<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    point.encode_into(&mut out).unwrap();
    out
}

fn symlink(target: &str, flags: u32) -> Vec<u8> {
    bytes(&ReparsePoint::Symlink { substitute_name: target.into(), print_name: target.into(), flags })
}

/// The buffer for a link with this target.
pub(super) fn relative(target: &str) -> Vec<u8> {
    symlink(target, SYMLINK_FLAG_RELATIVE)
}

/// The CREATE of a link.
fn fresh() -> Opening {
    Opening {
        access: ACCESS,
        options: CreateOptions::OPEN_REPARSE_POINT | CreateOptions::NON_DIRECTORY_FILE,
        sharing: ShareAccess::empty(),
        ..Opening::with(CreateDisposition::Create)
    }
}

fn turn(client: &mut Client, file: FileId, buffer: &[u8]) -> NtStatus {
    ioctl(client, Fsctl::SetReparsePoint, file, buffer, 0).status()
}

/// Makes a link, which is open then.
pub(super) fn link(client: &mut Client, path: &str, buffer: &[u8]) -> Result<FileId, NtStatus> {
    let file = fresh().send(client, path)?.id;
    match turn(client, file, buffer) {
        NtStatus::SUCCESS => Ok(file),
        status => {
            client.close(file).unwrap();
            Err(status)
        }
    }
}

#[test]
fn a_new_file_becomes_a_link_that_all_protocols_see() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let file = fresh().send(&mut client, "link").unwrap().id;
    let before = stored(&server, "link").unwrap().id();
    assert_eq!(turn(&mut client, file, &relative(r"..\d\f")), NtStatus::SUCCESS);
    let node = stored(&server, "link").unwrap();
    assert_eq!((node.kind(), text(&server, "link")), (FileKind::Symlink, "../d/f".to_owned()));
    assert_ne!(node.id(), before);
    let attributes = node.attributes(Want::empty(), Wait::May(storage::conformance::MAY)).unwrap();
    assert_eq!(attributes.links, 1);

    // The open is one of the link now.
    assert_eq!(target(&mut client, file), (r"..\d\f".to_owned(), r"..\d\f".to_owned(), true));
    let all = query(&mut client, file, FileInfoClass::All).unwrap();
    let all = All::decode(&all).unwrap();
    assert_eq!((all.basic.file_attributes, all.standard.number_of_links), (LINK, 1));
    assert_eq!(all.internal.index_number, node.id().number);
    assert_eq!(all.name.name.decode().unwrap(), r"\link");
    assert_eq!(server.share.open_count().0, 1);
    let shared = itself().try_out(&mut server.client(), "link");
    assert_eq!(shared, Err(NtStatus::SHARING_VIOLATION), "as the CREATE wanted it");
    let mut out = Vec::new();
    Rename { flags: RenameFlags::empty(), root_directory: 0, name: "renamed".into() }
        .encode_into(&mut out)
        .unwrap();
    assert_eq!(set(&mut client, file, FileInfoClass::Rename, &out), Ok(()));
    assert_eq!(turn(&mut client, file, &relative("x")), NtStatus::NOT_SUPPORTED, "once");
    client.close(file).unwrap();
    assert_eq!((server.share.open_count().0, text(&server, "renamed")), (0, "../d/f".to_owned()));
    assert_eq!(stop(&mut client, &Opening::default(), "renamed").0, r"..\d\f");
    assert_eq!(delete(&mut client, "renamed"), Ok(()));
    assert!(stored(&server, "renamed").is_none());
}

#[test]
fn a_new_directory_becomes_a_link_too() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let options = CreateOptions::OPEN_REPARSE_POINT | CreateOptions::DIRECTORY_FILE;
    let dir = Opening { options, ..fresh() };
    let open = dir.send(&mut client, "link").unwrap().id;
    assert_eq!(turn(&mut client, open, &relative("d")), NtStatus::SUCCESS);
    assert_eq!(text(&server, "link"), "d");
    client.close(open).unwrap();
    let open = Opening { sharing: Opening::default().sharing, ..dir }.send(&mut client, "full").unwrap().id;
    make_file(&mut server.client(), r"full\f", b"");
    assert_eq!(turn(&mut client, open, &relative("d")), NtStatus::DIRECTORY_NOT_EMPTY);
    assert_eq!(delete(&mut client, r"full\f"), Ok(()));
    assert_eq!(turn(&mut client, open, &relative("d")), NtStatus::SUCCESS, "now it is empty");
    assert_eq!(text(&server, "full"), "d");
}

#[test]
fn each_kind_of_link_and_target_is_kept_as_it_was_meant() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let nfs = bytes(&ReparsePoint::NfsSymlink { target: "/a/b:c".into() });
    let wsl = bytes(&ReparsePoint::LxSymlink { target: "../\u{e4}".as_bytes() });
    for (buffer, stored, told, is_relative) in [
        (relative("f"), "f", "f", true),
        (relative("a/b"), "a/b", r"a\b", true),
        (relative(r"\top"), "top", "top", true),
        (symlink(r"\??\C:\a", 0), r"\??\C:\a", r"\??\C:\a", false),
        (symlink("/etc/passwd", 0), "/etc/passwd", "/etc/passwd", false),
        (symlink(r"\etc\passwd", 0), "/etc/passwd", "/etc/passwd", false),
        (nfs, "/a/b:c", "/a/b:c", false),
        (wsl, "../\u{e4}", "..\\\u{e4}", true),
    ] {
        let link = link(&mut client, "link", &buffer).unwrap();
        assert_eq!(text(&server, "link"), stored);
        let (substitute, _, relative) = target(&mut client, link);
        assert_eq!((substitute.as_str(), relative), (told, is_relative));
        client.close(link).unwrap();
        delete(&mut client, "link").unwrap();
    }
    let longest = format!("{}dir", r"dir\".repeat(1023));
    let without_print_name = ReparsePoint::Symlink {
        substitute_name: longest.as_str().into(),
        print_name: "".into(),
        flags: SYMLINK_FLAG_RELATIVE,
    };
    let link = link(&mut client, "link", &bytes(&without_print_name)).unwrap();
    assert_eq!((text(&server, "link").len(), target(&mut client, link).0), (4095, longest));
}

/// Buffers that no client sends, and those that mean no link: the file stays as it is.
#[test]
fn what_is_no_link_is_refused() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let file = fresh().send(&mut client, "file").unwrap().id;
    let good = relative("ab");
    let mut buffers: Vec<Vec<u8>> = (0..good.len()).map(|length| good[..length].to_vec()).collect();
    buffers.push([&good[..], &[0]].concat());
    for at in [4, 8, 10, 12, 14] {
        for value in [3_u16, 9, 0x7FFF, 0xFFFF] {
            let mut buffer = good.clone();
            buffer[at..at + 2].copy_from_slice(&value.to_le_bytes());
            buffers.push(buffer);
        }
    }
    let mut surrogate = good.clone();
    surrogate[20..22].copy_from_slice(&[0, 0xD8]);
    buffers.push(surrogate);
    for name in ["a*", "a\0b", "c:x", "\u{1}", &"x".repeat(256)] {
        buffers.push(relative(name));
    }
    buffers.extend([symlink("C:\\x", 0), symlink("", 0), symlink("x", 0)]);
    buffers.push(bytes(&ReparsePoint::LxSymlink { target: b"\xff" }));
    buffers.push(bytes(&ReparsePoint::LxSymlink { target: b"" }));
    buffers.push(bytes(&ReparsePoint::Other { tag: 0, data: &[0; 16] }));
    buffers.push(bytes(&ReparsePoint::Other { tag: 0x8000_1234, data: &[0; 16_377] }));
    for buffer in &buffers {
        let status = turn(&mut client, file, buffer);
        assert_eq!(status, NtStatus::IO_REPARSE_DATA_INVALID, "{buffer:02x?}");
    }
    let long = format!(r"{}\", "\u{20ac}".repeat(80)).repeat(17); // 4097 bytes of UTF-8
    assert_eq!(turn(&mut client, file, &relative(&long)), NtStatus::NAME_TOO_LONG);
    let mount = ReparsePoint::MountPoint { substitute_name: r"\??\C:\".into(), print_name: "".into() };
    for buffer in [
        bytes(&mount),
        bytes(&ReparsePoint::Other { tag: tag::NFS, data: b"OFIF\0\0\0\0" }),
        bytes(&ReparsePoint::Other { tag: tag::AF_UNIX, data: &[] }),
        bytes(&ReparsePoint::Other { tag: 0x8000_1234, data: &[0; 100] }),
        bytes(&ReparsePoint::Other { tag: 0x1234, data: &[0; 16] }),
    ] {
        assert_eq!(turn(&mut client, file, &buffer), NtStatus::NOT_SUPPORTED, "{buffer:02x?}");
    }
    assert_eq!(stored(&server, "file").unwrap().kind(), FileKind::Regular);
    assert_eq!(turn(&mut client, file, &good), NtStatus::SUCCESS, "after all that");
}

#[test]
fn only_what_its_open_has_just_made_becomes_a_link() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    make_file(&mut client, "old", b"");
    let opened = |client: &mut Client, opening: &Opening, path: &str| {
        let file = opening.send(client, path).unwrap().id;
        let status = turn(client, file, &relative("x"));
        client.close(file).unwrap();
        status
    };
    assert_eq!(opened(&mut client, &Opening::default(), "old"), NtStatus::NOT_SUPPORTED);
    make_link(&server, "link", b"f");
    assert_eq!(opened(&mut client, &itself(), "link"), NtStatus::NOT_SUPPORTED, "it is one already");
    let blind = Opening { access: AccessMask::READ_ATTRIBUTES, ..fresh() };
    assert_eq!(opened(&mut client, &blind, "blind"), NtStatus::ACCESS_DENIED);
    let stream = Opening { options: CreateOptions::empty(), ..fresh() };
    assert_eq!(opened(&mut client, &stream, "f:s"), NtStatus::NOT_SUPPORTED);

    let all = Opening { sharing: Opening::default().sharing, ..Opening::with(CreateDisposition::Create) };
    let written = all.send(&mut client, "written").unwrap().id;
    client.write(written, 0, b"data").unwrap();
    assert_eq!(turn(&mut client, written, &relative("x")), NtStatus::NOT_SUPPORTED);
    assert_eq!(client.read(written, 0, 10).unwrap(), b"data");
    let shared = all.send(&mut client, "shared").unwrap().id;
    let other = Opening::default().send(&mut client, "shared").unwrap().id;
    assert_eq!(turn(&mut client, shared, &relative("x")), NtStatus::SHARING_VIOLATION);
    client.close(other).unwrap();
    let streams = Opening { access: AccessMask::READ_DATA, ..Opening::with(CreateDisposition::Create) };
    streams.try_out(&mut client, "shared:s").unwrap();
    assert_eq!(turn(&mut client, shared, &relative("x")), NtStatus::NOT_SUPPORTED, "it has a stream");
    let doomed = all.send(&mut client, "doomed").unwrap().id;
    set(&mut client, doomed, FileInfoClass::Disposition, &[1]).unwrap();
    assert_eq!(turn(&mut client, doomed, &relative("x")), NtStatus::DELETE_PENDING);
    let gone = all.send(&mut client, "gone").unwrap().id;
    server.share.root().remove_file(super::name("gone"), storage::conformance::MAY).unwrap();
    assert_eq!(turn(&mut client, gone, &relative("x")), NtStatus::OBJECT_NAME_NOT_FOUND);
    for at in ["old", "written", "shared"] {
        assert_eq!(stored(&server, at).unwrap().kind(), FileKind::Regular, "{at}");
    }
}

/// Its maker alone decides, and only where it may make files.
#[test]
fn the_directory_must_admit_a_new_name() {
    let server = TestServer::start(Config::default());
    let mut root = server.client();
    Opening::directory().try_out(&mut root, "drop").unwrap();
    let node = stored(&server, "drop").unwrap();
    let mode = |mode| {
        let set = storage::SetAttributes { mode: Some(mode), ..Default::default() };
        node.set_attributes(&set, storage::conformance::MAY).unwrap();
    };
    mode(0o777);
    let mut bob = server.connect();
    bob.negotiate(&[anabranch_smb_server::Dialect::Smb311]);
    bob.log_in(OTHER_USER, PASSWORD).unwrap();
    bob.tree_connect(SHARE).unwrap();
    let file = fresh().send(&mut bob, r"drop\link").unwrap().id;
    mode(0o755);
    assert_eq!(turn(&mut bob, file, &relative("x")), NtStatus::ACCESS_DENIED);
    mode(0o777);
    assert_eq!(turn(&mut bob, file, &relative("x")), NtStatus::SUCCESS);
    let link = node.lookup(super::name("link"), Wait::May(storage::conformance::MAY)).unwrap();
    let made = link.attributes(Want::empty(), Wait::May(storage::conformance::MAY)).unwrap();
    assert_ne!(made.uid, 0, "the link belongs to its maker");
}

#[test]
fn a_link_that_the_store_cannot_make_leaves_nothing() {
    let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::new())));
    let server = TestServer::sharing(Config::default(), Settings::new(SHARE), Arc::clone(&store) as _);
    let mut client = server.client();
    let file = fresh().send(&mut client, "link").unwrap().id;
    store.inject(Rule::once(fault::Call::Create, Fault::Fail(storage::Error::NameTooLong)));
    assert_eq!(turn(&mut client, file, &relative("x")), NtStatus::NAME_TOO_LONG);
    assert!(stored(&server, "link").is_none(), "as if it had not been made");
    client.close(file).unwrap();
    assert_eq!(server.share.open_count().0, 0);
    let file = fresh().send(&mut client, "link").unwrap().id;
    store.inject(Rule::once(fault::Call::RemoveFile, Fault::Fail(storage::Error::Io(5))));
    assert_eq!(turn(&mut client, file, &relative("x")), NtStatus::UNEXPECTED_IO_ERROR);
    assert_eq!(stored(&server, "link").unwrap().kind(), FileKind::Regular);
    assert_eq!(turn(&mut client, file, &relative("x")), NtStatus::SUCCESS);
}

#[test]
fn watchers_are_told_that_another_object_has_the_name() {
    let server = TestServer::start(Config::default());
    let (mut client, mut other) = (server.client(), server.client());
    let root = open_directory(&mut other, "");
    let watch = Watch::names(root);
    watch.begin(&mut other);
    let file = fresh().send(&mut client, "link").unwrap().id;
    assert_eq!(changes(&other.receive()), [(Action::Added, "link".to_owned())]);
    assert_eq!(turn(&mut client, file, &relative("x")), NtStatus::SUCCESS);
    let mut told = Vec::new();
    while told.len() < 2 {
        let reply = watch.ask(&mut other);
        told.extend(changes(&reply));
    }
    assert_eq!(told, [(Action::Removed, "link".to_owned()), (Action::Added, "link".to_owned())]);
}

/// What a client may cache of a file, and for how long it keeps an open, ends with the file.
#[test]
fn grants_end_with_the_file() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let state = LeaseState::READ | LeaseState::WRITE | LeaseState::HANDLE;
    let contexts = vec![lease([7; 16], state), request_v2(smb_wire::Guid([9; 16]), 60_000, false)];
    let mut asking = Asking::new(OplockLevel::Lease, contexts);
    asking.opening.disposition = CreateDisposition::Create;
    let got = asking.send(&mut client, "link").unwrap();
    assert!(got.lease.is_some_and(|lease| lease.state == state) && got.durable_v2.is_some());
    let sent = {
        let mut body = Vec::new();
        let buffer = relative("x");
        let request = smb_wire::ioctl::Request {
            ctl_code: Fsctl::SetReparsePoint,
            file_id: got.id,
            input: &buffer,
            max_input_response: 0,
            output_count: 0,
            max_output_response: 0,
            flags: smb_wire::ioctl::IoctlFlags::IS_FSCTL,
        };
        request.encode(&mut body).unwrap();
        client.send(smb_wire::Command::Ioctl, &body)
    };
    let reply = client.receive();
    assert_eq!((reply.header.message_id, reply.status()), (sent.message_id, NtStatus::SUCCESS));
    let (_, Notification::Lease(told)) = notification(&mut client) else { panic!("the break of a lease") };
    assert_eq!(told.lease_key, [7; 16]);
    assert_eq!(text(&server, "link"), "x");
    // The key is free for the link.
    let again = Asking::new(OplockLevel::Lease, vec![lease([7; 16], state)]);
    let mut again =
        Asking { opening: Opening { options: CreateOptions::OPEN_REPARSE_POINT, ..again.opening }, ..again };
    again.opening.attributes = FileAttributes::NORMAL;
    let second = again.send(&mut client, "link").unwrap();
    client.close(second.id).unwrap();
    client.close(got.id).unwrap();
    assert_eq!(server.share.open_count().0, 0);
}

/// Without its connection, an open of a link ends like any other: nobody reclaims it.
#[test]
fn a_link_that_was_made_outlives_its_client() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let file = fresh().send(&mut client, "link").unwrap().id;
    assert_eq!(turn(&mut client, file, &relative("x")), NtStatus::SUCCESS);
    drop(client);
    crate::durable::until(|| server.share.open_count().0 == 0);
    assert_eq!(text(&server, "link"), "x");
    let mut client = server.client();
    let at_close = Opening { options: fresh().options | CreateOptions::DELETE_ON_CLOSE, ..fresh() };
    let file = at_close.send(&mut client, "temporary").unwrap().id;
    assert_eq!(turn(&mut client, file, &relative("x")), NtStatus::SUCCESS);
    assert_eq!(text(&server, "temporary"), "x");
    client.close(file).unwrap();
    assert!(stored(&server, "temporary").is_none(), "as the CREATE wanted it");
}
