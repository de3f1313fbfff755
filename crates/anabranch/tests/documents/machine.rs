//! A machine whose root is a directory: the paths of the pages lie there.

use std::fs;
use std::io::Write;
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::page::words;
use crate::server::{Server, program};

pub(crate) const STATE_DIRECTORY: &str = "/var/lib/anabranch";
/// A port of the system's choice.
pub(crate) const ANY: &str = "127.0.0.1:0";
const DEADLINE: Duration = Duration::from_secs(60);

pub(crate) struct Machine(TempDir);

impl Machine {
    pub(crate) fn new() -> Self {
        let machine = Self(TempDir::new().unwrap());
        for directory in ["/srv/data", "/srv/projects", "/srv/backup", "/srv/home", "/var/lib", "/etc"] {
            fs::create_dir_all(machine.at(directory)).unwrap();
        }
        machine
    }

    pub(crate) fn at(&self, path: &str) -> String {
        format!("{}{path}", self.0.path().display())
    }

    /// A text with the paths of this machine for those of the pages.
    pub(crate) fn here(&self, text: &str) -> String {
        ["/srv/", "/etc/", "/var/lib/"]
            .iter()
            .fold(text.to_owned(), |text, top| text.replace(top, &self.at(top)))
    }

    /// A text with the paths of the pages again.
    pub(crate) fn there(&self, text: &str) -> String {
        text.replace(&self.0.path().display().to_string(), "")
    }

    /// A command of a page begins, in the root of this machine.
    fn begin(&self, command: &str) -> Child {
        let arguments =
            words(command).into_iter().map(|word| if word.starts_with('/') { self.at(&word) } else { word });
        let mut command = program(&[]);
        command.args(arguments).env("ANABRANCH_STATE", self.at(STATE_DIRECTORY)).current_dir(self.0.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    /// What a command of a page prints here, with the page's paths: on standard output, and on standard error.
    pub(crate) fn say(&self, command: &str, input: &str) -> [Vec<String>; 2] {
        self.done(command, input).1
    }

    fn done(&self, command: &str, input: &str) -> (ExitStatus, [Vec<String>; 2]) {
        let mut child = self.begin(command);
        // What does not read its input is not hindered by it.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let output = child.wait_with_output().unwrap();
        let said = [output.stdout, output.stderr].map(|said| {
            let said = self.there(&String::from_utf8(said).unwrap());
            said.lines()
                .filter(|line| !line.starts_with("no server is running: the change"))
                .map(str::to_owned)
                .collect()
        });
        (output.status, said)
    }

    /// Whether a command of a page goes well, and what it prints.
    pub(crate) fn ended(&self, command: &str, input: &str) -> (bool, Vec<String>) {
        let (status, [printed, said]) = self.done(command, input);
        (status.success(), [printed, said].concat())
    }

    /// The same, one after the other.
    pub(crate) fn run(&self, command: &str, input: &str) -> Vec<String> {
        self.say(command, input).concat()
    }

    /// The same of a command that asks a server which listens elsewhere than the page says.
    pub(crate) fn ask(&self, server: &Server, command: &str) -> [Vec<String>; 2] {
        let (smb, nfs) = (server.address("smb"), server.address("nfs"));
        let command = command.replace("@127.0.0.1/", &format!("@{smb}/"));
        let command = command.replace("nfs://127.0.0.1/", &format!("nfs://{nfs}/"));
        self.say(&command, "").map(|lines| {
            lines
                .iter()
                .map(|line| line.replace(smb, "127.0.0.1:445").replace(nfs, "127.0.0.1:2049"))
                .collect()
        })
    }

    /// Clients that make this load until they are dropped.
    pub(crate) fn load(&self, server: &Server, command: &str) -> Load {
        let (smb, nfs) = (server.address("smb"), server.address("nfs"));
        let command = command.replace("@127.0.0.1/", &format!("@{smb}/"));
        let command = command.replace("nfs://127.0.0.1/", &format!("nfs://{nfs}/"));
        let mut arguments = vec!["bench", "job", "--ramp", "0.1", "--seconds", "300", "--file-size", "2M"];
        let words = words(&command);
        arguments.extend(words.iter().map(String::as_str));
        let mut load = program(&arguments);
        Load(load.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    /// A server as the pages have it, with the share `data`, that listens on ports of its own; its file has these lines, too.
    pub(crate) fn serve(&self, more: &str) -> Server {
        let file = self.at("/etc/anabranch.toml");
        let (state, data) = (self.at(STATE_DIRECTORY), self.at("/srv/data"));
        let text = format!(
            "smb = \"{ANY}\"\nnfs = \"{ANY}\"\ncontrol = \"{ANY}\"\nstate = \"{state}\"\n{more}\n[[share]]\nname = \"data\"\ndirectory = \"{data}\"\n"
        );
        fs::write(&file, text).unwrap();
        Server::start(&["serve", "--config", &file])
    }
}

/// What ends when it is dropped.
pub(crate) struct Load(Child);

impl Drop for Load {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Looks until what is printed is what is expected, for a minute at most.
pub(crate) fn until_printed(what: &str, expected: &[String], mut printed: impl FnMut() -> Vec<String>) {
    let deadline = Instant::now() + DEADLINE;
    loop {
        let now = printed();
        if now == expected {
            return;
        }
        if Instant::now() > deadline {
            assert_eq!(now, expected, "{what}");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}
