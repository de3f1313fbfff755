//! FSCTLs about data: holes and copies. [MS-FSA] 2.1.5.10, [MS-SMB2] 3.3.5.15.5, 3.3.5.15.6.

use anabranch_smb_server::Config;
use smb_wire::create::CreateDisposition;
use smb_wire::fscc::fsctl::{
    AllocatedRange, Chunk, Copychunk, CopychunkResponse, DuplicateExtents, FileLevelTrim, Fsctl, ResumeKey,
    TrimRange, ZeroData,
};
use smb_wire::ioctl::{IoctlFlags, Request, Response};
use smb_wire::{AccessMask, Command, FileId, NtStatus};

use crate::client::{Client, Reply, TestServer};
use crate::opening::Opening;

pub(crate) fn ioctl(client: &mut Client, ctl_code: Fsctl, file_id: FileId, input: &[u8], room: u32) -> Reply {
    client.call(Command::Ioctl, &body(ctl_code, file_id, input, room))
}

fn body(ctl_code: Fsctl, file_id: FileId, input: &[u8], room: u32) -> Vec<u8> {
    let request = Request {
        ctl_code,
        file_id,
        input,
        max_input_response: 0,
        output_count: 0,
        max_output_response: room,
        flags: IoctlFlags::IS_FSCTL,
    };
    let mut body = Vec::new();
    request.encode(&mut body).unwrap();
    body
}

pub(crate) fn output(reply: &Reply) -> Vec<u8> {
    Response::decode(&reply.message).unwrap().output.to_vec()
}

fn zero(client: &mut Client, file: FileId, file_offset: u64, beyond_final_zero: u64) -> NtStatus {
    let mut input = Vec::new();
    ZeroData { file_offset, beyond_final_zero }.encode_into(&mut input);
    ioctl(client, Fsctl::SetZeroData, file, &input, 0).status()
}

fn ranges(client: &mut Client, file: FileId, file_offset: u64, length: u64, room: u32) -> Reply {
    client.call(Command::Ioctl, &ranges_body(file, file_offset, length, room))
}

pub(crate) fn ranges_body(file: FileId, file_offset: u64, length: u64, room: u32) -> Vec<u8> {
    let mut input = Vec::new();
    AllocatedRange { file_offset, length }.encode_into(&mut input);
    body(Fsctl::QueryAllocatedRanges, file, &input, room)
}

fn parts(reply: &Reply) -> Vec<(u64, u64)> {
    let list = AllocatedRange::decode_list(&output(reply)).unwrap();
    list.iter().map(|part| (part.file_offset, part.length)).collect()
}

#[test]
fn zeroes_take_the_place_of_data_and_the_file_keeps_its_length() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let file = client.create("z", CreateDisposition::Create).unwrap();
    client.write(file, 0, &[7; 100]).unwrap();
    assert_eq!(zero(&mut client, file, 10, 20), NtStatus::SUCCESS);
    assert_eq!(zero(&mut client, file, 95, 5000), NtStatus::SUCCESS);
    assert_eq!(zero(&mut client, file, 50, 50), NtStatus::SUCCESS);
    let mut expected = [7; 100];
    expected[10..20].fill(0);
    expected[95..].fill(0);
    assert_eq!(client.read(file, 0, 200).unwrap(), expected);
    assert_eq!(zero(&mut client, file, 20, 10), NtStatus::INVALID_PARAMETER);
    assert_eq!(zero(&mut client, file, u64::MAX, u64::MAX), NtStatus::INVALID_PARAMETER);
    let short = ioctl(&mut client, Fsctl::SetZeroData, file, &[0; 15], 0);
    assert_eq!(short.status(), NtStatus::INVALID_PARAMETER);
}

