//! Clients that have not shown who they are take no more than what they may: places, memory, lines of the log.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use smb_proto::dialect::Dialect;
use smb_wire::Command;
use socket2::{Domain, Socket, Type};
use tempfile::TempDir;

use crate::nfs4::Nfs4;
use crate::raw::Client;
use crate::server::{Server, flags, path};

/// Nothing that is waited for takes longer.
const PATIENCE: Duration = Duration::from_secs(60);
/// What all strangers together may take up.
const STRANGERS_BYTES_MAX: u64 = 64 << 20;

/// A NULL call of NFSv3 with its record mark (RFC 5531 9, 11).
fn null_call() -> Vec<u8> {
    let words: [u32; 11] = [0x8000_0028, 0x1234, 0, 2, 100_003, 3, 0, 0, 0, 0, 0];
    words.map(u32::to_be_bytes).concat()
}

fn start(directory: &TempDir, more: &[&str]) -> Server {
    let flags = flags(directory);
    let arguments: Vec<&str> = flags.iter().map(String::as_str).chain(more.iter().copied()).collect();
    Server::start(&arguments)
}

/// A connection from 127.0.0.`from`.
fn connect(server: &Server, name: &str, from: u8) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from(([127, 0, 0, from], 0)).into()).unwrap();
    let address: SocketAddr = server.address(name).parse().unwrap();
    socket.connect(&address.into()).unwrap();
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Whether the server answers a NULL call; false when it hangs up.
fn answers(stream: &mut TcpStream) -> bool {
    let mut reply = [0; 28];
    let is_answered = stream.write_all(&null_call()).is_ok() && stream.read_exact(&mut reply).is_ok();
    assert!(!is_answered || reply[4..12] == [0, 0, 0x12, 0x34, 0, 0, 0, 1]);
    is_answered
}

/// Connections of one protocol, of so many descriptors: as `anabranch serve` deals them out.
fn places() -> usize {
    usize::try_from(storage_local::raise_descriptor_limit() / 8).unwrap_or(usize::MAX).min(2500)
}

#[test]
fn an_address_that_takes_all_connections_it_can_leaves_room_for_others() {
    let directory = TempDir::new().unwrap();
    let server = start(&directory, &[]);
    let greedy: Vec<TcpStream> = (0..places())
        .map(|_| connect(&server, "nfs", 2))
        .map(|mut stream| {
            let _ = answers(&mut stream);
            stream
        })
        .collect();
    let mut other = connect(&server, "nfs", 3);
    assert!(answers(&mut other), "after {} connections of one address", greedy.len());
}

