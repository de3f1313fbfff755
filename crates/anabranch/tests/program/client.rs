//! `anabranch client` against a server that runs, with clients that are connected.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Output;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::connected::Connected;
use crate::logged::logged;
use crate::needs;
use crate::server::{Server, flags, path, program};

const DEADLINE: Duration = Duration::from_secs(60);

/// A server in a directory of its own.
struct Running {
    directory: TempDir,
    server: Server,
}

impl Running {
    fn start(more: &[&str]) -> Self {
        let directory = TempDir::new().unwrap();
        let flags = flags(&directory);
        let flags: Vec<&str> = flags.iter().map(String::as_str).chain(more.iter().copied()).collect();
        let server = Server::start(&flags);
        Self { directory, server }
    }

    fn state(&self) -> String {
        path(&self.directory, "state")
    }

    fn ask(&self, arguments: &[&str]) -> String {
        let state = self.state();
        let arguments: Vec<&str> = arguments.iter().copied().chain(["--state", &state]).collect();
        let Output { status, stdout, stderr } = program(&arguments).output().unwrap();
        assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
        assert!(stderr.is_empty(), "{}", String::from_utf8_lossy(&stderr));
        String::from_utf8(stdout).unwrap()
    }

    fn list(&self) -> Value {
        serde_json::from_str(&self.ask(&["client", "list", "--json"])).unwrap()
    }

