//! CREATE: dispositions, options, access, attributes, contexts. [MS-SMB2] 3.3.5.9, [MS-FSA] 2.1.5.1.

use std::sync::Barrier;

use anabranch_smb_server::{Config, Dialect, Limits};
use smb_wire::create::{CreateAction, CreateDisposition, CreateOptions, ImpersonationLevel};
use smb_wire::create_context::{RawContext, RequestContext};
use smb_wire::{AccessMask, Command, FileAttributes, FileTime, NtStatus};
use storage::SetAttributes;
use storage::conformance::MAY;

use crate::client::{Client, OTHER_USER, PASSWORD, SHARE, TestServer, create_body};
use crate::opening::{ALL, Opening, delete, make_file};

use CreateDisposition as Disposition;

fn server() -> TestServer {
    TestServer::start(Config::default())
}

/// A connection of the user who is no superuser.
fn other(server: &TestServer) -> Client {
    let mut client = server.connect();
    client.negotiate(&[Dialect::Smb311]);
    client.log_in(OTHER_USER, PASSWORD).unwrap();
    client.tree_connect(SHARE).unwrap();
    client
}

#[test]
fn every_disposition_does_what_it_says() {
    let server = server();
    let mut client = server.client();
    // disposition, when the file is there, when it is not ([MS-SMB2] 2.2.13)
    let cases = [
        (Disposition::Supersede, Ok(CreateAction::Superseded), Ok(CreateAction::Created)),
        (Disposition::Open, Ok(CreateAction::Opened), Err(NtStatus::OBJECT_NAME_NOT_FOUND)),
        (Disposition::Create, Err(NtStatus::OBJECT_NAME_COLLISION), Ok(CreateAction::Created)),
        (Disposition::OpenIf, Ok(CreateAction::Opened), Ok(CreateAction::Created)),
        (Disposition::Overwrite, Ok(CreateAction::Overwritten), Err(NtStatus::OBJECT_NAME_NOT_FOUND)),
        (Disposition::OverwriteIf, Ok(CreateAction::Overwritten), Ok(CreateAction::Created)),
        (Disposition::Unknown(6), Err(NtStatus::INVALID_PARAMETER), Err(NtStatus::INVALID_PARAMETER)),
    ];
    make_file(&mut client, "there", b"data");
    for (disposition, there, missing) in cases {
        assert_eq!(Opening::with(disposition).try_out(&mut client, "there"), there, "{disposition:?}");
        assert_eq!(Opening::with(disposition).try_out(&mut client, "new"), missing, "{disposition:?}");
        let _ = delete(&mut client, "new");
    }
}

#[test]
fn overwriting_empties_the_file_and_opening_does_not() {
    let server = server();
    let mut client = server.client();
    for (disposition, length) in [
        (Disposition::Open, 4),
        (Disposition::OpenIf, 4),
        (Disposition::Overwrite, 0),
        (Disposition::OverwriteIf, 0),
        (Disposition::Supersede, 0),
    ] {
        make_file(&mut client, "f", b"data");
        let opened = Opening::with(disposition).send(&mut client, "f").unwrap();
        assert_eq!(opened.end_of_file, length, "{disposition:?}");
        client.close(opened.id).unwrap();
        delete(&mut client, "f").unwrap();
    }
}

#[test]
fn options_that_nobody_knows_are_refused() {
    let server = server();
    let mut client = server.client();
    make_file(&mut client, "f", b"");
    let access = AccessMask::MAXIMUM_ALLOWED;
    let mut answers: [u32; 4] = [0; 4];
    for bit in (0..32).map(|bit| 1_u32 << bit).filter(|bit| *bit != CreateOptions::DELETE_ON_CLOSE.bits()) {
        let options = CreateOptions::from_bits_retain(bit);
        let answer =
            Opening { access, options, ..Opening::with(Disposition::OpenIf) }.try_out(&mut client, "f");
        let kind = match answer {
            Ok(_) => 0,
            Err(NtStatus::NOT_A_DIRECTORY) => 1,
            Err(NtStatus::NOT_SUPPORTED) => 2,
            Err(NtStatus::INVALID_PARAMETER) => 3,
            Err(other) => panic!("{bit:#x}: {other}"),
        };
        answers[kind] |= bit;
    }
    // what smbtorture's smb2.create.gentest expects of Windows
    assert_eq!(answers, [0x00ef_cf7e, 0x0000_0001, 0x0010_2080, 0xff00_0000]);
}

