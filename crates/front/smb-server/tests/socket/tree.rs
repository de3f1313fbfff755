//! Tree connects: names of shares, what they allow, when they end. [MS-SMB2] 3.3.5.7, 3.3.5.8, 3.3.5.2.11.

use std::sync::Arc;

use anabranch_smb_server::{Config, Dialect};
use share::{Settings, Share, ShareId};
use smb_wire::create::{CreateDisposition, CreateOptions};
use smb_wire::session_setup::SessionFlags;
use smb_wire::tree_connect::{ShareFlags, ShareType};
use smb_wire::{AccessMask, Command, Guid, NtStatus};
use storage::conformance::MAY;
use storage::memory::MemoryStore;
use storage::{Name, Wait, Want};

use crate::client::{SHARE, TestServer, close_body, create_body};
use crate::durable::{Asking, disconnect};
use crate::guest::without_a_name;
use crate::notify::Watch;
use crate::opening::Opening;

const TREE_DISCONNECT: [u8; 4] = [4, 0, 0, 0];

fn share(id: u32, name: &str) -> Arc<Share> {
    Share::new(ShareId(id), Settings::new(name), Arc::new(MemoryStore::new()))
}

#[test]
fn shares_are_found_whatever_the_case() {
    let server = TestServer::start(Config::default());
    let mut client = server.log_in();
    for name in ["Data", "data", "DATA"] {
        let share = client.tree_connect(name).unwrap();
        assert_eq!((share.share_type, share.share_flags), (ShareType::Disk, ShareFlags::empty()));
        assert_eq!(share.maximal_access, AccessMask::from_bits_retain(0x1F_01FF));
    }
    let fixed = client.tree_connect("fixed").unwrap();
    assert!(!fixed.maximal_access.intersects(AccessMask::WRITE_DATA | AccessMask::DELETE));
    assert_eq!(client.tree_connect("ipc$").unwrap().share_type, ShareType::Pipe);
}

#[test]
fn what_is_no_share_is_refused() {
    let server = TestServer::start(Config::default());
    let mut client = server.log_in();
    let long = "x".repeat(300);
    for (path, status) in [
        (r"\\server\nothing", NtStatus::BAD_NETWORK_NAME),
        (r"\\server\Dat", NtStatus::BAD_NETWORK_NAME),
        (&format!(r"\\server\{long}"), NtStatus::BAD_NETWORK_NAME),
        (r"\\server\..", NtStatus::BAD_NETWORK_NAME),
        (r"\\server", NtStatus::INVALID_PARAMETER),
        (r"\\server\", NtStatus::INVALID_PARAMETER),
        (r"Data", NtStatus::INVALID_PARAMETER),
        (r"", NtStatus::INVALID_PARAMETER),
        (r"\\server\Data\sub", NtStatus::INVALID_PARAMETER),
    ] {
        assert_eq!(client.tree_connect_path(path).status(), status, "{path}");
    }
    // half a surrogate pair
    let body = [9, 0, 0, 0, 72, 0, 6, 0, b'\\', 0, b'\\', 0, 0x00, 0xD8];
    assert_eq!(client.call(Command::TreeConnect, &body).status(), NtStatus::INVALID_PARAMETER);
}

#[test]
fn disconnecting_closes_what_was_opened_through_the_tree() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let file = client.create("f", CreateDisposition::Create).unwrap();
    let first = client.tree_id;
    client.tree_connect("Data").unwrap();
    assert_ne!(client.tree_id, first);
    assert_eq!(client.close(file), Err(NtStatus::FILE_CLOSED), "the file belongs to the other tree");
    client.tree_id = first;
    client.call(Command::TreeDisconnect, &TREE_DISCONNECT).ok().unwrap();
    assert_eq!(
        client.call(Command::TreeDisconnect, &TREE_DISCONNECT).status(),
        NtStatus::NETWORK_NAME_DELETED
    );
    assert_eq!(client.call(Command::Close, &close_body(file)).status(), NtStatus::NETWORK_NAME_DELETED);
}

