//! What the service manager is told, over a socket of the test's own.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::ptrace;
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::needs;
use crate::server::{Server, flags, path, program};

const DEADLINE: Duration = Duration::from_secs(60);

/// The socket of a service manager.
struct Systemd {
    directory: TempDir,
    socket: UnixDatagram,
}

impl Systemd {
    fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let socket = UnixDatagram::bind(directory.path().join("notify")).unwrap();
        socket.set_read_timeout(Some(DEADLINE)).unwrap();
        Self { directory, socket }
    }

    /// Starts a server with these arguments, and with a watchdog of this many microseconds.
    fn start(&self, arguments: &[&str], watchdog_usec: &str) -> Server {
        let mut command = program(arguments);
        command.env("NOTIFY_SOCKET", path(&self.directory, "notify")).env("WATCHDOG_USEC", watchdog_usec);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut ready = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut ready).unwrap();
        assert!(ready.starts_with("ready "), "{ready}");
        Server { child, ready }
    }

    /// The next message.
    fn heard(&self) -> String {
        let mut message = [0; 4096];
        let length = self.socket.recv(&mut message).unwrap();
        String::from_utf8(message[..length].to_vec()).unwrap()
    }

    /// The next message that is not a heartbeat.
    fn heard_new(&self) -> String {
        self.heard_until(|message| message != ALIVE)
    }

    fn heard_until(&self, is_expected: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + DEADLINE;
        loop {
            let message = self.heard();
            if is_expected(&message) {
                return message;
            }
            assert!(Instant::now() < deadline, "{message}");
        }
    }
}

const ALIVE: &str = "WATCHDOG=1\n";

fn hang_up(server: &Server) {
    let pid = server.child.id().to_string();
    assert!(Command::new("kill").args(["-s", "HUP", &pid]).status().unwrap().success());
}

#[test]
fn a_service_manager_learns_of_the_start_of_reloads_and_of_the_end() {
    let systemd = Systemd::new();
    let [data, state, config] =
        ["data", "state", "anabranch.toml"].map(|name| path(&systemd.directory, name));
    fs::create_dir(&data).unwrap();
    let any = "127.0.0.1:0";
    let right = format!(
        "smb = {any:?}\nnfs = {any:?}\ncontrol = {any:?}\nstate = {state:?}\n\
         [[share]]\nname = \"data\"\ndirectory = {data:?}\n"
    );
    fs::write(&config, &right).unwrap();
    let mut server = systemd.start(&["serve", "--config", &config], "600000000");
    assert_eq!(systemd.heard(), "READY=1\nSTATUS=serving\n");
    assert_eq!(systemd.heard(), ALIVE);

    hang_up(&server);
    let message = systemd.heard_new();
    let usec = message.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").unwrap().trim_end();
    assert!(usec.parse::<u64>().unwrap() > 0, "{message}");
    assert_eq!(systemd.heard_new(), "READY=1\nSTATUS=serving; the configuration was read again\n");

    fs::write(&config, format!("colour = 1\n{right}")).unwrap();
    hang_up(&server);
    assert!(systemd.heard_new().starts_with("RELOADING=1\n"));
    let message = systemd.heard_new();
    assert!(message.starts_with("READY=1\nSTATUS=serving; the configuration is unchanged: "), "{message}");
    assert!(message.contains("colour"), "{message}");

    assert_eq!(server.end_with("TERM"), Some(0));
    assert_eq!(systemd.heard_new(), "STOPPING=1\nSTATUS=SIGTERM: ending\n");
}

/// The threads of a process that are shards.
fn shards(process: u32) -> Vec<Pid> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).unwrap().map(|task| task.unwrap());
    let is_shard = |task: &fs::DirEntry| {
        fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name.starts_with("shard-"))
    };
    let number = |task: fs::DirEntry| Pid::from_raw(task.file_name().to_str().unwrap().parse().unwrap());
    tasks.filter(is_shard).map(number).collect()
}

#[test]
fn a_server_with_a_shard_that_is_held_up_does_not_feed_the_watchdog() {
    let systemd = Systemd::new();
    let flags = flags(&systemd.directory);
    let mut server = systemd.start(&flags.iter().map(String::as_str).collect::<Vec<_>>(), "400000");
    assert_eq!(systemd.heard(), "READY=1\nSTATUS=serving\n");
    for _ in 0..3 {
        systemd.heard_until(|message| message == ALIVE);
    }

    // A thread that is being traced neither runs nor sleeps in a call, so the server does not replace it.
    let shard = shards(server.child.id())[0];
    if let Err(e) = ptrace::seize(shard, ptrace::Options::empty()) {
        return needs::not_tested(&format!("no thread may be traced here: {e}"));
    }
    ptrace::interrupt(shard).unwrap();
    waitpid(shard, Some(WaitPidFlag::__WALL)).unwrap();
    let message = systemd.heard_new();
    assert!(message.starts_with("STATUS=stuck: shard ") && message.contains(": held up for "), "{message}");
    // What follows is one status after the other, and no heartbeat between them.
    for _ in 0..3 {
        let message = systemd.heard();
        assert!(message.starts_with("STATUS=stuck: shard "), "{message}");
    }

    ptrace::detach(shard, None).unwrap();
    systemd.heard_until(|message| message == "STATUS=serving\n");
    assert_eq!(systemd.heard(), ALIVE);
    assert_eq!(server.end_with("TERM"), Some(0));
}
