//! Share modes and deletion: what opens hold against each other. [MS-FSA] 2.1.5.1.2.2, 2.1.5.4.

use anabranch_smb_server::Config;
use smb_wire::create::{CreateAction, CreateDisposition, CreateOptions, ShareAccess};
use smb_wire::{AccessMask, NtStatus};

use crate::client::TestServer;
use crate::opening::{Opening, SHARE_ALL, delete, make_file};

/// What an access needs from the others.
const NEEDS: [(AccessMask, ShareAccess); 8] = [
    (AccessMask::READ_DATA, ShareAccess::READ),
    (AccessMask::EXECUTE, ShareAccess::READ),
    (AccessMask::WRITE_DATA, ShareAccess::WRITE),
    (AccessMask::APPEND_DATA, ShareAccess::WRITE),
    (AccessMask::DELETE, ShareAccess::DELETE),
    (AccessMask::READ_ATTRIBUTES, ShareAccess::empty()),
    (AccessMask::WRITE_ATTRIBUTES, ShareAccess::empty()),
    (AccessMask::READ_CONTROL, ShareAccess::empty()),
];

fn sharings() -> impl Iterator<Item = ShareAccess> {
    (0..8).map(ShareAccess::from_bits_retain)
}

#[test]
fn every_access_meets_every_share_mode() {
    let server = TestServer::start(Config::default());
    let (mut one, mut two) = (server.client(), server.client());
    make_file(&mut one, "f", b"");
    for (access, needs) in NEEDS {
        for sharing in sharings() {
            // The first open reads and shares a part; the second does one thing and shares everything.
            let first = Opening { access: AccessMask::READ_DATA, sharing, ..Opening::default() };
            let first = first.send(&mut one, "f").unwrap();
            let second = Opening { access, ..Opening::default() }.try_out(&mut two, "f");
            let expected = if sharing.contains(needs) {
                Ok(CreateAction::Opened)
            } else {
                Err(NtStatus::SHARING_VIOLATION)
            };
            assert_eq!(second, expected, "{access:?} while sharing {sharing:?}");
            one.close(first.id).unwrap();

            // The first does one thing and shares everything; the second reads and shares a part.
            let first = Opening { access, ..Opening::default() }.send(&mut one, "f").unwrap();
            let second = Opening { access: AccessMask::READ_DATA, sharing, ..Opening::default() };
            assert_eq!(second.try_out(&mut two, "f"), expected, "{sharing:?} beside {access:?}");
            one.close(first.id).unwrap();
        }
    }
}

#[test]
fn overwriting_needs_the_leave_to_write() {
    let server = TestServer::start(Config::default());
    let (mut one, mut two) = (server.client(), server.client());
    make_file(&mut one, "f", b"data");
    let sharing = ShareAccess::READ;
    let reader = Opening { access: AccessMask::READ_DATA, sharing, ..Opening::default() };
    let held = reader.send(&mut one, "f").unwrap();
    for disposition in
        [CreateDisposition::Overwrite, CreateDisposition::OverwriteIf, CreateDisposition::Supersede]
    {
        let opening = Opening { access: AccessMask::READ_DATA, ..Opening::with(disposition) };
        assert_eq!(opening.try_out(&mut two, "f"), Err(NtStatus::SHARING_VIOLATION), "{disposition:?}");
    }
    assert_eq!(one.read(held.id, 0, 4).unwrap(), b"data", "nothing was lost");
    one.close(held.id).unwrap();
    // Having overwritten, an open keeps only what it asked for.
    let overwrite = Opening { access: AccessMask::READ_DATA, ..Opening::with(CreateDisposition::Overwrite) };
    let held = overwrite.send(&mut two, "f").unwrap();
    assert_eq!(reader.try_out(&mut one, "f"), Ok(CreateAction::Opened));
    two.close(held.id).unwrap();
}

#[test]
fn a_file_to_be_deleted_lets_nobody_in() {
    let server = TestServer::start(Config::default());
    let (mut one, mut two) = (server.client(), server.client());
    make_file(&mut one, "f", b"data");
    let reader = Opening { access: AccessMask::READ_DATA, ..Opening::default() };
    let held = reader.send(&mut two, "f").unwrap();
    let doomed = Opening { options: CreateOptions::DELETE_ON_CLOSE, ..Opening::default() };
    let doomed = doomed.send(&mut one, "f").unwrap();
    assert_eq!(reader.try_out(&mut two, "f"), Ok(CreateAction::Opened), "not before it is closed");
    one.close(doomed.id).unwrap();
    assert_eq!(reader.try_out(&mut one, "f"), Err(NtStatus::DELETE_PENDING));
    assert_eq!(
        Opening::with(CreateDisposition::Create).try_out(&mut one, "f"),
        Err(NtStatus::OBJECT_NAME_COLLISION)
    );
    assert_eq!(two.read(held.id, 0, 4).unwrap(), b"data", "who has it open keeps it");
    two.close(held.id).unwrap();
    assert_eq!(reader.try_out(&mut one, "f"), Err(NtStatus::OBJECT_NAME_NOT_FOUND));
    assert_eq!(Opening::with(CreateDisposition::Create).try_out(&mut one, "f"), Ok(CreateAction::Created));
}

#[test]
fn who_does_not_share_deletion_prevents_it() {
    let server = TestServer::start(Config::default());
    let (mut one, mut two) = (server.client(), server.client());
    make_file(&mut one, "f", b"");
    let sharing = SHARE_ALL.difference(ShareAccess::DELETE);
    let held = Opening { sharing, ..Opening::default() }.send(&mut one, "f").unwrap();
    assert_eq!(delete(&mut two, "f"), Err(NtStatus::SHARING_VIOLATION));
    one.close(held.id).unwrap();
    assert_eq!(delete(&mut two, "f"), Ok(()));
}

#[test]
fn a_client_that_vanishes_holds_nothing() {
    let server = TestServer::start(Config::default());
    let mut one = server.client();
    let mut two = server.client();
    let exclusive = Opening { sharing: ShareAccess::empty(), ..Opening::with(CreateDisposition::OpenIf) };
    exclusive.send(&mut one, "f").unwrap();
    assert_eq!(exclusive.try_out(&mut two, "f"), Err(NtStatus::SHARING_VIOLATION));
    drop(one);
    let freed = (0..6000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        exclusive.try_out(&mut two, "f").is_ok()
    });
    assert!(freed, "its opens are closed with its connection");
}
