//! Symbolic links: what a client learns of them, and how it makes them. [MS-SMB2] 2.2.2.2.1, 3.3.5.15.13; [MS-FSA]
//! 2.1.5.10.14, 2.1.5.10.37.

mod made;

use anabranch_smb_server::{Config, Dialect};
use share::Terms;
use smb_wire::create::{CreateAction, CreateDisposition, CreateOptions, ResponseFlags};
use smb_wire::error_response::{ERROR_ID_DEFAULT, Response, SymbolicLink, SymlinkFlags};
use smb_wire::fscc::FileInfoClass;
use smb_wire::fscc::directory_info::{Entry, entries};
use smb_wire::fscc::file_info::{All, AttributeTag, Rename, RenameFlags};
use smb_wire::fscc::fsctl::Fsctl;
use smb_wire::fscc::reparse::{ReparsePoint, tag};
use smb_wire::query_info::SecurityInformation;
use smb_wire::{AccessMask, Command, FileAttributes, FileId, NtStatus, create, query_directory};
use storage::conformance::MAY;
use storage::{Name, NewKind, NewNode, NodeRef, Wait};

use crate::client::{Client, Element, PASSWORD, Reply, SHARE, TestServer, close_body};
use crate::directory::{self, open_directory};
use crate::information::{self, query, set};
use crate::ioctl::{ioctl, output};
use crate::opening::{Opening, delete, make_file};

const LINK: FileAttributes = FileAttributes::ARCHIVE.union(FileAttributes::REPARSE_POINT);

/// A name in the share's root.
fn name(name: &str) -> Name<'_> {
    Name::new(name.as_bytes()).unwrap()
}

/// Makes a link in the share's root, as an NFS client does.
fn make_link(server: &TestServer, at: &str, text: &[u8]) {
    let new = NewNode { kind: NewKind::Symlink(text), mode: 0o777, uid: 0, gid: 0 };
    server.share.root().create(name(at), &new, MAY).unwrap();
}

/// What the store has by this name in the share's root.
fn stored(server: &TestServer, at: &str) -> Option<NodeRef> {
    server.share.root().lookup(name(at), Wait::May(MAY)).ok()
}

/// The text of a link in the share's root.
fn text(server: &TestServer, at: &str) -> String {
    String::from_utf8(stored(server, at).unwrap().read_link(MAY).unwrap()).unwrap()
}

/// Opens a link itself.
fn itself() -> Opening {
    Opening { options: CreateOptions::OPEN_REPARSE_POINT, ..Opening::default() }
}

/// The target of a link, how many bytes of the path are behind it, and whether it is relative.
type Stop = (String, u16, bool);

fn stop_of(data: &[u8]) -> Stop {
    let link = SymbolicLink::decode(data).unwrap();
    let target = link.substitute_name.decode().unwrap();
    (target, link.unparsed_path_bytes, link.flags == SymlinkFlags::RELATIVE)
}

/// Where a CREATE stops.
fn stop(client: &mut Client, opening: &Opening, path: &str) -> Stop {
    let reply = client.call(Command::Create, &opening.body(path));
    assert_eq!(reply.status(), NtStatus::STOPPED_ON_SYMLINK, "{path}");
    let response = Response::decode(&reply.message).unwrap();
    let contexts = response.contexts().unwrap();
    assert_eq!((contexts.len(), contexts[0].id), (1, ERROR_ID_DEFAULT));
    stop_of(contexts[0].data)
}

