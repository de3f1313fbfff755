//! Named streams. [MS-FSA] 2.1.5.1, 2.1.5.5, 2.1.5.15; [MS-FSCC] 2.1.5.3, 2.4.49.

use std::sync::Arc;

use anabranch_smb_server::Config;
use smb_wire::change_notify::{ChangeNotifyFlags, CompletionFilter, Request, Response};
use smb_wire::create::{CreateAction, CreateDisposition, CreateOptions, ShareAccess};
use smb_wire::fscc::file_info::{
    All, AttributeTag, Basic, Disposition, EndOfFile, Internal, Name, Rename, RenameFlags, Standard, Stream,
};
use smb_wire::fscc::fs_info::{Attribute, FileSystemAttributes};
use smb_wire::fscc::fsctl::{Chunk, Copychunk, Fsctl, ResumeKey};
use smb_wire::fscc::notify::{Action, Change};
use smb_wire::fscc::{FileAttributes, FileInfoClass, FsInfoClass};
use smb_wire::query_info::InfoType;
use smb_wire::{AccessMask, Command, FileId, FileTime, NtStatus};
use storage::fault::{Call, Fault, FaultyStore, Rule};
use storage::memory::MemoryStore;
use storage_local::{LocalOptions, LocalStore};

use crate::client::{Client, Reply, TestServer};
use crate::information::{Query, query, set};
use crate::ioctl::{ioctl, output};
use crate::opening::{Opening, SHARE_ALL, delete, make_file};

const REPLACE: RenameFlags = RenameFlags::REPLACE_IF_EXISTS;
const KEEP: RenameFlags = RenameFlags::empty();

fn open(client: &mut Client, name: &str) -> FileId {
    Opening::default().send(client, name).unwrap().id
}

fn content(client: &mut Client, name: &str) -> Result<Vec<u8>, NtStatus> {
    let file = Opening::default().send(client, name)?.id;
    let data = match client.read(file, 0, 100) {
        Err(NtStatus::END_OF_FILE) => Ok(Vec::new()),
        read => read,
    };
    client.close(file).unwrap();
    data
}

/// The streams of an open file: their names as clients see them, and their sizes.
fn streams(client: &mut Client, file: FileId) -> Vec<(String, u64)> {
    let data = query(client, file, FileInfoClass::Stream).unwrap();
    let list = Stream::list(&data).map(Result::unwrap);
    let mut streams: Vec<_> = list.map(|s| (s.name.decode().unwrap(), s.stream_size)).collect();
    streams.sort();
    streams
}

fn listed(streams: &[(&str, u64)]) -> Vec<(String, u64)> {
    streams.iter().map(|(name, size)| ((*name).to_owned(), *size)).collect()
}

fn streams_of(client: &mut Client, name: &str) -> Vec<(String, u64)> {
    let access = AccessMask::READ_ATTRIBUTES;
    let file = Opening { access, ..Opening::default() }.send(client, name).unwrap().id;
    let streams = streams(client, file);
    client.close(file).unwrap();
    streams
}

fn rename(client: &mut Client, file: FileId, name: &str, flags: RenameFlags) -> Result<(), NtStatus> {
    let mut wanted = Vec::new();
    Rename { flags, root_directory: 0, name: name.into() }.encode_into(&mut wanted).unwrap();
    set(client, file, FileInfoClass::Rename, &wanted)
}

fn mark(client: &mut Client, file: FileId, delete_pending: bool) -> Result<(), NtStatus> {
    let mut wanted = Vec::new();
    Disposition { delete_pending }.encode_into(&mut wanted);
    set(client, file, FileInfoClass::Disposition, &wanted)
}

#[test]
fn a_stream_is_made_with_its_file() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    make_file(&mut client, "f:one", b"first");
    make_file(&mut client, "f:two:$data", b"");
    assert_eq!(streams_of(&mut client, "f"), listed(&[("::$DATA", 0), (":one:$DATA", 5), (":two:$DATA", 0)]));
    assert_eq!(streams_of(&mut client, "f:ONE").len(), 3, "through whichever of them");
    assert_eq!(content(&mut client, "f").unwrap(), b"");
    assert_eq!(content(&mut client, "F:One:$DATA").unwrap(), b"first");
    assert_eq!(content(&mut client, "f:three"), Err(NtStatus::OBJECT_NAME_NOT_FOUND));
    assert_eq!(content(&mut client, "g:one"), Err(NtStatus::OBJECT_NAME_NOT_FOUND));
    assert_eq!(content(&mut client, r"none\f:one"), Err(NtStatus::OBJECT_PATH_NOT_FOUND));
}

