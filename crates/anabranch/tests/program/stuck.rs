//! A file system that has stopped answering: clients of other shares go on, and `/healthz` says which it is.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use smb_proto::dialect::Dialect;
use smb_wire::create::{
    self, CreateDisposition, CreateOptions, ImpersonationLevel, OplockLevel, ShareAccess,
};
use smb_wire::create_context::{DurableFlags, RequestContext, ResponseContext};
use smb_wire::fscc::FileInfoClass;
use smb_wire::query_info::{InfoType, QueryInfoFlags, Request as QueryInfo};
use smb_wire::{AccessMask, Command, FileAttributes, FileId, Guid, NtStatus, header};

use crate::asked::{OK, health, until, until_health};
use crate::disk::Disk;
use crate::fuse::Fuse;
use crate::needs;
use crate::nfs::{NFS, Nfs, Status, opaque, words};
use crate::raw::{Client, create_body, read_body, write_body};
use crate::server::{Server, flags, path};

const ROOT: (u32, u32) = (0, 0);

/// A server that has one shard: it may use one processor.
fn start_with_one_shard(arguments: &[&str]) -> Server {
    let all = sched_getaffinity(None).unwrap();
    let first = (0..CpuSet::MAX_CPU).find(|cpu| all.is_set(*cpu)).unwrap();
    let mut one = CpuSet::new();
    one.set(first);
    sched_setaffinity(None, &one).unwrap();
    let server = Server::start(arguments);
    sched_setaffinity(None, &all).unwrap();
    server
}

/// The arguments of calls to the share that hangs, with the number of each procedure (RFC 1813 3.3).
fn nfs_calls(root: &[u8], file: &[u8]) -> [(u32, Vec<u8>); 5] {
    [
        // GETATTR, LOOKUP, READ, WRITE
        (1, opaque(file)),
        (3, [opaque(root), opaque(b"file")].concat()),
        (6, [opaque(file), words(&[0, 0, 4])].concat()),
        (7, [opaque(file), words(&[0, 0, 4, 0]), opaque(b"DATA")].concat()),
        // CREATE: UNCHECKED, without any attributes
        (8, [opaque(root), opaque(b"new"), words(&[0; 7])].concat()),
    ]
}

/// Sends a call of root, on a connection of its own, whose answer nobody waits for.
fn send(server: &Server, (procedure, arguments): (u32, Vec<u8>)) -> TcpStream {
    // RFC 5531 9 and appendix A
    let call = words(&[7, 0, 2, NFS, 3, procedure, 1, 20, 0, 0, 0, 0, 0, 0, 0]);
    let length = u32::try_from(call.len() + arguments.len()).unwrap();
    let mut stream = TcpStream::connect(server.address("nfs")).unwrap();
    stream.write_all(&[words(&[0x8000_0000 | length]), call, arguments].concat()).unwrap();
    stream
}

fn smb_client(server: &Server, share: &str) -> Client {
    let mut client = Client::connect(server.address("smb").parse().unwrap());
    client.negotiate(&[Dialect::Smb311]);
    client.log_in("anna", "hush-hush").unwrap();
    client.tree_connect(share).unwrap();
    client
}

fn query_body(file_id: FileId) -> Vec<u8> {
    let request = QueryInfo {
        info_type: InfoType::File,
        info_class: FileInfoClass::Basic.into(),
        output_buffer_length: 4096,
        additional_information: 0,
        flags: QueryInfoFlags::empty(),
        file_id,
        input_buffer: &[],
    };
    let mut body = Vec::new();
    request.encode(&mut body).unwrap();
    body
}

/// Requests about an open file of the share that hangs.
fn smb_requests(file: FileId) -> [(Command, Vec<u8>); 5] {
    let options = CreateOptions::empty();
    [
        (Command::QueryInfo, query_body(file)),
        (Command::Create, create_body("file", CreateDisposition::Open, options)),
        (Command::Read, read_body(file, 0, 4)),
        (Command::Write, write_body(file, 0, b"DATA")),
        (Command::Create, create_body("new", CreateDisposition::OpenIf, options)),
    ]
}

/// Uses the other share until `is_over`; the longest time that it took to be answered.
fn use_other_share(server: &Server, names: &str, mut is_over: impl FnMut() -> bool) -> Duration {
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut longest = Duration::ZERO;
    for number in 0.. {
        let begun = Instant::now();
        // A connection of its own each time: each shard has its turn.
        let mut client = Nfs::connect(server.address("nfs"));
        let root = client.mount(ROOT, "/data").unwrap();
        assert_eq!(client.mkdir(ROOT, &root, &format!("{names}-{number}")), Status::OK);
        let mut client = smb_client(server, "data");
        let file = client.create(&format!("{names}-{number}.txt"), CreateDisposition::Create).unwrap();
        client.write(file, 0, b"content").unwrap();
        client.close(file).unwrap();
        longest = longest.max(begun.elapsed());
        if is_over() {
            break;
        }
        assert!(Instant::now() < deadline, "{}", health(server));
    }
    longest
}