#[test]
fn combinations_that_make_no_sense_are_refused() {
    let server = server();
    let mut client = server.client();
    let both = CreateOptions::DIRECTORY_FILE | CreateOptions::NON_DIRECTORY_FILE;
    let directory = CreateOptions::DIRECTORY_FILE;
    for opening in [
        Opening { options: both, ..Opening::with(Disposition::OpenIf) },
        Opening { options: directory, ..Opening::with(Disposition::Supersede) },
        Opening { options: directory, ..Opening::with(Disposition::Overwrite) },
        Opening { options: directory, ..Opening::with(Disposition::OverwriteIf) },
        Opening { attributes: FileAttributes::TEMPORARY, ..Opening::directory() },
        Opening { sharing: smb_wire::create::ShareAccess::from_bits_retain(8), ..Opening::directory() },
    ] {
        let answer = opening.try_out(&mut client, "x");
        assert_eq!(answer, Err(NtStatus::INVALID_PARAMETER), "{opening:?}");
    }
    let impersonation = ImpersonationLevel::Unknown(0x1234_5678);
    let opening = Opening { impersonation, ..Opening::with(Disposition::Create) };
    assert_eq!(opening.try_out(&mut client, "x"), Err(NtStatus::BAD_IMPERSONATION_LEVEL));
    assert_eq!(Opening::default().try_out(&mut client, "x"), Err(NtStatus::OBJECT_NAME_NOT_FOUND));
}

#[test]
fn files_and_directories_are_told_apart() {
    let server = server();
    let mut client = server.client();
    make_file(&mut client, "file", b"");
    assert_eq!(Opening::directory().try_out(&mut client, "dir"), Ok(CreateAction::Created));
    let directory = CreateOptions::DIRECTORY_FILE;
    let file = CreateOptions::NON_DIRECTORY_FILE;
    let open = |options| Opening { options, ..Opening::default() };
    let (client, opened) = (&mut client, Ok(CreateAction::Opened));
    assert_eq!(open(directory).try_out(client, "dir"), opened);
    assert_eq!(open(file).try_out(client, "file"), opened);
    assert_eq!(open(CreateOptions::empty()).try_out(client, "dir"), opened);
    assert_eq!(open(directory).try_out(client, "file"), Err(NtStatus::NOT_A_DIRECTORY));
    assert_eq!(open(file).try_out(client, "dir"), Err(NtStatus::FILE_IS_A_DIRECTORY));
    // That the name is taken comes first.
    assert_eq!(Opening::directory().try_out(client, "file"), Err(NtStatus::OBJECT_NAME_COLLISION));
    assert_eq!(
        Opening::with(Disposition::Create).try_out(client, "dir"),
        Err(NtStatus::OBJECT_NAME_COLLISION)
    );
    assert_eq!(
        Opening::with(Disposition::OverwriteIf).try_out(client, "dir"),
        Err(NtStatus::INVALID_PARAMETER)
    );
    // The root is a directory, and always there.
    assert_eq!(open(directory).try_out(client, ""), Err(NtStatus::ACCESS_DENIED), "it cannot be deleted");
    let look = Opening { access: AccessMask::READ_DATA, ..open(directory) };
    assert_eq!(look.send(client, "").unwrap().attributes, FileAttributes::DIRECTORY);
    assert_eq!(look.clone().try_out(client, ""), opened);
    assert_eq!(Opening::directory().try_out(client, ""), Err(NtStatus::OBJECT_NAME_COLLISION));
}