#[test]
fn every_disposition_applies_to_the_stream() {
    use CreateDisposition::{Create, Open, OpenIf, Overwrite, OverwriteIf, Supersede};
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    make_file(&mut client, "f", b"the file");
    for (at, disposition, made) in [
        ("a", Open, Err(NtStatus::OBJECT_NAME_NOT_FOUND)),
        ("a", Overwrite, Err(NtStatus::OBJECT_NAME_NOT_FOUND)),
        ("a", Create, Ok(CreateAction::Created)),
        ("b", OpenIf, Ok(CreateAction::Created)),
        ("c", OverwriteIf, Ok(CreateAction::Created)),
        ("d", Supersede, Ok(CreateAction::Created)),
        ("A", Create, Err(NtStatus::OBJECT_NAME_COLLISION)),
        ("A", OpenIf, Ok(CreateAction::Opened)),
        ("a", Overwrite, Ok(CreateAction::Overwritten)),
        ("b", OverwriteIf, Ok(CreateAction::Overwritten)),
        ("c", Supersede, Ok(CreateAction::Superseded)),
    ] {
        let name = format!("f:{at}");
        assert_eq!(Opening::with(disposition).try_out(&mut client, &name), made, "{disposition:?} {at}");
        if made.is_ok() {
            let stream = open(&mut client, &name);
            client.write(stream, 0, b"data").unwrap();
            client.close(stream).unwrap();
        }
    }
    let stream = Opening::with(Overwrite).send(&mut client, "f:a").unwrap();
    assert_eq!(stream.end_of_file, 0);
    client.close(stream.id).unwrap();
    assert_eq!(content(&mut client, "f").unwrap(), b"the file", "which nothing of this has touched");
    assert_eq!(streams_of(&mut client, "f").len(), 5);
}

#[test]
fn overwriting_a_file_takes_its_streams() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    make_file(&mut client, "f:s", b"data");
    let held = open(&mut client, "f:s");
    Opening::with(CreateDisposition::Overwrite).try_out(&mut client, "f").unwrap();
    assert_eq!(streams_of(&mut client, "f"), listed(&[("::$DATA", 0)]));
    assert_eq!(client.read(held, 0, 10).unwrap(), b"data", "who has it open keeps it");
    make_file(&mut client, "f:s", b"another");
    client.close(held).unwrap();
    assert_eq!(content(&mut client, "f:s").unwrap(), b"another");
}

#[test]
fn times_and_attributes_are_those_of_the_file() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    make_file(&mut client, "f:s", b"data");
    let (file, stream) = (open(&mut client, "f"), open(&mut client, "f:s"));
    let basic =
        |client: &mut Client, id| Basic::decode(&query(client, id, FileInfoClass::Basic).unwrap()).unwrap();
    let number = |client: &mut Client, id| {
        Internal::decode(&query(client, id, FileInfoClass::Internal).unwrap()).unwrap().index_number
    };
    assert_eq!(number(&mut client, file), number(&mut client, stream));
    assert_eq!(basic(&mut client, file), basic(&mut client, stream));
    let wanted = Basic {
        creation_time: FileTime::from_unix(1000, 0),
        last_access_time: FileTime::UNSET,
        last_write_time: FileTime::from_unix(2000, 0),
        change_time: FileTime::UNSET,
        file_attributes: FileAttributes::HIDDEN,
    };
    let mut buffer = Vec::new();
    wanted.encode_into(&mut buffer);
    set(&mut client, stream, FileInfoClass::Basic, &buffer).unwrap();
    let now = basic(&mut client, file);
    assert_eq!(now.creation_time, FileTime::from_unix(1000, 0));
    assert_eq!(now.last_write_time, FileTime::from_unix(2000, 0));
    assert_eq!(now.file_attributes, FileAttributes::HIDDEN);
    let other = open(&mut client, "f:s");
    client.write(other, 0, b"new").unwrap();
    assert!(basic(&mut client, file).last_write_time > FileTime::from_unix(2000, 0), "the file was modified");
    let tag = query(&mut client, stream, FileInfoClass::AttributeTag).unwrap();
    assert_eq!(AttributeTag::decode(&tag).unwrap().file_attributes, FileAttributes::HIDDEN);
}

