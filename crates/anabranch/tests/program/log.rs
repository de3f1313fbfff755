//! A log that cannot be written costs its lines and nothing else; what is to be logged is checked.

use std::io::{PipeWriter, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, fcntl_setfl};
use smb_proto::dialect::Dialect;
use smb_wire::NtStatus;
use socket2::{Domain, Socket, Type};
use tempfile::TempDir;

use crate::bench::certify;
use crate::disk::Disk;
use crate::logged::logged;
use crate::raw::Client;
use crate::server::{Server, flags, path, program};

/// Clients log on, the control address answers, and the server ends as asked, with this as its log.
fn serves_with_log(log: Stdio, what: &str) {
    let directory = TempDir::new().unwrap();
    let flags = flags(&directory);
    let flags: Vec<&str> = flags.iter().map(String::as_str).chain(["--log", "trace"]).collect();
    let mut server = Server::start_logging(&flags, log);
    for _ in 0..3 {
        let mut client = Client::connect(server.address("smb").parse().unwrap());
        client.negotiate(&[Dialect::Smb311]);
        client.log_in("anna", "hush-hush").unwrap();
        client.tree_connect("data").unwrap();
    }
    for (request, status) in [("GET /healthz", "200"), ("GET /v1/clients", "401"), ("GET /metrics", "200")] {
        let mut stream = TcpStream::connect(server.address("control")).unwrap();
        write!(stream, "{request} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{what}: {request}: {answer}");
        if request == "GET /metrics" {
            let mut lines = answer.lines();
            let lost = lines.find_map(|line| line.strip_prefix("anabranch_lost_log_lines_total ")).unwrap();
            assert!(lost.parse::<u64>().unwrap() > 0, "{what}");
        }
    }
    let state = path(&directory, "state");
    let asked = program(&["client", "list", "--state", &state]).output().unwrap();
    assert!(asked.status.success(), "{what}: {}", String::from_utf8_lossy(&asked.stderr));
    assert_eq!(server.end_with("TERM"), Some(0), "{what}");
}

/// Writes into a pipe until it takes no more.
fn fill(pipe: &PipeWriter) {
    fcntl_setfl(pipe, OFlags::NONBLOCK).unwrap();
    while rustix::io::write(pipe, &[b'x'; 4096]).is_ok() {}
    while rustix::io::write(pipe, b"x").is_ok() {}
    fcntl_setfl(pipe, OFlags::empty()).unwrap();
}

#[test]
fn a_log_that_nobody_takes_costs_its_lines_and_nothing_else() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    serves_with_log(writer.into(), "a closed pipe");

    let (reader, writer) = std::io::pipe().unwrap();
    fill(&writer);
    serves_with_log(writer.into(), "a full pipe that nobody reads");
    drop(reader);

    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    serves_with_log(full.into(), "a full disk");
}

