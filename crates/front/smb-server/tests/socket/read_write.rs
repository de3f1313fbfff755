//! READ, WRITE and FLUSH. [MS-SMB2] 3.3.5.11 to 3.3.5.13.

use anabranch_smb_server::{Config, Dialect};
use smb_wire::create::{CreateDisposition, CreateOptions};
use smb_wire::read::{Channel, Request, RequestFlags, Response};
use smb_wire::write::WriteFlags;
use smb_wire::{AccessMask, Command, FileId, NtStatus, flush, write};

use crate::client::{Client, PASSWORD, SHARE, TestServer, USER, write_body};
use crate::opening::{Opening, make_file};

/// The last offset of a file.
const LAST: u64 = i64::MAX.cast_unsigned();

fn request(file_id: FileId, offset: u64, length: u32, minimum_count: u32) -> Request<'static> {
    Request {
        padding: 0x50,
        flags: RequestFlags::empty(),
        length,
        offset,
        file_id,
        minimum_count,
        channel: Channel::None,
        remaining_bytes: 0,
        channel_info: &[],
    }
}

fn read(client: &mut Client, request: &Request<'_>) -> Result<Vec<u8>, NtStatus> {
    let mut body = Vec::new();
    request.encode(&mut body).unwrap();
    let mut header = client.header(Command::Read);
    let charge = u16::try_from(request.length.div_ceil(65536).max(1)).unwrap();
    if client.dialect > Dialect::Smb202 {
        header.credit_charge = charge;
        client.next_message_id += u64::from(charge) - 1;
    }
    client.send_with(&header, &body);
    let reply = client.receive().ok()?;
    Ok(Response::decode(&reply.message).unwrap().data.to_vec())
}

fn flush(client: &mut Client, file_id: FileId) -> NtStatus {
    let mut body = Vec::new();
    flush::Request { file_id }.encode(&mut body);
    client.call(Command::Flush, &body).status()
}

#[test]
fn reads_end_with_the_file() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    make_file(&mut client, "f", b"0123456789");
    let id = Opening::default().send(&mut client, "f").unwrap().id;
    let end = Err(NtStatus::END_OF_FILE);
    type ReadOutcome = Result<&'static [u8], NtStatus>;
    // offset, length, minimum count
    let cases: [((u64, u32, u32), ReadOutcome); 16] = [
        ((0, 4, 0), Ok(b"0123")),
        ((0, 10, 10), Ok(b"0123456789")),
        ((8, 10, 0), Ok(b"89")),
        ((8, 10, 2), Ok(b"89")),
        ((8, 10, 3), end),
        ((9, 1, 2), end),
        ((0, 5, 10), end),
        ((10, 1, 0), end),
        ((10, 0, 0), Ok(b"")),
        ((10, 0, 1), end),
        ((1 << 40, 1, 0), end),
        ((LAST - 1, 1, 0), end),
        ((LAST, 0, 0), Ok(b"")),
        ((LAST, 1, 0), Err(NtStatus::INVALID_PARAMETER)),
        ((LAST + 1, 0, 0), Err(NtStatus::INVALID_PARAMETER)),
        ((u64::MAX, 0, 0), Err(NtStatus::INVALID_PARAMETER)),
    ];
    for ((offset, length, minimum), expected) in cases {
        let data = read(&mut client, &request(id, offset, length, minimum));
        assert_eq!(data.as_deref().map_err(|e| *e), expected, "{offset} {length} {minimum}");
    }
}

#[test]
fn what_is_written_is_read() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let id = Opening::with(CreateDisposition::Create).send(&mut client, "f").unwrap().id;
    client.write(id, 5, b"hello").unwrap();
    assert_eq!(client.read(id, 0, 100).unwrap(), b"\0\0\0\0\0hello");
    client.write(id, 0, b"12345").unwrap();
    client.write(id, 7, b"LL").unwrap();
    assert_eq!(client.read(id, 0, 100).unwrap(), b"12345heLLo");
    client.write(id, 10, b"").unwrap();
    assert_eq!(client.read(id, 10, 1), Err(NtStatus::END_OF_FILE), "nothing was written");
    assert_eq!(flush(&mut client, id), NtStatus::SUCCESS);
}

#[test]
fn writes_beyond_the_last_offset_are_refused() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let id = Opening::with(CreateDisposition::Create).send(&mut client, "f").unwrap().id;
    let invalid = Err(NtStatus::INVALID_PARAMETER);
    for (offset, data) in [(u64::MAX, &b"x"[..]), (u64::MAX - 1, b"x"), (LAST + 1, b""), (LAST, b"x")] {
        assert_eq!(client.write(id, offset, data), invalid, "{offset}");
    }
    assert_eq!(client.write(id, LAST, b""), Ok(()));
    assert_eq!(client.read(id, 0, 1), Err(NtStatus::END_OF_FILE));
}