#[test]
fn sizes_and_names_are_those_of_the_stream() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    Opening::directory().try_out(&mut client, "d").unwrap();
    make_file(&mut client, r"d\f", b"the file");
    make_file(&mut client, r"d\f:Stream", b"data");
    let stream = open(&mut client, r"D\F:STREAM");
    let standard = |client: &mut Client| {
        Standard::decode(&query(client, stream, FileInfoClass::Standard).unwrap()).unwrap()
    };
    assert_eq!(standard(&mut client).end_of_file, 4);
    assert!(!standard(&mut client).directory);
    let mut size = Vec::new();
    EndOfFile { end_of_file: 100 << 20 }.encode_into(&mut size);
    set(&mut client, stream, FileInfoClass::EndOfFile, &size).unwrap();
    assert_eq!(standard(&mut client).end_of_file, 100 << 20);
    client.write(stream, (100 << 20) - 3, b"end").unwrap();
    assert_eq!(client.read(stream, (100 << 20) - 4, 10).unwrap(), b"\0end");
    assert!(standard(&mut client).allocation_size < 1 << 20, "most of it is a hole");
    let all = query(&mut client, stream, FileInfoClass::All).unwrap();
    assert_eq!(All::decode(&all).unwrap().name.name, r"\d\f:Stream");
    let name = query(&mut client, stream, FileInfoClass::NormalizedName).unwrap();
    assert_eq!(Name::decode(&name).unwrap().name, r"d\f:Stream");
    assert_eq!(content(&mut client, r"d\f").unwrap(), b"the file");
}

#[test]
fn streams_do_not_share_with_each_other() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    for name in ["f", "f:a", "f:b"] {
        make_file(&mut client, name, b"");
    }
    let alone =
        Opening { sharing: ShareAccess::empty(), access: AccessMask::WRITE_DATA, ..Opening::default() };
    let held = ["f", "f:a", "f:b"].map(|name| alone.send(&mut client, name).unwrap().id);
    for name in ["f", "f:A", "f:b:$DATA", "f::$DATA"] {
        assert_eq!(alone.try_out(&mut client, name), Err(NtStatus::SHARING_VIOLATION), "{name}");
    }
    client.close(held[1]).unwrap();
    assert!(alone.try_out(&mut client, "f:a").is_ok());
}

#[test]
fn a_stream_that_does_not_share_deletion_keeps_its_file() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    make_file(&mut client, "f:s", b"data");
    let sharing = ShareAccess::READ | ShareAccess::WRITE;
    let held = Opening { sharing, access: AccessMask::READ_DATA, ..Opening::default() };
    let held = held.send(&mut client, "f:s").unwrap().id;
    assert_eq!(delete(&mut client, "f"), Err(NtStatus::SHARING_VIOLATION));
    assert_eq!(Opening::default().try_out(&mut client, "f"), Err(NtStatus::SHARING_VIOLATION), "with DELETE");
    let reads = Opening { access: AccessMask::READ_DATA, sharing, ..Opening::default() };
    let file = reads.send(&mut client, "f").unwrap().id;
    client.close(held).unwrap();
    assert_eq!(delete(&mut client, "f:s"), Ok(()), "the file's own open has no say in that");
    client.close(file).unwrap();
}

#[test]
fn a_deleted_file_goes_with_the_last_open_of_a_stream() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    make_file(&mut client, "f:s", b"data");
    let held = open(&mut client, "f:s");
    delete(&mut client, "f").unwrap();
    assert_eq!(client.read(held, 0, 10).unwrap(), b"data");
    for name in ["f", "f:s", "f:new"] {
        let opening = Opening::with(CreateDisposition::OpenIf);
        assert_eq!(opening.try_out(&mut client, name), Err(NtStatus::DELETE_PENDING), "{name}");
    }
    client.close(held).unwrap();
    assert_eq!(content(&mut client, "f"), Err(NtStatus::OBJECT_NAME_NOT_FOUND));
    make_file(&mut client, "f", b"");
    assert_eq!(streams_of(&mut client, "f"), listed(&[("::$DATA", 0)]), "a new file");
}