#[test]
fn attributes_are_kept() {
    let server = server();
    let mut client = server.client();
    let archive = FileAttributes::ARCHIVE;
    let hidden = FileAttributes::HIDDEN;
    for (asked, given) in [
        (FileAttributes::empty(), archive),
        (FileAttributes::NORMAL, archive),
        (hidden, hidden | archive),
        (FileAttributes::SYSTEM | hidden, FileAttributes::SYSTEM | hidden | archive),
        (FileAttributes::TEMPORARY, FileAttributes::TEMPORARY | archive),
        // What a client cannot set is ignored.
        (FileAttributes::DIRECTORY | FileAttributes::COMPRESSED | FileAttributes::SPARSE_FILE, archive),
    ] {
        let opening = Opening { attributes: asked, ..Opening::with(Disposition::Create) };
        let opened = opening.send(&mut client, "f").unwrap();
        assert_eq!(opened.attributes, given, "{asked:?}");
        client.close(opened.id).unwrap();
        let again = Opening::default().send(&mut client, "f").unwrap();
        assert_eq!(again.attributes, given, "{asked:?}");
        client.close(again.id).unwrap();
        delete(&mut client, "f").unwrap();
    }
    let opening = Opening { attributes: hidden, ..Opening::directory() };
    assert_eq!(opening.send(&mut client, "d").unwrap().attributes, hidden | FileAttributes::DIRECTORY);
    // Volumes, devices, and bits without a meaning.
    for bit in [0x8, 0x40, 0x8000, 0x1_0000, 0x8000_0000] {
        let attributes = FileAttributes::from_bits_retain(bit);
        let opening = Opening { attributes, ..Opening::with(Disposition::OpenIf) };
        assert_eq!(opening.try_out(&mut client, "f"), Err(NtStatus::INVALID_PARAMETER), "{bit:#x}");
    }
}

#[test]
fn overwriting_must_name_what_hides_a_file() {
    let server = server();
    let mut client = server.client();
    let (hidden, system) = (FileAttributes::HIDDEN, FileAttributes::SYSTEM);
    let archive = FileAttributes::ARCHIVE;
    // had, asked, becomes (smbtorture's smb2.openattr has all of them)
    let cases = [
        (FileAttributes::NORMAL, FileAttributes::NORMAL, Ok(archive)),
        (archive, FileAttributes::READONLY, Ok(archive | FileAttributes::READONLY)),
        (hidden, FileAttributes::NORMAL, Err(NtStatus::ACCESS_DENIED)),
        (hidden, archive, Err(NtStatus::ACCESS_DENIED)),
        (hidden, hidden, Ok(hidden | archive)),
        (hidden, hidden | system, Ok(hidden | system | archive)),
        (hidden | system, system, Err(NtStatus::ACCESS_DENIED)),
        (FileAttributes::READONLY, FileAttributes::READONLY, Err(NtStatus::ACCESS_DENIED)),
        (system, hidden, Err(NtStatus::ACCESS_DENIED)),
    ];
    for (number, (had, asked, becomes)) in cases.into_iter().enumerate() {
        let name = format!("f{number}");
        let make = Opening { attributes: had, ..Opening::with(Disposition::Create) };
        make.try_out(&mut client, &name).unwrap();
        let overwrite = Opening { attributes: asked, ..Opening::with(Disposition::Overwrite) };
        let outcome = overwrite.send(&mut client, &name).map(|opened| opened.attributes);
        assert_eq!(outcome, becomes, "{had:?} overwritten with {asked:?}");
    }
}