#[test]
fn a_file_that_is_not_sparse_is_one_range() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let file = client.create("r", CreateDisposition::Create).unwrap();
    assert_eq!(parts(&ranges(&mut client, file, 0, 1000, 1600)), []);
    client.write(file, 0, &[7; 100]).unwrap();
    assert_eq!(parts(&ranges(&mut client, file, 0, 1000, 1600)), [(0, 100)]);
    assert_eq!(parts(&ranges(&mut client, file, 30, 20, 1600)), [(30, 20)]);
    assert_eq!(parts(&ranges(&mut client, file, 100, 20, 1600)), []);
    assert_eq!(ranges(&mut client, file, 0, 100, 15).status(), NtStatus::BUFFER_TOO_SMALL);
    let negative = ranges(&mut client, file, u64::MAX, 1, 1600);
    assert_eq!(negative.status(), NtStatus::INVALID_PARAMETER);
}

#[test]
fn a_sparse_file_shows_its_holes() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let file = client.create("s", CreateDisposition::Create).unwrap();
    ioctl(&mut client, Fsctl::SetSparse, file, &[], 0).ok().unwrap();
    let block = 1 << 16;
    client.write(file, 0, &[1; 100]).unwrap();
    client.write(file, 4 * block, &[1; 100]).unwrap();
    let reply = ranges(&mut client, file, 0, 8 * block, 1600).ok().unwrap();
    let found = parts(&reply);
    let covers = |at: u64| found.iter().any(|(offset, length)| (*offset..offset + length).contains(&at));
    assert!(covers(0) && covers(4 * block) && !covers(2 * block), "{found:?}");
    assert!(found.iter().all(|(offset, length)| offset + length <= 4 * block + 100));
    let reply = ranges(&mut client, file, 0, 8 * block, 16);
    assert_eq!((reply.status(), parts(&reply).len()), (NtStatus::BUFFER_OVERFLOW, 1));
    ioctl(&mut client, Fsctl::SetSparse, file, &[0], 0).ok().unwrap();
    assert_eq!(parts(&ranges(&mut client, file, 0, 8 * block, 1600)), [(0, 4 * block + 100)]);
}

/// Trims; the status, and how many ranges were processed.
fn trim(client: &mut Client, file: FileId, key: u32, ranges: &[(u64, u64)]) -> (NtStatus, Vec<u8>) {
    let ranges = ranges.iter().map(|&(offset, length)| TrimRange { offset, length }).collect();
    let mut input = Vec::new();
    FileLevelTrim { key, ranges }.encode_into(&mut input).unwrap();
    let reply = ioctl(client, Fsctl::FileLevelTrim, file, &input, 4);
    (reply.status(), reply.ok().map_or_else(|_| Vec::new(), |reply| output(&reply)))
}

#[test]
fn what_is_trimmed_becomes_holes_of_whole_pages() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let file = client.create("t", CreateDisposition::Create).unwrap();
    client.write(file, 0, &[7; 20_000]).unwrap();
    let (status, processed) = trim(&mut client, file, 0, &[(100, 8192), (12_288, 100_000)]);
    assert_eq!((status, processed), (NtStatus::SUCCESS, vec![2, 0, 0, 0]));
    let mut expected = [7; 20_000];
    expected[4096..8192].fill(0);
    expected[12_288..].fill(0);
    assert_eq!(client.read(file, 0, 30_000).unwrap(), expected, "and the file keeps its length");
    let many = vec![(0, 1); 300];
    assert_eq!(trim(&mut client, file, 0, &many), (NtStatus::SUCCESS, vec![0, 1, 0, 0]), "256 at a time");
    let (status, processed) = trim(&mut client, file, 0, &[(0, 4096), (u64::MAX, 1), (8192, 4096)]);
    assert_eq!((status, processed), (NtStatus::SUCCESS, vec![1, 0, 0, 0]), "the rest was not processed");
    expected[..4096].fill(0);
    assert_eq!(client.read(file, 0, 30_000).unwrap(), expected);
}

