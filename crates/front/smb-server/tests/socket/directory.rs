//! QUERY_DIRECTORY. [MS-SMB2] 3.3.5.18.

use std::collections::BTreeSet;

use anabranch_smb_server::Config;
use smb_wire::create::CreateOptions;
use smb_wire::fscc::FileInfoClass;
use smb_wire::fscc::directory_info::{Entry, entries};
use smb_wire::query_directory::{QueryDirectoryFlags, Request, Response};
use smb_wire::{AccessMask, Command, FileAttributes, FileId, NtStatus};
use storage::conformance::MAY;
use storage::{Name, NewKind, NewNode};

use crate::client::{Client, TestServer};
use crate::opening::{Opening, delete, make_file};

const CLASSES: [FileInfoClass; 8] = [
    FileInfoClass::Directory,
    FileInfoClass::FullDirectory,
    FileInfoClass::BothDirectory,
    FileInfoClass::Names,
    FileInfoClass::IdBothDirectory,
    FileInfoClass::IdFullDirectory,
    FileInfoClass::IdExtdDirectory,
    FileInfoClass::IdExtdBothDirectory,
];
const NOTHING: QueryDirectoryFlags = QueryDirectoryFlags::empty();

/// An entry of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Listed {
    name: String,
    size: u64,
    attributes: FileAttributes,
    file_id: u128,
}

/// A QUERY_DIRECTORY.
#[derive(Clone, Copy)]
pub(crate) struct Query<'a> {
    pub(crate) class: FileInfoClass,
    pub(crate) flags: QueryDirectoryFlags,
    pub(crate) pattern: &'a str,
    pub(crate) limit: u32,
}

impl<'a> Query<'a> {
    pub(crate) fn of(pattern: &'a str) -> Self {
        Self { class: FileInfoClass::IdBothDirectory, flags: NOTHING, pattern, limit: 65536 }
    }

    pub(crate) fn body(self, file_id: FileId) -> Vec<u8> {
        let request = Request {
            file_information_class: self.class,
            flags: self.flags,
            file_index: 0,
            file_id,
            file_name: self.pattern.into(),
            output_buffer_length: self.limit,
        };
        let mut body = Vec::new();
        request.encode(&mut body).unwrap();
        body
    }

    fn send(self, client: &mut Client, file_id: FileId) -> Result<Vec<Listed>, NtStatus> {
        let reply = client.call(Command::QueryDirectory, &self.body(file_id)).ok()?;
        let data = Response::decode(&reply.message).unwrap().output_buffer;
        assert!(data.len() <= usize::try_from(self.limit).unwrap());
        let listed = entries(self.class, data).unwrap().map(|entry| {
            let entry: Entry<'_> = entry.unwrap();
            Listed {
                name: entry.name.decode().unwrap(),
                size: entry.end_of_file,
                attributes: entry.file_attributes,
                file_id: entry.file_id,
            }
        });
        Ok(listed.collect())
    }

    fn names(self, client: &mut Client, file_id: FileId) -> Result<Vec<String>, NtStatus> {
        Ok(self.send(client, file_id)?.into_iter().map(|entry| entry.name).collect())
    }

    /// All answers until there are no more.
    fn all(self, client: &mut Client, file_id: FileId) -> Vec<Listed> {
        let mut all = Vec::new();
        loop {
            match self.send(client, file_id) {
                Ok(part) => all.extend(part),
                Err(status) => {
                    assert_eq!(status, NtStatus::NO_MORE_FILES);
                    return all;
                }
            }
        }
    }
}

pub(crate) fn open_directory(client: &mut Client, name: &str) -> FileId {
    let options = CreateOptions::DIRECTORY_FILE;
    Opening { access: AccessMask::READ_DATA, options, ..Opening::default() }.send(client, name).unwrap().id
}

/// A directory `d` with these files, opened.
fn directory(client: &mut Client, names: &[&str]) -> FileId {
    Opening::directory().try_out(client, "d").unwrap();
    for (size, name) in names.iter().enumerate() {
        make_file(client, &format!(r"d\{name}"), &vec![b'x'; size]);
    }
    open_directory(client, "d")
}

/// What a listing from the start is refused with, if it is.
pub(crate) fn refused(client: &mut Client, dir: FileId) -> Option<NtStatus> {
    Query { flags: QueryDirectoryFlags::REOPEN, ..Query::of("*") }.send(client, dir).err()
}

/// The names in a directory that match, in their order.
pub(crate) fn listed(client: &mut Client, dir: FileId, pattern: &str) -> Vec<String> {
    let query = Query { flags: QueryDirectoryFlags::REOPEN, ..Query::of(pattern) };
    sorted(query.names(client, dir).unwrap_or_default())
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names
}

