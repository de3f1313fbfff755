//! Clients that break the rules: the server answers or hangs up, and the others go on.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::server::{Server, flags};

/// A well-formed SMB2 NEGOTIATE for dialects 2.0.2 and 2.1, with its length prefix ([MS-SMB2] 2.2.3).
fn negotiate() -> Vec<u8> {
    let mut message = header(0);
    message.extend([36, 0, 2, 0, 1, 0, 0, 0, 0, 0, 0, 0]); // size, count, security mode, reserved, capabilities
    message.extend([7; 16]); // client GUID
    message.extend([0; 8]);
    message.extend([0x02, 0x02, 0x10, 0x02]);
    framed(&message)
}

/// The header of a request ([MS-SMB2] 2.2.1.2).
fn header(command: u16) -> Vec<u8> {
    let mut header = vec![0; 64];
    header[..4].copy_from_slice(b"\xfeSMB");
    header[4] = 64;
    header[12..14].copy_from_slice(&command.to_le_bytes());
    header[14] = 1;
    header
}

/// Direct TCP framing ([MS-SMB2] 2.1): a zero and three bytes of length.
fn framed(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    [&length[..], message].concat()
}

/// A NULL call of NFSv3 with its record mark (RFC 5531 9, 11).
fn null_call() -> Vec<u8> {
    let words: [u32; 10] = [0x1234, 0, 2, 100_003, 3, 0, 0, 0, 0, 0];
    recorded(&words.map(u32::to_be_bytes).concat())
}

/// One whole record (RFC 5531 11).
fn recorded(message: &[u8]) -> Vec<u8> {
    let mark = 0x8000_0000 | u32::try_from(message.len()).unwrap();
    [&mark.to_be_bytes()[..], message].concat()
}

fn connect(server: &Server, name: &str) -> TcpStream {
    let stream = TcpStream::connect(server.address(name)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

/// The first bytes of the answer to a new client.
fn answer<const N: usize>(server: &Server, name: &str, call: &[u8]) -> std::io::Result<[u8; N]> {
    let mut stream = connect(server, name);
    stream.write_all(call)?;
    let mut reply = [0; N];
    stream.read_exact(&mut reply)?;
    Ok(reply)
}

/// Both protocols answer a new client.
fn assert_serves(server: &Server, after: &str) {
    let smb: [u8; 16] =
        answer(server, "smb", &negotiate()).unwrap_or_else(|e| panic!("SMB after {after}: {e}"));
    assert_eq!(&smb[4..8], b"\xfeSMB", "{after}");
    assert_eq!(&smb[12..16], [0; 4], "STATUS_SUCCESS after {after}");
    let nfs: [u8; 12] =
        answer(server, "nfs", &null_call()).unwrap_or_else(|e| panic!("NFS after {after}: {e}"));
    assert_eq!(&nfs[4..], [0, 0, 0x12, 0x34, 0, 0, 0, 1], "a reply to the call after {after}");
}

/// Sends this and no more; the server must answer and then end the connection, or end it at once.
fn send_and_leave(server: &Server, name: &str, bytes: &[u8]) {
    let mut stream = connect(server, name);
    // It may hang up while we still send.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    if let Err(e) = stream.read_to_end(&mut answer) {
        assert_ne!(
            e.kind(),
            ErrorKind::WouldBlock,
            "it neither answers nor hangs up: {name} {:?}",
            head(bytes)
        );
    }
}

fn head(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len().min(100)]
}

/// Numbers that are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn bytes(&mut self, most: u64) -> Vec<u8> {
        let length = self.next() % most;
        (0..length).map(|_| self.next().to_le_bytes()[3]).collect()
    }
}

#[test]
fn lengths_that_lie() {
    let directory = TempDir::new().unwrap();
    let server = Server::start(&flags(&directory).iter().map(String::as_str).collect::<Vec<_>>());
    assert_serves(&server, "its start");
    let (negotiate, null_call) = (negotiate(), null_call());
    let mut lies: Vec<(&str, Vec<u8>)> = vec![
        ("smb", vec![0]),
        ("smb", vec![0, 0, 0, 0]),
        ("smb", vec![0, 0xff, 0xff, 0xff]),
        ("smb", vec![0xff; 64]),
        ("smb", framed(b"\xfeSMB")),
        ("smb", framed(b"\xffSMBr")),
        ("smb", framed(b"\xfdSMB")),
        ("smb", framed(b"\xfcSMB")),
        ("smb", framed(&[0; 200])),
        ("nfs", vec![0x80]),
        ("nfs", vec![0x80, 0, 0, 0]),
        ("nfs", vec![0xff; 64]),
        ("nfs", vec![0x7f, 0xff, 0xff, 0xff, 1, 2, 3]),
        ("nfs", [0, 0, 0, 0].repeat(10_000)),
        ("nfs", recorded(&[0xff; 40])),
        ("nfs", recorded(&[0; 3])),
    ];
    lies.extend((0..negotiate.len()).step_by(7).map(|cut| ("smb", negotiate[..cut].to_vec())));
    lies.extend((0..null_call.len()).step_by(3).map(|cut| ("nfs", null_call[..cut].to_vec())));
    // A negotiation that counts more dialects than it has.
    let mut counts = negotiate.clone();
    counts[4 + 64 + 2..4 + 64 + 4].copy_from_slice(&[0xff, 0xff]);
    lies.push(("smb", counts));
    // A compound that goes round in circles, and one that leads outside.
    for next in [8_u32, 64, 0x7fff_fff8, 0xffff_fff8] {
        let mut message = [header(13), vec![4, 0, 0, 0], header(13), vec![4, 0, 0, 0]].concat();
        message[20..24].copy_from_slice(&next.to_le_bytes());
        lies.push(("smb", [negotiate.clone(), framed(&message)].concat()));
    }
    for (name, bytes) in &lies {
        send_and_leave(&server, name, bytes);
    }
    assert_serves(&server, "lengths that lie");
}