#[test]
fn a_trim_that_makes_no_sense_or_is_not_allowed_is_refused() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let file = client.create("t", CreateDisposition::Create).unwrap();
    client.write(file, 0, &[7; 4096]).unwrap();
    let mut refused = |key, ranges: &[(u64, u64)]| trim(&mut client, file, key, ranges).0;
    assert_eq!(refused(1, &[(0, 4096)]), NtStatus::INVALID_PARAMETER);
    assert_eq!(refused(0, &[]), NtStatus::INVALID_PARAMETER);
    assert_eq!(refused(0, &[(u64::MAX, 4096)]), NtStatus::INTEGER_OVERFLOW);
    for (input, room) in [(&[0; 7][..], 4), (&[0, 0, 0, 0, 1, 0, 0, 0][..], 4), (&[0; 24][..], 3)] {
        let status = ioctl(&mut client, Fsctl::FileLevelTrim, file, input, room).status();
        assert_eq!(status, NtStatus::INVALID_PARAMETER, "{input:?} with room for {room}");
    }
    let reader =
        Opening { access: AccessMask::READ_DATA, ..Opening::default() }.send(&mut client, "t").unwrap().id;
    assert_eq!(trim(&mut client, reader, 0, &[(0, 4096)]).0, NtStatus::ACCESS_DENIED);
    assert_eq!(client.read(file, 0, 4096).unwrap(), [7; 4096]);
}

struct Copy {
    client: Client,
    source: FileId,
    target: FileId,
    key: [u8; 24],
}

impl Copy {
    fn new(server: &TestServer, data: &[u8]) -> Self {
        let mut client = server.client();
        let source = client.create("from", CreateDisposition::Create).unwrap();
        let target = client.create("to", CreateDisposition::Create).unwrap();
        client.write(source, 0, data).unwrap();
        let reply = ioctl(&mut client, Fsctl::SrvRequestResumeKey, source, &[], 32).ok().unwrap();
        let key = ResumeKey::decode(&output(&reply)).unwrap().resume_key;
        Self { client, source, target, key }
    }

    fn copy(&mut self, chunks: &[(u64, u64, u32)]) -> (NtStatus, Option<CopychunkResponse>) {
        let chunks = chunks
            .iter()
            .map(|(source_offset, target_offset, length)| Chunk {
                source_offset: *source_offset,
                target_offset: *target_offset,
                length: *length,
            })
            .collect();
        let mut input = Vec::new();
        Copychunk { source_key: self.key, chunks }.encode_into(&mut input).unwrap();
        let reply = ioctl(&mut self.client, Fsctl::SrvCopychunk, self.target, &input, 12);
        let response = Response::decode(&reply.message).ok().map(|response| response.output.to_vec());
        (reply.status(), response.and_then(|output| CopychunkResponse::decode(&output).ok()))
    }
}

fn written(chunks_written: u32, total_bytes_written: u32) -> Option<CopychunkResponse> {
    Some(CopychunkResponse { chunks_written, chunk_bytes_written: 0, total_bytes_written })
}

#[test]
fn chunks_are_copied() {
    let server = TestServer::start(Config::default());
    let mut test = Copy::new(&server, b"0123456789");
    let copied = test.copy(&[(0, 5, 5), (5, 0, 5)]);
    assert_eq!(copied, (NtStatus::SUCCESS, written(2, 10)));
    assert_eq!(test.client.read(test.target, 0, 100).unwrap(), b"5678901234");
    // inside one file, where the parts overlap
    test.target = test.source;
    assert_eq!(test.copy(&[(0, 2, 8)]), (NtStatus::SUCCESS, written(1, 8)));
    assert_eq!(test.client.read(test.source, 0, 100).unwrap(), b"0101234567");
}

#[test]
fn a_chunk_beyond_the_end_stops_the_copy() {
    let server = TestServer::start(Config::default());
    let mut test = Copy::new(&server, b"0123456789");
    let copied = test.copy(&[(0, 0, 4), (8, 4, 3), (0, 8, 1)]);
    assert_eq!(copied, (NtStatus::INVALID_VIEW_SIZE, written(1, 4)));
    assert_eq!(test.client.read(test.target, 0, 100).unwrap(), b"0123");
}

