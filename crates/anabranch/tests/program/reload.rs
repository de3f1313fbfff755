//! SIGHUP: the configuration is read again while clients work.

use crate::server;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;
use smb_proto::dialect::Dialect;
use smb_wire::NtStatus;
use tempfile::TempDir;

use crate::nfs::{Nfs, Status};
use crate::nfs4::Nfs4;
use crate::raw::Client;
use crate::server::{Server, flags, path, program};
use nfs_wire::v4::open::ShareDeny;
use nfs_wire::v4::status::Status as Status4;

const DEADLINE: Duration = Duration::from_secs(60);
const ROOT: (u32, u32) = (0, 0);
const STALE: Status = Status(70);
const READ_AGAIN: &str = "the configuration was read again";
const STAYS: &str = "the configuration is unchanged";

/// A server with a configuration file.
struct Running {
    directory: TempDir,
    server: Server,
}

impl Running {
    /// With these shares and users.
    fn start(tables: &str) -> Self {
        let directory = TempDir::new().unwrap();
        for name in ["data", "other", "more", "made"] {
            fs::create_dir(directory.path().join(name)).unwrap();
        }
        write(&directory, "", tables);
        let log = File::create(directory.path().join("log")).unwrap();
        let config = path(&directory, "anabranch.toml");
        let server = Server::start_logging(&["serve", "--config", &config], log.into());
        assert!(server.ready.starts_with("ready "), "{}", log_of(&directory));
        Self { directory, server }
    }

    /// Has the server read these tables, and waits until it says this of it; what the log says since.
    fn reload(&self, top: &str, tables: &str, expected: &str) -> String {
        write(&self.directory, top, tables);
        self.hang_up(expected)
    }

