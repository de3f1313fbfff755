//! CLOSE. [MS-SMB2] 3.3.5.10.

use anabranch_smb_server::Config;
use smb_wire::close::{CloseFlags, Request, Response};
use smb_wire::create::{CreateAction, CreateDisposition, CreateOptions};
use smb_wire::{AccessMask, Command, FileAttributes, FileId, NtStatus};

use crate::client::{Client, TestServer};
use crate::opening::{Opening, make_file};

fn close_with(client: &mut Client, flags: CloseFlags, file_id: FileId) -> Result<Response, NtStatus> {
    let mut body = Vec::new();
    Request { flags, file_id }.encode(&mut body);
    client.call(Command::Close, &body).ok().map(|reply| Response::decode(&reply.message).unwrap())
}

#[test]
fn attributes_come_when_they_are_asked_for() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let opening = Opening { attributes: FileAttributes::HIDDEN, ..Opening::with(CreateDisposition::Create) };
    let opened = opening.send(&mut client, "f").unwrap();
    client.write(opened.id, 0, b"data").unwrap();
    let answer = close_with(&mut client, CloseFlags::POSTQUERY_ATTRIB, opened.id).unwrap();
    let attributes = answer.attributes.unwrap();
    assert_eq!(attributes.end_of_file, 4);
    assert!(attributes.allocation_size >= 4);
    assert_eq!(attributes.file_attributes, FileAttributes::HIDDEN | FileAttributes::ARCHIVE);
    assert!(attributes.last_write_time >= attributes.creation_time && attributes.creation_time.0 > 0);

    let opened = Opening::default().send(&mut client, "f").unwrap();
    assert_eq!(close_with(&mut client, CloseFlags::empty(), opened.id), Ok(Response { attributes: None }));
}

#[test]
fn what_is_closed_is_closed() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let opened = Opening::with(CreateDisposition::Create).send(&mut client, "f").unwrap();
    let half = FileId { persistent: opened.id.persistent ^ 1, ..opened.id };
    assert_eq!(client.close(half), Err(NtStatus::FILE_CLOSED));
    assert_eq!(server.client().close(opened.id), Err(NtStatus::FILE_CLOSED), "another session");
    client.close(opened.id).unwrap();
    assert_eq!(client.close(opened.id), Err(NtStatus::FILE_CLOSED));
    assert_eq!(client.read(opened.id, 0, 1), Err(NtStatus::FILE_CLOSED));
    assert_eq!(client.write(opened.id, 0, b"x"), Err(NtStatus::FILE_CLOSED));
}

#[test]
fn a_directory_with_entries_stays() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    Opening::directory().try_out(&mut client, "d").unwrap();
    make_file(&mut client, r"d\f", b"");
    let options = CreateOptions::DELETE_ON_CLOSE | CreateOptions::DIRECTORY_FILE;
    let doomed = Opening { access: AccessMask::DELETE, options, ..Opening::default() };
    let opened = doomed.send(&mut client, "d").unwrap();
    assert_eq!(client.close(opened.id), Ok(()), "closing succeeds all the same");
    assert_eq!(client.close(opened.id), Err(NtStatus::FILE_CLOSED));
    assert_eq!(Opening::default().try_out(&mut client, r"d\f"), Ok(CreateAction::Opened));
}