#[test]
fn a_file_system_that_stops_answering_holds_up_no_other_share() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().join("hanging");
    std::fs::create_dir(&at).unwrap();
    let Some(hanging) = Fuse::mount(&at) else {
        return needs::not_tested("there is no FUSE here, or no right to mount");
    };
    let mut arguments = flags(&directory);
    arguments.extend(["--share".to_owned(), format!("hanging={}", path(&directory, "hanging"))]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut server = start_with_one_shard(&arguments);
    let hanging = hanging; // to be dropped before the server, which nothing ends that waits for it
    assert!(health(&server).ends_with(OK));

    let mut client = Nfs::connect(server.address("nfs"));
    let root = client.mount(ROOT, "/hanging").unwrap();
    let calls = nfs_calls(&root, &client.lookup(ROOT, &root, "file").unwrap());
    let mut clients = [(); 5].map(|()| smb_client(&server, "hanging"));
    let opens = clients.each_mut().map(|client| client.create("file", CreateDisposition::Open).unwrap());
    hanging.fall_silent();
    let waiting = calls.map(|call| send(&server, call));
    for (index, client) in clients.iter_mut().enumerate() {
        let (command, body) = smb_requests(opens[index]).into_iter().nth(index).unwrap();
        client.send(command, &body);
    }
    let calls = waiting.len() + clients.len();
    let gap = use_other_share(&server, "begun", || hanging.unanswered() >= calls);
    println!("while the calls began to hang others waited for {gap:?} at most");
    let gap = use_other_share(&server, "known", || health(&server).contains("\nshare hanging: "));
    println!("until it was known others waited for {gap:?} at most");
    let said = health(&server);
    assert!(said.starts_with("HTTP/1.0 503 ") && said.contains("\r\n\r\nstuck\n"), "{said}");
    assert!(!said.contains("shard"), "{said}");

    hanging.abort();
    for mut stream in waiting {
        let mut mark = [0; 4];
        stream.read_exact(&mut mark).unwrap();
    }
    for client in &mut clients {
        while client.receive().status() == NtStatus::PENDING {}
    }
    use_other_share(&server, "over", || health(&server).ends_with(OK));
    assert_eq!(server.end_with("TERM"), Some(0));
}

/// Whether the server answers a NULL call on a new connection, and does not end it before.
fn answers(server: &Server) -> bool {
    let mut stream = send(server, (0, Vec::new()));
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.read_exact(&mut [0; 4]).is_ok()
}