/// The target as FSCTL_GET_REPARSE_POINT tells it, and the one for people.
fn target(client: &mut Client, file: FileId) -> (String, String, bool) {
    let reply = ioctl(client, Fsctl::GetReparsePoint, file, &[], 16_384);
    assert_eq!(reply.status(), NtStatus::SUCCESS);
    match ReparsePoint::decode(&output(&reply)).unwrap() {
        ReparsePoint::Symlink { substitute_name, print_name, flags } => {
            (substitute_name.decode().unwrap(), print_name.decode().unwrap(), flags == 1)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_path_stops_at_a_link_and_the_client_learns_where_it_leads() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    Opening::directory().try_out(&mut client, "d").unwrap();
    make_file(&mut client, r"d\f", b"data");
    for (at, text) in [
        ("link", "d/f"),
        ("dir", "./d"),
        ("dangling", "nowhere/at/all"),
        ("up", "../../etc/passwd"),
        ("absolute", "/etc/passwd"),
        ("loop", "loop"),
        ("windows", r"\??\C:\Users\a"),
    ] {
        make_link(&server, at, text.as_bytes());
    }
    let mut at = |path: &str| stop(&mut client, &Opening::default(), path);
    assert_eq!(at("link"), (r"d\f".to_owned(), 0, true));
    assert_eq!(at("LINK"), (r"d\f".to_owned(), 0, true), "whatever the case");
    assert_eq!(at(r"dir\f"), (r".\d".to_owned(), 4, true));
    assert_eq!(at(r"dir\none\at\all"), (r".\d".to_owned(), 24, true), "and no further");
    assert_eq!(at(r"d\..\dir\.\f"), (r".\d".to_owned(), 8, true));
    assert_eq!(at("dir\\"), (r".\d".to_owned(), 2, true));
    assert_eq!(at("link:stream"), (r"d\f".to_owned(), 14, true));
    assert_eq!(at("dangling"), (r"nowhere\at\all".to_owned(), 0, true));
    assert_eq!(at("up"), (r"..\..\etc\passwd".to_owned(), 0, true));
    assert_eq!(at(r"absolute\x"), ("/etc/passwd".to_owned(), 4, false));
    assert_eq!(at("loop"), ("loop".to_owned(), 0, true));
    assert_eq!(at("windows"), (r"\??\C:\Users\a".to_owned(), 0, false));

    // Whatever the client wanted of it.
    for disposition in [CreateDisposition::Create, CreateDisposition::OpenIf, CreateDisposition::OverwriteIf]
    {
        assert!(stop(&mut client, &Opening::with(disposition), "dangling").2, "{disposition:?}");
    }
    let directory = Opening { options: CreateOptions::DIRECTORY_FILE, ..Opening::default() };
    assert_eq!(stop(&mut client, &directory, "dir").0, r".\d");
    assert_eq!(stop(&mut client, &itself(), r"dir\f").0, r".\d", "a link on the way, whatever the options");
    assert!(stored(&server, "nowhere").is_none(), "nothing was made through a link");
    assert_eq!(server.share.open_count().0, 0);
}

#[test]
fn the_target_comes_without_a_context_before_3_1_1() {
    let server = TestServer::start(Config::default());
    make_link(&server, "link", b"a/b");
    for dialect in [Dialect::Smb202, Dialect::Smb210, Dialect::Smb302] {
        let mut client = server.connect();
        client.negotiate(&[dialect]);
        client.log_in("ann", PASSWORD).unwrap();
        client.tree_connect(SHARE).unwrap();
        let reply = client.call(Command::Create, &Opening::default().body(r"link\c"));
        assert_eq!(reply.status(), NtStatus::STOPPED_ON_SYMLINK);
        let response = Response::decode(&reply.message).unwrap();
        assert_eq!(response.context_count, 0);
        assert_eq!(stop_of(response.data), (r"a\b".to_owned(), 4, true));
    }
}

#[test]
fn a_link_whose_target_no_client_can_express_is_an_error() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    make_link(&server, "odd", b"a\xff");
    let invalid = NtStatus::IO_REPARSE_DATA_INVALID;
    assert_eq!(Opening::default().try_out(&mut client, "odd"), Err(invalid));
    assert_eq!(Opening::default().try_out(&mut client, r"odd\f"), Err(invalid));
    let link = itself().send(&mut client, "odd").unwrap().id;
    assert_eq!(ioctl(&mut client, Fsctl::GetReparsePoint, link, &[], 16_384).status(), invalid);
    client.close(link).unwrap();
    assert_eq!(delete(&mut client, "odd"), Ok(()));
}

#[test]
fn what_a_compound_does_with_a_link_it_does_with_nothing() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    make_link(&server, "link", b"f");
    make_file(&mut client, "f", b"");
    let element = |command, related, body| Element { command, related, body };
    let all = information::Query::file(FileInfoClass::All).body(FileId::ANY);
    let replies = client.call_compound(&[
        element(Command::Create, false, Opening::default().body("f")),
        element(Command::Create, true, Opening::default().body("link")),
        element(Command::QueryInfo, true, all),
        element(Command::Close, true, close_body(FileId::ANY)),
    ]);
    let stopped = NtStatus::STOPPED_ON_SYMLINK;
    let statuses: Vec<_> = replies.iter().map(Reply::status).collect();
    assert_eq!(statuses, [NtStatus::SUCCESS, stopped, stopped, stopped]);
    assert_eq!(server.share.open_count().0, 1, "the file is open, and was not taken for the link");
}

