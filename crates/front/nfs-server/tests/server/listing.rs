//! READDIR and READDIRPLUS (RFC 1813 3.3.16, 3.3.17).

use std::collections::BTreeSet;

use nfs_wire::v3::status::Status;
use nfs_wire::v3::types::FileHandle;
use nfs_wire::v3::{Procedure, readdir, readdirplus, remove};
use nfs_wire::xdr::Decode;

use crate::client::{Client, TestServer, place};

/// Names and cookies of one call, and whether they are the last.
type Part = (Vec<(String, u64)>, bool);

fn text(name: &[u8]) -> String {
    String::from_utf8(name.to_vec()).unwrap()
}

fn readdir(client: &mut Client, dir: FileHandle, cookie: u64, count: u32) -> Result<Part, Status> {
    let args = readdir::Args { dir, cookie, cookie_verifier: [0; 8], count };
    let results = client.raw(Procedure::ReadDir, &args);
    let ok = readdir::Res::from_bytes(&results).unwrap().map_err(|failure| failure.status)?;
    assert!(results.len() - 4 <= count as usize, "the result without its status is within the count");
    assert!(ok.dir_attributes.is_some());
    let entries = ok.listing.entries.iter().map(|entry| (text(entry.name.0), entry.cookie)).collect();
    Ok((entries, ok.listing.eof))
}

fn plus_args(dir: FileHandle, cookie: u64, dir_count: u32, max_count: u32) -> readdirplus::Args {
    readdirplus::Args { dir, cookie, cookie_verifier: [0; 8], dir_count, max_count }
}

/// All names, by as many calls as it takes.
pub(crate) fn names(client: &mut Client, dir: FileHandle, count: u32) -> (Vec<String>, usize) {
    let (mut names, mut cookie, mut calls) = (Vec::new(), 0, 0);
    loop {
        let (entries, eof) = readdir(client, dir, cookie, count).unwrap();
        calls += 1;
        assert!(eof || !entries.is_empty());
        cookie = entries.last().map_or(cookie, |(_, cookie)| *cookie);
        names.extend(entries.into_iter().map(|(name, _)| name));
        if eof {
            return (names, calls);
        }
    }
}

fn fill(client: &mut Client, dir: FileHandle, count: usize) -> BTreeSet<String> {
    let mut names: BTreeSet<String> = (0..count).map(|index| format!("file-{index}")).collect();
    for name in &names {
        client.make_file(dir, name, 0o600, b"");
    }
    names.extend([".".to_owned(), "..".to_owned()]);
    names
}

#[test]
fn every_name_comes_once_whatever_the_size_of_the_parts() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let expected = fill(&mut client, root, 100);
    for count in [136, 160, 200, 512, 4096, 65536, u32::MAX] {
        let (names, calls) = names(&mut client, root, count);
        assert_eq!(names.len(), expected.len(), "count {count}");
        assert_eq!(names.into_iter().collect::<BTreeSet<_>>(), expected, "count {count}");
        assert!(count < 4096 || calls <= 2, "count {count}: {calls} calls");
    }
}

#[test]
fn an_empty_directory_has_itself_and_its_parent() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let dir = client.make_dir(root, "dir", 0o755);
    let args = readdir::Args { dir, cookie: 0, cookie_verifier: [0; 8], count: 4096 };
    let results = client.raw(Procedure::ReadDir, &args);
    let ok = readdir::Res::from_bytes(&results).unwrap().unwrap();
    assert_eq!(ok.dir_attributes, Some(client.attributes(dir)));
    let entries: Vec<_> = ok.listing.entries.iter().map(|entry| (text(entry.name.0), entry.fileid)).collect();
    let (own, parent) = (client.attributes(dir).fileid, client.attributes(root).fileid);
    assert_eq!(entries, [(".".to_owned(), own), ("..".to_owned(), parent)]);
    assert!(ok.listing.eof);
}