#[test]
fn a_stream_is_deleted_alone() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    for name in ["f:on close", "f:marked", "f:spared"] {
        make_file(&mut client, name, b"data");
    }
    let options = CreateOptions::DELETE_ON_CLOSE;
    Opening { options, ..Opening::default() }.try_out(&mut client, "f:on close").unwrap();
    let (marked, second) = (open(&mut client, "f:marked"), open(&mut client, "f:marked"));
    mark(&mut client, marked, true).unwrap();
    let standard = query(&mut client, second, FileInfoClass::Standard).unwrap();
    assert!(Standard::decode(&standard).unwrap().delete_pending);
    assert_eq!(Opening::default().try_out(&mut client, "f:marked"), Err(NtStatus::DELETE_PENDING));
    assert!(Opening::default().try_out(&mut client, "f").is_ok(), "the file is not");
    client.close(marked).unwrap();
    client.close(second).unwrap();
    let spared = open(&mut client, "f:spared");
    mark(&mut client, spared, true).unwrap();
    mark(&mut client, spared, false).unwrap();
    client.close(spared).unwrap();
    assert_eq!(streams_of(&mut client, "f"), listed(&[("::$DATA", 0), (":spared:$DATA", 4)]));
}

#[test]
fn a_stream_is_renamed() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    for (name, data) in [("f:a", &b"data"[..]), ("f:empty", b""), ("f:full", b"x"), ("f:busy", b"")] {
        make_file(&mut client, name, data);
    }
    let busy = open(&mut client, "f:busy");
    let stream = open(&mut client, "f:a");
    rename(&mut client, stream, ":A", KEEP).unwrap();
    rename(&mut client, stream, ":b:$DATA", KEEP).unwrap();
    assert_eq!(rename(&mut client, stream, ":EMPTY", KEEP), Err(NtStatus::OBJECT_NAME_COLLISION));
    for name in [":full", ":busy", ":", ":x:", ":x:y:z"] {
        assert_eq!(rename(&mut client, stream, name, REPLACE), Err(NtStatus::INVALID_PARAMETER), "{name}");
    }
    assert_eq!(
        rename(&mut client, stream, ":x:$INDEX_ALLOCATION", KEEP),
        Err(NtStatus::OBJECT_TYPE_MISMATCH)
    );
    rename(&mut client, stream, ":Empty", REPLACE).unwrap();
    client.write(stream, 0, b"DATA").unwrap();
    let all = query(&mut client, stream, FileInfoClass::All).unwrap();
    assert_eq!(All::decode(&all).unwrap().name.name, r"\f:Empty");
    client.close(stream).unwrap();
    assert_eq!(content(&mut client, "f:empty").unwrap(), b"DATA");
    let expected = [("::$DATA", 0), (":Empty:$DATA", 4), (":busy:$DATA", 0), (":full:$DATA", 1)];
    assert_eq!(streams_of(&mut client, "f"), listed(&expected));
    client.close(busy).unwrap();
}

#[test]
fn streams_move_with_their_file_unless_they_are_open() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    make_file(&mut client, "f:s", b"data");
    let (file, stream) = (open(&mut client, "f"), open(&mut client, "f:s"));
    assert_eq!(rename(&mut client, file, "g", KEEP), Err(NtStatus::ACCESS_DENIED));
    client.close(stream).unwrap();
    rename(&mut client, file, "g", KEEP).unwrap();
    assert_eq!(content(&mut client, "g:s").unwrap(), b"data");
    assert_eq!(content(&mut client, "f:s"), Err(NtStatus::OBJECT_NAME_NOT_FOUND));
    assert_eq!(rename(&mut client, file, "h:s", KEEP), Err(NtStatus::OBJECT_NAME_INVALID));
}

#[test]
fn directories_have_streams() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    Opening::directory().try_out(&mut client, "d").unwrap();
    make_file(&mut client, "d:s", b"data");
    let access = AccessMask::WRITE_DATA;
    let write = Opening { access, ..Opening::with(CreateDisposition::Create) };
    assert_eq!(write.try_out(&mut client, ":root"), Ok(CreateAction::Created));
    assert_eq!(streams_of(&mut client, "d"), listed(&[(":s:$DATA", 4)]));
    assert_eq!(streams_of(&mut client, ""), listed(&[(":root:$DATA", 0)]));
    assert_eq!(content(&mut client, "d:s").unwrap(), b"data");
    let stream = open(&mut client, "d:s");
    let basic = Basic::decode(&query(&mut client, stream, FileInfoClass::Basic).unwrap()).unwrap();
    assert!(!basic.file_attributes.contains(FileAttributes::DIRECTORY));
    client.close(stream).unwrap();
    let directory = Opening { options: CreateOptions::DIRECTORY_FILE, ..Opening::default() };
    assert_eq!(directory.try_out(&mut client, "d:s"), Err(NtStatus::NOT_A_DIRECTORY));
    assert_eq!(directory.try_out(&mut client, "d::$DATA"), Err(NtStatus::NOT_A_DIRECTORY));
    assert_eq!(Opening::default().try_out(&mut client, "d::$DATA"), Err(NtStatus::FILE_IS_A_DIRECTORY));
    assert!(directory.try_out(&mut client, "d::$INDEX_ALLOCATION").is_ok());
    assert!(Opening::default().try_out(&mut client, "d:$I30:$INDEX_ALLOCATION").is_ok());
    assert_eq!(delete(&mut client, "d"), Ok(()), "a directory with streams is empty");
    assert_eq!(content(&mut client, "d"), Err(NtStatus::OBJECT_NAME_NOT_FOUND));
}