#[test]
fn a_link_is_opened_itself_and_says_what_it_is() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    make_link(&server, "link", b"d/f");
    let reply = client.call(Command::Create, &itself().body("link")).ok().unwrap();
    let response = create::Response::decode(&reply.message).unwrap();
    let link = response.file_id;
    assert_eq!(response.flags, ResponseFlags::REPARSEPOINT);
    assert_eq!((response.file_attributes, response.end_of_file), (LINK, 3));
    assert_eq!(target(&mut client, link), (r"d\f".to_owned(), r"d\f".to_owned(), true));
    let told = AttributeTag::decode(&query(&mut client, link, FileInfoClass::AttributeTag).unwrap()).unwrap();
    assert_eq!((told.file_attributes, told.reparse_tag), (LINK, tag::SYMLINK));
    let all = query(&mut client, link, FileInfoClass::All).unwrap();
    let all = All::decode(&all).unwrap();
    assert_eq!((all.basic.file_attributes, all.standard.directory, all.ea.ea_size), (LINK, false, 0));
    assert_eq!((all.standard.number_of_links, all.name.name.decode().unwrap()), (1, r"\link".to_owned()));
    for class in
        [FileInfoClass::Basic, FileInfoClass::Standard, FileInfoClass::NetworkOpen, FileInfoClass::Id]
    {
        assert!(query(&mut client, link, class).is_ok(), "{class:?}");
    }
    let owner = information::Query::security(SecurityInformation::OWNER);
    assert!(owner.get(&mut client, link).is_ok());
    client.close(link).unwrap();
    let directory = CreateOptions::OPEN_REPARSE_POINT | CreateOptions::DIRECTORY_FILE;
    let directory = Opening { options: directory, ..Opening::default() };
    assert_eq!(directory.try_out(&mut client, "link"), Err(NtStatus::NOT_A_DIRECTORY));
    let create = Opening { disposition: CreateDisposition::Create, ..itself() };
    assert_eq!(create.try_out(&mut client, "link"), Err(NtStatus::OBJECT_NAME_COLLISION));
    let open_if = Opening { disposition: CreateDisposition::OpenIf, ..itself() };
    assert_eq!(open_if.try_out(&mut client, "link"), Ok(CreateAction::Opened));
}