#[test]
fn megabytes_go_in_one_message() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    client.credits_asked = 512;
    assert!(client.is_alive());
    let data: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251).to_le_bytes()[0]).collect();
    let id = Opening::with(CreateDisposition::Create).send(&mut client, "f").unwrap().id;
    let mut header = client.header(Command::Write);
    header.credit_charge = 46;
    client.next_message_id += 45;
    client.send_with(&header, &write_body(id, 1, &data));
    client.receive().ok().unwrap();
    assert!(read(&mut client, &request(id, 1, 3_000_000, 0)).unwrap() == data);
    // What costs more credits than the request says is refused.
    let mut header = client.header(Command::Read);
    header.credit_charge = 1;
    let mut body = Vec::new();
    request(id, 0, 65_537, 0).encode(&mut body).unwrap();
    client.send_with(&header, &body);
    assert_eq!(client.receive().status(), NtStatus::INVALID_PARAMETER);
    // More than the server allows at all.
    let over = (8 << 20) + 1;
    assert_eq!(read(&mut client, &request(id, 0, over, 0)), Err(NtStatus::INVALID_PARAMETER));
}

#[test]
fn smb202_reads_64_kib_at_most() {
    let server = TestServer::start(Config::default());
    let mut client = server.connect();
    client.negotiate(&[Dialect::Smb202]);
    client.log_in(USER, PASSWORD).unwrap();
    client.tree_connect(SHARE).unwrap();
    let data = vec![7; 65_536];
    make_file(&mut client, "f", &data);
    let id = Opening::default().send(&mut client, "f").unwrap().id;
    assert!(read(&mut client, &request(id, 0, 65_536, 0)).unwrap() == data);
    assert_eq!(read(&mut client, &request(id, 0, 65_537, 0)), Err(NtStatus::INVALID_PARAMETER));
}

#[test]
fn directories_hold_no_data() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let id = Opening::directory().send(&mut client, "d").unwrap().id;
    assert_eq!(client.read(id, 0, 10), Err(NtStatus::INVALID_DEVICE_REQUEST));
    assert_eq!(read(&mut client, &request(id, 0, 0, 0)), Err(NtStatus::INVALID_DEVICE_REQUEST));
    assert_eq!(client.write(id, 0, b"x"), Err(NtStatus::INVALID_DEVICE_REQUEST));
    assert_eq!(flush(&mut client, id), NtStatus::SUCCESS);
}

#[test]
fn flushing_takes_the_right_to_write() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    make_file(&mut client, "f", b"");
    for (access, expected) in [
        (AccessMask::WRITE_DATA, NtStatus::SUCCESS),
        (AccessMask::APPEND_DATA, NtStatus::SUCCESS),
        (AccessMask::READ_DATA, NtStatus::ACCESS_DENIED),
    ] {
        let id = Opening { access, ..Opening::default() }.send(&mut client, "f").unwrap().id;
        assert_eq!(flush(&mut client, id), expected, "{access:?}");
    }
}

#[test]
fn what_must_be_stable_is_answered_too() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let options = CreateOptions::WRITE_THROUGH | CreateOptions::NO_INTERMEDIATE_BUFFERING;
    let opening = Opening { options, ..Opening::with(CreateDisposition::Create) };
    let id = opening.send(&mut client, "f").unwrap().id;
    client.write(id, 0, b"one").unwrap();
    let mut body = Vec::new();
    let flags = WriteFlags::WRITE_THROUGH | WriteFlags::WRITE_UNBUFFERED;
    write::Request::new(id, 3, b"two", flags).encode(&mut body).unwrap();
    let reply = client.call(Command::Write, &body).ok().unwrap();
    assert_eq!(write::Response::decode(&reply.message).unwrap().count, 3);
    let unbuffered = Request { flags: RequestFlags::READ_UNBUFFERED, ..request(id, 0, 6, 0) };
    assert_eq!(read(&mut client, &unbuffered).unwrap(), b"onetwo");
}

#[test]
fn lying_offsets_and_channels_are_refused() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let id = Opening::with(CreateDisposition::Create).send(&mut client, "f").unwrap().id;
    let whole = write_body(id, 0, &[7; 0x200]);
    let invalid = NtStatus::INVALID_PARAMETER;
    // DataOffset: into the fixed part, past 0x100, past the end
    for offset in [0x6F_u16, 0x101, 0x170, 0xFFFF] {
        let mut body = whole.clone();
        body[2..4].copy_from_slice(&offset.to_le_bytes());
        body[4..8].copy_from_slice(&16_u32.to_le_bytes());
        assert_eq!(client.call(Command::Write, &body).status(), invalid, "{offset:#x}");
    }
    let mut body = whole.clone();
    body[4..8].copy_from_slice(&0x201_u32.to_le_bytes());
    assert_eq!(client.call(Command::Write, &body).status(), invalid, "longer than the message");
    let rdma = Request { channel: Channel::RdmaV1, ..request(id, 0, 1, 0) };
    assert_eq!(read(&mut client, &rdma), Err(invalid));
    assert_eq!(client.read(id, 0, 1), Err(NtStatus::END_OF_FILE), "nothing was written");
}