#[test]
fn whoever_may_not_write_to_a_file_makes_no_streams() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    make_file(&mut client, "f", b"");
    let mut other = server.connect();
    other.negotiate(&[smb_proto::dialect::Dialect::Smb311]);
    other.log_in(crate::client::OTHER_USER, crate::client::PASSWORD).unwrap();
    other.tree_connect(crate::client::SHARE).unwrap();
    let access = AccessMask::READ_DATA;
    let reads = Opening { access, ..Opening::with(CreateDisposition::OpenIf) };
    assert_eq!(reads.try_out(&mut other, "f:s"), Err(NtStatus::ACCESS_DENIED));
    make_file(&mut client, "f:s", b"");
    assert_eq!(reads.try_out(&mut other, "f:s"), Ok(CreateAction::Opened));
}

#[test]
fn chunks_are_copied_between_streams() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    make_file(&mut client, "f:a", b"0123456789");
    make_file(&mut client, "f:b", b"");
    let (source, target) = (open(&mut client, "f:a"), open(&mut client, "f:b"));
    let key = ioctl(&mut client, Fsctl::SrvRequestResumeKey, source, &[], 100);
    let source_key = ResumeKey::decode(&output(&key)).unwrap().resume_key;
    let chunks = vec![Chunk { source_offset: 2, target_offset: 0, length: 5 }];
    let mut input = Vec::new();
    Copychunk { source_key, chunks }.encode_into(&mut input).unwrap();
    let copied = ioctl(&mut client, Fsctl::SrvCopychunk, target, &input, 100);
    assert_eq!(copied.status(), NtStatus::SUCCESS);
    assert_eq!(client.read(target, 0, 100).unwrap(), b"23456");
    assert_eq!(content(&mut client, "f").unwrap(), b"");
}

#[test]
fn names_at_the_edge() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let longest = "\u{20ac}".repeat(255);
    let names = ["?*<>|\"", "\u{5}a\n", ".", "..", " ", "$DATA", "Zone.Identifier", longest.as_str()];
    for name in names {
        make_file(&mut client, &format!("f:{name}"), name.as_bytes());
    }
    let shown: Vec<_> = streams_of(&mut client, "f").into_iter().map(|(name, _)| name).collect();
    for name in names {
        assert!(shown.contains(&format!(":{name}:$DATA")), "{name:?}");
        let first = name.as_bytes()[..name.len().min(100)].to_vec();
        assert_eq!(content(&mut client, &format!("f:{name}:$DATA")), Ok(first));
    }
    let too_long = Opening::with(CreateDisposition::Create).try_out(&mut client, &format!("f:{longest}x"));
    assert_eq!(too_long, Err(NtStatus::OBJECT_NAME_INVALID));
}

#[test]
fn a_file_system_without_streams_says_so() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    make_file(&mut client, "f", b"");
    let file = open(&mut client, "f");
    let class = FsInfoClass::Attribute.into();
    let ask = Query { info_type: InfoType::FileSystem, class, additional: 0, limit: 1000 };
    let answer = ask.get(&mut client, file).unwrap();
    let can = Attribute::decode(&answer).unwrap().file_system_attributes;
    assert!(can.contains(FileSystemAttributes::NAMED_STREAMS));
}

