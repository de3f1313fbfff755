//! Pages whose commands are carried out one after the other, as an administrator would: docs/first-share.md, docs/sizing.md and
//! docs/upgrade.md. What only a machine with a systemd and an apt of its own can do is carried out in `tests/packaging/install`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::machine::{ANY, Machine, STATE_DIRECTORY};
use crate::needs::not_tested;
use crate::page::{Sample, commands, shapes};
use crate::server::Server;

const FIRST_SHARE: &str = include_str!("../../../../docs/first-share.md");
const SIZING: &str = include_str!("../../../../docs/sizing.md");
const UPGRADE: &str = include_str!("../../../../docs/upgrade.md");

/// How the commands begin that are for a machine of its own.
const ELSEWHERE: [&str; 5] =
    ["apt install ", "groupadd ", "useradd ", "cp /usr/share/doc/", "systemctl restart prometheus"];
/// What the issue of the first share allows.
const COMMANDS_MAX: usize = 12;

/// The share of the other pages.
const DATA: &str = "[[share]]\nname = \"data\"\ndirectory = \"/srv/data\"\n";

/// A machine with a page's server, which may be stopped.
struct Shelf {
    machine: Machine,
    server: Option<Server>,
}

impl Shelf {
    /// Its configuration has these lines, too.
    fn new(shares: &str) -> Self {
        let machine = Machine::new();
        fs::create_dir(machine.at("/etc/anabranch")).unwrap();
        let file = machine.at("/etc/anabranch/anabranch.toml");
        let state = machine.at(STATE_DIRECTORY);
        let text = format!(
            "smb = \"{ANY}\"\nnfs = \"{ANY}\"\ncontrol = \"{ANY}\"\nstate = \"{state}\"\n{}",
            machine.here(shares)
        );
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        Self { machine, server: None }
    }

    fn start(&mut self) {
        let file = self.machine.at("/etc/anabranch/anabranch.toml");
        self.server = Some(Server::start(&["serve", "--config", &file]));
    }

    fn stop(&mut self) {
        if let Some(mut server) = self.server.take() {
            assert_eq!(server.end_with("TERM"), Some(0));
        }
    }

    /// Carries out a command of a page, and compares what it prints with the page, as far as the page shows it.
    fn carry_out(&mut self, page: &str, sample: &Sample) {
        let Sample { command, printed } = sample;
        match command.as_str() {
            "systemctl enable --now anabranch" | "systemctl start anabranch" => self.start(),
            "systemctl stop anabranch" => self.stop(),
            _ if ELSEWHERE.iter().any(|begin| command.starts_with(begin)) => {}
            _ if command.starts_with("tar ") => {
                let line = self.machine.here(command);
                let done = Command::new("sh").args(["-ec", &line]).output().unwrap();
                assert!(done.status.success(), "{page}: {line}: {}", String::from_utf8_lossy(&done.stderr));
            }
            _ => match command.strip_prefix("anabranch ") {
                Some(command) => self.compare(page, command, printed),
                None => panic!("{page}: {command}: carry it out, or say where that is done"),
            },
        }
    }

    fn compare(&self, page: &str, command: &str, expected: &[String]) {
        let (is_well, said) = self.machine.ended(command, "correct horse\n");
        assert!(is_well, "{page}: anabranch {command}: {said:#?}");
        // On a terminal the password is asked for; what is cut off by `...` is not looked at.
        let is_asked =
            |line: &&String| ["Password of ", "Again:"].iter().any(|prompt| line.starts_with(prompt));
        let expected: Vec<String> = expected.iter().filter(|line| !is_asked(line)).cloned().collect();
        let shown = expected.iter().position(|line| line == "...").unwrap_or(expected.len());
        let is_whole = shown == expected.len() && shown > 0;
        let length = if is_whole { said.len() } else { shown };
        assert_eq!(
            shapes(&said[..length.min(said.len())]),
            shapes(&expected[..shown]),
            "{page}: anabranch {command}"
        );
    }
}

#[test]
fn the_first_share_takes_few_commands_which_do_what_the_page_says() {
    let all = commands(FIRST_SHARE);
    assert!(all.len() <= COMMANDS_MAX, "{} commands", all.len());
    if !rustix::process::geteuid().is_root() {
        not_tested("only root gives a directory to a group");
        return;
    }
    let mut shelf = Shelf::new("");
    fs::remove_dir(shelf.machine.at("/srv/projects")).unwrap();
    // A user and a group that each system has.
    let known =
        |line: &str| line.replace("anna", "nobody").replace("--for-group projects", "--for-group nogroup");
    for Sample { command, printed } in &all {
        let printed = printed.iter().map(|line| known(line)).collect();
        shelf.carry_out("docs/first-share.md", &Sample { command: known(command), printed });
    }
    let mode = fs::metadata(shelf.machine.at("/srv/projects")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o2770);
    shelf.stop();
}

#[test]
fn what_is_backed_up_is_restored_as_the_page_says() {
    if !rustix::process::geteuid().is_root() {
        not_tested("only root restores owners");
        return;
    }
    let mut shelf = Shelf::new(DATA);
    for command in ["share create projects /srv/projects", "user add otto --uid 1001"] {
        shelf.machine.ended(command, "correct horse\n");
    }
    let file = shelf.machine.at("/srv/projects/plan");
    fs::write(&file, "by anna").unwrap();
    std::os::unix::fs::chown(&file, Some(1000), Some(1000)).unwrap();
    shelf.start();
    for (number, sample) in commands(UPGRADE).iter().enumerate() {
        if sample.command.starts_with("tar --extract") && number > 0 {
            let _ = fs::remove_file(&file); // what the disk has lost
        }
        shelf.carry_out("docs/upgrade.md", sample);
    }
    shelf.stop();
    let restored = fs::metadata(&file).unwrap();
    assert_eq!(
        (fs::read_to_string(&file).unwrap(), std::os::unix::fs::MetadataExt::uid(&restored)),
        ("by anna".to_owned(), 1000)
    );
    assert!(Path::new(&shelf.machine.at("/etc/anabranch/anabranch.toml")).exists());
}

#[test]
fn the_commands_about_sizing_are_carried_out() {
    let mut shelf = Shelf::new(DATA);
    shelf.start();
    for sample in commands(SIZING) {
        shelf.carry_out("docs/sizing.md", &sample);
    }
    shelf.stop();
}