#[test]
fn a_link_has_no_data_no_streams_and_no_attributes_of_its_own() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    make_link(&server, "link", b"f");
    let link = itself().send(&mut client, "link").unwrap().id;
    let no_data = NtStatus::INVALID_DEVICE_REQUEST;
    assert_eq!(client.read(link, 0, 10), Err(no_data));
    assert_eq!(client.write(link, 0, b"x"), Err(no_data));
    let cut = set(&mut client, link, FileInfoClass::EndOfFile, &[0; 8]);
    assert_eq!(cut, Err(NtStatus::INVALID_PARAMETER));
    // Clients clear FILE_ATTRIBUTE_READONLY before they delete.
    let mut basic = vec![0; 40];
    basic[32..36].copy_from_slice(&FileAttributes::NORMAL.bits().to_le_bytes());
    assert_eq!(set(&mut client, link, FileInfoClass::Basic, &basic), Ok(()));
    let told = AttributeTag::decode(&query(&mut client, link, FileInfoClass::AttributeTag).unwrap()).unwrap();
    assert_eq!(told.file_attributes, LINK, "nothing is kept of it");
    client.close(link).unwrap();
    for disposition in
        [CreateDisposition::Overwrite, CreateDisposition::OverwriteIf, CreateDisposition::Supersede]
    {
        let over = Opening { disposition, attributes: FileAttributes::ARCHIVE, ..itself() };
        assert_eq!(over.try_out(&mut client, "link"), Err(NtStatus::NOT_SUPPORTED), "{disposition:?}");
    }
    assert_eq!(itself().try_out(&mut client, "link:s"), Err(NtStatus::OBJECT_NAME_INVALID));
    assert_eq!(text(&server, "link"), "f");
}

/// What `room` bytes of the target tell.
#[test]
fn a_target_that_does_not_fit_is_told_in_part() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    make_link(&server, "link", b"target");
    make_file(&mut client, "file", b"");
    let link = itself().send(&mut client, "link").unwrap().id;
    let get = |client: &mut Client, file, room| ioctl(client, Fsctl::GetReparsePoint, file, &[], room);
    let whole = output(&get(&mut client, link, 16_384));
    assert_eq!(whole.len(), 8 + 12 + 24);
    for room in [8, 20, 43] {
        let reply = get(&mut client, link, room);
        assert_eq!(reply.status(), NtStatus::BUFFER_OVERFLOW);
        assert_eq!(output(&reply), whole[..usize::try_from(room).unwrap()]);
    }
    assert_eq!(get(&mut client, link, 44).status(), NtStatus::SUCCESS);
    assert_eq!(get(&mut client, link, 7).status(), NtStatus::BUFFER_TOO_SMALL);
    let file = Opening::default().send(&mut client, "file").unwrap().id;
    for code in [Fsctl::GetReparsePoint, Fsctl::DeleteReparsePoint] {
        assert_eq!(ioctl(&mut client, code, file, &[], 100).status(), NtStatus::NOT_A_REPARSE_POINT);
    }
    let delete = ReparsePoint::Other { tag: tag::SYMLINK, data: &[] };
    let mut input = Vec::new();
    delete.encode_into(&mut input).unwrap();
    let refused = ioctl(&mut client, Fsctl::DeleteReparsePoint, link, &input, 0).status();
    assert_eq!(refused, NtStatus::NOT_SUPPORTED, "a link does not become a file");
    assert_eq!(text(&server, "link"), "target");
    client.close(link).unwrap();
    assert_eq!(get(&mut client, link, 100).status(), NtStatus::FILE_CLOSED);
}

#[test]
fn links_are_listed_as_links_wherever_they_lead() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    make_file(&mut client, "file", b"12345");
    for (at, text) in [("link", "file"), ("dangling", "nowhere"), ("outside", "/etc/passwd")] {
        make_link(&server, at, text.as_bytes());
    }
    let dir = open_directory(&mut client, "");
    for (class, in_ea_size) in [
        (FileInfoClass::FullDirectory, true),
        (FileInfoClass::BothDirectory, true),
        (FileInfoClass::IdBothDirectory, true),
        (FileInfoClass::IdFullDirectory, true),
        (FileInfoClass::IdExtdDirectory, false),
        (FileInfoClass::IdExtdBothDirectory, false),
    ] {
        let flags = query_directory::QueryDirectoryFlags::RESTART_SCANS;
        let ask = directory::Query { class, flags, ..directory::Query::of("*") };
        let reply = client.call(Command::QueryDirectory, &ask.body(dir)).ok().unwrap();
        let data = query_directory::Response::decode(&reply.message).unwrap().output_buffer;
        let mut links = 0;
        for entry in entries(class, data).unwrap() {
            let entry: Entry<'_> = entry.unwrap();
            let is_link = entry.file_attributes == LINK;
            let expected = match (is_link, in_ea_size) {
                (false, _) => (0, 0),
                (true, true) => (tag::SYMLINK, 0),
                (true, false) => (0, tag::SYMLINK),
            };
            assert_eq!((entry.ea_size, entry.reparse_tag), expected, "{class:?}");
            links += usize::from(is_link);
        }
        assert_eq!(links, 3, "{class:?}");
    }
}