#[test]
fn access_is_granted_as_asked() {
    let server = server();
    let mut client = server.client();
    make_file(&mut client, "f", b"data");
    let mut open = |access: AccessMask| {
        let opened = Opening { access, ..Opening::default() }.send(&mut client, "f")?;
        let read = client.read(opened.id, 0, 4).map(|_| ());
        let write = client.write(opened.id, 0, b"DATA");
        client.close(opened.id)?;
        Ok((read, write))
    };
    let denied = Err(NtStatus::ACCESS_DENIED);
    assert_eq!(open(AccessMask::READ_DATA), Ok((Ok(()), denied)));
    assert_eq!(open(AccessMask::EXECUTE), Ok((Ok(()), denied)));
    assert_eq!(open(AccessMask::WRITE_DATA), Ok((denied, Ok(()))));
    assert_eq!(open(AccessMask::APPEND_DATA), Ok((denied, Ok(()))));
    assert_eq!(open(AccessMask::READ_ATTRIBUTES), Ok((denied, denied)));
    assert_eq!(open(AccessMask::GENERIC_READ), Ok((Ok(()), denied)));
    assert_eq!(open(AccessMask::GENERIC_WRITE), Ok((denied, Ok(()))));
    assert_eq!(open(AccessMask::GENERIC_ALL), Ok((Ok(()), Ok(()))));
    assert_eq!(open(AccessMask::MAXIMUM_ALLOWED), Ok((Ok(()), Ok(()))));
    assert_eq!(open(AccessMask::empty()), Err(NtStatus::ACCESS_DENIED));
    assert_eq!(open(AccessMask::from_bits_retain(0x0800_0000)), Err(NtStatus::ACCESS_DENIED));
    assert_eq!(open(AccessMask::ACCESS_SYSTEM_SECURITY), Err(NtStatus::PRIVILEGE_NOT_HELD));
}

#[test]
fn permission_bits_bind_ordinary_users() {
    let server = server();
    let mut root = server.client();
    let mut bob = other(&server);
    let mode = |mode| SetAttributes { mode: Some(mode), ..SetAttributes::default() };
    server.share.root().set_attributes(&mode(0o755), MAY).unwrap();
    make_file(&mut root, "readable", b"data");
    let read = AccessMask::READ_DATA;
    let try_with = |client: &mut Client, access, name: &str| {
        Opening { access, ..Opening::default() }.try_out(client, name)
    };
    let denied = Err(NtStatus::ACCESS_DENIED);
    assert_eq!(try_with(&mut bob, read, "readable"), Ok(CreateAction::Opened));
    assert_eq!(try_with(&mut bob, AccessMask::WRITE_DATA, "readable"), denied);
    assert_eq!(try_with(&mut bob, AccessMask::DELETE, "readable"), denied);
    assert_eq!(Opening::with(Disposition::Overwrite).try_out(&mut bob, "readable"), denied);
    assert_eq!(Opening::with(Disposition::Create).try_out(&mut bob, "new"), denied);
    assert_eq!(Opening::directory().try_out(&mut bob, "new"), denied);

    server.share.root().set_attributes(&mode(0o777), MAY).unwrap();
    assert_eq!(Opening::with(Disposition::Create).try_out(&mut bob, "new"), Ok(CreateAction::Created));
    assert_eq!(try_with(&mut bob, AccessMask::DELETE, "readable"), Ok(CreateAction::Opened));
    // What is one's own is under full control.
    assert_eq!(try_with(&mut bob, ALL, "new"), Ok(CreateAction::Opened));
    let maximum = |client: &mut Client, name: &str| {
        let contexts = vec![RequestContext::QueryMaximalAccess { timestamp: None }];
        let access = AccessMask::READ_ATTRIBUTES;
        Opening { access, contexts, ..Opening::default() }.send(client, name).unwrap().maximal_access.unwrap()
    };
    assert_eq!(maximum(&mut bob, "new"), (NtStatus::SUCCESS, ALL));
    let (_, others) = maximum(&mut bob, "readable");
    assert!(others.contains(read | AccessMask::EXECUTE | AccessMask::DELETE), "{others:?}");
    assert!(!others.intersects(AccessMask::WRITE_DATA | AccessMask::WRITE_DAC | AccessMask::WRITE_OWNER));
}

