//! Parts of files (NFSv4.2): ALLOCATE, DEALLOCATE, SEEK, READ_PLUS, COPY, CLONE, IO_ADVISE.

use nfs_wire::v4::compound::{ArgOp, ResOp};
use nfs_wire::v4::copy::{NetLoc, Requirements};
use nfs_wire::v4::io_advise::hint;
use nfs_wire::v4::open::{How, ShareAccess, ShareDeny, Want};
use nfs_wire::v4::read_plus::Content;
use nfs_wire::v4::seek::content;
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::{Bitmap, Stateid, Text, Verifier};
use nfs_wire::v4::{allocate, clone, copy, deallocate, io_advise, read_plus, seek};

use crate::client::{V4Client, put};
use crate::server::{TestServer, listed};

const ANY: Stateid = Stateid::ANONYMOUS;

fn started() -> (TestServer, V4Client, Vec<u8>) {
    let server = TestServer::start();
    let client = V4Client::start_minor(server.address, "one", 2);
    let root = server.mounted().1.as_bytes().to_vec();
    (server, client, root)
}

/// A file with these bytes.
fn file(client: &mut V4Client, root: &[u8], name: &str, data: &[u8]) -> (Stateid, Vec<u8>) {
    let (stateid, file) = client.open(root, name);
    if !data.is_empty() {
        client.write(&file, stateid, 0, data);
    }
    (stateid, file)
}

/// Whether the end was reached, data by its offset, holes by offset and length.
type DataAndHoles = (bool, Vec<(u64, Vec<u8>)>, Vec<(u64, u64)>);

fn read_plus(
    client: &mut V4Client,
    (stateid, file): (Stateid, &[u8]),
    offset: u64,
    count: u32,
) -> DataAndHoles {
    let reply = client.ok(&[put(file), ArgOp::ReadPlus(read_plus::Args { stateid, offset, count })]);
    let ResOp::ReadPlus(Ok(ok)) = reply.last() else { panic!("{reply:?}") };
    let (mut data, mut holes) = (Vec::new(), Vec::new());
    for part in ok.contents {
        match part {
            Content::Data { offset, data: bytes } => data.push((offset, bytes.to_vec())),
            Content::Hole { offset, length } => holes.push((offset, length)),
        }
    }
    (ok.eof, data, holes)
}

/// COPY of one file's part to another's.
pub(crate) fn copy_args(
    from: Stateid,
    to: Stateid,
    (offset, to_offset, count): (u64, u64, u64),
) -> copy::Args<'static> {
    copy::Args {
        source_stateid: from,
        destination_stateid: to,
        source_offset: offset,
        destination_offset: to_offset,
        count,
        consecutive: true,
        synchronous: false,
        source_servers: Vec::new(),
    }
}

pub(crate) fn between<'a>(from: &'a [u8], to: &'a [u8], operation: ArgOp<'a>) -> [ArgOp<'a>; 4] {
    [put(from), ArgOp::SaveFh, put(to), operation]
}

fn copied(client: &mut V4Client, from: &[u8], to: &[u8], args: copy::Args<'_>) -> copy::ResOk {
    let reply = client.ok(&between(from, to, ArgOp::Copy(args)));
    let ResOp::Copy(Ok(ok)) = reply.last() else { panic!("{reply:?}") };
    ok
}