/// The median of so many calls over one connection.
fn median(stream: &mut TcpStream) -> Duration {
    let mut times: Vec<Duration> = (0..201)
        .map(|_| {
            let begun = Instant::now();
            assert!(answers(stream), "within {PATIENCE:?}");
            begun.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[100]
}

/// As many connections as there may be, of both protocols, from ten addresses: who comes then is served. How fast is printed.
#[test]
fn all_places_are_taken_by_strangers_and_others_are_served() {
    let directory = TempDir::new().unwrap();
    let server = start(&directory, &[]);
    let before = median(&mut connect(&server, "nfs", 1));
    let mut held = Vec::new();
    for (n, from) in (0..places()).zip((2..=11).cycle()) {
        held.push(connect(&server, "smb", from));
        held.push(connect(&server, "nfs", from));
        if n % 2 == 0 {
            let _ = held.last_mut().unwrap().write_all(&null_call());
        }
    }
    let after = median(&mut connect(&server, "nfs", 1));
    println!("{} connections: median of a NULL call {before:?} before, {after:?} then", held.len());
}

#[test]
fn connections_of_an_address_are_as_many_as_are_allowed() {
    let directory = TempDir::new().unwrap();
    let server = start(&directory, &["--connections-per-address", "3"]);
    let mut held: Vec<TcpStream> = (0..3).map(|_| connect(&server, "nfs", 2)).collect();
    assert!(held.iter_mut().all(answers));
    assert!(!answers(&mut connect(&server, "nfs", 2)), "the fourth");
    assert!(answers(&mut connect(&server, "nfs", 3)), "another address");
    assert!(held.iter_mut().all(answers));
}

/// Memory of the server that is in the machine's, in bytes (proc_pid_status(5), `VmRSS`).
fn resident(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

#[test]
fn halves_of_records_take_no_more_memory_than_strangers_may_have() {
    let directory = TempDir::new().unwrap();
    let server = start(&directory, &[]);
    assert!(answers(&mut connect(&server, "nfs", 1)));
    let before = resident(&server);
    let half = [&0x8010_0000_u32.to_be_bytes()[..], &[0; 30_000]].concat();
    let addresses = (2..=11).cycle();
    let hostile: Vec<TcpStream> = addresses
        .take(places())
        .map(|from| {
            let mut stream = connect(&server, "nfs", from);
            let _ = stream.write_all(&half); // the oldest have to go meanwhile
            stream
        })
        .collect();
    assert!(answers(&mut connect(&server, "nfs", 1)), "it serves others");
    let begun = Instant::now();
    let mut most = 0;
    while begun.elapsed() < Duration::from_secs(5) {
        most = most.max(resident(&server).saturating_sub(before));
        std::thread::sleep(Duration::from_millis(100));
    }
    println!("{} connections: {} KiB more", hostile.len(), most / 1024);
    assert!(most < STRANGERS_BYTES_MAX, "{most} bytes of {} connections", hostile.len());
}

/// Anybody can begin a session of NFSv4: that does not show that a client is admitted anywhere.
#[test]
fn sessions_of_clients_that_no_share_admits_give_them_no_more_memory() {
    const CONNECTIONS: u8 = 100;
    let directory = TempDir::new().unwrap();
    let config = path(&directory, "anabranch.toml");
    let share = format!("[[share]]\nname = \"few\"\ndirectory = {:?}\n", path(&directory, "few"));
    std::fs::create_dir(path(&directory, "few")).unwrap();
    std::fs::write(&config, format!("{share}[[share.client]]\nnetwork = \"127.0.0.0/25\"\n")).unwrap();
    let flags = flags(&directory);
    let at = flags.iter().position(|flag| flag == "--share").unwrap();
    let mut arguments: Vec<&str> = flags.iter().map(String::as_str).collect();
    arguments.splice(at..at + 2, ["--config", &config]);
    let server = Server::start(&arguments);
    let half = [&0x8010_0000_u32.to_be_bytes()[..], &vec![0; 1_000_000]].concat();
    let begin = |from: u8, number: u8| {
        let source = [127, 0, 0, from].into();
        let mut stream = Nfs4::start(source, server.address("nfs"), &format!("client {number}")).stream;
        let half = half.clone();
        std::thread::spawn(move || {
            let _ = stream.write_all(&half);
            stream
        })
    };
    let admitted = begin(1, CONNECTIONS).join().unwrap();
    let before = resident(&server);
    let refused: Vec<_> = (0..CONNECTIONS).map(|number| begin(128 + number % 10, number)).collect();
    let (started, mut most) = (Instant::now(), 0);
    while started.elapsed() < Duration::from_secs(5) {
        most = most.max(resident(&server).saturating_sub(before));
        std::thread::sleep(Duration::from_millis(100));
    }
    println!("{CONNECTIONS} connections: {} KiB more", most / 1024);
    assert!(most < STRANGERS_BYTES_MAX, "{most} bytes of {CONNECTIONS} connections");
    drop((admitted, server)); // those who wait to send go on
    refused.into_iter().for_each(|thread| drop(thread.join().unwrap()));
}

/// [MS-NLMP] 2.2.1.1: NEGOTIATE_MESSAGE, of which the server keeps all bytes until the logon is over: the MIC covers them.
fn long_beginning() -> Vec<u8> {
    let head = [&b"NTLMSSP\0"[..], &1_u32.to_le_bytes(), &0xE208_8297_u32.to_le_bytes(), &[0; 24]].concat();
    [head, vec![b'A'; 50_000]].concat()
}

#[test]
fn logons_that_are_begun_take_no_more_memory_than_strangers_may_have() {
    const CONNECTIONS: usize = 120;
    // As many as one connection may begin.
    const LOGONS: usize = 32;
    let directory = TempDir::new().unwrap();
    let server = start(&directory, &[]);
    let mut other = Client::over(connect(&server, "smb", 1));
    other.negotiate(&[Dialect::Smb311]);
    other.log_in("anna", "hush-hush").unwrap();
    let before = resident(&server);
    let begun: Vec<_> = (2..=11)
        .cycle()
        .take(CONNECTIONS)
        .map(|from| {
            let mut client = Client::over(connect(&server, "smb", from));
            client.negotiate(&[Dialect::Smb311]);
            std::thread::spawn(move || {
                let body = client.session_setup_body(&long_beginning());
                for _ in 0..LOGONS {
                    client.send(Command::SessionSetup, &body);
                }
                client
            })
        })
        .collect();
    let (started, mut most) = (Instant::now(), 0);
    while started.elapsed() < Duration::from_secs(5) {
        most = most.max(resident(&server).saturating_sub(before));
        std::thread::sleep(Duration::from_millis(100));
    }
    println!("{CONNECTIONS} connections with {LOGONS} logons: {} KiB more", most / 1024);
    assert!(most < STRANGERS_BYTES_MAX, "{most} bytes of {CONNECTIONS} connections");
    // Who has logged on, and who comes now, is served.
    other.tree_connect("data").unwrap();
    let mut newcomer = Client::over(connect(&server, "smb", 12));
    newcomer.negotiate(&[Dialect::Smb311]);
    newcomer.log_in("anna", "hush-hush").unwrap();
    drop(server); // those who wait to send go on
    begun.into_iter().for_each(|thread| drop(thread.join().unwrap()));
}

#[test]
fn what_one_address_does_wrong_again_and_again_is_counted_in_the_log() {
    let directory = TempDir::new().unwrap();
    let log = path(&directory, "log");
    let flags = flags(&directory);
    let arguments: Vec<&str> = flags.iter().map(String::as_str).collect();
    let mut server = Server::start_logging(&arguments, File::create(&log).unwrap().into());
    for round in 0..500 {
        let (name, nonsense) =
            if round % 2 == 0 { ("smb", [0, 0xff, 0xff, 0xff]) } else { ("nfs", [0xff; 4]) };
        let mut stream = connect(&server, name, 2);
        stream.write_all(&nonsense).unwrap();
        let _ = stream.read(&mut [0]);
    }
    let deadline = Instant::now() + PATIENCE;
    loop {
        let text = std::fs::read_to_string(&log).unwrap();
        let lines = text.lines().filter(|line| line.contains("broke the protocol")).count();
        assert!(lines < 20, "{lines} lines of 500");
        if lines > 0 && (text.contains("more lines were left out") || text.contains("left_out")) {
            break;
        }
        assert!(Instant::now() < deadline, "nothing says how many were left out: {text}");
        std::thread::sleep(Duration::from_millis(200));
    }
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(text.contains("are for connections of SMB"), "{text}");
    assert_eq!(server.end_with("TERM"), Some(0));
}

/// A call of RPC version 2 and program version 3 with AUTH_NONE, with its record mark (RFC 5531 9, 11).
fn call(program: u32, procedure: u32, arguments: &[u8]) -> Vec<u8> {
    let header = [7, 0, 2, program, 3, procedure, 0, 0, 0, 0].map(u32::to_be_bytes).concat();
    let mark = 0x8000_0000 | u32::try_from(header.len() + arguments.len()).unwrap();
    [&mark.to_be_bytes()[..], &header, arguments].concat()
}

/// The filehandle that a call answers with (MNT and LOOKUP: a status of 0, then the handle).
fn handle_in_answer(stream: &mut TcpStream, call: &[u8]) -> Vec<u8> {
    stream.write_all(call).unwrap();
    let mut mark = [0; 4];
    stream.read_exact(&mut mark).unwrap();
    let mut reply = vec![0; usize::try_from(u32::from_be_bytes(mark) & 0x7fff_ffff).unwrap()];
    stream.read_exact(&mut reply).unwrap();
    assert_eq!(reply[24..28], [0; 4], "the status");
    let length = usize::try_from(u32::from_be_bytes(reply[28..32].try_into().unwrap())).unwrap();
    reply[32..32 + length].to_vec()
}

/// An opaque of variable length (RFC 4506 4.10).
fn opaque(bytes: &[u8]) -> Vec<u8> {
    let padding = vec![0; bytes.len().wrapping_neg() % 4];
    [&u32::try_from(bytes.len()).unwrap().to_be_bytes()[..], bytes, &padding].concat()
}

#[test]
fn who_never_takes_its_answers_holds_no_more_than_a_few() {
    // So many that the fixed allowance below is little for each: 4 MiB for each passes, 5 MiB does not.
    const CLIENTS: u64 = 40;
    let directory = TempDir::new().unwrap();
    let server = start(&directory, &[]);
    std::fs::write(path(&directory, "data/large"), vec![7; 8 << 20]).unwrap();
    let mut streams = Vec::new();
    let before = resident(&server);
    for _ in 0..CLIENTS {
        let mut stream = connect(&server, "nfs", 2);
        let root = handle_in_answer(&mut stream, &call(100_005, 1, &opaque(b"/data")));
        let lookup = call(100_003, 3, &[opaque(&root), opaque(b"large")].concat());
        let file = handle_in_answer(&mut stream, &lookup);
        // READ (RFC 1813 3.3.6): 1 MiB, a hundred times.
        let range = [&0_u64.to_be_bytes()[..], &(1_u32 << 20).to_be_bytes()].concat();
        stream.write_all(&call(100_003, 6, &[opaque(&file), range].concat()).repeat(100)).unwrap();
        streams.push(stream);
    }
    // Until it has not grown for 3 s: the replies that there is room for are made, and that is more than one each.
    let begun = Instant::now();
    let (mut most, mut grown) = (0, Instant::now());
    let is_growing = |most, grown: Instant| most < CLIENTS << 20 || grown.elapsed() < Duration::from_secs(3);
    while is_growing(most, grown) && begun.elapsed() < PATIENCE {
        let more = resident(&server).saturating_sub(before);
        if more > most {
            (most, grown) = (more, Instant::now());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    println!("{} clients: {} KiB more", streams.len(), most / 1024);
    // Some MiB are what the server needs to serve anybody for the first time.
    assert!(most < CLIENTS * (4 << 20) + (16 << 20), "{most} bytes of {CLIENTS} clients");
    assert!(answers(&mut connect(&server, "nfs", 1)), "it serves others");
}