#[test]
fn every_class_tells_what_it_can() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let dir = directory(&mut client, &["zero", "one", "two\u{e9}"]);
    Opening::directory().try_out(&mut client, r"d\sub").unwrap();
    for class in CLASSES {
        let flags = QueryDirectoryFlags::REOPEN;
        let listed = Query { class, flags, ..Query::of("*") }.send(&mut client, dir).unwrap();
        let names = listed.iter().map(|entry| entry.name.clone()).collect();
        assert_eq!(sorted(names), [".", "..", "one", "sub", "two\u{e9}", "zero"], "{class:?}");
        let find = |name: &str| listed.iter().find(|entry| entry.name == name).unwrap();
        if class == FileInfoClass::Names {
            continue;
        }
        assert_eq!(find("two\u{e9}").size, 2, "{class:?}");
        assert_eq!(find("one").attributes, FileAttributes::ARCHIVE);
        assert_eq!(find("sub").attributes, FileAttributes::DIRECTORY);
        assert_eq!(find(".").attributes, FileAttributes::DIRECTORY);
        let has_id = !matches!(
            class,
            FileInfoClass::Directory | FileInfoClass::FullDirectory | FileInfoClass::BothDirectory
        );
        assert_eq!(find("one").file_id != 0, has_id, "{class:?}");
    }
}

#[test]
fn patterns_choose() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let dir = directory(&mut client, &["a.txt", "B.TXT", "ab", "a.b.c", "long name"]);
    let mut names = |pattern: &str| {
        let query = Query { flags: QueryDirectoryFlags::REOPEN, ..Query::of(pattern) };
        query.names(&mut client, dir).map(sorted)
    };
    assert_eq!(names("*.txt").unwrap(), ["B.TXT", "a.txt"]);
    assert_eq!(names("a?").unwrap(), ["ab"]);
    assert_eq!(names("<.c").unwrap(), ["a.b.c"]);
    assert_eq!(names("A.TXT").unwrap(), ["a.txt"], "a name itself, whatever its case");
    assert_eq!(names("").unwrap().len(), 7, "no pattern is every name");
    assert_eq!(names("none").unwrap_err(), NtStatus::NO_SUCH_FILE);
    assert_eq!(names("*.none").unwrap_err(), NtStatus::NO_SUCH_FILE);
    assert_eq!(names("a\\b").unwrap_err(), NtStatus::OBJECT_NAME_INVALID);
}

#[test]
fn an_enumeration_keeps_its_pattern_until_it_is_reopened() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let dir = directory(&mut client, &["a1", "a2", "b"]);
    let mut ask = |pattern, flags| Query { flags, ..Query::of(pattern) }.names(&mut client, dir).map(sorted);
    assert_eq!(ask("a*", NOTHING).unwrap(), ["a1", "a2"]);
    assert_eq!(ask("b", NOTHING), Err(NtStatus::NO_MORE_FILES));
    assert_eq!(ask("b", QueryDirectoryFlags::RESTART_SCANS).unwrap(), ["a1", "a2"]);
    assert_eq!(ask("b", QueryDirectoryFlags::REOPEN).unwrap(), ["b"]);
    assert_eq!(ask("", NOTHING), Err(NtStatus::NO_MORE_FILES));
    assert_eq!(ask("none", QueryDirectoryFlags::REOPEN), Err(NtStatus::NO_SUCH_FILE));
    assert_eq!(ask("none", NOTHING), Err(NtStatus::NO_MORE_FILES), "only a first answer says that");
}

#[test]
fn one_entry_at_a_time() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let dir = directory(&mut client, &["a", "b"]);
    let single = Query { flags: QueryDirectoryFlags::RETURN_SINGLE_ENTRY, ..Query::of("*") };
    let first = single.names(&mut client, dir).unwrap();
    assert_eq!(first, ["."]);
    let rest = single.all(&mut client, dir);
    assert_eq!(rest.len(), 3);
}