#[test]
fn holes_are_made_found_and_left_out_of_reads() {
    let (_server, mut client, root) = started();
    let (stateid, file) = file(&mut client, &root, "file", &[7; 3 * 65536]);
    let punch = deallocate::Args { stateid, offset: 65536, length: 65536 };
    client.ok(&[put(&file), ArgOp::Deallocate(punch)]);
    let mut seek = |offset, what| {
        let reply = client.compound(&[put(&file), ArgOp::Seek(seek::Args { stateid, offset, what })]);
        match reply.last() {
            ResOp::Seek(Ok(ok)) => Ok((ok.eof, ok.offset)),
            _ => Err(reply.status.unwrap_err()),
        }
    };
    assert_eq!(seek(0, content::HOLE), Ok((false, 65536)));
    assert_eq!(seek(65536, content::DATA), Ok((false, 131_072)));
    assert_eq!(seek(131_072, content::HOLE).unwrap().1, 196_608, "the end is a hole");
    assert_eq!(seek(196_608, content::DATA), Err(Status::NxIo));
    assert_eq!(seek(0, 2), Err(Status::UnionNotSupp));
    let (eof, data, holes) = read_plus(&mut client, (stateid, &file), 60_000, 100_000);
    assert!(!eof);
    assert_eq!(data, [(60_000, vec![7; 5536]), (131_072, vec![7; 28_928])]);
    assert_eq!(holes, [(65536, 65536)]);
    // Of a hole no more is told than was asked for; without a hole it is as with READ.
    assert_eq!(read_plus(&mut client, (ANY, &file), 70_000, 10), (false, vec![], vec![(70_000, 10)]));
    assert_eq!(read_plus(&mut client, (ANY, &file), 0, 4), (false, vec![(0, vec![7; 4])], vec![]));
    let end = read_plus(&mut client, (stateid, &file), 196_600, 100);
    assert_eq!(end, (true, vec![(196_600, vec![7; 8])], vec![]));
    assert_eq!(read_plus(&mut client, (stateid, &file), 200_000, 100), (true, vec![], vec![]));
    assert_eq!(read_plus(&mut client, (stateid, &file), 5, 0), (false, vec![], vec![]));
    let directory = read_plus::Args { stateid: ANY, offset: 0, count: 1 };
    assert_eq!(client.fails(&[put(&root), ArgOp::ReadPlus(directory)]), Status::IsDir);
}

#[test]
fn space_is_set_aside() {
    let (_server, mut client, root) = started();
    let (stateid, file) = file(&mut client, &root, "file", b"data");
    let mut allocate = |object: &[u8], stateid, offset, length| {
        let args = allocate::Args { stateid, offset, length };
        client.compound(&[put(object), ArgOp::Allocate(args)]).status
    };
    assert_eq!(allocate(&file, stateid, 0, 100_000), Ok(()));
    assert_eq!(allocate(&file, stateid, 0, 0), Err(Status::Inval));
    assert_eq!(allocate(&file, stateid, u64::MAX, 2), Err(Status::FBig));
    assert_eq!(allocate(&file, Stateid { seqid: 9, ..stateid }, 0, 1), Err(Status::BadStateId));
    assert_eq!(allocate(&root, ANY, 0, 1), Err(Status::WrongType));
    let data = client.read(&file, stateid, 0, 1 << 17);
    assert_eq!((data.len(), &data[..4]), (100_000, &b"data"[..]));
}

#[test]
fn the_server_copies_and_tells_how_much() {
    let (_server, mut client, root) = started();
    let (from, source) = file(&mut client, &root, "from", b"0123456789");
    let (to, target) = file(&mut client, &root, "to", b"");
    let ok = copied(&mut client, &source, &target, copy_args(from, to, (2, 3, 5)));
    assert_eq!((ok.response.count, ok.response.callback_id), (5, None));
    assert_eq!(ok.response.verifier, Verifier([1; 8]), "as WRITE tells it");
    assert_eq!(ok.requirements, Requirements { consecutive: true, synchronous: true });
    assert_eq!(client.read(&target, to, 0, 100), b"\0\0\x0023456");
    // 0 is up to the end.
    assert_eq!(copied(&mut client, &source, &target, copy_args(from, to, (4, 0, 0))).response.count, 6);
    assert_eq!(client.read(&target, to, 0, 100), b"45678956");
    assert_eq!(copied(&mut client, &source, &target, copy_args(from, to, (10, 0, 0))).response.count, 0);
}