#[test]
fn copies_have_limits_which_the_answer_tells() {
    let server = TestServer::start(Config::default());
    let mut test = Copy::new(&server, b"0123456789");
    let limits = CopychunkResponse {
        chunks_written: 256,
        chunk_bytes_written: 1 << 20,
        total_bytes_written: 16 << 20,
    };
    let refused = (NtStatus::INVALID_PARAMETER, Some(limits));
    assert_eq!(test.copy(&vec![(0, 0, 1); 257]), refused);
    assert_eq!(test.copy(&[(0, 0, (1 << 20) + 1)]), refused);
    assert_eq!(test.copy(&[(0, 0, 0)]), refused);
    assert_eq!(test.copy(&vec![(0, 0, 1 << 20); 17]), refused);
    assert_eq!(test.copy(&vec![(0, 0, 1); 256]), (NtStatus::SUCCESS, written(256, 256)));
}

#[test]
fn a_key_is_good_in_its_own_session_only() {
    let server = TestServer::start(Config::default());
    let mut test = Copy::new(&server, b"0123456789");
    let mut other = Copy { client: server.client(), source: test.source, target: test.target, key: test.key };
    other.target = other.client.create("other", CreateDisposition::Create).unwrap();
    assert_eq!(other.copy(&[(0, 0, 1)]).0, NtStatus::OBJECT_NAME_NOT_FOUND);
    test.client.close(test.source).unwrap();
    assert_eq!(test.copy(&[(0, 0, 1)]).0, NtStatus::OBJECT_NAME_NOT_FOUND);
}

/// Has a part of the target share the source's blocks.
fn duplicate(client: &mut Client, target: FileId, wanted: (FileId, u64, u64, u64)) -> NtStatus {
    let (source_file_id, source_file_offset, target_file_offset, byte_count) = wanted;
    let extents = DuplicateExtents { source_file_id, source_file_offset, target_file_offset, byte_count };
    let mut input = Vec::new();
    extents.encode_into(&mut input);
    ioctl(client, Fsctl::DuplicateExtentsToFile, target, &input, 0).status()
}

#[test]
fn extents_are_shared_between_files() {
    const BLOCK: u64 = 4096;
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let source = client.create("from", CreateDisposition::Create).unwrap();
    let target = client.create("to:stream", CreateDisposition::Create).unwrap();
    for (file, byte, blocks) in [(source, 1, 3), (target, 2, 4)] {
        client.write(file, 0, &vec![byte; usize::try_from(blocks * BLOCK).unwrap()]).unwrap();
    }
    assert_eq!(duplicate(&mut client, target, (source, BLOCK, 2 * BLOCK, BLOCK)), NtStatus::SUCCESS);
    for (block, byte) in [2, 2, 1, 2].into_iter().enumerate() {
        let at = u64::try_from(block).unwrap() * BLOCK;
        assert_eq!(client.read(target, at, 4096).unwrap(), [byte; 4096], "block {block}");
    }
    let cases = [
        ((source, 0, 0, 0), NtStatus::SUCCESS),
        ((source, 1, 0, BLOCK), NtStatus::INVALID_PARAMETER),
        ((source, 0, BLOCK + 1, BLOCK), NtStatus::INVALID_PARAMETER),
        ((source, 2 * BLOCK, 0, 2 * BLOCK), NtStatus::NOT_SUPPORTED),
        ((source, 0, 2 * BLOCK, 3 * BLOCK), NtStatus::NOT_SUPPORTED),
        ((target, 0, BLOCK, 2 * BLOCK), NtStatus::NOT_SUPPORTED),
        ((source, u64::MAX - 5, 0, BLOCK), NtStatus::INVALID_PARAMETER),
        ((FileId { persistent: 1, volatile: 2 }, 0, 0, BLOCK), NtStatus::INVALID_HANDLE),
    ];
    for (wanted, status) in cases {
        assert_eq!(duplicate(&mut client, target, wanted), status, "{wanted:?}");
    }
    let short = ioctl(&mut client, Fsctl::DuplicateExtentsToFile, target, &[0; 31], 0);
    assert_eq!(short.status(), NtStatus::BUFFER_TOO_SMALL);
    client.close(target).unwrap();
    assert_eq!(duplicate(&mut client, target, (source, 0, 0, BLOCK)), NtStatus::FILE_CLOSED);
}
