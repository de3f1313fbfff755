//! Names: case, what is no name, and what only other systems can say. [MS-SMB2] 3.3.5.9, [MS-FSCC] 2.1.5.

use anabranch_smb_server::Config;
use smb_wire::create::{CreateAction, CreateDisposition, CreateOptions};
use smb_wire::fscc::FileInfoClass;
use smb_wire::{AccessMask, Command, NtStatus};
use storage::conformance::MAY;
use storage::{Name, NewKind, NewNode, SetAttributes};

use crate::client::{Client, TestServer};
use crate::information::query;
use crate::opening::{Opening, delete, make_file};

fn open(client: &mut Client, name: &str) -> Result<CreateAction, NtStatus> {
    Opening { access: AccessMask::READ_ATTRIBUTES, ..Opening::default() }.try_out(client, name)
}

fn create(client: &mut Client, name: &str) -> Result<CreateAction, NtStatus> {
    Opening::with(CreateDisposition::Create).try_out(client, name)
}

/// Makes something in the share's root, as another protocol might.
fn make(server: &TestServer, name: &[u8], kind: NewKind<'_>) {
    let new = NewNode { kind, mode: 0o755, uid: 0, gid: 0 };
    server.share.root().create(Name::new(name).unwrap(), &new, MAY).unwrap();
}

fn exists(server: &TestServer, name: &[u8]) -> bool {
    server.share.root().lookup(Name::new(name).unwrap(), storage::Wait::May(MAY)).is_ok()
}

#[test]
fn case_does_not_count_and_is_kept() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    Opening::directory().try_out(&mut client, "Dir").unwrap();
    make_file(&mut client, r"dIR\ReadMe.TXT", b"");
    make_file(&mut client, "\u{e4}pfel", b"");
    for name in [r"Dir\ReadMe.TXT", r"dir\readme.txt", r"DIR\README.TXT", "\u{c4}PFEL"] {
        assert_eq!(open(&mut client, name), Ok(CreateAction::Opened), "{name}");
        assert_eq!(create(&mut client, name), Err(NtStatus::OBJECT_NAME_COLLISION), "{name}");
    }
    assert!(exists(&server, b"Dir") && !exists(&server, b"dIR"));
    assert_eq!(delete(&mut client, r"dir\README.txt"), Ok(()));
    assert_eq!(open(&mut client, r"Dir\ReadMe.TXT"), Err(NtStatus::OBJECT_NAME_NOT_FOUND));
}

#[test]
fn a_missing_directory_is_told_from_a_missing_file() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    make_file(&mut client, "file", b"");
    let no_path = Err(NtStatus::OBJECT_PATH_NOT_FOUND);
    assert_eq!(open(&mut client, "none"), Err(NtStatus::OBJECT_NAME_NOT_FOUND));
    assert_eq!(open(&mut client, r"none\f"), no_path);
    assert_eq!(open(&mut client, r"none\none\f"), no_path);
    assert_eq!(open(&mut client, r"file\f"), no_path);
    assert_eq!(create(&mut client, r"none\f"), no_path);
    assert_eq!(create(&mut client, r"file\f"), no_path);
    let nofollow = Opening { options: CreateOptions::OPEN_REPARSE_POINT, ..Opening::default() };
    assert_eq!(nofollow.try_out(&mut client, "none"), Err(NtStatus::OBJECT_NAME_NOT_FOUND));
    assert_eq!(nofollow.try_out(&mut client, r"none\f"), no_path);
    assert_eq!(nofollow.try_out(&mut client, r"file\f"), no_path);
}

#[test]
fn what_is_no_name_is_refused() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    Opening::directory().try_out(&mut client, "d").unwrap();
    let long = "x".repeat(256);
    for name in ["a*", "a?", "a<", "a|b", "a\"", "a/b", "a\u{1}b", "a\0b", r"d\.x|", &long] {
        assert_eq!(create(&mut client, name), Err(NtStatus::OBJECT_NAME_INVALID), "{name:?}");
    }
    for name in ["..", r"..\..\..", r"d\..\..", r"d\..\..\x"] {
        assert_eq!(create(&mut client, name), Err(NtStatus::OBJECT_PATH_SYNTAX_BAD), "{name:?}");
    }
    for name in [r"\", r"\d", r"\\server\share\d"] {
        assert_eq!(open(&mut client, name), Err(NtStatus::INVALID_PARAMETER), "{name:?}");
    }
    for name in ["d:stream:", "d:", "d::$FOO", "d:stream:$FOO", "d:stream\\x"] {
        assert_eq!(open(&mut client, name), Err(NtStatus::OBJECT_NAME_INVALID), "{name:?}");
    }
    assert_eq!(create(&mut client, &long[..255]), Ok(CreateAction::Created));
    assert!(client.is_alive());
}

#[test]
fn dot_names_and_double_backslashes_are_resolved() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    Opening::directory().try_out(&mut client, "d").unwrap();
    for name in [r"d\\one", r"d\.\two", r"d\none\..\three", r"d\..\four"] {
        assert_eq!(create(&mut client, name), Ok(CreateAction::Created), "{name:?}");
    }
    for name in [r"d\one", r"d\two", r"d\three", "four", r"d\..\d\.\\one", r"d\..", r"d\\"] {
        assert_eq!(open(&mut client, name), Ok(CreateAction::Opened), "{name:?}");
    }
}

