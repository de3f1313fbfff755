//! `anabranch file`, `lock`, `client disconnect` and `status` against a server that runs, with clients that hold something.

use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;
use std::process::Output;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nfs_wire::v4::compound::ArgOp;
use nfs_wire::v4::lock::{self, LockType, Locker};
use nfs_wire::v4::open::ShareDeny;
use nfs_wire::v4::types::{OwnerId, StateOwner};
use serde_json::Value;
use tempfile::TempDir;

use crate::connected::Connected;
use crate::nfs4;
use crate::nfs4::{Nfs4, Opened};
use crate::server::{Server, flags, path, program};

const DEADLINE: Duration = Duration::from_secs(60);
const DOCUMENT: &str = include_str!("../../../../docs/status.md");
const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

struct Running {
    directory: TempDir,
    server: Server,
}

impl Running {
    fn start() -> Self {
        Self::start_in(TempDir::new().unwrap(), &[])
    }

    fn start_in(directory: TempDir, more: &[String]) -> Self {
        let flags = [flags(&directory), more.to_vec()].concat();
        let server = Server::start(&flags.iter().map(String::as_str).collect::<Vec<_>>());
        Self { directory, server }
    }

    fn output(&self, command: &str) -> Output {
        let state = path(&self.directory, "state");
        let arguments: Vec<&str> = command.split(' ').chain(["--state", &state]).collect();
        program(&arguments).output().unwrap()
    }

    fn ask(&self, command: &str) -> String {
        let Output { status, stdout, stderr } = self.output(command);
        assert!(status.success() && stderr.is_empty(), "{}", String::from_utf8_lossy(&stderr));
        String::from_utf8(stdout).unwrap()
    }

    fn refused(&self, command: &str) -> (Option<i32>, String) {
        let Output { status, stdout, stderr } = self.output(command);
        assert!(stdout.is_empty());
        (status.code(), String::from_utf8(stderr).unwrap())
    }

    fn json(&self, command: &str) -> Value {
        serde_json::from_str(&self.ask(&format!("{command} --json"))).unwrap()
    }

