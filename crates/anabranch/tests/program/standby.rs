//! A server that waits for the state directory of another one (`--wait-for-state`).

use std::fs::{self, File};
use std::os::unix::net::UnixDatagram;
use std::process::Stdio;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::logged::logged;
use crate::server::{Server, path, program};

const DEADLINE: Duration = Duration::from_secs(60);
const ALIVE: &str = "WATCHDOG=1\n";

/// A directory with the configurations of two servers that share the state and the data.
struct Site {
    directory: TempDir,
    systemd: UnixDatagram,
}

impl Site {
    fn new() -> Self {
        let directory = TempDir::new().unwrap();
        for name in ["data", "state"] {
            fs::create_dir(directory.path().join(name)).unwrap();
        }
        let private = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o700);
        fs::set_permissions(directory.path().join("state"), private).unwrap();
        let systemd = UnixDatagram::bind(directory.path().join("notify")).unwrap();
        systemd.set_read_timeout(Some(DEADLINE)).unwrap();
        Self { directory, systemd }
    }

    /// Writes a configuration with this at its top; its path.
    fn configuration(&self, name: &str, top: &str) -> String {
        let [data, state, file] = ["data", "state", name].map(|name| path(&self.directory, name));
        let any = "127.0.0.1:0";
        let text = format!(
            "smb = {any:?}\nnfs = {any:?}\ncontrol = {any:?}\nstate = {state:?}\n{top}\n\
             [[share]]\nname = \"data\"\ndirectory = {data:?}\n\
             [[user]]\nname = \"anna\"\nuid = 1000\npassword = \"hush-hush\"\n"
        );
        fs::write(&file, text).unwrap();
        file
    }

    /// Starts a server that waits, supervised. Its log is in the file `standby.log`.
    fn standby(&self, config: &str) -> Server {
        let log = File::create(self.directory.path().join("standby.log")).unwrap();
        let mut command = program(&["serve", "--config", config]);
        command.env("NOTIFY_SOCKET", path(&self.directory, "notify")).env("WATCHDOG_USEC", "600000");
        let child = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        Server { child, ready: String::new() }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("standby.log")).unwrap()
    }

    /// The next message to the service manager of which this is true.
    fn heard(&self, is_expected: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + DEADLINE;
        let mut buffer = [0; 4096];
        loop {
            let length = self.systemd.recv(&mut buffer).unwrap();
            let message = String::from_utf8(buffer[..length].to_vec()).unwrap();
            if is_expected(&message) {
                return message;
            }
            assert!(Instant::now() < deadline, "{message}\n{}", self.log());
        }
    }
}

fn signal(server: &Server, name: &str) {
    let pid = server.child.id().to_string();
    let sent = std::process::Command::new("kill").args(["-s", name, &pid]).status().unwrap();
    assert!(sent.success());
}

/// The line that a server prints when it serves.
fn ready(server: &mut Server) -> String {
    use std::io::{BufRead, BufReader};
    let mut line = String::new();
    BufReader::new(server.child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    line
}

#[test]
fn a_standby_says_for_whom_it_waits_reads_its_configuration_again_and_takes_over() {
    let site = Site::new();
    let owner_config = site.configuration("owner.toml", "");
    let mut owner = Server::start(&["serve", "--config", &owner_config]);
    let config = site.configuration("standby.toml", "wait-for-state = true");
    let before: Vec<_> = fs::read_dir(site.directory.path().join("state")).unwrap().collect();
    let mut standby = site.standby(&config);

    let message = site.heard(|message| message != ALIVE);
    let named = format!("(process {})", owner.child.id());
    assert!(message.starts_with("READY=1\nSTATUS=standing by: the state directory "), "{message}");
    assert!(message.contains(&named), "{message}");
    logged(&site.directory.path().join("standby.log"), &named);
    // The watchdog of a server that waits is fed, too.
    site.heard(|message| message == ALIVE);

    site.configuration("standby.toml", "wait-for-state = true\ncolour = 1");
    signal(&standby, "HUP");
    assert!(site.heard(|message| message != ALIVE).starts_with("RELOADING=1\n"));
    let message = site.heard(|message| message != ALIVE);
    assert!(message.contains("the configuration is unchanged") && message.contains("colour"), "{message}");
    site.configuration("standby.toml", "wait-for-state = true\nmax-channels = 2");
    signal(&standby, "HUP");
    let message = site.heard(|message| message.starts_with("READY=1\n"));
    assert!(message.contains("the configuration was read again"), "{message}");
    let after: Vec<_> = fs::read_dir(site.directory.path().join("state")).unwrap().collect();
    assert_eq!(before.len(), after.len(), "nothing is written into the state directory");

    owner.child.kill().unwrap();
    let line = ready(&mut standby);
    assert!(line.starts_with("ready smb=127.0.0.1:"), "{line}\n{}", site.log());
    site.heard(|message| message == "READY=1\nSTATUS=serving\n");
    let state = path(&site.directory, "state");
    let shown = program(&["config", "show", "--state", &state]).output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("max-channels = 2"), "what was read meanwhile counts: {shown}");
    assert_eq!(standby.end_with("TERM"), Some(0));
    assert_eq!(owner.child.wait().unwrap().code(), None);
}

#[test]
fn a_standby_ends_when_it_is_told_to() {
    let site = Site::new();
    let _owner = Server::start(&["serve", "--config", &site.configuration("owner.toml", "")]);
    let mut standby = site.standby(&site.configuration("standby.toml", "wait-for-state = true"));
    site.heard(|message| message.contains("standing by"));
    assert_eq!(standby.end_with("TERM"), Some(0));
    assert_eq!(site.heard(|message| message != ALIVE), "STOPPING=1\nSTATUS=SIGTERM: ending\n");
    assert_eq!(ready(&mut standby), "");
}

#[test]
fn what_would_fail_at_the_takeover_fails_at_once() {
    let site = Site::new();
    let owner_config = site.configuration("owner.toml", "");
    let _owner = Server::start(&["serve", "--config", &owner_config]);
    let gone = path(&site.directory, "gone");
    let refused = |arguments: &[&str]| {
        let all = [&["serve", "--config", &owner_config, "--wait-for-state"], arguments].concat();
        let output = program(&all).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (status, said) = refused(&["--state", &gone]);
    assert_eq!(status, Some(3), "{said}");
    assert!(said.contains("does not exist") && said.contains("Mount its file system"), "{said}");
    assert!(!fs::exists(&gone).unwrap());
    let (status, said) = refused(&["--share", &format!("data={gone}")]);
    assert!(status == Some(5) && said.contains("does not exist"), "{said}");
    let (status, said) = refused(&["--keytab", &gone]);
    assert!(status == Some(2) && said.contains(&gone), "{said}");
    let (status, said) = refused(&["--control-certificate", &gone, "--control-key", &gone]);
    assert!(status == Some(2) && said.contains(&gone), "{said}");
}