    /// What `client list` says once it is as it should be.
    fn list_when(&self, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + DEADLINE;
        loop {
            let list = self.list();
            if is(&list) {
                return list;
            }
            assert!(Instant::now() < deadline, "not within {DEADLINE:?}: {what}: {list:#}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn refused(arguments: &[&str]) -> String {
    let Output { status, stdout, stderr } = program(arguments).output().unwrap();
    let stderr = String::from_utf8(stderr).unwrap();
    assert!(status.code() == Some(6) && stdout.is_empty(), "{stderr}");
    stderr
}

#[test]
fn an_smb_client_is_listed_and_explained() {
    let running = Running::start(&[]);
    assert_eq!(running.list()["smb_sessions"], Value::Array(Vec::new()));
    assert_eq!(running.ask(&["client", "explain"]), "no client is connected\n");
    let Some(client) = Connected::start(&running.server, "data", "anna%hush-hush") else { return };
    let list = running.list_when("a session with a share", |list| list["smb_sessions"][0]["trees"] == 1);
    let session = &list["smb_sessions"][0];
    assert_eq!((&session["user"], &session["dialect"]), (&Value::from("anna"), &Value::from("3.1.1")));
    assert_eq!(session["channels"].as_array().unwrap().len(), 1, "{session:#}");
    assert_eq!(session["channels"][0]["server"], running.server.address("smb"));
    let round_trip = session["channels"][0]["round_trip_us"].as_u64().unwrap();
    assert!(round_trip > 0, "{session:#}");

    let text = running.ask(&["client", "list"]);
    assert!(text.starts_with("SMB: 1 session, 1 channel\n"), "{text}");
    let id = session["id"].as_str().unwrap();
    assert_eq!(text.lines().filter(|line| line.starts_with(id)).count(), 2, "{text}");
    let row = text.lines().find(|line| line.starts_with(id)).unwrap();
    assert!(row.contains("  anna  127.0.0.1  3.1.1 "), "{text}");

    let text = running.ask(&["client", "explain"]);
    assert!(text.starts_with(&format!("SMB session {id} of anna from 127.0.0.1: 1 channel")), "{text}");
    let explained: Value = serde_json::from_str(&running.ask(&["client", "explain", "--json"])).unwrap();
    let findings = &explained["smb_sessions"][0]["findings"];
    assert!(findings[0]["evidence"].is_string() && findings[0]["advice"].is_string(), "{findings:#}");
    drop(client);
    running.list_when("no session", |list| list["smb_sessions"] == Value::Array(Vec::new()));
}

#[test]
fn a_server_without_multichannel_says_so() {
    let running = Running::start(&["--max-channels", "1"]);
    let Some(_client) = Connected::start(&running.server, "data", "anna%hush-hush") else { return };
    running.list_when("a session", |list| list["smb_sessions"][0]["user"] == "anna");
    let explained: Value = serde_json::from_str(&running.ask(&["client", "explain", "--json"])).unwrap();
    let found = &explained["smb_sessions"][0];
    assert_eq!(
        (&found["channels_possible"], &found["findings"][0]["id"]),
        (&1.into(), &"server-has-it-off".into())
    );
}

/// A call without arguments, framed: NULL of a program. RFC 5531 section 9.
fn null_call(program: u32) -> Vec<u8> {
    let words = [0x8000_0000 | 40, 7, 0, 2, program, 3, 0, 0, 0, 0, 0_u32];
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

#[test]
fn an_nfs_clients_connections_are_counted() {
    let running = Running::start(&[]);
    let connect = || {
        let mut stream = TcpStream::connect(running.server.address("nfs")).unwrap();
        stream.write_all(&null_call(100_003)).unwrap();
        stream.read_exact(&mut [0; 28]).unwrap();
        stream
    };
    let connections = [connect(), connect(), connect()];
    let counted = |list: &Value, count| {
        let connections = list["nfs_clients"][0]["connections"].as_array();
        connections
            .is_some_and(|c| c.len() == count && c.iter().all(|c| c["version"] == 3 && c["in_flight"] == 0))
    };
    let list = running.list_when("three connections", |list| counted(list, 3));
    assert_eq!(list["nfs_clients"][0]["address"], "127.0.0.1");
    let connection = &list["nfs_clients"][0]["connections"][0];
    assert!(connection["round_trip_us"].as_u64().is_some_and(|us| us > 0), "{connection:#}");
    let text = running.ask(&["client", "list"]);
    assert!(text.contains("\nNFS: 1 client, 3 connections\n"), "{text}");
    assert!(running.ask(&["client", "explain"]).contains("nothing limits this client"));
    let [first, second, third] = connections;
    drop((second, third));
    running.list_when("one connection", |list| counted(list, 1));
    assert!(running.ask(&["client", "explain"]).contains("nconnect=4"));
    drop(first);
    running.list_when("none", |list| list["nfs_clients"] == Value::Array(Vec::new()));
}

#[test]
fn a_server_that_is_not_there_is_explained() {
    assert!(refused(&["client", "list", "--state", "/no/such"]).contains("no server is running"));
    let mut running = Running::start(&[]);
    let state = running.state();
    assert_eq!(running.server.end_with("TERM"), Some(0));
    assert!(
        refused(&["client", "list", "--state", &state]).contains("no server is running"),
        "ended cleanly"
    );
    let running = Running::start(&[]);
    let (state, control) = (running.state(), running.server.address("control").to_owned());
    let Running { directory: _directory, mut server } = running;
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    let said = refused(&["client", "list", "--state", &state]);
    assert!(said.contains(&format!("no server answers at {control}")), "killed: {said}");
}

#[test]
fn the_token_of_another_server_is_refused() {
    let (one, other) = (Running::start(&[]), Running::start(&[]));
    let said =
        refused(&["client", "list", "--state", &one.state(), "--control", other.server.address("control")]);
    assert!(said.contains("does not accept the token") && said.contains("--state DIR"), "{said}");
    // Something that is no server of ours.
    let said = refused(&["client", "list", "--state", &one.state(), "--control", one.server.address("nfs")]);
    assert!(said.contains("does not answer as HTTP") || said.contains("cannot ask"), "{said}");
}

#[test]
fn who_shows_no_token_learns_nothing_and_is_logged() {
    let directory = TempDir::new().unwrap();
    let log = directory.path().join("log");
    let flags = flags(&directory);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let server = Server::start_logging(&flags, std::fs::File::create(&log).unwrap().into());
    let mut stream = TcpStream::connect(server.address("control")).unwrap();
    let from = stream.local_addr().unwrap();
    stream.write_all(b"GET /v1/shares HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 401 ") && !answer.contains("data"), "{answer}");
    let said = logged(&log, "no token");
    let line = said.lines().find(|line| line.contains("no token")).unwrap_or_else(|| panic!("{said}"));
    assert!(line.contains(&from.to_string()) && line.contains("/v1/shares"), "{line}");
}

#[test]
fn who_may_not_read_the_token_is_told_so() {
    let running = Running::start(&[]);
    let state = running.state();
    let mut command = program(&["client", "list", "--state", &state]);
    if rustix::process::geteuid().is_root() {
        command.uid(65_534);
    } else {
        let token = running.directory.path().join("state/control-token");
        std::fs::set_permissions(token, PermissionsExt::from_mode(0o000)).unwrap();
    }
    let Ok(Output { status, stderr, .. }) = command.output() else {
        return needs::not_tested("nobody may not run the program where it is");
    };
    let said = String::from_utf8(stderr).unwrap();
    assert!(status.code() == Some(6) && said.contains("may not read") && said.contains("sudo"), "{said}");
}