#[test]
fn a_count_without_room_for_one_entry_is_too_small() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    for count in [0, 1, 96, 131] {
        assert_eq!(readdir(&mut client, root, 0, count), Err(Status::TooSmall), "{count}");
    }
    // attributes 88, verifier 8, one entry of `.` 28, end 8
    let (entries, eof) = readdir(&mut client, root, 0, 132).unwrap();
    assert_eq!((entries.len(), eof), (1, false));
}

#[test]
fn entries_that_stay_come_once_while_others_are_removed() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    fill(&mut client, root, 60);
    let (mut seen, mut cookie) = (Vec::new(), 0);
    loop {
        let (entries, eof) = readdir(&mut client, root, cookie, 400).unwrap();
        for (name, at) in entries {
            cookie = at;
            if name.starts_with("file") {
                // As rm -r does.
                let removed: remove::Res =
                    client.nfs(Procedure::Remove, &remove::Args { object: place(root, &name) });
                removed.unwrap();
                seen.push(name);
            }
        }
        if eof {
            break;
        }
    }
    assert_eq!(seen.len(), 60);
    assert_eq!(seen.into_iter().collect::<BTreeSet<_>>().len(), 60);
    assert_eq!(names(&mut client, root, 4096).0, [".", ".."]);
}

#[test]
fn readdirplus_tells_attributes_and_handles() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let file = client.make_file(root, "file", 0o604, b"hello");
    let dir = client.make_dir(root, "dir", 0o755);
    let results = client.raw(Procedure::ReadDirPlus, &plus_args(root, 0, 65536, 65536));
    let ok = readdirplus::Res::from_bytes(&results).unwrap().unwrap();
    assert_eq!(ok.dir_attributes, Some(client.attributes(root)));
    assert!(ok.listing.eof);
    for (name, handle) in [(".", root), ("file", file), ("dir", dir)] {
        let entry = ok.listing.entries.iter().find(|entry| entry.name.0 == name.as_bytes()).unwrap();
        assert_eq!(entry.file_handle, Some(handle), "{name}");
        let attributes = client.attributes(handle);
        assert_eq!(entry.attributes, Some(attributes), "{name}");
        assert_eq!(entry.fileid, attributes.fileid, "{name}");
    }
    assert_eq!(ok.listing.entries.len(), 4);
}

#[test]
fn readdirplus_keeps_both_of_its_limits() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let expected = fill(&mut client, root, 50);
    for (dir_count, max_count) in [(0, 4096), (100, 65536), (65536, 1000), (512, 8192)] {
        let (mut seen, mut cookie) = (Vec::new(), 0);
        loop {
            let results = client.raw(Procedure::ReadDirPlus, &plus_args(root, cookie, dir_count, max_count));
            assert!(results.len() - 4 <= max_count as usize);
            let ok = readdirplus::Res::from_bytes(&results).unwrap().unwrap();
            let entries = &ok.listing.entries;
            let bytes: usize = entries.iter().map(readdirplus::Entry::directory_bytes).sum();
            assert!(bytes <= dir_count as usize || entries.len() == 1);
            assert!(ok.listing.eof || !entries.is_empty());
            cookie = entries.last().map_or(cookie, |entry| entry.cookie);
            seen.extend(entries.iter().map(|entry| text(entry.name.0)));
            if ok.listing.eof {
                break;
            }
        }
        assert_eq!(seen.len(), expected.len());
        assert_eq!(seen.into_iter().collect::<BTreeSet<_>>(), expected);
    }
    let results = client.raw(Procedure::ReadDirPlus, &plus_args(root, 0, 100, 100));
    assert_eq!(readdirplus::Res::from_bytes(&results).unwrap().unwrap_err().status, Status::TooSmall);
}

#[test]
fn listings_that_are_refused() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let file = client.make_file(root, "file", 0o600, b"");
    assert_eq!(readdir(&mut client, file, 0, 4096), Err(Status::NotDir));
    let closed = client.make_dir(root, "closed", 0o711);
    let mut user = server.client_of(1000, 100, &[]);
    assert_eq!(readdir(&mut user, closed, 0, 4096), Err(Status::Acces));
}