#[test]
fn names_that_are_not_utf16_are_refused() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let mut body = Opening::with(CreateDisposition::Create).body("ab");
    let name = body.len() - 4;
    body[name..name + 2].copy_from_slice(&[0x00, 0xD8]);
    let reply = client.call(Command::Create, &body);
    assert_eq!(reply.status(), NtStatus::OBJECT_NAME_INVALID, "a surrogate without its partner");
    // NameLength lies 46 bytes into the body: odd, and past the end of the message.
    for length in [3_u16, 200, 0xFFFE] {
        let mut body = Opening::with(CreateDisposition::Create).body("ab");
        body[46..48].copy_from_slice(&length.to_le_bytes());
        let reply = client.call(Command::Create, &body);
        assert_eq!(reply.status(), NtStatus::INVALID_PARAMETER, "{length}");
    }
    assert!(client.is_alive());
}

#[test]
fn a_backslash_at_the_end_names_a_directory() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    assert_eq!(Opening::directory().try_out(&mut client, "d\\"), Ok(CreateAction::Created));
    make_file(&mut client, "f", b"");
    assert_eq!(open(&mut client, "d\\"), Ok(CreateAction::Opened));
    assert_eq!(open(&mut client, "f\\"), Err(NtStatus::NOT_A_DIRECTORY));
    assert_eq!(create(&mut client, "new\\"), Err(NtStatus::OBJECT_NAME_INVALID));
    let file = Opening { options: CreateOptions::NON_DIRECTORY_FILE, ..Opening::default() };
    assert_eq!(file.try_out(&mut client, "d\\"), Err(NtStatus::OBJECT_NAME_INVALID));
    assert_eq!(open(&mut client, "f::$DATA"), Ok(CreateAction::Opened));
}

#[test]
fn names_of_other_systems_can_be_said() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    make(&server, b"a:b", NewKind::Regular);
    make(&server, b"ends.", NewKind::Regular);
    assert_eq!(open(&mut client, "a\u{f022}b"), Ok(CreateAction::Opened));
    assert_eq!(open(&mut client, "ends\u{f029}"), Ok(CreateAction::Opened));
    assert_eq!(create(&mut client, "why\u{f025}"), Ok(CreateAction::Created));
    assert!(exists(&server, b"why?"));
    // No way out of the share.
    assert_eq!(open(&mut client, "\u{f029}\u{f029}"), Err(NtStatus::OBJECT_NAME_INVALID));
}

#[test]
fn who_may_not_search_a_directory_finds_nothing_in_it() {
    let server = TestServer::start(Config::default());
    let mut root = server.client();
    Opening::directory().try_out(&mut root, "closed").unwrap();
    make_file(&mut root, r"closed\f", b"");
    let closed = server.share.root().lookup(Name::new(b"closed").unwrap(), storage::Wait::May(MAY)).unwrap();
    closed.set_attributes(&SetAttributes { mode: Some(0o700), ..SetAttributes::default() }, MAY).unwrap();
    let mut bob = server.connect();
    bob.negotiate(&[anabranch_smb_server::Dialect::Smb311]);
    bob.log_in(crate::client::OTHER_USER, crate::client::PASSWORD).unwrap();
    bob.tree_connect(crate::client::SHARE).unwrap();
    assert_eq!(open(&mut bob, r"closed\f"), Err(NtStatus::ACCESS_DENIED));
    assert_eq!(open(&mut bob, r"closed\none"), Err(NtStatus::ACCESS_DENIED));
}

/// The 8.3 name of a file.
fn short_name(client: &mut Client, name: &str) -> String {
    let file = Opening::default().send(client, name).unwrap().id;
    let data = query(client, file, FileInfoClass::AlternateName).unwrap();
    client.close(file).unwrap();
    smb_wire::fscc::file_info::Name::decode(&data).unwrap().name.decode().unwrap()
}

#[test]
fn a_long_name_has_a_short_one() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    Opening::directory().try_out(&mut client, "A long directory").unwrap();
    make_file(&mut client, r"a long directory\a long file.text", b"data");
    let dir = short_name(&mut client, "A long directory");
    let short = short_name(&mut client, r"A long directory\A LONG FILE.TEXT");
    assert!(dir.starts_with("AL~") && short.starts_with("AL~") && short.ends_with(".TEX"), "{dir} {short}");
    let path = format!(r"{}\{}", dir.to_lowercase(), short.to_lowercase());
    assert_eq!(short_name(&mut client, &path), short, "the name that it has, found by the other");
    assert_eq!(create(&mut client, &path), Err(NtStatus::OBJECT_NAME_COLLISION));
    assert_eq!(delete(&mut client, &path), Ok(()));
    assert_eq!(open(&mut client, r"a long directory\a long file.text"), Err(NtStatus::OBJECT_NAME_NOT_FOUND));
    assert_eq!(open(&mut client, &path), Err(NtStatus::OBJECT_NAME_NOT_FOUND));
}

/// A program that knows short names only replaces a file: it keeps the long name that others have for it.
#[test]
fn a_file_made_by_a_short_name_is_found_by_the_long_one() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    make_file(&mut client, "a long file.text", b"");
    let short = short_name(&mut client, "a long file.text");
    delete(&mut client, &short).unwrap();
    make_file(&mut client, &short, b"");
    assert!(exists(&server, short.as_bytes()));
    assert_eq!(create(&mut client, "A long file.TEXT"), Err(NtStatus::OBJECT_NAME_COLLISION));
    assert_eq!(delete(&mut client, "a long file.text"), Ok(()));
    assert!(!exists(&server, short.as_bytes()));
    // A name that is a file's own comes first.
    make_file(&mut client, "a long file.text", b"");
    make(&server, short.as_bytes(), NewKind::Regular);
    delete(&mut client, &short).unwrap();
    assert_eq!(open(&mut client, "a long file.text"), Ok(CreateAction::Opened));
    make_file(&mut client, "12345678.txt", b"");
    assert_eq!(short_name(&mut client, "12345678.TXT"), "12345678.txt", "its own");
}
