//! `anabranch bench` from several processes: on this machine, listening with a token, over SSH; and when one of them dies.

use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::connections;
use crate::needs;
use crate::server::{Server, flags_with_plan, path, program};

const SHORT: [&str; 8] = ["--seconds", "0.2", "--ramp", "0.1", "--repetitions", "2", "--file-size", "256k"];

struct Running {
    directory: TempDir,
    server: Server,
}

impl Running {
    fn start() -> Self {
        let directory = TempDir::new().unwrap();
        let flags = flags_with_plan(&directory, "custom iops=1000");
        let server = Server::start(&flags.iter().map(String::as_str).collect::<Vec<_>>());
        Self { directory, server }
    }

    fn smb(&self) -> String {
        format!("smb://anna:hush-hush@{}/data", self.server.address("smb"))
    }

    fn nfs(&self) -> String {
        format!("nfs://{}/data?vers=4.1", self.server.address("nfs"))
    }

    /// The folders of runs that are in the share.
    fn folders(&self) -> Vec<String> {
        let entries = std::fs::read_dir(Path::new(&path(&self.directory, "data"))).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    fn wait_for_folders(&self, count: usize) {
        wait(&format!("there are not {count} folders"), || self.folders().len() == count);
    }

    fn token(&self, name: &str) -> String {
        let file = path(&self.directory, name);
        std::fs::write(&file, format!("{name}-0123456789abcdef\n")).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        file
    }
}

fn wait(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A worker that listens, until the test ends.
struct Listening {
    child: Child,
    address: String,
}

impl Listening {
    fn start(token: &str) -> Self {
        Self::start_saying(token, Stdio::null())
    }

    /// The same, with its complaints there.
    fn start_saying(token: &str, complaints: Stdio) -> Self {
        let mut command = program(&["bench", "worker", "--listen", "127.0.0.1:0", "--token-file", token]);
        let mut child = command.stdout(Stdio::piped()).stderr(complaints).spawn().unwrap();
        let mut ready = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut ready).unwrap();
        let address = ready.trim().strip_prefix("ready worker=").unwrap().to_owned();
        Self { child, address }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A job; its exit status, its result, what it said.
fn job(arguments: &[&str]) -> (i32, Value, String) {
    ended(program(&[&["bench", "job", "--json"], arguments].concat()).output().unwrap())
}

fn ended(Output { status, stdout, stderr }: Output) -> (i32, Value, String) {
    let said = String::from_utf8(stderr).unwrap();
    (status.code().unwrap(), serde_json::from_slice(&stdout).unwrap_or(Value::Null), said)
}

/// A long job that has begun on so many workers.
fn begin(running: &Running, protocol: &str, arguments: &[&str], workers: usize) -> Child {
    let long = ["bench", "job", "--json", "--seconds", "0.2", "--repetitions", "500", "--file-size", "256k"];
    let mut command = program(&[&long, arguments].concat());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    running.wait_for_folders(workers);
    // Some repetitions go by: each worker has connections of its own for each.
    connections::wait_for(running.server.address(protocol), 20 * workers);
    child
}

fn signal(pid: u32, name: &str) {
    assert!(Command::new("kill").args(["-s", name, &pid.to_string()]).status().unwrap().success());
}

fn kinds(result: &Value) -> Vec<&str> {
    result["problems"].as_array().unwrap().iter().map(|problem| problem["kind"].as_str().unwrap()).collect()
}

/// Measures scale-out with two processes, and checks the result. Returns the connections, each with the number of clients of
/// its row, that carried nothing in one of the repetitions, as may be on a busy machine.
fn idle_in_scale_out(running: &Running, target: &str) -> BTreeSet<(u64, usize)> {
    let arguments =
        ["bench", "run", "scale-out", "--quick", "--json", "--processes", "2", "--target", target];
    let (status, result, said) = ended(program(&[&arguments[..], &SHORT].concat()).output().unwrap());
    assert_eq!(status, 0, "{said}");
    let rows = result["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4, "{result:#}");
    let mut idle = BTreeSet::new();
    for row in rows {
        let clients = row["key"]["clients"].as_u64().unwrap();
        for repetition in row["repetitions"].as_array().unwrap() {
            let carried = repetition["connection_bytes"].as_array().unwrap();
            assert_eq!(carried.len() as u64, clients, "{target}");
            let nothing = carried.iter().enumerate().filter(|(_, bytes)| bytes.as_u64() == Some(0));
            idle.extend(nothing.map(|(connection, _)| (clients, connection)));
            let operations = repetition["operations"].as_object().unwrap();
            let counts = |tally: &Value| {
                let bins = tally["latency"].as_array().unwrap();
                (
                    tally["count"].as_u64().unwrap(),
                    bins.iter().map(|bin| bin[1].as_u64().unwrap()).sum::<u64>(),
                )
            };
            assert!(operations.values().map(counts).all(|(count, bins)| count == bins && count > 0));
        }
    }
    assert_eq!(result["environment"]["settings"]["workers"], "process 1, process 2");
    assert_eq!(result["comparisons"].as_array().unwrap().len(), 2);
    assert!(running.folders().is_empty());
    idle
}

/// Who sends nonsense to a worker needs no token.
#[test]
fn a_worker_whose_complaints_nobody_reads_goes_on() {
    let running = Running::start();
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    let mut worker = Listening::start_saying(&running.token("token"), writer.into());
    for _ in 0..3 {
        let mut stream = TcpStream::connect(&worker.address).unwrap();
        stream.write_all(&[0xff; 64]).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
    }
    assert!(worker.child.try_wait().unwrap().is_none(), "it is there");
}

#[test]
fn scale_out_runs_in_several_processes() {
    let mut running = Running::start();
    for target in [running.smb(), running.nfs()] {
        // Each connection carries something in both repetitions of one of these runs.
        let mut idle = idle_in_scale_out(&running, &target);
        for _ in 0..20 {
            if idle.is_empty() {
                break;
            }
            let again = idle_in_scale_out(&running, &target);
            idle.retain(|connection| again.contains(connection));
        }
        assert!(idle.is_empty(), "{target}: {idle:?}");
    }
    assert_eq!(running.server.end_with("TERM"), Some(0));
}

#[test]
fn workers_that_listen_serve_who_has_their_token() {
    let running = Running::start();
    let (token, other) = (running.token("one"), running.token("other"));
    let workers = [Listening::start(&token), Listening::start(&token)];
    let at = workers.each_ref().map(|worker| worker.address.clone()).join(",");
    let target = running.smb();
    let ask = |token: &str, more: &[&str]| {
        let arguments = ["--target", &target, "--workers", &at, "--token-file", token];
        job(&[&arguments[..], &SHORT, more].concat())
    };
    let (status, result, said) = ask(&other, &[]);
    assert_eq!((status, kinds(&result)), (8, vec!["worker"]), "{said}");
    assert!(said.contains("the tokens are not the same"), "{said}");

    let (status, result, said) = ask(&token, &["--clients", "4", "--reads", "50", "--rate", "400"]);
    assert_eq!(status, 0, "{said}");
    assert_eq!(result["rows"][0]["repetitions"][0]["connections"], 4);
    let rate = result["rows"][0]["measure"]["rate"]["median"].as_f64().unwrap();
    println!("{rate} operations a second, of 400 that are due");
    // What was due while it warmed up may come late into the measurement.
    assert!(rate > 0.0 && rate < 800.0, "{rate}");
    assert!(running.folders().is_empty());
    let (status, result, said) = ask(&token, &["--metadata", "--threads", "4"]);
    assert!(status == 0 && result["rows"][0]["repetitions"][0]["connections"] == 2, "{said}");

    let wrong = target.replace("hush-hush", "wrong");
    let (status, result, said) =
        job(&[&["--target", &wrong, "--workers", &at, "--token-file", &token], &SHORT[..]].concat());
    assert_eq!((status, kinds(&result)), (8, vec!["wrong-password"]), "{said}");

    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o644)).unwrap();
    let (status, _, said) = ask(&token, &[]);
    assert!(status == 2 && said.contains("chmod 600"), "{said}");
}

#[test]
fn what_was_measured_is_kept_when_a_worker_dies() {
    let running = Running::start();
    let token = running.token("token");
    let mut workers = [Listening::start(&token), Listening::start(&token)];
    let at = workers.each_ref().map(|worker| worker.address.clone()).join(",");
    let target = running.nfs();
    let run = begin(&running, "nfs", &["--target", &target, "--workers", &at, "--token-file", &token], 2);
    workers[1].child.kill().unwrap();
    let (status, result, said) = ended(run.wait_with_output().unwrap());
    assert_eq!((status, kinds(&result)), (8, vec!["worker", "not-removed"]), "{said}");
    assert_eq!(result["outcome"], "failed");
    assert!(!result["rows"][0]["repetitions"].as_array().unwrap().is_empty(), "{said}");
    assert!(said.contains(&format!("the worker {}: ", workers[1].address)), "{said}");
    // The other one has removed its folder; that of the dead one is named.
    let left = running.folders();
    assert!(left.len() == 1 && said.contains(&left[0]), "{left:?} {said}");
}

#[test]
fn a_worker_removes_what_it_made_when_its_coordinator_dies() {
    let running = Running::start();
    let token = running.token("token");
    let worker = Listening::start(&token);
    let target = running.smb();
    let arguments = ["--target", &target, "--workers", &worker.address, "--token-file", &token];
    let mut run = begin(&running, "smb", &arguments, 1);
    run.kill().unwrap();
    run.wait().unwrap();
    running.wait_for_folders(0);
    let (status, _, said) = job(&[&arguments[..], &SHORT].concat());
    assert_eq!(status, 0, "it serves the next one: {said}");
}

#[test]
fn an_interrupted_run_has_its_workers_clean_up() {
    let running = Running::start();
    let target = running.smb();
    let run = begin(&running, "smb", &["--target", &target, "--processes", "2"], 2);
    signal(run.id(), "INT");
    let (status, result, said) = ended(run.wait_with_output().unwrap());
    assert_eq!((status, &result["outcome"]), (0, &"stopped".into()), "{said}");
    assert!(!result["rows"][0]["repetitions"].as_array().unwrap().is_empty());
    assert!(running.folders().is_empty());
}

#[test]
fn what_needs_no_further_processes_is_refused() {
    for (arguments, words) in [
        (&["run", "mix-10", "--processes", "2"][..], "Measure scale-out"),
        (&["job", "--processes", "4", "--clients", "2"], "2 clients are fewer than 4"),
    ] {
        let output =
            program(&[&["bench"], arguments, &["--target", "smb://a:b@127.0.0.1:1/x"]].concat()).output();
        let (status, _, said) = ended(output.unwrap());
        assert!(status == 2 && said.contains(words), "{said}");
    }
    let (status, result, said) = job(&["--target", "smb://a:b@127.0.0.1:1/x", "--processes", "2"]);
    assert_eq!((status, kinds(&result)), (8, vec!["unreachable"]), "{said}");
}

/// An SSH server on a port of its own, for who has its key, until the test ends.
struct Ssh {
    directory: TempDir,
    child: Child,
    port: u16,
}

impl Drop for Ssh {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Ssh {
    fn start() -> io::Result<Self> {
        const SSHD: &str = "/usr/sbin/sshd";
        let directory = TempDir::new().unwrap();
        let key = path(&directory, "key");
        let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", &key]).status()?;
        assert!(made.success(), "ssh-keygen");
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let config = format!(
            "ListenAddress 127.0.0.1:{port}\nHostKey {key}\nAuthorizedKeysFile {key}.pub\nStrictModes no\nPermitRootLogin yes\n\
             PasswordAuthentication no\nUsePAM no\nPidFile none\n"
        );
        let file = path(&directory, "config");
        std::fs::write(&file, config).unwrap();
        // OpenSSH wants this directory when it runs as root.
        let _ = std::fs::create_dir_all("/run/sshd");
        let child = Command::new(SSHD).args(["-D", "-e", "-f", &file]).stderr(Stdio::null()).spawn()?;
        let ssh = Self { directory, child, port };
        wait("sshd does not listen", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Ok(ssh)
    }

    fn options(&self) -> Vec<String> {
        let key = path(&self.directory, "key");
        let options = [
            format!("Port={}", self.port),
            format!("IdentityFile={key}"),
            "IdentitiesOnly=yes".to_owned(),
            "StrictHostKeyChecking=no".to_owned(),
            "UserKnownHostsFile=/dev/null".to_owned(),
            "LogLevel=ERROR".to_owned(),
        ];
        options.into_iter().flat_map(|option| ["--ssh-option".to_owned(), option]).collect()
    }
}

#[test]
fn workers_are_started_over_ssh() {
    let Some(ssh) = needs::installed("OpenSSH's server and client", Ssh::start()) else { return };
    let running = Running::start();
    let options = ssh.options();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let target = running.nfs();
    let over = [
        "--target",
        &target,
        "--ssh",
        "127.0.0.1,localhost",
        "--remote-program",
        env!("CARGO_BIN_EXE_anabranch"),
    ];
    let (status, result, said) = job(&[&over[..], &options, &SHORT].concat());
    assert_eq!(status, 0, "{said}");
    assert_eq!(result["rows"][0]["repetitions"][0]["connections"], 2);
    assert_eq!(result["environment"]["settings"]["workers"], "127.0.0.1, localhost");
    assert!(running.folders().is_empty());

    let missing = ["--target", &target, "--ssh", "127.0.0.1", "--remote-program", "/nonexistent"];
    let (status, result, said) = job(&[&missing[..], &options, &SHORT].concat());
    assert_eq!((status, kinds(&result)), (8, vec!["worker"]), "{said}");
    assert!(said.contains("the worker 127.0.0.1: it is gone"), "{said}");
}