fn lost_lines(server: &Server) -> u64 {
    let mut stream = TcpStream::connect(server.address("control")).unwrap();
    write!(stream, "GET /metrics HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let mut lines = answer.lines();
    lines.find_map(|line| line.strip_prefix("anabranch_lost_log_lines_total ")).unwrap().parse().unwrap()
}

#[test]
fn a_log_on_a_disk_that_stalls_holds_up_nobody() {
    let directory = TempDir::new().unwrap();
    let (image, at) = (directory.path().join("image"), directory.path().join("logs"));
    let Some(disk) = Disk::mount(&image, &at) else {
        return;
    };
    let flags = flags(&directory);
    let flags: Vec<&str> = flags.iter().map(String::as_str).chain(["--log", "trace"]).collect();
    let mut server = Server::start_logging(&flags, std::fs::File::create(at.join("log")).unwrap().into());
    let disk = disk; // to be dropped before the server, which nothing ends that waits for it
    let said = || std::fs::read_to_string(at.join("log")).unwrap();
    if !disk.freeze() {
        return;
    }
    let before = said();
    // Connections have their turns on the shards.
    for _ in 0..8 {
        let mut client = Client::connect(server.address("smb").parse().unwrap());
        client.negotiate(&[Dialect::Smb311]);
        client.log_in("anna", "hush-hush").unwrap();
        client.tree_connect("data").unwrap();
    }
    assert_eq!(said(), before, "lines wait for the disk");
    assert_eq!(lost_lines(&server), 0);
    disk.thaw();
    assert_eq!(server.end_with("TERM"), Some(0));
    let said = said();
    let mut whens = said.lines().map(|line| line.split_once(' ').unwrap().0);
    assert!(whens.all(|when| when.len() == 27 && when.ends_with('Z')), "lines are whole");
    assert!(said.starts_with(&before) && said.len() > before.len() + 1000, "what waited is there");
    assert!(said.lines().last().unwrap().ends_with(": ended"), "{:?}", said.lines().last());
}

#[test]
fn standard_output_that_nobody_reads_ends_nothing() {
    let directory = TempDir::new().unwrap();
    let flags = flags(&directory);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let child = program(&flags).stdout(writer).stderr(Stdio::null()).spawn().unwrap();
    let mut server = Server { child, ready: String::new() };
    let state = path(&directory, "state");
    let deadline = Instant::now() + Duration::from_secs(60);
    while !program(&["client", "list", "--state", &state]).output().unwrap().status.success() {
        assert!(Instant::now() < deadline, "it does not serve");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(server.end_with("TERM"), Some(0));
}

#[test]
fn an_error_that_nobody_reads_has_its_status() {
    for arguments in [["serve", "--log", "loud"].as_slice(), &["serve", "--config", "/no/such/file"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        assert_eq!(program(arguments).stderr(writer).status().unwrap().code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn a_command_whose_words_nobody_reads_does_what_it_is_told() {
    let directory = TempDir::new().unwrap();
    let (state, place) = (path(&directory, "state"), path(&directory, "place"));
    std::fs::create_dir(&place).unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let create = ["share", "create", "place", &place, "--state", &state];
    let told = program(&create).stdout(writer.try_clone().unwrap()).stderr(writer).status().unwrap();
    assert!(told.success(), "{told}");
    let listed = program(&["share", "list", "--state", &state]).output().unwrap();
    assert!(String::from_utf8(listed.stdout).unwrap().contains("place"));
}

#[test]
fn levels_and_parts_that_do_not_exist_are_refused() {
    for filter in ["loud", "smb=debug", "info,smb_server=loud", "smb_server"] {
        let Output { status, stderr, .. } = program(&["serve", "--log", filter]).output().unwrap();
        let said = String::from_utf8(stderr).unwrap();
        assert_eq!(status.code(), Some(2), "{filter}: {said}");
        assert!(said.contains("off, error, warn, info, debug, trace"), "{filter}: {said}");
        assert!(said.contains("smb_server") && said.contains("storage_local"), "{filter}: {said}");
    }
    let directory = TempDir::new().unwrap();
    let flags = flags(&directory);
    let flags: Vec<&str> =
        flags.iter().map(String::as_str).chain(["--log", "WARN,smb-server=debug"]).collect();
    assert!(Server::start(&flags).ready.starts_with("ready "));
}

#[test]
fn the_short_name_of_a_part_is_what_is_logged() {
    let directory = TempDir::new().unwrap();
    let log = directory.path().join("log");
    let flags = flags(&directory);
    let flags: Vec<&str> =
        flags.iter().map(String::as_str).chain(["--log", "off,smb_server=trace"]).collect();
    let mut server = Server::start_logging(&flags, std::fs::File::create(&log).unwrap().into());
    let mut client = Client::connect(server.address("smb").parse().unwrap());
    client.negotiate(&[Dialect::Smb311]);
    assert!(client.log_in("anna", "wrong").is_err());
    assert_eq!(server.end_with("TERM"), Some(0));
    let said = std::fs::read_to_string(&log).unwrap();
    assert!(said.contains(" anabranch_smb_server::"), "{said}");
    assert!(said.lines().all(|line| line.contains(" anabranch_smb_server")), "{said}");
}

/// A connection to SMB from 127.0.0.`from`, with its dialect negotiated.
fn client_from(server: &Server, from: u8) -> Client {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from(([127, 0, 0, from], 0)).into()).unwrap();
    socket.connect(&server.address("smb").parse::<SocketAddr>().unwrap().into()).unwrap();
    let mut client = Client::over(socket.into());
    client.negotiate(&[Dialect::Smb311]);
    client
}

#[test]
fn that_logons_fail_again_and_again_is_said_once_and_keeps_nobody_else_out() {
    const GUESSES: usize = 16;
    let directory = TempDir::new().unwrap();
    let log = directory.path().join("log");
    let flags = flags(&directory);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let mut server = Server::start_logging(&flags, std::fs::File::create(&log).unwrap().into());
    std::thread::scope(|scope| {
        // All at once: the answers are held back. Few for the same account, whose failures wait for each other.
        let guesses: Vec<_> = (0..GUESSES)
            .map(|number| {
                let user = if number < 3 { "anna".to_owned() } else { format!("nobody{number}") };
                let mut client = client_from(&server, 3);
                scope.spawn(move || client.log_in(&user, "wrong").unwrap_err())
            })
            .collect();
        let begun = Instant::now();
        let mut owner = client_from(&server, 2);
        owner.log_in("anna", "hush-hush").unwrap();
        owner.tree_connect("data").unwrap();
        let waiting = guesses.iter().filter(|guess| !guess.is_finished()).count();
        println!("the right password: {:?}, {waiting} of {GUESSES} others wait", begun.elapsed());
        for guess in guesses {
            assert_eq!(guess.join().unwrap(), NtStatus::LOGON_FAILURE);
        }
    });
    assert_eq!(server.end_with("TERM"), Some(0));
    let said = std::fs::read_to_string(&log).unwrap();
    let lines = |words: &str| said.lines().filter(|line| line.contains(words)).collect::<Vec<_>>();
    let told = lines("logons fail again and again");
    assert!(told.len() == 1 && told[0].contains("127.0.0.3"), "{said}");
    assert_eq!(lines("authentication failed").len(), 5, "each is told until then: {said}");
}

/// The number behind `key` in a line of the log.
fn number_after(line: &str, key: &str) -> u64 {
    let rest = line.split_once(key).map_or("", |(_, rest)| rest);
    rest.split(|c: char| !c.is_ascii_digit()).next().and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

#[test]
fn logons_of_one_address_are_counted_and_not_written_one_by_one() {
    const LOGONS: u64 = 50;
    let directory = TempDir::new().unwrap();
    let log = directory.path().join("log");
    let flags = flags(&directory);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let server = Server::start_logging(&flags, std::fs::File::create(&log).unwrap().into());
    let begun = Instant::now();
    for _ in 0..LOGONS {
        client_from(&server, 4).log_in("anna", "hush-hush").unwrap();
    }
    loop {
        let said = std::fs::read_to_string(&log).unwrap();
        let lines = said.lines().filter(|line| line.contains("session begins"));
        let (counts, written): (Vec<_>, Vec<_>) = lines.partition(|line| line.contains("more lines"));
        let counted = counts.iter().map(|line| number_after(line, "session begins: "));
        let left_out = written.iter().map(|line| number_after(line, "left_out="));
        let all = written.len() as u64 + counted.chain(left_out).sum::<u64>();
        // One line in ten seconds, however fast the machine is.
        assert!(written.len() as u64 <= 1 + begun.elapsed().as_secs() / 10, "{said}");
        if all == LOGONS {
            break;
        }
        assert!(all < LOGONS && begun.elapsed() < Duration::from_secs(120), "{all} of {LOGONS}: {said}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Who reaches the control address needs no token to be refused.
#[test]
fn refused_requests_of_one_address_are_counted_and_quoted_in_short() {
    const REQUESTS: u64 = 200;
    let directory = TempDir::new().unwrap();
    let log = directory.path().join("log");
    let flags = flags(&directory);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let server = Server::start_logging(&flags, std::fs::File::create(&log).unwrap().into());
    let long = "x".repeat(8 << 10);
    for (target, host) in [(format!("/v1/{long}"), "localhost"), ("/healthz".to_owned(), &long)] {
        for _ in 0..REQUESTS {
            let mut stream = TcpStream::connect(server.address("control")).unwrap();
            write!(stream, "GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
            stream.read_to_end(&mut Vec::new()).unwrap();
        }
    }
    for words in ["showed no token", "asks for another name"] {
        let said = logged(&log, &format!("{words}: "));
        let lines: Vec<_> = said.lines().filter(|line| line.contains(words)).collect();
        assert!(lines.iter().all(|line| line.len() < 500), "{said}");
        let left_out = lines
            .iter()
            .map(|line| number_after(line, "left_out=") + number_after(line, &format!("{words}: ")));
        let (written, left_out) = (lines.len() as u64, left_out.sum::<u64>());
        assert!(written < REQUESTS / 2 && left_out > 0, "{written} lines, {left_out} left out: {said}");
    }
}

/// Anybody may begin TLS over NFS, with no certificate to show.
#[test]
fn tls_of_clients_without_a_certificate_is_counted_and_not_written_for_each_connection() {
    const CONNECTIONS: u64 = 30;
    let directory = TempDir::new().unwrap();
    let log = directory.path().join("log");
    let [certificate, key] = certify(&directory, "server");
    let flags = flags(&directory);
    let more = ["--control-certificate", &certificate, "--control-key", &key, "--nfs-tls", "offered"];
    let flags: Vec<&str> = flags.iter().map(String::as_str).chain(more).collect();
    let server = Server::start_logging(&flags, std::fs::File::create(&log).unwrap().into());
    let target = format!("nfs://{}/data?vers=3&xprtsec=tls&ca={certificate}", server.address("nfs"));
    let (connections, begun) = (CONNECTIONS.to_string(), Instant::now());
    let of_load = ["--seconds", "0.3", "--ramp", "0.05", "--repetitions", "1", "--file-size", "1M"];
    let job = ["bench", "job", "--target", &target, "--connections", &connections];
    let ran = program(&[&job[..], &of_load].concat()).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let said = logged(&log, "NFS over TLS");
    let lines = said.lines().filter(|line| line.contains("NFS over TLS")).count() as u64;
    assert!(lines <= 1 + begun.elapsed().as_secs() / 10, "{lines} lines: {said}");
}
