//! What an administrator is told of open files, and what the administrator ends.

use std::net::IpAddr;

use anabranch_smb_server::Config;
use share::{ByteRange, LockKind};
use smb_wire::create::{CreateDisposition, OplockLevel};
use smb_wire::{Guid, NtStatus};

use crate::client::{Client, TestServer, USER};
use crate::durable::{Asking, EXCLUSIVE, disconnect, lock};

const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

fn wait_for<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(work)
}

/// Closes the only open file by command.
fn close_by_command(server: &TestServer) -> bool {
    let files = server.server.open_files();
    let [file] = files.as_slice() else { panic!("one file: {files:?}") };
    wait_for(server.server.close_file(file.share.id(), file.open.key()))
}

fn end_sessions(server: &TestServer, is_meant: impl Fn(u64, &[IpAddr]) -> bool) -> usize {
    wait_for(server.server.end_sessions(is_meant))
}

#[test]
fn an_open_file_is_reported_with_what_it_holds() {
    let server = TestServer::start(Config::default());
    assert!(server.server.open_files().is_empty());
    let mut client = server.client();
    let id = client.create("f", CreateDisposition::Create).unwrap();
    assert_eq!(lock(&mut client, id, 5, (0, 0), EXCLUSIVE), NtStatus::SUCCESS);
    let files = server.server.open_files();
    let [file] = files.as_slice() else { panic!("one file: {files:?}") };
    assert_eq!((file.session, file.user.as_str(), file.client), (Some(client.session_id), USER, Some(HERE)));
    assert_eq!((file.name.as_str(), file.is_directory, file.share.id()), ("f", false, server.share.id()));
    let holding = file.share.holding(&file.open).unwrap();
    assert_eq!(holding.locks, [(ByteRange::new(5, 10).unwrap(), LockKind::Exclusive)]);
    let locks = file.share.locks(file.open.node().id());
    assert_eq!(locks.len(), 1);
    client.close(id).unwrap();
    assert!(server.server.open_files().is_empty());
}

#[test]
fn a_file_that_is_closed_by_command_is_closed_to_its_client() {
    let server = TestServer::start(Config::default());
    let (mut client, mut other) = (server.client(), server.client());
    let id = Asking::new(OplockLevel::None, Vec::new()).exclusive().send(&mut client, "f").unwrap().id;
    assert_eq!(other.create("f", CreateDisposition::Open), Err(NtStatus::SHARING_VIOLATION));
    assert!(close_by_command(&server));
    assert_eq!(client.write(id, 0, b"x"), Err(NtStatus::FILE_CLOSED));
    other.create("f", CreateDisposition::Open).unwrap();
    assert!(client.is_alive());
    let gone = server.server.open_files()[0].open.key();
    assert!(close_by_command(&server));
    assert!(!wait_for(server.server.close_file(server.share.id(), gone)), "there is none");
}

#[test]
fn an_open_that_waits_for_its_client_is_reported_and_closed() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    Asking::batch(Guid([1; 16])).exclusive().send(&mut client, "f").unwrap();
    disconnect(&server, client, 1);
    let files = server.server.open_files();
    assert_eq!((files[0].session, files[0].user.as_str(), files[0].client), (None, USER, None));
    assert!(close_by_command(&server));
    assert_eq!((server.server.disconnected_opens(), server.server.open_files().len()), (0, 0));
}

#[test]
fn a_session_that_is_ended_by_command_leaves_nothing() {
    let server = TestServer::start(Config::default());
    let (mut client, mut other) = (server.client(), server.client());
    Asking::batch(Guid([1; 16])).exclusive().send(&mut client, "durable").unwrap();
    client.create("f", CreateDisposition::Create).unwrap();
    let kept = other.create("g", CreateDisposition::Create).unwrap();
    let meant = client.session_id;
    assert_eq!(end_sessions(&server, |session, _| session == meant), 1);
    client.expect_closed();
    assert_eq!(server.server.disconnected_opens(), 0);
    let left: Vec<_> = server.server.open_files().into_iter().map(|file| file.name).collect();
    assert_eq!(left, ["g"]);
    other.write(kept, 0, b"x").unwrap();
    assert_eq!(end_sessions(&server, |session, _| session == meant), 0);
}

#[test]
fn all_sessions_of_an_address_end() {
    let server = TestServer::start(Config::default());
    let elsewhere: IpAddr = [127, 0, 0, 2].into();
    let (mut one, mut two) = (server.client(), server.client());
    let mut far = server.connect_from(elsewhere);
    far.negotiate(&[anabranch_smb_server::Dialect::Smb311]);
    far.log_in(USER, crate::client::PASSWORD).unwrap();
    assert_eq!(end_sessions(&server, |_, addresses| addresses.contains(&HERE)), 2);
    for client in [&mut one, &mut two] {
        Client::expect_closed(client);
    }
    assert!(far.is_alive());
    assert_eq!(server.server.report().len(), 1);
}