#[test]
fn a_file_deleted_on_close_goes() {
    let server = server();
    let mut client = server.client();
    make_file(&mut client, "f", b"");
    let options = CreateOptions::DELETE_ON_CLOSE;
    let without = AccessMask::READ_DATA;
    let opening = Opening { access: without, options, ..Opening::default() };
    assert_eq!(opening.try_out(&mut client, "f"), Err(NtStatus::ACCESS_DENIED));
    assert_eq!(Opening { options, ..Opening::default() }.try_out(&mut client, "f"), Ok(CreateAction::Opened));
    assert_eq!(Opening::default().try_out(&mut client, "f"), Err(NtStatus::OBJECT_NAME_NOT_FOUND));
    let temporary = Opening { options, ..Opening::with(Disposition::Create) };
    assert_eq!(temporary.try_out(&mut client, "f"), Ok(CreateAction::Created));
    assert_eq!(Opening::default().try_out(&mut client, "f"), Err(NtStatus::OBJECT_NAME_NOT_FOUND));

    let attributes = FileAttributes::READONLY;
    let senseless = Opening { attributes, ..temporary };
    assert_eq!(senseless.try_out(&mut client, "f"), Err(NtStatus::CANNOT_DELETE));
    Opening { attributes, ..Opening::with(Disposition::Create) }.try_out(&mut client, "kept").unwrap();
    let access = AccessMask::DELETE;
    let opening = Opening { access, options, ..Opening::default() };
    assert_eq!(opening.try_out(&mut client, "kept"), Err(NtStatus::CANNOT_DELETE));
    assert_eq!(
        Opening { access, ..Opening::default() }.try_out(&mut client, "kept"),
        Ok(CreateAction::Opened)
    );
}

#[test]
fn contexts_are_answered_or_ignored() {
    let server = server();
    let mut client = server.client();
    let unknown = RequestContext::Other(RawContext { name: b"FooO", data: b"bar" });
    let contexts = vec![
        unknown,
        RequestContext::DurableHandleRequest,
        RequestContext::QueryOnDiskId,
        RequestContext::QueryMaximalAccess { timestamp: None },
    ];
    let opening = Opening { contexts, ..Opening::with(Disposition::OpenIf) };
    let first = opening.send(&mut client, "f").unwrap();
    assert_eq!(first.maximal_access, Some((NtStatus::SUCCESS, ALL)));
    let (number, volume) = first.on_disk_id.unwrap();
    assert!(number != 0 && volume == 1);
    let again = opening.send(&mut client, "f").unwrap();
    assert_eq!(again.on_disk_id, first.on_disk_id);
    let other = opening.send(&mut client, "g").unwrap();
    assert_ne!(other.on_disk_id, first.on_disk_id);

    let with = |context| Opening { contexts: vec![context], ..Opening::with(Disposition::OpenIf) };
    let snapshot = with(RequestContext::TimewarpToken(FileTime(10_000)));
    assert_eq!(snapshot.try_out(&mut client, "f"), Err(NtStatus::OBJECT_NAME_NOT_FOUND));
    let malformed = with(RequestContext::EaBuffer(&[0, 0, 0, 0, 0, 9, 1, 0, b'A', 0, b'v']));
    assert_eq!(malformed.try_out(&mut client, "new"), Err(NtStatus::EA_LIST_INCONSISTENT));
    let no_descriptor = with(RequestContext::SdBuffer(&[1, 0]));
    assert_eq!(no_descriptor.try_out(&mut client, "new"), Err(NtStatus::INVALID_PARAMETER));
    assert_eq!(Opening::default().try_out(&mut client, "new"), Err(NtStatus::OBJECT_NAME_NOT_FOUND));
    for name in [&b""[..], b"x", b"xx", b"xxx"] {
        let opening = with(RequestContext::Other(RawContext { name, data: &[] }));
        assert_eq!(opening.try_out(&mut client, "f"), Err(NtStatus::INVALID_PARAMETER), "{name:?}");
    }
}

#[test]
fn contexts_outside_the_message_are_refused() {
    let server = server();
    let mut client = server.client();
    let whole =
        Opening { contexts: vec![RequestContext::QueryOnDiskId], ..Opening::with(Disposition::OpenIf) };
    let body = whole.body("f");
    // CreateContextsOffset and CreateContextsLength lie 48 and 52 bytes into the body.
    for (at, value) in [(48, 0xFFFF_FFF8_u32), (48, 8), (48, 121), (52, 0xFFFF_FFFF), (52, 0x1000)] {
        let mut body = body.clone();
        body[at..at + 4].copy_from_slice(&value.to_le_bytes());
        let reply = client.call(Command::Create, &body);
        assert_eq!(reply.status(), NtStatus::INVALID_PARAMETER, "{at} {value:#x}");
    }
    assert_eq!(Opening::default().try_out(&mut client, "f"), Err(NtStatus::OBJECT_NAME_NOT_FOUND));
}