#[test]
fn copies_that_are_refused() {
    let (server, mut client, root) = started();
    let (from, source) = file(&mut client, &root, "from", b"0123456789");
    let (to, target) = file(&mut client, &root, "to", b"kept");
    let args = copy_args(from, to, (0, 0, 5));
    let mut refused =
        |source: &[u8], target: &[u8], args| client.fails(&between(source, target, ArgOp::Copy(args)));
    for part in [(11, 0, 0), (6, 0, 5), (0, 0, u64::MAX)] {
        assert_eq!(refused(&source, &target, copy_args(from, to, part)), Status::Inval, "{part:?}");
    }
    assert_eq!(refused(&source, &target, copy_args(from, to, (0, u64::MAX, 1))), Status::FBig);
    assert_eq!(refused(&source, &source, copy_args(from, from, (0, 20, 5))), Status::Inval, "one file");
    assert_eq!(refused(&root, &target, copy_args(ANY, to, (0, 0, 5))), Status::WrongType);
    assert_eq!(refused(&source, &root, copy_args(from, ANY, (0, 0, 5))), Status::WrongType);
    assert_eq!(refused(&source, &target, copy_args(to, to, (0, 0, 5))), Status::BadStateId);
    let name = NetLoc::Name(Text(b"elsewhere"));
    let of_another = copy::Args { source_servers: vec![name], ..args.clone() };
    assert_eq!(refused(&source, &target, of_another), Status::NotSupp);
    // From another share.
    let (elsewhere, mut other) = (client.path("/other"), V4Client::start_minor(server.address, "two", 2));
    let (of_other, there) = file(&mut other, &elsewhere, "there", b"there");
    let from_there = between(&there, &target, ArgOp::Copy(copy_args(ANY, to, (0, 0, 5))));
    assert_eq!(client.fails(&from_there), Status::XDev);
    let not_mine = between(&there, &target, ArgOp::Copy(copy_args(of_other, to, (0, 0, 5))));
    assert_eq!(client.fails(&not_mine), Status::BadStateId);
    let unsaved = [put(&target), ArgOp::Copy(args)];
    assert_eq!(client.fails(&unsaved), Status::NoFileHandle);
    assert_eq!(client.read(&target, to, 0, 100), b"kept");
}

#[test]
fn a_copy_of_much_is_short_and_others_are_served_meanwhile() {
    const MUCH: u64 = 100 << 20;
    let (server, mut client, root) = started();
    let (from, source) = file(&mut client, &root, "from", b"begin");
    client.write(&source, from, MUCH - 3, b"end");
    let (to, target) = file(&mut client, &root, "to", b"");
    let mut done = 0;
    let mut calls = 0;
    while done < MUCH {
        let left = copy::Args { synchronous: true, ..copy_args(from, to, (done, done, MUCH - done)) };
        let xid = client.send_on(0, &between(&source, &target, ArgOp::Copy(left)));
        let mut other = client.another_connection(server.address);
        other.session.slots[1] = calls;
        let other_slot = other.send_on(1, &[put(&root), ArgOp::GetFh]);
        assert_eq!(other.receive(other_slot).status, Ok(()));
        let reply = client.receive(xid);
        let ResOp::Copy(Ok(ok)) = reply.last() else { panic!("{reply:?}") };
        assert!((1..=64 << 20).contains(&ok.response.count), "{ok:?}");
        done += ok.response.count;
        calls += 1;
    }
    assert_eq!(calls, 2);
    assert_eq!(client.read(&target, to, 0, 5), b"begin");
    assert_eq!(client.read(&target, to, MUCH - 3, 5), b"end");
}

#[test]
fn rights_and_deny_modes_hold_for_copies() {
    let (server, mut client, root) = started();
    let (from, source) = file(&mut client, &root, "from", b"secret");
    let (to, target) = file(&mut client, &root, "to", b"");
    client.become_user(1000, 100, &[]);
    // The superuser has made and opened both; the user of the same client is asked for itself.
    let args = copy_args(from, to, (0, 0, 6));
    assert_eq!(client.fails(&between(&source, &target, ArgOp::Copy(args))), Status::Access);
    assert_eq!(
        client.fails(&between(&source, &target, ArgOp::Clone(clone_args(from, to, 6)))),
        Status::Access
    );
    let server = TestServer::over(server.store.clone(), listed(&["* access=ro"]), 2);
    let mut client = V4Client::start_minor(server.address, "three", 2);
    let copy = ArgOp::Copy(copy_args(ANY, ANY, (0, 0, 6)));
    let root = client.path("/data");
    let (source, target) = (client.path("/data/from"), client.path("/data/to"));
    assert_ne!(root, source);
    assert_eq!(client.fails(&between(&source, &target, copy)), Status::RoFs);
}

fn clone_args(from: Stateid, to: Stateid, count: u64) -> clone::Args {
    clone::Args {
        source_stateid: from,
        destination_stateid: to,
        source_offset: 0,
        destination_offset: 0,
        count,
    }
}