#[test]
fn noise() {
    let directory = TempDir::new().unwrap();
    let mut server = Server::start(&flags(&directory).iter().map(String::as_str).collect::<Vec<_>>());
    let mut numbers = Numbers(0x2545_f491_4f6c_dd1d);
    for round in 0..300 {
        let noise = numbers.bytes(3000);
        match round % 4 {
            0 => send_and_leave(&server, "smb", &noise),
            1 => {
                let command = u16::try_from(numbers.next() % 24).unwrap();
                let message = framed(&[header(command), noise].concat());
                send_and_leave(&server, "smb", &[negotiate(), message].concat());
            }
            2 => send_and_leave(&server, "nfs", &noise),
            _ => {
                // A call of some procedure of NFSv3 or MOUNT with AUTH_NONE and arguments of noise.
                let (program, procedures) =
                    if numbers.next().is_multiple_of(2) { (100_003, 22) } else { (100_005, 6) };
                let procedure = u32::try_from(numbers.next() % procedures).unwrap();
                let words: [u32; 10] = [round, 0, 2, program, 3, procedure, 0, 0, 0, 0];
                let call = [words.map(u32::to_be_bytes).concat(), noise].concat();
                send_and_leave(&server, "nfs", &recorded(&call));
            }
        }
    }
    assert_serves(&server, "noise");
    assert_eq!(server.end_with("TERM"), Some(0));
}

#[test]
fn many_who_say_nothing() {
    let directory = TempDir::new().unwrap();
    let mut server = Server::start(&flags(&directory).iter().map(String::as_str).collect::<Vec<_>>());
    let silent: Vec<TcpStream> =
        (0..300).map(|n| connect(&server, if n % 2 == 0 { "smb" } else { "nfs" })).collect();
    assert_serves(&server, "300 silent connections");
    drop(silent);
    assert_serves(&server, "they left");
    assert_eq!(server.end_with("TERM"), Some(0));
}

/// A server that may have no more than 256 descriptors.
fn start_with_few_descriptors(flags: &[String]) -> Server {
    let mut child = Command::new("sh")
        .args(["-c", r#"ulimit -n 256 && exec "$@""#, "sh", env!("CARGO_BIN_EXE_anabranch")])
        .args(flags)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut ready = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut ready).unwrap();
    Server { child, ready }
}

/// Those who only hold connections open take no descriptor that serving the others needs.
#[test]
fn silent_connections_do_not_use_up_the_descriptors() {
    let directory = TempDir::new().unwrap();
    let flags = flags(&directory);
    std::fs::create_dir(directory.path().join("data/sub")).unwrap();
    let mut server = start_with_few_descriptors(&flags);
    let mut early = connect(&server, "nfs");
    early.write_all(&null_call()).unwrap();
    early.read_exact(&mut [0; 28]).unwrap();
    let silent: Vec<TcpStream> =
        (0..400).map(|n| connect(&server, if n % 2 == 0 { "smb" } else { "nfs" })).collect();
    // MNT of `/data/sub`: to look at the directory, the server needs a descriptor.
    let words: [u32; 14] =
        [0x4321, 0, 2, 100_005, 3, 1, 0, 0, 0, 0, 9, 0x2f64_6174, 0x612f_7375, 0x6200_0000];
    early.write_all(&recorded(&words.map(u32::to_be_bytes).concat())).unwrap();
    let mut reply = [0; 32];
    early.read_exact(&mut reply).unwrap();
    assert_eq!(&reply[4..8], 0x4321_u32.to_be_bytes(), "the reply to MNT");
    assert_eq!(&reply[28..], [0; 4], "MNT3_OK");
    drop(silent);
    // Their places are free when the server has seen that they left.
    let deadline = Instant::now() + Duration::from_secs(60);
    let is_refused = || {
        [("smb", negotiate()), ("nfs", null_call())]
            .iter()
            .any(|(name, call)| answer::<8>(&server, name, call).is_err())
    };
    while is_refused() {
        assert!(Instant::now() < deadline, "nobody is served though they left");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_serves(&server, "they left");
    assert_eq!(server.end_with("TERM"), Some(0));
}