#[test]
fn a_disk_that_stalls_holds_up_no_other_share() {
    let directory = tempfile::tempdir().unwrap();
    let Some(disk) = Disk::mount(&directory.path().join("image"), &directory.path().join("hanging")) else {
        return;
    };
    let mut arguments = flags(&directory);
    arguments.extend(["--share".to_owned(), format!("hanging={}", path(&directory, "hanging"))]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut server = start_with_one_shard(&arguments);
    let disk = disk; // to be dropped before the server, which nothing ends that waits for it

    let mut client = Nfs::connect(server.address("nfs"));
    let root = client.mount(ROOT, "/hanging").unwrap();
    std::fs::write(directory.path().join("hanging/file"), b"data").unwrap();
    let calls = nfs_calls(&root, &client.lookup(ROOT, &root, "file").unwrap());
    let mut neighbour = TcpStream::connect(server.address("nfs")).unwrap();
    if !disk.freeze() {
        return;
    }
    let begun = Instant::now();
    let waiting = calls.map(|call| send(&server, call));
    until("somebody is answered", || answers(&server));
    println!("somebody was answered again after {:?}", begun.elapsed());
    until_health(&server, |said| said.contains("\nshare hanging: "));
    assert!(health(&server).starts_with("HTTP/1.0 503 "));
    neighbour.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    assert_eq!(neighbour.read(&mut [0]).unwrap(), 0, "it was on the shard that is given up");
    let gap = use_other_share(&server, "frozen", || true);
    println!("others were served in {gap:?}; {}", health(&server));
    // Those that come again wait for the disk, and for nothing else.
    let again = nfs_calls(&root, &root).map(|call| send(&server, call));
    use_other_share(&server, "still", || true);

    disk.thaw();
    use_other_share(&server, "over", || health(&server).ends_with(OK));
    for mut stream in again {
        stream.read_exact(&mut [0; 4]).unwrap();
    }
    drop(waiting);
    assert_eq!(server.end_with("TERM"), Some(0));
}

const CREATE: Guid = Guid([0x11; 16]);
/// Rounds of 64 KiB that a client writes while the disk of the other share stalls.
const ROUNDS: u64 = 3;
const BLOCK: usize = 1 << 16;

/// Opens `kept` with a batch oplock and this context; whether the answer says that it is durable.
fn open_kept(client: &mut Client, context: RequestContext<'static>) -> Result<(FileId, bool), NtStatus> {
    let request = create::Request {
        requested_oplock_level: OplockLevel::Batch,
        impersonation_level: ImpersonationLevel::Impersonation,
        desired_access: AccessMask::from_bits_retain(0x0012_019F),
        file_attributes: FileAttributes::NORMAL,
        share_access: ShareAccess::READ,
        create_disposition: CreateDisposition::OpenIf,
        create_options: CreateOptions::empty(),
        name: "kept".into(),
        contexts: vec![context],
    };
    // Offsets and padding count from the header.
    let mut body = vec![0; header::LEN];
    request.encode(&mut body).unwrap();
    let reply = client.call(Command::Create, &body[header::LEN..]).ok()?;
    let response = create::Response::decode(&reply.message).unwrap();
    let is_durable =
        |context: &ResponseContext<'_>| matches!(context, ResponseContext::DurableHandleV2 { .. });
    Ok((response.file_id, response.contexts.iter().any(is_durable)))
}

fn block(round: u64) -> Vec<u8> {
    vec![u8::try_from(round + 1).unwrap(); BLOCK]
}

/// [MS-SMB2] 3.3.7.1: a connection that is lost leaves durable opens behind, and 3.3.5.9.12: their client gets them back.
#[test]
fn a_durable_open_of_another_share_outlives_the_shard() {
    let directory = tempfile::tempdir().unwrap();
    let Some(disk) = Disk::mount(&directory.path().join("image"), &directory.path().join("hanging")) else {
        return;
    };
    let mut arguments = flags(&directory);
    arguments.extend(["--share".to_owned(), format!("hanging={}", path(&directory, "hanging"))]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut server = start_with_one_shard(&arguments);
    let disk = disk; // to be dropped before the server, which nothing ends that waits for it
    let root = Nfs::connect(server.address("nfs")).mount(ROOT, "/hanging").unwrap();

    let mut client = smb_client(&server, "data");
    let (timeout_ms, flags) = (0, DurableFlags::empty());
    let asking = RequestContext::DurableHandleRequestV2 { timeout_ms, flags, create_guid: CREATE };
    let (mut file, is_durable) = open_kept(&mut client, asking).unwrap();
    assert!(is_durable);
    client.write(file, 0, &block(0)).unwrap();
    if !disk.freeze() {
        return;
    }
    // MKDIR: it changes something, and waits.
    let mkdir = |name: &[u8]| (9, [opaque(&root), opaque(name), words(&[0; 6])].concat());
    let waiting = send(&server, mkdir(b"waits"));
    let begun = Instant::now();
    client.expect_closed();
    println!("the client was told after {:?}", begun.elapsed());

    for round in 1..=ROUNDS {
        let session = client.session_id;
        client = Client::connect(server.address("smb").parse().unwrap());
        client.previous_session_id = session;
        client.negotiate(&[Dialect::Smb311]);
        client.log_in("anna", "hush-hush").unwrap();
        client.tree_connect("data").unwrap();
        let asking = RequestContext::DurableHandleReconnectV2 { file_id: file, create_guid: CREATE, flags };
        (file, _) = open_kept(&mut client, asking).unwrap();
        println!("it had its open again after {:?}", begun.elapsed());
        for before in 0..round {
            let (at, length) = (before * BLOCK as u64, u32::try_from(BLOCK).unwrap());
            assert_eq!(client.read(file, at, length).unwrap(), block(before));
        }
        client.write(file, round * BLOCK as u64, &block(round)).unwrap();
    }
    client.close(file).unwrap();
    let written = std::fs::read(directory.path().join("data/kept")).unwrap();
    assert_eq!(written, (0..=ROUNDS).flat_map(block).collect::<Vec<_>>());

    until_health(&server, |said| said.contains("\nshare hanging: "));
    disk.thaw();
    use_other_share(&server, "over", || health(&server).ends_with(OK));
    drop(waiting);
    assert_eq!(server.end_with("TERM"), Some(0));
}