#[test]
fn files_come_to_share_blocks() {
    let (_server, mut client, root) = started();
    let (from, source) = file(&mut client, &root, "from", b"0123456789");
    let (to, target) = file(&mut client, &root, "to", b"");
    client.ok(&between(&source, &target, ArgOp::Clone(clone_args(from, to, 0))));
    assert_eq!(client.read(&target, to, 0, 100), b"0123456789");
    client.write(&source, from, 0, b"changed");
    assert_eq!(client.read(&target, to, 0, 100), b"0123456789", "each has its own data");
    let mut refused =
        |source: &[u8], target: &[u8], args| client.fails(&between(source, target, ArgOp::Clone(args)));
    assert_eq!(refused(&source, &target, clone_args(from, to, 11)), Status::Inval);
    assert_eq!(refused(&source, &source, clone_args(from, from, 5)), Status::Inval, "it overlaps");
    let unaligned = clone::Args { source_offset: 1, ..clone_args(from, to, 5) };
    assert_eq!(refused(&source, &target, unaligned), Status::Inval);
    assert_eq!(refused(&root, &target, clone_args(ANY, to, 5)), Status::WrongType);
    let beyond = clone::Args { destination_offset: u64::MAX, ..clone_args(from, to, 10) };
    assert_eq!(refused(&source, &target, beyond), Status::FBig);
}

#[test]
fn advice_is_taken_and_not_followed() {
    let (_server, mut client, root) = started();
    let (stateid, file) = file(&mut client, &root, "file", b"");
    let hints = Bitmap::EMPTY.with(hint::SEQUENTIAL).with(hint::RANDOM).with(77);
    let args = io_advise::Args { stateid, offset: 0, count: 0, hints };
    let reply = client.ok(&[put(&file), ArgOp::IoAdvise(args)]);
    let ResOp::IoAdvise(Ok(ok)) = reply.last() else { panic!("{reply:?}") };
    assert_eq!(ok.hints, Bitmap::EMPTY.with(hint::NORMAL));
    let stale = io_advise::Args { stateid: Stateid { seqid: 9, ..stateid }, ..args };
    assert_eq!(client.fails(&[put(&file), ArgOp::IoAdvise(stale)]), Status::BadStateId);
    let wrap = io_advise::Args { offset: u64::MAX, count: 1, ..args };
    assert_eq!(client.fails(&[put(&file), ArgOp::IoAdvise(wrap)]), Status::Inval);
    assert_eq!(client.fails(&[put(&root), ArgOp::IoAdvise(args)]), Status::IsDir);
}

#[test]
fn the_first_minor_version_has_none_of_this() {
    let (_server, mut client, root) = started();
    let (stateid, file) = file(&mut client, &root, "file", b"");
    client.minor_version = 1;
    let seek = ArgOp::Seek(seek::Args { stateid, offset: 0, what: content::DATA });
    let copy = ArgOp::Copy(copy_args(stateid, stateid, (0, 0, 0)));
    for operation in [seek, copy] {
        let reply = client.compound(&[put(&file), operation]);
        assert!(matches!(reply.status, Err(Status::OpIllegal | Status::NotSupp)), "{reply:?}");
    }
}

#[test]
fn copies_without_an_open_heed_deny_modes() {
    let (server, mut client, root) = started();
    let (from, source) = file(&mut client, &root, "from", b"data");
    let (to, target) = file(&mut client, &root, "to", b"");
    client.close(&source, from);
    client.close(&target, to);
    let mut other = V4Client::start_minor(server.address, "two", 2);
    let modes = (ShareAccess::READ.with_want(Want::None), ShareDeny::WRITE);
    let deny = other.open_args(b"denier", "to", modes, How::NoCreate);
    other.ok(&[put(&root), ArgOp::Open(deny)]);
    let copy = between(&source, &target, ArgOp::Copy(copy_args(ANY, ANY, (0, 0, 4))));
    assert_eq!(client.fails(&copy), Status::ShareDenied);
    let clone = between(&source, &target, ArgOp::Clone(clone_args(ANY, ANY, 4)));
    assert_eq!(client.fails(&clone), Status::ShareDenied);
}