#[test]
fn opens_of_a_session_are_limited() {
    let limits = Limits { opens_per_session_max: 3, ..Limits::default() };
    let server = TestServer::start(Config { limits, ..Config::default() });
    let mut client = server.client();
    let opening = Opening::with(Disposition::OpenIf);
    let ids: Vec<_> = (0..3).map(|_| opening.send(&mut client, "f").unwrap().id).collect();
    assert_eq!(opening.try_out(&mut client, "f"), Err(NtStatus::INSUFFICIENT_RESOURCES));
    assert!(opening.try_out(&mut server.client(), "f").is_ok(), "others have their own limit");
    client.close(ids[0]).unwrap();
    assert!(opening.try_out(&mut client, "f").is_ok());
    // What was refused holds nothing.
    for id in &ids[1..] {
        client.close(*id).unwrap();
    }
    delete(&mut client, "f").unwrap();
    assert_eq!(Opening::default().try_out(&mut client, "f"), Err(NtStatus::OBJECT_NAME_NOT_FOUND));
}

#[test]
fn a_read_only_share_takes_nothing() {
    let server = server();
    let mut client = server.log_in();
    client.tree_connect("Fixed").unwrap();
    let denied = Err(NtStatus::ACCESS_DENIED);
    assert_eq!(Opening::with(Disposition::Create).try_out(&mut client, "f"), denied);
    assert_eq!(Opening::directory().try_out(&mut client, "d"), denied);
    let look = Opening { access: AccessMask::READ_DATA, ..Opening::default() };
    assert_eq!(look.try_out(&mut client, ""), Ok(CreateAction::Opened));
    let add = Opening { access: AccessMask::ADD_FILE, ..Opening::default() };
    assert_eq!(add.try_out(&mut client, ""), denied);
}

#[test]
fn of_many_who_make_a_file_one_does() {
    const CLIENTS: usize = 4;
    const FILES: usize = 25;
    let server = server();
    for disposition in [Disposition::Create, Disposition::OpenIf] {
        let together = Barrier::new(CLIENTS);
        let outcomes: Vec<Vec<_>> = std::thread::scope(|scope| {
            let clients: Vec<_> = (0..CLIENTS)
                .map(|_| {
                    scope.spawn(|| {
                        let mut client = server.client();
                        let mut make = |number| {
                            together.wait();
                            let name = format!("{disposition:?}{number}");
                            Opening::with(disposition).try_out(&mut client, &name)
                        };
                        (0..FILES).map(&mut make).collect()
                    })
                })
                .collect();
            clients.into_iter().map(|client| client.join().unwrap()).collect()
        });
        for number in 0..FILES {
            let outcome = outcomes.iter().map(|client| client[number]);
            let (made, others): (Vec<_>, Vec<_>) =
                outcome.partition(|outcome| *outcome == Ok(CreateAction::Created));
            assert_eq!(made.len(), 1, "{disposition:?}");
            let late = if disposition == Disposition::Create {
                Err(NtStatus::OBJECT_NAME_COLLISION)
            } else {
                Ok(CreateAction::Opened)
            };
            assert!(others.iter().all(|outcome| *outcome == late), "{others:?}");
        }
    }
}

/// While NFSv4 clients reclaim, opens for data wait: what such a request has made by then is its own.
#[test]
fn what_a_request_made_before_it_had_to_wait_is_not_in_its_way() {
    let server = server();
    let mut client = server.client();
    for name in ["file", "other:stream"] {
        server.share.hold_back(std::time::Instant::now() + std::time::Duration::from_millis(300));
        let body = create_body(name, Disposition::Create, CreateOptions::NON_DIRECTORY_FILE);
        assert_eq!(client.call(Command::Create, &body).status(), NtStatus::PENDING, "{name}");
        assert_eq!(client.receive().status(), NtStatus::SUCCESS, "{name}");
    }
}