/// Neither a file without the stream that was asked for, nor a stream that nobody has open, is left.
#[test]
fn what_fails_leaves_nothing_half_made() {
    let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::new())));
    let server = TestServer::start_on(Config::default(), Arc::clone(&store) as Arc<dyn storage::Storage>);
    let mut client = server.client();
    let make = |client: &mut Client| Opening::with(CreateDisposition::Create).try_out(client, "f:s");
    store.inject(Rule::once(Call::CreateStream, Fault::Fail(storage::Error::NoSpace)));
    assert_eq!(make(&mut client), Err(NtStatus::DISK_FULL));
    assert_eq!(content(&mut client, "f"), Err(NtStatus::OBJECT_NAME_NOT_FOUND));
    assert_eq!(make(&mut client), Ok(CreateAction::Created));
    let stream = open(&mut client, "f:s");
    mark(&mut client, stream, true).unwrap();
    store.inject(Rule::once(Call::RemoveStream, Fault::Fail(storage::Error::Io(5))));
    client.close(stream).unwrap();
    assert_eq!(streams_of(&mut client, "f").len(), 2, "it could not be removed");
    assert!(Opening::default().try_out(&mut client, "f:s").is_ok(), "so it is there");
    let alone = Opening { sharing: ShareAccess::READ, ..Opening::with(CreateDisposition::Create) };
    let deleter = Opening { sharing: SHARE_ALL, access: AccessMask::DELETE, ..Opening::default() };
    let deleter = deleter.send(&mut client, "f").unwrap().id;
    assert_eq!(alone.try_out(&mut client, "f:new"), Err(NtStatus::SHARING_VIOLATION));
    assert_eq!(streams_of(&mut client, "f").len(), 2);
    client.close(deleter).unwrap();
}

fn watch(client: &mut Client, dir: FileId, filter: CompletionFilter) -> Reply {
    let flags = ChangeNotifyFlags::empty();
    let request = Request { flags, output_buffer_length: 1000, file_id: dir, completion_filter: filter };
    let mut body = Vec::new();
    request.encode(&mut body);
    client.call(Command::ChangeNotify, &body)
}

#[test]
fn watchers_are_told_of_streams() {
    let filter =
        CompletionFilter::STREAM_NAME | CompletionFilter::STREAM_SIZE | CompletionFilter::STREAM_WRITE;
    let server = TestServer::start(Config::default());
    let (mut watcher, mut client) = (server.client(), server.client());
    Opening::directory().try_out(&mut client, "d").unwrap();
    make_file(&mut client, r"d\f", b"");
    let dir = Opening { options: CreateOptions::DIRECTORY_FILE, ..Opening::default() };
    let dir = dir.send(&mut watcher, "d").unwrap().id;
    assert_eq!(watch(&mut watcher, dir, filter).status(), NtStatus::PENDING);
    let told = |reply: &Reply| -> Vec<(Action, String)> {
        let data = Response::decode(&reply.message).unwrap().output_buffer;
        let list = Change::list(data).map(Result::unwrap);
        list.map(|change| (change.action, change.name.decode().unwrap())).collect()
    };
    make_file(&mut client, r"d\f:s", b"");
    assert_eq!(told(&watcher.receive()), [(Action::AddedStream, "f:s".to_owned())]);
    assert_eq!(watch(&mut watcher, dir, filter).status(), NtStatus::PENDING);
    let stream = open(&mut client, r"d\f:s");
    client.write(stream, 0, b"data").unwrap();
    assert_eq!(told(&watcher.receive()), [(Action::ModifiedStream, "f:s".to_owned())]);
    assert_eq!(watch(&mut watcher, dir, filter).status(), NtStatus::PENDING);
    mark(&mut client, stream, true).unwrap();
    client.close(stream).unwrap();
    assert_eq!(told(&watcher.receive()), [(Action::RemovedStream, "f:s".to_owned())]);
}

/// The share's directory is copied by a local program, and a file in it: all of them have the streams.
#[test]
fn local_copies_have_streams_of_their_own() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let copy = |from: &str, to: &str| {
        let copied = std::process::Command::new("cp").arg("-a").args([at(from), at(to)]).status();
        assert!(copied.unwrap().success());
    };
    let serve = |name: &str| {
        let store = LocalStore::open(&at(name), LocalOptions::default()).unwrap();
        TestServer::start_on(Config::default(), Arc::new(store))
    };
    std::fs::create_dir(at("share")).unwrap();
    let server = serve("share");
    let mut client = server.client();
    make_file(&mut client, "f:s", b"data");
    copy("share/f", "share/g");
    copy("share", "copy");
    let other = serve("copy");
    let mut other = other.client();
    for (client, data) in [(&mut client, b"here"), (&mut other, b"copy")] {
        // From now on each has its own.
        assert_eq!(
            (content(client, "f:s").unwrap(), content(client, "g:s").unwrap()),
            (b"data".into(), b"data".into())
        );
        let stream = open(client, "g:s");
        client.write(stream, 0, data).unwrap();
        client.close(stream).unwrap();
        assert_eq!(content(client, "f:s").unwrap(), b"data");
        delete(client, "f").unwrap();
        assert_eq!(content(client, "g:s").unwrap(), data);
    }
}