    /// The open files, once there are as many.
    fn files_when(&self, count: usize) -> Vec<Value> {
        let deadline = Instant::now() + DEADLINE;
        loop {
            let files = self.json("file list")["files"].as_array().unwrap().clone();
            if files.len() == count {
                return files;
            }
            assert!(Instant::now() < deadline, "not {count}: {files:#?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// The columns of a table: those of docs/status.md.
fn check_head(table: &str) {
    let head = table.lines().next().unwrap();
    let columns = |line: &str| {
        line.split("  ")
            .map(|word| word.trim().to_owned())
            .filter(|word| !word.is_empty())
            .collect::<Vec<_>>()
    };
    assert!(DOCUMENT.lines().any(|line| columns(line) == columns(head)), "{head}");
}

/// An smbclient that has the file `hello` open until it is dropped. None where there is no smbclient.
fn holder(running: &Running) -> Option<Connected> {
    let mut holder = Connected::start(&running.server, "data", "anna%hush-hush")?;
    holder.tell("open hello");
    Some(holder)
}

fn lock(client: &mut Nfs4, (file, stateid): &Opened) {
    let owner = StateOwner { client_id: client.client_id, owner: OwnerId(b"locker") };
    let locker = Locker::New { open_seqid: 0, open_stateid: *stateid, lock_seqid: 0, owner };
    let lock = |offset, length| {
        ArgOp::Lock(lock::Args { lock_type: LockType::Write, reclaim: false, offset, length, locker })
    };
    let body = client.compound(&[nfs4::put(file), lock(5, 10)]);
    assert_eq!(nfs4::status(&body), Ok(()));
}

#[test]
fn an_open_file_of_an_smb_client_is_listed_and_closed() {
    let running = Running::start();
    assert_eq!(running.ask("file list"), "No file is open.\n");
    std::fs::write(running.directory.path().join("data/hello"), "hello").unwrap();
    let Some(_holder) = holder(&running) else { return };
    let files = running.files_when(1);
    let file = &files[0];
    assert_eq!(
        (&file["share"], &file["path"], &file["protocol"]),
        (&"data".into(), &"hello".into(), &"smb".into())
    );
    let client = &file["client"];
    assert_eq!((&client["user"], &client["address"]), (&"anna".into(), &"127.0.0.1".into()));
    assert_eq!(client["session"], running.json("client list")["smb_sessions"][0]["id"]);
    assert!(file["access"].as_array().unwrap().contains(&"read".into()), "{file:#}");

    let id = file["id"].as_str().unwrap();
    let text = running.ask("file list --share data --client 127.0.0.1");
    check_head(&text);
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let row = text.lines().map(words).find(|row| row[0] == id).unwrap();
    assert_eq!(row[1..6], ["data", "hello", "anna", "127.0.0.1", "smb"]);
    assert_eq!(running.ask("file list --client 127.0.0.9"), "No file is open.\n");
    let (code, said) = running.refused("file list --share none");
    assert!(code == Some(7) && said.contains("no share none is served"), "{said}");

    // A file that was moved is listed where it is.
    std::fs::rename(running.directory.path().join("data/hello"), running.directory.path().join("data/moved"))
        .unwrap();
    assert_eq!(running.files_when(1)[0]["path"], "moved");
    assert_eq!(running.ask(&format!("file close {id}")), format!("The file {id} was closed.\n"));
    running.files_when(0);
    for (command, expected) in [
        (format!("file close {id}"), format!("no open file has the ID {id}")),
        ("file close hello".to_owned(), "is not the ID of an open file".to_owned()),
    ] {
        let (code, said) = running.refused(&command);
        assert!(code == Some(7) && said.contains(&expected), "{said}");
    }
}

#[test]
fn locks_are_listed_and_end_with_their_client() {
    let running = Running::start();
    assert_eq!(running.ask("lock list"), "Nothing is locked.\n");
    let mut nfs = Nfs4::start(HERE, running.server.address("nfs"), "machine");
    let top = nfs.top("data").unwrap();
    let opened = nfs.open(&top, "file", ShareDeny::NONE).unwrap();
    lock(&mut nfs, &opened);
    let locks = running.json("lock list");
    let [lock] = locks["locks"].as_array().unwrap().as_slice() else { panic!("one lock: {locks:#}") };
    assert_eq!((&lock["path"], &lock["protocol"]), (&"file".into(), &"nfs4".into()));
    assert_eq!((&lock["offset"], &lock["length"]), (&5.into(), &10.into()));
    assert_eq!((&lock["exclusive"], &lock["mandatory"]), (&true.into(), &false.into()));
    assert_eq!((&lock["client"]["uid"], &lock["client"]["name"]), (&0.into(), &"machine".into()));
    let files = running.files_when(1);
    assert_eq!((&files[0]["id"], &files[0]["locks"]), (&lock["file"], &1.into()));
    let text = running.ask("lock list --client 127.0.0.1");
    check_head(&text);
    assert!(text.contains("  file  uid 0  127.0.0.1  nfs4      exclusive  advisory  5       10\n"), "{text}");

    let (code, said) = running.refused("client disconnect 127.0.0.9");
    assert!(code == Some(7) && said.contains("no client 127.0.0.9 is connected"), "{said}");
    let (code, said) = running.refused("client disconnect anna");
    assert!(code == Some(7) && said.contains("names no client"), "{said}");
    let said = running.ask("client disconnect 127.0.0.1");
    assert_eq!(said, "127.0.0.1 was disconnected: 0 SMB sessions, 1 NFSv4 client, 1 NFS connection.\n");
    assert_eq!(
        (running.ask("file list"), running.ask("lock list")),
        ("No file is open.\n".to_owned(), "Nothing is locked.\n".to_owned())
    );
    let mut again = Nfs4::start(HERE, running.server.address("nfs"), "machine");
    let opened = again.open(&top, "file", ShareDeny::NONE).unwrap();
    again.write(&opened).unwrap();
}

#[test]
fn a_session_is_ended_by_its_number() {
    let running = Running::start();
    std::fs::write(running.directory.path().join("data/hello"), "hello").unwrap();
    let Some(_holder) = holder(&running) else { return };
    let session = running.files_when(1)[0]["client"]["session"].as_str().unwrap().to_owned();
    let said = running.json(&format!("client disconnect {session}"));
    assert_eq!(said, serde_json::json!({ "smb_sessions": 1, "nfs_clients": 0, "nfs_connections": 0 }));
    running.files_when(0);
}

#[test]
fn the_status_is_one_screen() {
    let mut running = Running::start();
    let mut nfs = Nfs4::start(HERE, running.server.address("nfs"), "machine");
    nfs.top("data").unwrap();
    let text = running.ask("status");
    assert!(text.starts_with(&format!("Anabranch {}, up ", env!("CARGO_PKG_VERSION"))), "{text}");
    assert!(text.lines().next().unwrap().ends_with(": ok"), "{text}");
    assert!(text.contains("\nClients: 0 SMB sessions (0 channels), 1 NFS client (1 connection)\n"), "{text}");
    assert!(text.contains("\ndata   ok     unlimited  "), "{text}");
    check_head(text.split("\n\n").last().unwrap());
    let status = running.json("status");
    assert_eq!((&status["health"], &status["nfs_connections"]), (&"ok".into(), &1.into()));
    assert_eq!(
        (&status["shares"][0]["name"], &status["shares"][0]["served"]),
        (&"data".into(), &true.into())
    );
    assert_eq!(status["shares"][0]["activity"]["plan"], "unlimited");
    assert_eq!(running.server.end_with("TERM"), Some(0));
}

#[test]
fn a_certificate_that_expires_soon_is_in_the_status_and_in_the_check() {
    let directory = TempDir::new().unwrap();
    let mut params = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let end =
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + Duration::from_secs(3 * 24 * 3600 + 1800);
    params.not_after = rcgen::date_time_ymd(1970, 1, 1) + end;
    let key = rcgen::KeyPair::generate().unwrap();
    let (certificate, key_file) = (path(&directory, "certificate.pem"), path(&directory, "key.pem"));
    std::fs::write(&certificate, params.self_signed(&key).unwrap().pem()).unwrap();
    std::fs::write(&key_file, key.serialize_pem()).unwrap();
    std::fs::set_permissions(&key_file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let (config, served) = (path(&directory, "anabranch.toml"), path(&directory, "served"));
    std::fs::create_dir(&served).unwrap();
    let text = format!(
        "control-certificate = {certificate:?}\ncontrol-key = {key_file:?}\nstate = {:?}\n[[share]]\nname = \"data\"\ndirectory = {served:?}\n",
        path(&directory, "new-state"),
    );
    std::fs::write(&config, text).unwrap();
    let checked = program(&["check", &config]).output().unwrap();
    let said = String::from_utf8(checked.stdout).unwrap();
    let expected = "line 1: the certificate of the control address expires in 3 d 0 h";
    assert!(checked.status.success() && said.contains(expected), "{said}");
    let flags = ["--control-certificate".to_owned(), certificate, "--control-key".to_owned(), key_file];
    let running = Running::start_in(directory, &flags);
    let status = running.json("status");
    assert_eq!(status["health"], "degraded");
    let expected = "certificate: the certificate of the control address expires in 3 d 0 h";
    assert_eq!(status["reasons"], serde_json::json!([expected]));
}