#[test]
fn an_enumeration_in_parts_gives_each_entry_that_stays_once() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let names: Vec<_> = (0..200).map(|n| format!("file-{n:03}{}", "x".repeat(n % 50))).collect();
    let dir = directory(&mut client, &names.iter().map(String::as_str).collect::<Vec<_>>());
    let query = Query { limit: 700, ..Query::of("*") };
    let mut seen: Vec<String> = Vec::new();
    let mut round = 0;
    loop {
        match query.names(&mut client, dir) {
            Ok(part) => seen.extend(part),
            Err(status) => {
                assert_eq!(status, NtStatus::NO_MORE_FILES);
                break;
            }
        }
        // Every other file goes while the enumeration is under way; others come.
        if let Some(gone) = names.get(round * 2) {
            delete(&mut client, &format!(r"d\{gone}")).unwrap();
        }
        make_file(&mut client, &format!(r"d\late-{round}"), b"");
        round += 1;
        assert!(round < 2000, "it ends");
    }
    let once: BTreeSet<_> = seen.iter().collect();
    assert_eq!(once.len(), seen.len(), "nothing twice");
    for (index, name) in names.iter().enumerate() {
        if index % 2 == 1 {
            assert!(once.contains(name), "{name} was there all the time");
        }
    }
}

#[test]
fn what_has_no_room_is_not_lost() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let dir = directory(&mut client, &[&"n".repeat(100)]);
    let with = |limit| Query { limit, flags: NOTHING, ..Query::of("n*") };
    assert_eq!(with(103).names(&mut client, dir), Err(NtStatus::INFO_LENGTH_MISMATCH));
    assert_eq!(with(303).names(&mut client, dir), Err(NtStatus::BUFFER_OVERFLOW));
    assert_eq!(with(304).names(&mut client, dir).unwrap().len(), 1, "104 bytes and 100 characters");
    assert_eq!(with(304).names(&mut client, dir), Err(NtStatus::NO_MORE_FILES));
    let literal = Query { flags: QueryDirectoryFlags::REOPEN, ..with(303) };
    let name = "n".repeat(100);
    let literal = Query { pattern: &name, ..literal };
    assert_eq!(literal.names(&mut client, dir), Err(NtStatus::BUFFER_OVERFLOW));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let dir = directory(&mut client, &["file"]);
    let basic = Query { class: FileInfoClass::Basic, ..Query::of("*") };
    assert_eq!(basic.names(&mut client, dir), Err(NtStatus::INVALID_INFO_CLASS));
    let unknown = Query { class: FileInfoClass::Unknown(200), ..Query::of("*") };
    assert_eq!(unknown.names(&mut client, dir), Err(NtStatus::INVALID_INFO_CLASS));
    let file = Opening::default().send(&mut client, r"d\file").unwrap().id;
    assert_eq!(Query::of("*").names(&mut client, file), Err(NtStatus::INVALID_PARAMETER));
    let blind = Opening {
        access: AccessMask::READ_ATTRIBUTES,
        options: CreateOptions::DIRECTORY_FILE,
        ..Opening::default()
    };
    let blind = blind.send(&mut client, "d").unwrap().id;
    assert_eq!(Query::of("*").names(&mut client, blind), Err(NtStatus::ACCESS_DENIED));
    let nowhere = FileId { persistent: 1, volatile: 77 };
    assert_eq!(Query::of("*").names(&mut client, nowhere), Err(NtStatus::FILE_CLOSED));
}

#[test]
fn names_of_other_systems() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let root = server.share.root();
    let make = |name: &[u8], kind| {
        let new = NewNode { kind, mode: 0o644, uid: 0, gid: 0 };
        root.create(Name::new(name).unwrap(), &new, MAY).unwrap();
    };
    make(b"not\xffutf8", NewKind::Regular);
    make(b"a:b?", NewKind::Regular);
    let dir = open_directory(&mut client, "");
    let listed = Query::of("*").all(&mut client, dir);
    let names: BTreeSet<_> = listed.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, BTreeSet::from([".", "..", "a\u{f022}b\u{f025}"]));
    let find = |name: &str| listed.iter().find(|entry| entry.name == name).unwrap();
    let parent = find("..").file_id;
    assert_eq!(parent, find(".").file_id, "the root is its own parent");
}

#[test]
fn long_names_are_listed_with_their_short_ones() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let dir = directory(&mut client, &["short.txt", "a long name.text"]);
    let reply = client.call(Command::QueryDirectory, &Query::of("*").body(dir)).ok().unwrap();
    let data = Response::decode(&reply.message).unwrap().output_buffer;
    for entry in entries(FileInfoClass::IdBothDirectory, data).unwrap() {
        let entry: Entry<'_> = entry.unwrap();
        let short = entry.short_name.decode().unwrap();
        if entry.name.decode().unwrap() == "a long name.text" {
            assert!(short.starts_with("AL~") && short.ends_with(".TEX"), "{short}");
            assert_eq!(listed(&mut client, dir, &short), ["a long name.text"], "found by it");
        } else {
            assert_eq!(short, "");
        }
    }
}
