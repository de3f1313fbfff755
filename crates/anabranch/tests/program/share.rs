//! `anabranch share` and `anabranch user`, on a server that runs and on a state directory that none has.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::connected::Connected;
use crate::needs;
use crate::server::{Server, flags, path, program};

mod deleted;
mod pools;
mod replicate;

const DEADLINE: Duration = Duration::from_secs(60);

/// A machine with a state directory, on which a server may run.
struct Machine {
    directory: TempDir,
    server: Option<Server>,
}

impl Machine {
    /// Without a server.
    fn new() -> Self {
        Self { directory: TempDir::new().unwrap(), server: None }
    }

    /// With one that declares the share `data` and the user anna.
    fn serving() -> Self {
        let mut machine = Self::new();
        machine.start(&[]);
        machine
    }

    fn start(&mut self, more: &[&str]) {
        let flags = flags(&self.directory);
        let flags: Vec<&str> = flags.iter().map(String::as_str).chain(more.iter().copied()).collect();
        self.server = Some(Server::start(&flags));
    }

    fn server(&self) -> &Server {
        self.server.as_ref().unwrap()
    }

    fn stop(&mut self) {
        assert_eq!(self.server.take().unwrap().end_with("TERM"), Some(0));
    }

    fn make_directory(&self, name: &str) -> String {
        let path = path(&self.directory, name);
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    fn run(&self, arguments: &[&str], input: &str) -> Output {
        let state = path(&self.directory, "state");
        let mut command = program(arguments);
        command.args(["--state", &state]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    fn done_with(&self, arguments: &[&str], input: &str) -> String {
        let Output { status, stdout, stderr } = self.run(arguments, input);
        assert!(status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&stderr));
        String::from_utf8(stdout).unwrap()
    }

    fn done(&self, arguments: &[&str]) -> String {
        self.done_with(arguments, "")
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let arguments: Vec<&str> = arguments.iter().copied().chain(["--json"]).collect();
        serde_json::from_str(&self.done(&arguments)).unwrap()
    }

    /// It is refused, with these words in what is said.
    fn refused(&self, arguments: &[&str], words: &[&str]) {
        self.refused_with(arguments, "", words);
    }

    fn refused_with(&self, arguments: &[&str], input: &str, words: &[&str]) {
        let Output { status, stdout, stderr } = self.run(arguments, input);
        let said = String::from_utf8(stderr).unwrap();
        assert!(status.code() == Some(7) && stdout.is_empty(), "{arguments:?}: {said}");
        for word in words {
            assert!(said.contains(word), "{arguments:?}: {word:?} is not in: {said}");
        }
    }

    /// What smbclient says; None where there is none.
    fn smb(&self, share: &str, user: &str, commands: &str) -> Option<(bool, String)> {
        let (_, port) = self.server().address("smb").rsplit_once(':').unwrap();
        let ran = Command::new("smbclient")
            .args([&format!("//127.0.0.1/{share}"), "-p", port, "-U", user, "-c", commands])
            .output();
        let ran = needs::installed("smbclient", ran)?;
        let said = [ran.stdout, ran.stderr].concat();
        Some((ran.status.success(), String::from_utf8_lossy(&said).into_owned()))
    }

    /// The exports, as MOUNT tells them. RFC 1813 5.2.5.
    fn exports(&self) -> String {
        let mut stream = TcpStream::connect(self.server().address("nfs")).unwrap();
        let call = [0x8000_0000 | 40, 7, 0, 2, 100_005, 3, 5, 0, 0, 0, 0_u32];
        let call: Vec<u8> = call.iter().flat_map(|word| word.to_be_bytes()).collect();
        stream.write_all(&call).unwrap();
        let mut mark = [0; 4];
        stream.read_exact(&mut mark).unwrap();
        let mut reply = vec![0; usize::try_from(u32::from_be_bytes(mark) & 0x7fff_ffff).unwrap()];
        stream.read_exact(&mut reply).unwrap();
        String::from_utf8_lossy(&reply).into_owned()
    }

    fn names(&self) -> Vec<String> {
        let listed = self.json(&["share", "list"]);
        let shares = listed["shares"].as_array().unwrap().iter();
        shares.map(|share| share["name"].as_str().unwrap().to_owned()).collect()
    }
}

fn sessions_when(machine: &Machine, user: &str, count: usize) {
    let deadline = Instant::now() + DEADLINE;
    loop {
        let list = machine.json(&["client", "list"]);
        let sessions = list["smb_sessions"].as_array().unwrap().iter();
        if sessions.filter(|session| session["user"] == user && session["trees"] == 1).count() == count {
            return;
        }
        assert!(Instant::now() < deadline, "not {count} sessions of {user}: {list:#}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_share_is_made_used_changed_and_removed_while_the_server_runs() {
    let mut machine = Machine::serving();
    let projects = machine.make_directory("projects");
    let said = machine.done(&["share", "create", "Projects", &projects]);
    assert_eq!(said, "The share Projects was created.\n");
    assert_eq!(machine.names(), ["Projects", "data"]);
    assert!(machine.exports().contains("/Projects"), "{}", machine.exports());
    if let Some((ok, said)) = machine.smb("projects", "anna%hush-hush", "put /etc/hostname h; ls") {
        assert!(ok && said.contains(" h "), "{said}");
    }

    let shown =
        machine.json(&["share", "set", "projects", "--read-only", "true", "--plan", "custom iops=500"]);
    assert_eq!((&shown["read_only"], &shown["plan"]), (&json!(true), &json!("custom iops=500")));
    if let Some((ok, said)) = machine.smb("projects", "anna%hush-hush", "put /etc/hostname other") {
        assert!(!ok && said.contains("NT_STATUS_"), "{said}");
    }
    let text = machine.done(&["share", "show", "Projects"]);
    assert!(text.contains("terms      read-only\nplan       custom iops=500\n"), "{text}");
    assert!(text.contains("limit      iops: 500 operations/s"), "{text}");

    // It is there again after a restart, as it was.
    machine.stop();
    machine.start(&[]);
    let shown = machine.json(&["share", "show", "PROJECTS"]);
    assert_eq!((&shown["served"], &shown["read_only"]), (&json!(true), &json!(true)), "{shown:#}");
    assert_eq!(shown["plan"], "custom iops=500");

    assert!(machine.done(&["share", "remove", "projects"]).contains("its directory is unchanged"));
    assert_eq!(machine.names(), ["data"]);
    assert!(!machine.exports().contains("/Projects"));
    if let Some((ok, said)) = machine.smb("projects", "anna%hush-hush", "ls") {
        assert!(!ok && said.contains("NT_STATUS_BAD_NETWORK_NAME"), "{said}");
    }
    machine.refused(&["share", "show", "projects"], &["there is no share projects"]);
    assert!(std::path::Path::new(&projects).is_dir());
}

#[test]
fn who_uses_a_share_that_is_removed_is_told_and_keeps_what_was_written() {
    let machine = Machine::serving();
    let place = machine.make_directory("place");
    machine.done(&["share", "create", "place", &place]);
    let Some(client) = Connected::start(machine.server(), "place", "anna%hush-hush") else { return };
    sessions_when(&machine, "anna", 1);
    if let Some((ok, said)) = machine.smb("place", "anna%hush-hush", "put /etc/passwd kept") {
        assert!(ok, "{said}");
    }
    machine.done(&["share", "remove", "place"]);
    let said = client.say("ls");
    assert!(said.contains("NT_STATUS_NETWORK_NAME_DELETED"), "{said}");
    assert_eq!(std::fs::read(format!("{place}/kept")).unwrap(), std::fs::read("/etc/passwd").unwrap());
}

#[test]
fn what_the_configuration_declares_is_changed_there() {
    let mut machine = Machine::new();
    let (data, state) = (machine.make_directory("data"), path(&machine.directory, "state"));
    let file = path(&machine.directory, "anabranch.toml");
    let any = "127.0.0.1:0";
    let text = format!(
        "smb = {any:?}\nnfs = {any:?}\ncontrol = {any:?}\nstate = {state:?}\nuser = [\"anna=0:hush-hush\"]\n\
         [[share]]\nname = \"Data\"\ndirectory = {data:?}\n"
    );
    std::fs::write(&file, text).unwrap();
    machine.server = Some(Server::start(&["serve", "--config", &file]));
    let listed = machine.json(&["share", "list"]);
    assert_eq!(listed["shares"][0]["declared_in"], file.as_str());
    let other = machine.make_directory("other");
    let declared = format!("is declared in {file}");
    machine.refused(
        &["share", "set", "data", "--guest", "true"],
        &["the share Data", &declared, "Change it there"],
    );
    machine.refused(&["share", "remove", "DATA"], &[&declared]);
    machine.refused(&["share", "create", "dATA", &other], &["the name dATA is taken", &declared]);
    machine.refused(&["user", "remove", "Anna"], &["the user anna", &declared]);
    machine.refused_with(&["user", "add", "ANNA"], "pw\n", &["there is a user anna already"]);
    assert_eq!(machine.json(&["user", "list"])["users"][0]["declared_in"], file.as_str());
}

#[test]
fn the_metadata_cache_is_switched_by_command() {
    let mut machine = Machine::new();
    let directory = machine.make_directory("projects");
    machine.done(&["share", "create", "projects", &directory, "--metadata-cache", "off"]);
    assert_eq!(machine.json(&["share", "show", "projects"])["metadata_cache"], false);
    machine.start(&[]);
    let shown = machine.json(&["share", "show", "projects"]);
    assert_eq!((&shown["metadata_cache"], &shown["activity"]["cache"]), (&false.into(), &Value::Null));
    machine.done(&["share", "set", "projects", "--metadata-cache", "on"]);
    let shown = machine.json(&["share", "show", "projects"]);
    assert_eq!((&shown["metadata_cache"], &shown["activity"]["cache"]["hits"]), (&true.into(), &0.into()));
    machine.done(&["share", "set", "projects", "--metadata-cache", "off"]);
    let shown = machine.json(&["share", "show", "projects"]);
    assert_eq!((&shown["metadata_cache"], &shown["activity"]["cache"]), (&false.into(), &Value::Null));
}

#[test]
fn a_share_made_by_command_gives_way_to_one_that_is_declared_later() {
    let mut machine = Machine::new();
    let (made, free) = (machine.make_directory("made"), machine.make_directory("free"));
    machine.done(&["share", "create", "DATA", &made]);
    machine.done(&["share", "create", "free", &free]);
    let inside = machine.make_directory("data/inside");
    machine.done(&["share", "create", "inside", &inside]);
    machine.start(&[]);
    let listed = machine.json(&["share", "list"]);
    let told = |name: &str| {
        let shares = listed["shares"].as_array().unwrap();
        shares
            .iter()
            .find(|share| share["name"] == name)
            .unwrap_or_else(|| panic!("{name}: {listed:#}"))
            .clone()
    };
    assert_eq!(told("data")["served"], true);
    assert_eq!(told("free")["served"], true);
    let (shadowed, overlapping) = (told("DATA"), told("inside"));
    assert!(
        shadowed["served"] == false && shadowed["problem"].as_str().unwrap().contains("has precedence"),
        "{shadowed}"
    );
    let why = overlapping["problem"].as_str().unwrap();
    assert!(overlapping["served"] == false && why.contains("lies in that of the share data"), "{why}");
    let text = machine.done(&["share", "list"]);
    assert!(text.contains("inside is not served: the directory"), "{text}");
}

#[test]
fn a_directory_that_vanished_holds_up_nobody_and_is_served_when_it_is_back() {
    let mut machine = Machine::serving();
    let gone = machine.make_directory("gone");
    machine.done(&["share", "create", "gone", &gone]);
    machine.stop();
    std::fs::remove_dir(&gone).unwrap();
    machine.start(&[]);
    let shown = machine.json(&["share", "show", "gone"]);
    let why = shown["problem"].as_str().unwrap();
    assert!(shown["served"] == false && why.contains(&gone) && why.contains("does not exist"), "{shown:#}");
    machine.refused(&["share", "set", "gone"], &["does not exist", "mkdir -p"]);
    std::fs::create_dir(&gone).unwrap();
    assert_eq!(machine.json(&["share", "set", "gone"])["served"], true);
    let said = machine.done(&["share", "set", "gone"]);
    assert!(said.contains("is served; no change was given"), "{said}");
    for flag in ["--metadata-cache", "--read-only"] {
        let refused = machine.run(&["share", "set", "gone", flag, "perhaps"], "");
        let errors = String::from_utf8(refused.stderr).unwrap();
        assert!(refused.status.code() == Some(2) && errors.contains("it is on or off"), "{errors}");
    }
    assert!(machine.exports().contains("/gone"));
}

#[test]
fn shares_that_cannot_be_are_refused_with_the_reason() {
    let machine = Machine::serving();
    let place = machine.make_directory("place");
    let (inside, data) = (machine.make_directory("place/inside"), machine.make_directory("data"));
    let file = path(&machine.directory, "file");
    std::fs::write(&file, "").unwrap();
    machine.done(&["share", "create", "Place", &place]);
    let free = machine.make_directory("free");
    let long = "n".repeat(81);
    let around = machine.make_directory("around");
    let held = machine.make_directory("around/held");
    machine.done(&["share", "create", "Held", &held]);
    let cases: &[(&str, &str, &[&str])] = &[
        ("PLACE", &free, &["the name PLACE is taken", "the share Place serves"]),
        ("Data", &free, &["the name Data is taken", "declared in the command line"]),
        ("ipc$", &free, &["the name ipc$ is reserved"]),
        ("Mailslot", &free, &["is reserved"]),
        ("a/b", &free, &["cannot have the character '/'", "A name has 1 to 80 bytes"]),
        ("a\\b", &free, &["cannot have the character '\\\\'"]),
        ("a:b", &free, &["cannot have the character ':'"]),
        ("", &free, &["is empty"]),
        (" a", &free, &["cannot be the name of a share"]),
        (&long, &free, &["longer than 80 bytes"]),
        ("x", "relative/path", &["\"relative/path\" is not absolute"]),
        ("x", "/no/such/place", &["/no/such/place does not exist", "mkdir -p"]),
        ("x", &file, &["is not a directory"]),
        ("x", &inside, &["lies in that of the share Place"]),
        ("x", &place, &["is served already, by the share Place"]),
        ("x", &data, &["is served already, by the share data"]),
        ("x", &around, &["holds that of the share Held"]),
    ];
    for (name, directory, words) in cases {
        machine.refused(&["share", "create", name, directory], words);
    }
    let plans: &[(&str, &[&str])] = &[
        ("gold", &["there is no plan `gold`", "azure-files-v1"]),
        ("azure-files-v1 capacity=99GiB", &["99", "100 to 102400 GiB"]),
        ("azure-files-v1 capacity=100", &["GiB"]),
        ("azure-files-v2-ssd capacity=1TiB throughput=200Mbit/s", &["MiB/s", "not in Mbit/s"]),
    ];
    for (plan, words) in plans {
        let words: Vec<&str> = words.iter().copied().chain(["the plan of the share x"]).collect();
        machine.refused(&["share", "create", "x", &free, "--plan", plan], &words);
    }
    assert_eq!(machine.names(), ["Held", "Place", "data"], "nothing of it was made");
    machine.refused(&["share", "set", "nothing", "--guest", "true"], &["there is no share nothing"]);
    // Names that need care on the way.
    machine.done(&["share", "create", "50% \u{e4}#", &free]);
    assert_eq!(machine.json(&["share", "show", "50% \u{c4}#"])["directory"], free.as_str());
}

#[test]
fn members_of_a_group_work_together_in_a_share_that_was_made_for_them() {
    if !rustix::process::geteuid().is_root() {
        needs::not_tested("only root gives a directory to a group");
        return;
    }
    // A group that each Debian has, and three accounts, one of which does not belong to it.
    let machine = Machine::serving();
    let gid =
        nix::unistd::Group::from_name("users").unwrap().expect("there is a group users").gid.to_string();
    for (name, uid, groups) in [("ben", "1001", &*gid), ("otto", "1002", &*gid), ("eva", "1003", "1003")] {
        machine.done_with(&["user", "add", name, "--uid", uid, "--gid", uid, "--groups", groups], "pw\n");
    }
    let directory = path(&machine.directory, "projects");
    machine.done(&["share", "create", "projects", &directory, "--for-group", "users"]);
    let shown = machine.done(&["share", "show", "projects"]);
    assert!(shown.contains("write      @users\n"), "{shown}");

    let Some((ok, said)) =
        machine.smb("projects", "ben%pw", "put /etc/hostname report; mkdir d; cd d; put /etc/hostname f")
    else {
        return;
    };
    assert!(ok, "{said}");
    let changes = "put /etc/passwd report; rename d e; cd e; put /etc/passwd g; del f";
    let (ok, said) = machine.smb("projects", "otto%pw", changes).unwrap();
    assert!(ok && !said.contains("NT_STATUS_"), "{said}");
    let (ok, said) = machine.smb("projects", "ben%pw", "cd e; get g -; del g; cd ..; rmdir e").unwrap();
    assert!(ok && !said.contains("NT_STATUS_"), "{said}");
    let read = |path: &str| std::fs::read(path).unwrap();
    assert_eq!(read(&format!("{directory}/report")), read("/etc/passwd"));
    assert!(!std::path::Path::new(&directory).join("e").exists());
    let (ok, said) = machine.smb("projects", "eva%pw", "ls").unwrap();
    assert!(!ok && said.contains("NT_STATUS_ACCESS_DENIED"), "{said}");
}

#[test]
fn a_share_for_a_group_that_cannot_be_leaves_nothing_behind() {
    let machine = Machine::serving();
    let create = |directory: &str, more: &[&str]| {
        let arguments: Vec<&str> =
            ["share", "create", "projects", directory].iter().chain(more).copied().collect();
        let Output { status, stderr, .. } = machine.run(&arguments, "");
        (status.code(), String::from_utf8(stderr).unwrap())
    };
    let new = path(&machine.directory, "projects");
    let (status, said) = create(&new, &["--for-group", "nobody-has-this-name"]);
    assert!(
        status == Some(7) && said.contains("no group nobody-has-this-name") && said.contains("groupadd"),
        "{said}"
    );
    let there = machine.make_directory("there");
    let (status, said) = create(&there, &["--for-group", "root"]);
    assert!(status == Some(5) && said.contains("exists") && said.contains("--write @root"), "{said}");
    let (status, said) = create(&format!("{new}/below"), &["--for-group", "root"]);
    assert!(status == Some(5) && said.contains("Create the directory above it first"), "{said}");
    let (status, said) = create(&new, &["--for-group", "root", "--write", "anna"]);
    assert!(status == Some(2) && said.contains("--write"), "{said}");
    if rustix::process::geteuid().is_root() {
        let (status, said) = create(&new, &["--for-group", "root", "--plan", "custom iops=0"]);
        assert_eq!(status, Some(7), "{said}");
    }
    assert!(!std::path::Path::new(&new).exists());
    assert_eq!(machine.names(), ["data"]);
}

#[test]
fn a_plan_shrinks_below_what_is_used_and_loses_nothing() {
    let machine = Machine::serving();
    let place = machine.make_directory("place");
    machine.done(&["share", "create", "place", &place, "--plan", "custom capacity=1GiB"]);
    std::fs::write(format!("{place}/full"), vec![7; 1 << 20]).unwrap();
    machine.done(&["share", "set", "place", "--plan", "custom capacity=64KiB"]);
    assert_eq!(std::fs::read(format!("{place}/full")).unwrap(), vec![7; 1 << 20]);
    // What an Azure plan has provisioned can be decreased a day after it was increased.
    machine.done(&["share", "set", "place", "--plan", "azure-files-v1 capacity=200GiB"]);
    machine.done(&["share", "set", "place", "--plan", "azure-files-v1 capacity=300GiB"]);
    let less = ["share", "set", "place", "--plan", "azure-files-v1 capacity=200GiB"];
    machine.refused(&less, &["the share place: capacity can be decreased 24 hours after", "23 h 59 min"]);
    assert_eq!(machine.json(&["share", "show", "place"])["plan"], "azure-files-v1 capacity=300GiB");
}

#[test]
fn a_share_gets_a_ransomware_alarm() {
    let machine = Machine::serving();
    let place = machine.make_directory("place");
    let create = |alarm| ["share", "create", "place", &place, "--ransomware-alarm", alarm];
    machine.refused(
        &create("loud"),
        &["the share place: ransomware-alarm:", "on snapshot=7d slow", "docs/ransomware.md"],
    );
    machine.done(&create(""));
    let alarm = || machine.json(&["share", "show", "place"])["ransomware_alarm"].clone();
    assert_eq!(alarm(), "on files=20 within=1m");
    machine.done(&["share", "set", "place", "--ransomware-alarm", "on slow snapshot=3d"]);
    assert_eq!(alarm(), "on files=20 within=1m snapshot=3d slow");
    machine.refused(&["share", "set", "place", "--ransomware-alarm", "on files=1"], &["from 2 to 1000"]);
    machine.done(&["share", "set", "place", "--ransomware-alarm", "off"]);
    assert_eq!(alarm(), "off");
    machine.refused(&["share", "alarms", "place", "--end", "1"], &["has no ransomware alarm 1"]);
    machine.refused(&["share", "alarms", "other"], &["no share other is served"]);
}

#[test]
fn a_share_gets_a_recycle_bin() {
    let machine = Machine::serving();
    let place = machine.make_directory("place");
    let create = |bin| ["share", "create", "place", &place, "--recycle-bin", bin];
    machine.refused(&create("30d"), &["the share place: recycle-bin:", "on keep=30d", "docs/recycle-bin.md"]);
    machine.refused(&create("on keep=0d"), &["keep=0d: expected a number of days"]);
    machine.done(&create("on  keep=30d exclude=*.tmp"));
    assert_eq!(machine.json(&["share", "show", "place"])["recycle_bin"], "on keep=30d exclude=*.tmp");
    machine.refused(&["share", "set", "place", "--recycle-bin", "on day"], &["`day` says nothing"]);
    machine.done(&["share", "set", "place", "--comment", "other"]);
    assert_eq!(machine.json(&["share", "show", "place"])["recycle_bin"], "on keep=30d exclude=*.tmp");
    machine.done(&["share", "set", "place", "--recycle-bin", "off"]);
    assert_eq!(machine.json(&["share", "show", "place"])["recycle_bin"], "off");
}

#[test]
fn without_a_server_it_is_done_in_the_state_directory() {
    let mut machine = Machine::new();
    let place = machine.make_directory("place");
    let state = path(&machine.directory, "state");
    let none = machine.run(&["share", "list"], "");
    let said = String::from_utf8(none.stderr).unwrap();
    assert!(none.status.code() == Some(6) && said.contains(&state) && said.contains("--state DIR"), "{said}");
    let made = machine.run(&["share", "create", "place", &place, "--json"], "");
    let said = String::from_utf8(made.stderr).unwrap();
    assert!(
        made.status.success() && said.contains("no server is running") && said.contains(&state),
        "{said}"
    );
    machine.done_with(&["user", "add", "otto", "--uid", "1234"], "correct horse\n");
    assert_eq!(machine.json(&["share", "show", "place"])["served"], false);
    machine.refused(&["share", "create", "PLACE", &place], &["is taken"]);
    machine.start(&[]);
    assert_eq!(machine.json(&["share", "show", "place"])["served"], true);
    if let Some((ok, said)) = machine.smb("place", "otto%correct horse", "ls") {
        assert!(ok, "{said}");
    }
    // A server that was killed has left its address behind.
    drop(machine.server.take());
    assert_eq!(machine.json(&["share", "show", "place"])["served"], false);
    machine.done(&["share", "remove", "place"]);
    assert_eq!(machine.names(), Vec::<String>::new());
}

#[test]
fn a_server_that_cannot_be_reached_is_not_worked_around() {
    let machine = Machine::serving();
    std::fs::remove_file(path(&machine.directory, "state/control-address")).unwrap();
    let Output { status, stderr, .. } = machine.run(&["share", "list"], "");
    let said = String::from_utf8(stderr).unwrap();
    assert!(status.code() == Some(6) && said.contains("a server uses the state directory"), "{said}");
    assert!(said.contains("--control ADDR:PORT"), "{said}");
    let control = machine.server().address("control").to_owned();
    assert!(machine.done(&["share", "list", "--control", &control]).contains("data"));
}

#[test]
fn a_user_is_added_changed_disabled_and_removed_while_the_server_runs() {
    let machine = Machine::serving();
    let add = ["user", "add", "otto", "--uid", "0", "--gid", "0", "--groups", "5,6", "--json"];
    let user: Value = serde_json::from_str(&machine.done_with(&add, "correct horse\n")).unwrap();
    assert_eq!((&user["name"], &user["disabled"]), (&json!("otto"), &json!(false)));
    assert_eq!(user["aes_keys"], json!(true));
    let text = machine.done(&["user", "list"]);
    assert!(text.contains("otto  ") && text.contains("may log on") && !text.contains("correct"), "{text}");
    let logs_on = |user: &str| machine.smb("data", user, "ls");
    let Some((ok, said)) = logs_on("otto%correct horse") else { return };
    assert!(ok, "{said}");
    // Another password: the old one does not do any more.
    machine.done_with(&["user", "set", "OTTO", "--password"], "battery staple\n");
    assert!(logs_on("otto%correct horse").unwrap().1.contains("NT_STATUS_LOGON_FAILURE"));
    assert!(logs_on("otto%battery staple").unwrap().0);

    let client = Connected::start(machine.server(), "data", "otto%battery staple").unwrap();
    sessions_when(&machine, "otto", 1);
    machine.done(&["user", "set", "otto", "--disable"]);
    sessions_when(&machine, "otto", 0);
    let said = client.say("ls");
    assert!(said.contains("NT_STATUS_USER_SESSION_DELETED"), "{said}");
    assert!(logs_on("otto%battery staple").unwrap().1.contains("NT_STATUS_ACCOUNT_DISABLED"));

    machine.done(&["user", "set", "otto", "--enable"]);
    let client = Connected::start(machine.server(), "data", "otto%battery staple").unwrap();
    sessions_when(&machine, "otto", 1);
    assert_eq!(machine.done(&["user", "remove", "Otto"]), "The user otto was removed.\n");
    let said = client.say("ls");
    assert!(said.contains("NT_STATUS_USER_SESSION_DELETED"), "{said}");
    assert!(logs_on("otto%battery staple").unwrap().1.contains("NT_STATUS_LOGON_FAILURE"));
    machine.refused(&["user", "set", "otto", "--enable"], &["there is no user otto"]);
}

#[test]
fn users_that_cannot_be_are_refused_with_the_reason() {
    let machine = Machine::serving();
    let add = |name: &str, more: &[&str], password: &str, words: &[&str]| {
        let arguments: Vec<&str> = ["user", "add", name].iter().chain(more).copied().collect();
        machine.refused_with(&arguments, password, words);
    };
    let uid = ["--uid", "1000"];
    add("otto", &uid, "", &["there is no password for otto", "standard input"]);
    add("otto", &uid, "\n", &["there is no password for otto"]);
    add("otto", &uid, &"x".repeat(128), &["longer than 127 characters"]);
    add("otto", &uid, "a\u{7}b", &["has a control character"]);
    add("ot/to", &uid, "pw", &["cannot have the character '/'"]);
    add(&"o".repeat(65), &uid, "pw", &["longer than 64 bytes"]);
    let groups = (1..=17).map(|gid: u32| gid.to_string()).collect::<Vec<_>>().join(",");
    add("otto", &["--uid", "1", "--groups", &groups], "pw", &["17 further groups", "It can have 16"]);
    if rustix::process::geteuid().is_root() {
        add("nobody-has-this-name", &[], "pw", &["has no uid: none is given", "--uid N"]);
    }
    machine.done_with(&["user", "add", "otto", "--uid", "1000"], "pw");
    add("OTTO", &uid, "pw", &["there is a user otto already", "anabranch user set otto"]);
}

#[test]
fn top_shows_what_was_called_between_two_looks() {
    let machine = Machine::serving();
    let top = |more: &[&str]| machine.done(&[&["share", "top", "--interval", "1"], more].concat());
    assert!(top(&[]).contains("no client called anything"));
    let Some((_, port)) = machine.server().address("smb").rsplit_once(':') else { return };
    let busy = Command::new("smbclient")
        .args(["//127.0.0.1/data", "-p", port, "-U", "anna%hush-hush"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn();
    let Some(mut busy) = needs::installed("smbclient", busy).map(Connected) else { return };
    let mut input = busy.0.stdin.take().unwrap();
    let calling = std::thread::spawn(move || {
        while writeln!(input, "ls").is_ok() {
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    sessions_when(&machine, "anna", 1);
    let shown = |is_shown: &dyn Fn() -> bool| (0..DEADLINE.as_secs()).any(|_| is_shown());
    assert!(shown(&|| {
        let text = top(&[]);
        text.contains("SHARE  API") && text.contains("QueryDirectory  smb")
    }));
    assert!(shown(&|| {
        let costs = machine.json(&["share", "top", "--interval", "1", "--count", "1"]);
        costs[0]["calls_per_second"].as_f64() > Some(0.0) && costs[0]["share"] == "data"
    }));
    drop(busy);
    calling.join().unwrap();
}

#[test]
fn what_clients_ask_for_is_recorded_and_replayed_against_a_plan() {
    let machine = Machine::serving();
    let trace = path(&machine.directory, "trace");
    machine.refused(&["share", "record", "none", "--out", &trace], &["no share none"]);
    assert!(!std::path::Path::new(&trace).exists(), "nothing was recorded");
    let state = path(&machine.directory, "state");
    let record = [
        "share",
        "record",
        "data",
        "--out",
        &trace,
        "--seconds",
        "120",
        "--json",
        "--state",
        &state,
        "--operations-max",
        "100",
    ];
    let mut recording = program(&record).stdout(Stdio::piped()).spawn().unwrap();
    let mut has_done = 0;
    while recording.try_wait().unwrap().is_none() {
        let commands = "put /proc/self/status f; get f /dev/null; ls; rm f";
        let Some((done, said)) = machine.smb("data", "anna%hush-hush", commands) else { break };
        assert!(done, "{said}");
        has_done += 1;
        if has_done > 2 {
            // One at a time.
            let other = path(&machine.directory, "other");
            machine.refused(&["share", "record", "data", "--out", &other], &["is being recorded already"]);
        }
    }
    let ended = recording.wait_with_output().unwrap();
    if has_done == 0 {
        return;
    }
    let summary: Value = serde_json::from_slice(&ended.stdout).unwrap();
    let operations = summary["operations"].as_u64().unwrap();
    assert!(operations == 100 && summary["lost"] == 0, "{summary}");
    let text = std::fs::read_to_string(&trace).unwrap();
    assert!(text.starts_with("# anabranch trace 1\n# share data for 120 s\n"), "{text}");
    for words in ["\tWrite\tsmb\t", "\tRead\tsmb\t", "\tCreate\tsmb\t", "\tQueryDirectory\tsmb\t"] {
        assert!(text.contains(words), "{words:?} is not in {text}");
    }

    let simulate = |plan: &str| {
        let ran = program(&["share", "simulate", &trace, "--plan", plan, "--json"]).output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        serde_json::from_slice::<Value>(&ran.stdout).unwrap()
    };
    let free = simulate("unlimited");
    assert_eq!((&free["operations"], &free["waited"]), (&json!(operations), &json!(0)), "{free}");
    let tight = simulate("custom iops=2");
    assert!(tight["waited"].as_u64().unwrap() > 0 && tight["limits"][0]["limit"] == "iops", "{tight}");
    let burst = simulate("custom iops=1 burst-iops=10000 burst-credits=5");
    assert!(burst["credits"]["gone_after_seconds"].is_number(), "{burst}");
    let text = said_by(&["share", "simulate", &trace, "--plan", "custom iops=2"]);
    assert!(text.contains("WAITED LONGEST FOR  OPERATIONS  MEAN"), "{text}");

    std::fs::write(&trace, "# anabranch trace 1\n1\tRead\tsmb\n").unwrap();
    for (plan, words) in [("unlimited", "line 2: it has 3 fields"), ("custom iops=0", "--plan: iops=0")] {
        let ran = program(&["share", "simulate", &trace, "--plan", plan]).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.code() == Some(2) && said.contains(words), "{said}");
    }
}

fn said_by(arguments: &[&str]) -> String {
    String::from_utf8(program(arguments).output().unwrap().stdout).unwrap()
}

/// Beside a server that runs, and where none does.
#[test]
fn streams_that_lead_nowhere_are_listed() {
    let mut machine = Machine::serving();
    let data = machine.make_directory("data");
    assert!(machine.done(&["share", "check", "data"]).ends_with("\norphaned   none\n"));
    let folder = machine.make_directory("data/.anabranch-streams/00112233445566778899aabbccddeeff");
    std::fs::write(format!("{folder}/of nobody"), "data").unwrap();
    let file = format!("{data}/file");
    std::fs::write(&file, "").unwrap();
    let number = [&[1][..], &[7; 16]].concat();
    let flags = rustix::fs::XattrFlags::empty();
    if rustix::fs::setxattr(&file, "user.anabranch.streams", &number, flags).is_err() {
        return needs::not_tested("no extended attributes here");
    }
    let said = machine.done(&["share", "check", "data"]);
    assert!(said.contains("Streams of no file, in 1 directory:\n  .anabranch-streams/0011"), "{said}");
    assert!(said.contains("ff  1 stream, 4 B\n"), "{said}");
    assert!(said.ends_with("The streams are missing of 1 file or directory:\n  file\n"), "{said}");
    let checked = machine.json(&["share", "check", "data"]);
    assert_eq!(checked["without_file"][0]["streams"], 1, "{checked}");
    assert_eq!((&checked["without_streams"], &checked["complete"]), (&json!(["file"]), &json!(true)));
    machine.refused(&["share", "check", "missing"], &["no share missing"]);
    machine.stop();
    let here = machine.make_directory("here");
    machine.done(&["share", "create", "here", &here]);
    assert!(machine.done(&["share", "check", "here"]).ends_with("\norphaned   none\n"));
}
