//! READ, WRITE, COMMIT (RFC 1813 3.3.6, 3.3.7, 3.3.21).

use std::sync::Arc;

use nfs_wire::v3::attr::Attributes;
use nfs_wire::v3::status::Status;
use nfs_wire::v3::types::{FileHandle, StableHow};
use nfs_wire::v3::{Procedure, commit, read, write};
use nfs_wire::xdr::Decode;
use share::Squash;

use crate::client::{Client, TestServer, export};

const MIB: usize = 1 << 20;

struct Read {
    data: Vec<u8>,
    eof: bool,
    attributes: Attributes,
}

fn read(client: &mut Client, file: FileHandle, offset: u64, count: u32) -> Result<Read, Status> {
    let results = client.raw(Procedure::Read, &read::Args { file, offset, count });
    let ok = read::Res::from_bytes(&results).unwrap().map_err(|failure| failure.status)?;
    assert_eq!(ok.count as usize, ok.data.len());
    Ok(Read { data: ok.data.to_vec(), eof: ok.eof, attributes: ok.file_attributes.unwrap() })
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|index| u8::try_from(index % 251).unwrap()).collect()
}

#[test]
fn what_is_written_is_read() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let file = client.make_file(root, "file", 0o600, b"");
    let written = client.write(file, 3, b"hello").unwrap();
    assert_eq!((written.count, written.committed), (5, StableHow::Unstable));
    assert_eq!(written.file_wcc.after, Some(client.attributes(file)));
    let all = read(&mut client, file, 0, 100).unwrap();
    assert_eq!((&all.data[..], all.eof), (&b"\0\0\0hello"[..], true));
    assert_eq!(all.attributes, client.attributes(file));
}

#[test]
fn the_end_of_the_file_is_told() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let file = client.make_file(root, "file", 0o600, b"0123456789");
    for (offset, count, expected, eof) in [
        (0, 9, &b"012345678"[..], false),
        (0, 10, b"0123456789", true),
        (7, 100, b"789", true),
        (10, 5, b"", true),
        (1000, 5, b"", true),
        (u64::MAX, 5, b"", true),
        (u64::MAX - 3, u32::MAX, b"", true),
        (2, 0, b"", false),
        (10, 0, b"", true),
    ] {
        let part = read(&mut client, file, offset, count).unwrap();
        assert_eq!((&part.data[..], part.eof), (expected, eof), "{offset} {count}");
    }
}

#[test]
fn a_mebibyte_is_read_and_written_at_once() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let file = client.make_file(root, "file", 0o600, b"");
    let data = pattern(MIB);
    assert_eq!(client.write(file, 5, &data).unwrap().count as usize, MIB);
    let part = read(&mut client, file, 5, u32::try_from(MIB).unwrap()).unwrap();
    assert!(part.data == data && part.eof);
    let more = read(&mut client, file, 0, u32::MAX).unwrap();
    assert_eq!((more.data.len(), more.eof), (MIB, false), "no more than that");
    assert!(more.data[5..] == data[..MIB - 5]);
}

#[test]
fn odd_lengths_are_padded() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let file = client.make_file(root, "file", 0o600, b"");
    for length in [1, 2, 3, 4, 5, 4095, 65537] {
        let data = pattern(length);
        client.write(file, 0, &data).unwrap();
        let part = read(&mut client, file, 0, u32::try_from(length).unwrap()).unwrap();
        assert!(part.data == data, "{length}");
    }
}

#[test]
fn stable_writes_are_told_as_such() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let file = client.make_file(root, "file", 0o600, b"");
    for stable in [StableHow::Unstable, StableHow::DataSync, StableHow::FileSync] {
        let args = write::Args { file, offset: 0, count: 4, stable, data: b"data" };
        let result: write::Res = client.nfs(Procedure::Write, &args);
        assert!(result.unwrap().committed as u32 >= stable as u32);
    }
}

#[test]
fn the_verifier_changes_with_each_run_only() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let file = client.make_file(root, "file", 0o600, b"");
    let commit = |client: &mut Client| -> commit::ResOk {
        let args = commit::Args { file, offset: 0, count: 0 };
        let result: commit::Res = client.nfs(Procedure::Commit, &args);
        result.unwrap()
    };
    let written = client.write(file, 0, b"x").unwrap().verifier;
    let committed = commit(&mut client);
    assert_eq!(committed.verifier, written);
    assert_eq!(committed.file_wcc.after, Some(client.attributes(file)));
    let restarted = TestServer::over(Arc::clone(&server.store), export(Squash::None), 2);
    assert_ne!(commit(&mut restarted.client()).verifier, written);
}

#[test]
fn writes_beyond_the_largest_file_are_refused() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let file = client.make_file(root, "file", 0o600, b"");
    for offset in [u64::MAX, u64::MAX - 3, i64::MAX as u64 - 2] {
        let failure = client.write(file, offset, b"data").unwrap_err();
        assert_eq!(failure.status, Status::FBig, "{offset}");
        assert_eq!(failure.body.after, Some(client.attributes(file)));
    }
    assert_eq!(client.attributes(file).size, 0);
}

#[test]
fn the_count_of_a_write_is_believed_only_as_far_as_there_is_data() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let file = client.make_file(root, "file", 0o600, b"");
    let mut write = |count, data| -> write::Res {
        let args = write::Args { file, offset: 0, count, stable: StableHow::Unstable, data };
        client.nfs(Procedure::Write, &args)
    };
    assert_eq!(write(3, b"abcdef").unwrap().count, 3);
    assert_eq!(write(7, b"abcdef").unwrap_err().status, Status::Inval);
    assert_eq!(write(0, b"").unwrap().count, 0);
    assert_eq!(client.attributes(file).size, 3);
}

#[test]
fn only_regular_files_have_data() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let dir = client.make_dir(root, "dir", 0o755);
    assert_eq!(read(&mut client, dir, 0, 10).err(), Some(Status::Inval));
    assert_eq!(client.write(dir, 0, b"x").unwrap_err().status, Status::Inval);
    let args = commit::Args { file: dir, offset: 0, count: 0 };
    let result: commit::Res = client.nfs(Procedure::Commit, &args);
    assert_eq!(result.unwrap_err().status, Status::Inval);
}

#[test]
fn modes_protect_data_from_all_but_the_owner() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let mut owner = server.client_of(1000, 100, &[]);
    let mut stranger = server.client_of(1001, 101, &[]);
    let file = owner.make_file(root, "file", 0o400, b"");
    // RFC 1813 4.4: the client has checked the mode when its user opened the file.
    owner.write(file, 0, b"data").unwrap();
    assert_eq!(stranger.write(file, 0, b"x").unwrap_err().status, Status::Acces);
    assert_eq!(read(&mut stranger, file, 0, 4).err(), Some(Status::Acces));
    client.write(file, 0, b"root").unwrap();
    // Who may execute a program may read it.
    let program = owner.make_file(root, "program", 0o711, b"#!/bin/sh");
    assert_eq!(read(&mut stranger, program, 0, 4).unwrap().data, b"#!/b");
}

#[test]
fn data_that_is_not_at_hand_is_read_all_the_same() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let file = client.make_file(root, "file", 0o600, &pattern(100_000));
    server.store.set_at_hand(false);
    assert!(read(&mut client, file, 0, 100_000).unwrap().data == pattern(100_000));
    assert_eq!(client.write(file, 0, b"x").unwrap().count, 1);
}