#[test]
fn a_share_that_comes_is_there_for_those_who_are_connected() {
    let server = TestServer::start(Config::default());
    let mut client = server.log_in();
    assert_eq!(client.tree_connect("Later").unwrap_err(), NtStatus::BAD_NETWORK_NAME);
    server.table.enter(&share(9, "Later")).unwrap();
    client.tree_connect("later").unwrap();
    let file = client.create("f", CreateDisposition::Create).unwrap();
    client.write(file, 0, b"there").unwrap();
    assert_eq!(client.read(file, 0, 9).unwrap(), b"there");
}

/// [MS-SMB2] 3.3.4.15.
#[test]
fn a_share_that_goes_ends_its_tree_connects_and_closes_what_is_open() {
    let server = TestServer::start(Config::default());
    let mut clients = [server.client(), server.client()];
    let [ann, bob] = &mut clients;
    let kept = ann.create("kept", CreateDisposition::Create).unwrap();
    ann.write(kept, 0, b"written before").unwrap();
    let doomed = create_body("doomed", CreateDisposition::Create, CreateOptions::DELETE_ON_CLOSE);
    ann.call(Command::Create, &doomed).ok().unwrap();
    bob.create("other", CreateDisposition::Create).unwrap();
    let gone = server.withdraw();
    for client in [&mut *ann, bob] {
        let refused = client.create("more", CreateDisposition::OpenIf);
        assert_eq!(refused, Err(NtStatus::NETWORK_NAME_DELETED));
        assert_eq!(client.tree_connect(SHARE).unwrap_err(), NtStatus::BAD_NETWORK_NAME);
        // The session goes on.
        client.tree_connect("Fixed").unwrap();
    }
    assert_eq!(ann.read(kept, 0, 99), Err(NtStatus::FILE_CLOSED));
    let report = server.server.report();
    assert!(report.iter().all(|session| session.opens == 0), "{report:?}");
    // What was written is there, and what was to be deleted when it was closed is not.
    let root = gone.root();
    let found = |name: &[u8]| root.lookup(Name::new(name).unwrap(), Wait::May(MAY));
    assert_eq!(found(b"kept").unwrap().attributes(Want::empty(), Wait::May(MAY)).unwrap().size, 14);
    assert!(found(b"doomed").is_err());
}

#[test]
fn an_open_without_a_session_is_closed_with_its_share() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    Asking::batch(Guid([3; 16])).send(&mut client, "f").unwrap();
    disconnect(&server, client, 1);
    server.withdraw();
    assert_eq!(server.server.disconnected_opens(), 0);
}

#[test]
fn one_that_watches_a_share_is_told_that_it_goes() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let (options, access) = (CreateOptions::DIRECTORY_FILE, AccessMask::LIST_DIRECTORY);
    let top = Opening { options, access, disposition: CreateDisposition::Open, ..Opening::default() };
    let top = top.send(&mut client, "").unwrap().id;
    Watch::names(top).begin(&mut client);
    server.withdraw();
    assert_eq!(client.receive().status(), NtStatus::NOTIFY_CLEANUP);
}

#[test]
fn an_unknown_tree_is_refused() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let known = client.tree_id;
    for id in [0, known + 1, u32::MAX] {
        client.tree_id = id;
        let refused = client.create("f", CreateDisposition::OpenIf);
        assert_eq!(refused, Err(NtStatus::NETWORK_NAME_DELETED), "{id}");
    }
}

#[test]
fn anonymous_clients_come_to_ipc_only_and_only_if_they_may() {
    for allowed in [false, true] {
        let server = TestServer::start(Config { anonymous_ipc: allowed, ..Config::default() });
        let mut client = server.connect();
        client.negotiate(&[Dialect::Smb311]);
        if !allowed {
            assert_eq!(without_a_name(&mut client), Err(NtStatus::ACCESS_DENIED));
            continue;
        }
        assert_eq!(without_a_name(&mut client), Ok(SessionFlags::IS_NULL));
        client.tree_connect("IPC$").unwrap();
        assert_eq!(client.tree_connect("Data").unwrap_err(), NtStatus::ACCESS_DENIED);
    }
}