    fn hang_up(&self, expected: &str) -> String {
        let before = log_of(&self.directory).len();
        let pid = self.server.child.id().to_string();
        assert!(Command::new("kill").args(["-s", "HUP", &pid]).status().unwrap().success());
        let deadline = Instant::now() + DEADLINE;
        loop {
            let said = log_of(&self.directory).split_off(before);
            if said.contains(expected) {
                return said;
            }
            assert!(Instant::now() < deadline, "{expected:?} is not in {said}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn ask(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let state = path(&self.directory, "state");
        let ran = program(&[arguments, &["--state", &state]].concat()).output().unwrap();
        (ran.status.code(), String::from_utf8([ran.stdout, ran.stderr].concat()).unwrap())
    }

    fn share(&self, name: &str) -> Value {
        let (status, said) = self.ask(&["share", "show", name, "--json"]);
        assert_eq!(status, Some(0), "{said}");
        serde_json::from_str(&said).unwrap()
    }

    /// A client who has logged on.
    fn logged_on(&self, user: &str, password: &str) -> Result<Client, NtStatus> {
        let mut client = Client::connect(self.server.address("smb").parse().unwrap());
        client.negotiate(&[Dialect::Smb311]);
        client.log_in(user, password)?;
        Ok(client)
    }
}

fn log_of(directory: &TempDir) -> String {
    fs::read_to_string(directory.path().join("log")).unwrap()
}

fn write(directory: &TempDir, top: &str, tables: &str) {
    let any = "127.0.0.1:0";
    let state = path(directory, "state");
    let text = format!(
        "smb = {any:?}\nnfs = {any:?}\ncontrol = {any:?}\nstate = {state:?}\nnfs-squash = \"none\"\n{top}\n{}",
        tables.replace("HERE", directory.path().to_str().unwrap())
    );
    fs::write(directory.path().join("anabranch.toml"), text).unwrap();
}

const DATA: &str = "[[share]]\nname = \"data\"\ndirectory = \"HERE/data\"\n";
const OTHER: &str = "[[share]]\nname = \"other\"\ndirectory = \"HERE/other\"\n";
const MORE: &str = "[[share]]\nname = \"more\"\ndirectory = \"HERE/more\"\n";
const ANNA: &str = "[[user]]\nname = \"anna\"\npassword = \"hush-hush\"\nuid = 1000\n";
const OTTO: &str = "[[user]]\nname = \"otto\"\npassword = \"hush-hush\"\nuid = 1001\n";

#[test]
fn shares_and_users_change_and_sessions_of_others_live_on() {
    let mut running = Running::start(&[DATA, OTHER, ANNA, OTTO].concat());
    let mut anna = running.logged_on("anna", "hush-hush").unwrap();
    let mut otto = running.logged_on("otto", "hush-hush").unwrap();
    anna.tree_connect("data").unwrap();
    otto.tree_connect("data").unwrap();
    assert_eq!(anna.tree_connect("more").unwrap_err(), NtStatus::BAD_NETWORK_NAME);

    let mut kernel = Nfs::connect(running.server.address("nfs"));
    let (on_data, on_other) = (kernel.mount(ROOT, "/data").unwrap(), kernel.mount(ROOT, "/other").unwrap());
    assert_eq!(kernel.mkdir(ROOT, &on_data, "one"), Status::OK);

    // A share more and one less, another plan, read-only; a password changes, one user comes and one goes.
    let data = format!("{DATA}read-only = true\nplan = \"custom iops=500\"\n");
    let anna_changed = ANNA.replace("hush-hush", "correct horse");
    let zoe = OTTO.replace("otto", "zoe");
    running.reload("", &[&data, MORE, &anna_changed, &zoe].concat(), READ_AGAIN);
    let shown = running.share("data");
    assert_eq!((&shown["read_only"], &shown["plan"]), (&true.into(), &"custom iops=500".into()), "{shown}");
    assert_eq!(running.share("more")["served"], true);
    assert!(running.ask(&["share", "show", "other"]).1.contains("there is no share other"));
    assert_eq!(kernel.mkdir(ROOT, &on_data, "two"), Status::ROFS);
    assert_eq!((kernel.look(ROOT, &on_data), kernel.look(ROOT, &on_other)), (Status::OK, STALE));
    let on_more = kernel.mount(ROOT, "/more").unwrap();
    // Whoever has a session keeps it, with another password, too.
    anna.tree_connect("more").unwrap();
    anna.tree_connect("data").unwrap();
    assert_eq!(anna.tree_connect("other").unwrap_err(), NtStatus::BAD_NETWORK_NAME);
    assert!(otto.tree_connect("more").is_err(), "the session of a user who is declared no more");
    assert!(
        running.logged_on("anna", "hush-hush").is_err() && running.logged_on("otto", "hush-hush").is_err()
    );
    running.logged_on("anna", "correct horse").unwrap();
    running.logged_on("zoe", "hush-hush").unwrap();

    // Back again, and another directory under the same name.
    let moved = DATA.replace("HERE/data", "HERE/other");
    running.reload("", &[&moved, MORE, ANNA].concat(), READ_AGAIN);
    let shown = running.share("data");
    assert_eq!(shown["directory"], path(&running.directory, "other").as_str());
    assert_eq!((&shown["read_only"], &shown["plan"]), (&false.into(), &"unlimited".into()));
    anna.tree_connect("more").unwrap();
    anna.tree_connect("data").unwrap();
    assert_eq!((kernel.look(ROOT, &on_data), kernel.look(ROOT, &on_more)), (STALE, Status::OK));
    assert_eq!(running.server.end_with("TERM"), Some(0));
}

/// What a client holds in a share ends when another server has it, and each protocol says so in its way.
#[test]
fn a_share_moves_to_another_server_and_comes_again() {
    let mut running = Running::start(&[DATA, OTHER, ANNA].concat());
    let mut anna = running.logged_on("anna", "hush-hush").unwrap();
    anna.tree_connect("data").unwrap();
    let mut kernel = Nfs::connect(running.server.address("nfs"));
    let on_data = kernel.mount(ROOT, "/data").unwrap();
    let mut four = Nfs4::start([127, 0, 0, 1].into(), running.server.address("nfs"), "four");
    let top = four.top("data").unwrap();
    let opened = four.open(&top, "file", ShareDeny::NONE).unwrap();

    let moved = "moved-share = [\"data=192.0.2.20\"]";
    let said = running.reload(moved, &[OTHER, ANNA].concat(), READ_AGAIN);
    assert!(said.contains("the share data has moved to another server"), "{said}");
    assert_eq!(anna.tree_connect("data").unwrap_err(), NtStatus::BAD_NETWORK_NAME);
    anna.tree_connect("other").unwrap();
    assert_eq!(kernel.look(ROOT, &on_data), STALE);
    assert!(kernel.mount(ROOT, "/data").is_err());
    assert_eq!(four.top("data").unwrap_err(), Status4::Moved);
    assert_eq!(four.write(&opened), Err(Status4::Moved));
    let (_, listed) = running.ask(&["share", "list"]);
    assert!(!listed.contains("data"), "{listed}");

    // With the same filehandles as before.
    running.reload("", &[DATA, OTHER, ANNA].concat(), READ_AGAIN);
    anna.tree_connect("data").unwrap();
    assert_eq!(kernel.look(ROOT, &on_data), Status::OK);
    assert_eq!(four.top("data"), Ok(top));

    // A share that was created by command stays.
    let made = path(&running.directory, "made");
    let (status, said) = running.ask(&["share", "create", "made", &made]);
    assert_eq!(status, Some(0), "{said}");
    let moved = "moved-share = [\"made=192.0.2.20\"]";
    let said = running.reload(moved, &[DATA, OTHER, ANNA].concat(), READ_AGAIN);
    assert!(said.contains("the share made is said to have moved, and is served"), "{said}");
    four.top("made").unwrap();
    assert_eq!(running.server.end_with("TERM"), Some(0));
}

#[test]
fn a_configuration_that_is_wrong_changes_nothing_and_is_told() {
    let mut running = Running::start(&[DATA, ANNA].concat());
    let mut anna = running.logged_on("anna", "hush-hush").unwrap();
    for (tables, why) in [
        (["[[share]]\nname = \"data\"\ndirectroy = \"x\"\n", ""], "directory"),
        (["smb-singing = 1\n", ""], "smb-signing"),
        (["log = \"loud\"\n", MORE], "there is no level"),
        ([MORE, "[[share]]\nname = \"gone\"\ndirectory = \"/no/such/place\"\n"], "does not exist"),
        ([MORE, "[[share]]\nname = \"in\"\ndirectory = \"HERE/state\"\n"], "the state directory"),
        ([MORE, "[[user]]\nname = \"zoe\"\nuid = 7\n"], "zoe has no password"),
        (["moved-share = [\"data=192.0.2.20\"]\n", DATA], "is declared, too"),
        ([MORE, "[[share]]\nname = \"same\"\ndirectory = \"HERE/more\"\n"], "is served already"),
    ] {
        let said = running.reload("", &tables.concat(), STAYS);
        assert!(said.contains(why), "{why}: {said}");
        let (_, listed) = running.ask(&["share", "list"]);
        assert!(listed.contains("data") && !listed.contains("more"), "{why}: {listed}");
        anna.tree_connect("data").unwrap();
        running.logged_on("anna", "hush-hush").unwrap();
    }
    fs::remove_file(path(&running.directory, "anabranch.toml")).unwrap();
    running.hang_up(STAYS);
    running.reload("", &[DATA, MORE, ANNA].concat(), READ_AGAIN);
    anna.tree_connect("more").unwrap();
    assert_eq!(running.server.end_with("TERM"), Some(0));
}

/// What the control address returns.
fn get(running: &Running, path: &str) -> String {
    let mut stream = TcpStream::connect(running.server.address("control")).unwrap();
    stream.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_command_reloads_and_says_what_is_wrong() {
    let running = Running::start(&[DATA, ANNA].concat());
    let file = path(&running.directory, "anabranch.toml");
    let mut anna = running.logged_on("anna", "hush-hush").unwrap();
    anna.tree_connect("data").unwrap();
    let shown = || {
        let (status, said) = running.ask(&["config", "show", "--json"]);
        assert_eq!(status, Some(0), "{said}");
        assert!(!said.contains("hush"), "{said}");
        serde_json::from_str::<Value>(&said).unwrap()
    };
    let before = shown();
    assert_eq!((&before["files"][0], &before["reload"]["last"]), (&file.as_str().into(), &Value::Null));
    assert_eq!(before["shares"][0]["name"], "data");

    write(&running.directory, "max-channels = 2", &[DATA, MORE, ANNA].concat());
    let (status, said) = running.ask(&["reload"]);
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("The configuration was read again.") && said.contains("max-channels"), "{said}");
    anna.tree_connect("more").unwrap();
    let after = shown();
    assert_eq!((&after["shares"][1]["name"], &after["reload"]["succeeded"]), (&"more".into(), &1.into()));
    let channels =
        after["settings"].as_array().unwrap().iter().find(|one| one["key"] == "max-channels").unwrap();
    assert_eq!(
        (&channels["value"], &channels["source"]),
        (&4.into(), &"default".into()),
        "it is not in effect"
    );

    let gone = "[[share]]\nname = \"gone\"\ndirectory = \"/no/such/place\"\n";
    for (tables, expected) in [
        (
            ["smb-singing = 1\nmax-channels = 99\n", DATA].concat(),
            ["line 7: there is no setting", "line 8: max-channels is 99"],
        ),
        (
            [DATA, gone, "[[user]]\nname = \"zoe\"\nuid = 7\n"].concat(),
            ["/no/such/place does not exist", "zoe has no password"],
        ),
    ] {
        write(&running.directory, "", &tables);
        let (status, said) = running.ask(&["reload"]);
        assert_eq!(status, Some(7), "{said}");
        for word in expected {
            assert!(said.contains(word) && said.contains(&file), "{word}: {said}");
            let (_, shown) = running.ask(&["config", "show"]);
            assert!(shown.contains(word) && shown.contains("# The configuration is unchanged"), "{shown}");
        }
        anna.tree_connect("more").unwrap();
        let (status, said) = running.ask(&["reload", "--json"]);
        assert!(status == Some(7) && said.contains("\"last_succeeded\": false"), "{said}");
        assert!(get(&running, "/metrics").contains("\nanabranch_configuration_last_reload_successful 0\n"));
        let health = get(&running, "/healthz");
        assert!(health.contains(" 200 ") && health.contains("degraded\nconfiguration: "), "{health}");
    }
    assert_eq!(shown()["reload"]["failed"], 4);

    write(&running.directory, "", &[DATA, ANNA].concat());
    assert_eq!(running.ask(&["reload"]).0, Some(0));
    let metrics = get(&running, "/metrics");
    for line in [
        "anabranch_configuration_last_reload_successful 1",
        "anabranch_configuration_reloads_total{result=\"failure\"} 4",
        "anabranch_configuration_reloads_total{result=\"success\"} 2",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line} is not in {metrics}");
    }
    assert!(get(&running, "/healthz").ends_with("\nok\n"));
}

#[test]
fn included_files_are_looked_for_again() {
    let running = Running::start(&[DATA, ANNA].concat());
    let include = "include = [\"conf.d/*.toml\"]";
    running.reload(include, &[DATA, ANNA].concat(), READ_AGAIN);
    let drop_in = |name: &str, text: &str| {
        let here = running.directory.path();
        fs::create_dir_all(here.join("conf.d")).unwrap();
        fs::write(here.join("conf.d").join(name), text.replace("HERE", here.to_str().unwrap())).unwrap();
    };
    drop_in("more.toml", MORE);
    running.hang_up(READ_AGAIN);
    let mut anna = running.logged_on("anna", "hush-hush").unwrap();
    anna.tree_connect("more").unwrap();
    let (_, refused) = running.ask(&["share", "set", "more", "--guest", "on"]);
    assert!(
        refused.contains("the share more is declared in ") && refused.contains("conf.d/more.toml"),
        "{refused}"
    );
    drop_in("other.toml", &OTHER.replace("directory", "directroy"));
    let said = running.hang_up(STAYS);
    assert!(said.contains("conf.d/other.toml line 3: there is no setting `directroy`"), "{said}");
    anna.tree_connect("more").unwrap();
    fs::remove_file(running.directory.path().join("conf.d/other.toml")).unwrap();
    fs::remove_file(running.directory.path().join("conf.d/more.toml")).unwrap();
    running.hang_up(READ_AGAIN);
    assert_eq!(anna.tree_connect("more").unwrap_err(), NtStatus::BAD_NETWORK_NAME);
}

#[test]
fn what_counts_from_the_next_start_on_is_named() {
    let running = Running::start(&[DATA, ANNA].concat());
    let said = running.reload("max-channels = 2\nnfs-lease = 30", &[DATA, MORE, ANNA].concat(), READ_AGAIN);
    assert!(said.contains("these changes take effect at the next start: max-channels, nfs-lease"), "{said}");
    assert_eq!(running.share("more")["served"], true);
}

#[test]
fn who_may_use_a_share_changes() {
    let running = Running::start(&[DATA, MORE, ANNA].concat());
    let mut anna = running.logged_on("anna", "hush-hush").unwrap();
    anna.tree_connect("data").unwrap();
    let elsewhere = format!("{DATA}[[share.client]]\nnetwork = \"192.0.2.0/24\"\n");
    running.reload("", &[&elsewhere, MORE, ANNA].concat(), READ_AGAIN);
    assert_eq!(anna.tree_connect("data").unwrap_err(), NtStatus::ACCESS_DENIED);
    anna.tree_connect("more").unwrap();
    running.reload("", &[DATA, MORE, ANNA].concat(), READ_AGAIN);
    anna.tree_connect("data").unwrap();
}

#[test]
fn reserved_names_change() {
    let running = Running::start(&[DATA, MORE, ANNA].concat());
    fs::create_dir(running.directory.path().join("data/.back")).unwrap();
    let mut kernel = Nfs::connect(running.server.address("nfs"));
    let on_data = kernel.mount(ROOT, "/data").unwrap();
    let inside = kernel.lookup(ROOT, &on_data, ".back").unwrap();
    for (name, found) in [(".BACK", Err(Status::NOENT)), (".other", Ok(inside))] {
        let reserved = format!("{DATA}reserved-names = [{name:?}]\n");
        running.reload("", &[&reserved, MORE, ANNA].concat(), READ_AGAIN);
        assert_eq!(kernel.look(ROOT, &on_data), Status::OK, "a filehandle from before");
        assert_eq!(kernel.lookup(ROOT, &on_data, ".back"), found, "{name}");
        assert_eq!(kernel.mkdir(ROOT, &on_data, name), Status::ACCES);
    }
    let bad = format!("{DATA}reserved-names = [\"a/b\"]\n");
    let said = running.reload("", &[&bad, MORE, ANNA].concat(), STAYS);
    assert!(said.contains("\"a/b\" in reserved-names cannot be the name of a file"), "{said}");
}

#[test]
fn what_an_nfs4_client_has_open_is_taken_from_it_when_the_file_shuts_it_out() {
    let running = Running::start(&[DATA, MORE, ANNA].concat());
    let address = running.server.address("nfs");
    let mut gone = Nfs4::start([127, 0, 0, 1].into(), address, "gone");
    let mut stays = Nfs4::start([127, 0, 0, 2].into(), address, "stays");
    let (top, other_top) = (gone.top("data").unwrap(), gone.top("more").unwrap());
    let denies = gone.open(&top, "denied", ShareDeny::BOTH).unwrap();
    let other = gone.open(&other_top, "other", ShareDeny::NONE).unwrap();
    assert_eq!(stays.open(&top, "denied", ShareDeny::NONE).unwrap_err(), Status4::ShareDenied);

    let elsewhere = format!("{DATA}[[share.client]]\nnetwork = \"127.0.0.2\"\nsquash = \"none\"\n");
    running.reload("", &[&elsewhere, MORE, ANNA].concat(), READ_AGAIN);
    gone.until_revoked(&denies);
    let taken = stays.open_when_free(&top, "denied");
    assert_eq!(gone.write(&denies), Err(Status4::Access));
    assert_eq!(gone.write(&other), Ok(()), "another share's");

    running.reload("", &[DATA, MORE, ANNA].concat(), READ_AGAIN);
    assert_eq!(gone.write(&denies), Err(Status4::AdminRevoked));
    assert_eq!(stays.write(&taken), Ok(()));

    // A share that goes from the file takes all along.
    running.reload("", &[MORE, ANNA].concat(), READ_AGAIN);
    assert_eq!(stays.write(&taken), Err(Status4::Stale));
    assert_eq!(stays.test(&taken), Err(Status4::BadStateId));
}

#[test]
fn what_was_made_by_command_gives_way_and_comes_back() {
    let running = Running::start(&[DATA, ANNA].concat());
    let made = path(&running.directory, "made");
    assert_eq!(running.ask(&["share", "create", "made", &made]).0, Some(0));
    let mut anna = running.logged_on("anna", "hush-hush").unwrap();
    anna.tree_connect("made").unwrap();
    for in_its_way in [MORE.replace("\"more\"", "\"MADE\""), MORE.replace("HERE/more", "HERE/made")] {
        running.reload("", &[DATA, &in_its_way, ANNA].concat(), READ_AGAIN);
        let (_, listed) = running.ask(&["share", "list"]);
        assert!(listed.contains("made is not served"), "{listed}");
        running.reload("", &[DATA, ANNA].concat(), READ_AGAIN);
        assert_eq!(running.share("made")["served"], true);
        anna.tree_connect("made").unwrap();
    }
}

#[test]
fn without_a_file_a_server_goes_on() {
    let directory = TempDir::new().unwrap();
    let flags = flags(&directory);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let log = File::create(directory.path().join("log")).unwrap();
    let running = Running { server: Server::start_logging(&flags, log.into()), directory };
    let mut anna = running.logged_on("anna", "hush-hush").unwrap();
    for _ in 0..3 {
        running.hang_up(READ_AGAIN);
    }
    anna.tree_connect("data").unwrap();

    let directory = TempDir::new().unwrap();
    let flags = server::flags(&directory);
    let mut quiet = Server::start(&flags.iter().map(String::as_str).collect::<Vec<_>>());
    let pid = quiet.child.id().to_string();
    assert!(Command::new("kill").args(["-s", "HUP", &pid]).status().unwrap().success());
    assert_eq!(quiet.end_with("TERM"), Some(0));
}

#[test]
fn what_is_used_at_once_is_shown_at_once() {
    let running = Running::start(&[DATA, ANNA].concat());
    let policy = "[[snapshot-policy]]\nname = \"office\"\nhourly = \":05/24\"\n";
    let top = "deleted-share-retention = \"30d\"\nadmins = [\"anna:read\"]\n";
    running.reload(top, &[policy, DATA, ANNA].concat(), READ_AGAIN);
    let (status, shown) = running.ask(&["config", "show"]);
    assert_eq!(status, Some(0), "{shown}");
    for line in ["deleted-share-retention = \"30d\"", "admins = [\"anna:read\"]", "hourly = \":05/24\""] {
        assert!(shown.lines().any(|shown| shown.starts_with(line)), "{line} is not in {shown}");
    }
}