#[test]
fn links_themselves_are_renamed_linked_and_removed() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    Opening::directory().try_out(&mut client, "d").unwrap();
    make_file(&mut client, r"d\f", b"data");
    for (at, text) in [("link", "d/f"), ("dir", "d"), ("dangling", "nowhere"), ("loop", "loop")] {
        make_link(&server, at, text.as_bytes());
    }
    let named = |at: &str| {
        let mut out = Vec::new();
        let rename = Rename { flags: RenameFlags::REPLACE_IF_EXISTS, root_directory: 0, name: at.into() };
        rename.encode_into(&mut out).unwrap();
        out
    };
    let link = itself().send(&mut client, "link").unwrap().id;
    assert_eq!(set(&mut client, link, FileInfoClass::Rename, &named("renamed")), Ok(()));
    assert_eq!((text(&server, "renamed"), stored(&server, "link").is_none()), ("d/f".to_owned(), true));
    assert_eq!(set(&mut client, link, FileInfoClass::Link, &named("second")), Ok(()));
    assert_eq!(text(&server, "second"), "d/f");
    let on_the_way = set(&mut client, link, FileInfoClass::Rename, &named(r"dir\x"));
    assert_eq!(on_the_way, Err(NtStatus::OBJECT_PATH_NOT_FOUND), "not through a link");
    // Over another link, not over what that leads to.
    assert_eq!(set(&mut client, link, FileInfoClass::Rename, &named("dangling")), Ok(()));
    assert_eq!(text(&server, "dangling"), "d/f");
    client.close(link).unwrap();
    for at in ["second", "dir", "dangling", "loop"] {
        assert_eq!(delete(&mut client, at), Ok(()), "{at}");
        assert!(stored(&server, at).is_none(), "{at}");
    }
    let file = Opening { access: AccessMask::READ_ATTRIBUTES, ..Opening::default() };
    assert_eq!(file.try_out(&mut client, r"d\f"), Ok(CreateAction::Opened), "the links went, not the files");
}

/// The server has looked the name of a home up itself: it may be that of a link. What follows is the client's.
#[test]
fn a_home_may_be_a_link_of_the_server() {
    let server = TestServer::start(Config::default());
    let mut all = server.client();
    Opening::directory().try_out(&mut all, "volume").unwrap();
    make_file(&mut all, r"volume\f", b"data");
    make_link(&server, "ann", b"volume");
    server.share.set_terms(Terms::HOMES);
    let mut ann = server.connect();
    ann.negotiate(&[Dialect::Smb311]);
    ann.log_in("ann", PASSWORD).unwrap();
    ann.tree_connect(SHARE).unwrap();
    assert_eq!(Opening::default().try_out(&mut ann, "f"), Ok(CreateAction::Opened));
    let root = Opening { access: AccessMask::READ_ATTRIBUTES, ..Opening::default() };
    assert_eq!(root.try_out(&mut ann, ""), Ok(CreateAction::Opened));
    let link = made::link(&mut ann, "in", &made::relative("f")).unwrap();
    ann.close(link).unwrap();
    assert_eq!(stop(&mut ann, &Opening::default(), "in"), ("f".to_owned(), 0, true));
    // From the root of what the client sees.
    Opening::directory().try_out(&mut ann, "d").unwrap();
    let link = made::link(&mut ann, r"d\top", &made::relative(r"\f")).unwrap();
    assert_eq!(target(&mut ann, link).0, r"..\f");
}
