//! The access log, made by real clients: smbclient and libnfs; read by real daemons: rsyslog and systemd's journal.

use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::needs;
use crate::nfs::{Nfs, Status};
use crate::nfs4::Nfs4;
use crate::server::{Server, flags, path, program};
use nfs_wire::v4::open::ShareDeny;

/// A client of libnfs: what it does is in its arguments, `OPERATION PATH [PATH]` each.
const LIBNFS: &str = r#"
import ctypes, os, sys
lib = ctypes.CDLL("libnfs.so.13")
class Url(ctypes.Structure):
    _fields_ = [("server", ctypes.c_char_p), ("path", ctypes.c_char_p), ("file", ctypes.c_char_p)]
lib.nfs_init_context.restype = ctypes.c_void_p
lib.nfs_parse_url_dir.restype = ctypes.POINTER(Url)
lib.nfs_get_error.restype = ctypes.c_char_p
nfs = ctypes.c_void_p(lib.nfs_init_context())
url = lib.nfs_parse_url_dir(nfs, os.fsencode(sys.argv[1]))
if lib.nfs_mount(nfs, url.contents.server, url.contents.path): sys.exit(lib.nfs_get_error(nfs).decode())
for line in sys.argv[2:]:
    name, *paths = line.split("\t")
    paths = [os.fsencode(path) for path in paths]
    if name == "creat":
        file = ctypes.c_void_p()
        result = lib.nfs_creat(nfs, paths[0], 0o644, ctypes.byref(file))
        if result == 0: lib.nfs_close(nfs, file)
    elif name == "chmod": result = lib.nfs_chmod(nfs, paths[0], 0o600)
    else: result = getattr(lib, "nfs_" + name)(nfs, *paths)
    print(name, result, flush=True)
"#;

/// A process that is killed when the test ends.
struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Machine {
    directory: TempDir,
    server: Server,
}

impl Machine {
    /// A server with these flags more.
    fn start(directory: TempDir, more: &[&str]) -> Self {
        let mut flags = flags(&directory);
        flags.extend(more.iter().map(|flag| (*flag).to_owned()));
        let log = File::create(directory.path().join("log")).unwrap();
        let server = Server::start_logging(&flags.iter().map(String::as_str).collect::<Vec<_>>(), log.into());
        Self { directory, server }
    }

    /// The same, with its access log in this file.
    fn to_file(more: &[&str]) -> (Self, PathBuf) {
        let directory = TempDir::new().unwrap();
        let file = directory.path().join("access.json");
        let flag = ["--access-log-file", file.to_str().unwrap()];
        let machine = Self::start(directory, &[&flag[..], more].concat());
        (machine, file)
    }

    fn smb(&self, user: &str, commands: &str) -> Option<String> {
        let (_, port) = self.server.address("smb").rsplit_once(':').unwrap();
        let ran = Command::new("smbclient")
            .args(["//127.0.0.1/data", "-p", port, "-U", user, "-c", commands])
            .stdin(Stdio::null())
            .output();
        let Output { stdout, stderr, .. } = needs::installed("smbclient", ran)?;
        Some(String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned())
    }

    /// The results of what a client of libnfs does as this user.
    fn libnfs(&self, uid: u32, operations: &[&str]) -> Option<String> {
        let (_, port) = self.server.address("nfs").rsplit_once(':').unwrap();
        let url =
            format!("nfs://127.0.0.1/data?version=3&nfsport={port}&mountport={port}&uid={uid}&gid={uid}");
        let ran = Command::new("python3").args(["-c", LIBNFS, &url]).args(operations).output();
        let Output { stdout, stderr, .. } = needs::installed("python3", ran)?;
        let said = String::from_utf8_lossy(&stderr).into_owned();
        if said.contains("libnfs.so") {
            needs::installed::<()>("libnfs", Err(std::io::Error::other(said)))?;
            return None;
        }
        Some(String::from_utf8_lossy(&stdout).into_owned() + &said)
    }

    /// A counter of the metrics.
    fn counter(&self, name: &str) -> u64 {
        let url = format!("http://{}/metrics", self.server.address("control"));
        let text = Command::new("curl").args(["-s", &url]).output().unwrap().stdout;
        let text = String::from_utf8(text).unwrap();
        let found = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        found.unwrap_or_else(|| panic!("no {name} in {text}"))
    }
}

fn lines(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Waits until something is so, for a minute at most.
fn until<T>(what: &str, mut is_so: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = is_so() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What is the same in each run.
fn facts(line: &Value) -> Value {
    let mut facts = line.as_object().unwrap().clone();
    let time = facts.remove("time").unwrap();
    let time = time.as_str().unwrap();
    assert!(time.len() == 27 && time.ends_with('Z') && time.as_bytes()[10] == b'T', "{time}");
    assert!(facts.remove("durationMs").unwrap().as_f64().unwrap() >= 0.0);
    if let Some(from) = facts.remove("callerIpAddress") {
        let (address, port) = from.as_str().unwrap().rsplit_once(':').unwrap();
        assert!(address == "127.0.0.1" && port.parse::<u16>().is_ok(), "{from}");
        facts.insert("from".to_owned(), json!(true));
    }
    Value::Object(facts)
}

/// Waits for each of these lines.
fn expect(file: &Path, expected: &[Value]) {
    for one in expected {
        until(&format!("{one} is not among {:#?}", lines(file)), || {
            lines(file).iter().map(facts).find(|line| line == one)
        });
    }
}

/// What all operations of anna have, with these fields.
fn by_anna(kind: &str, operation: &str, status: &str, more: &Value) -> Value {
    let outcome = if status == "STATUS_SUCCESS" { "success" } else { "refused" };
    let mut line = json!({
        "kind": kind, "operationName": operation, "protocol": "smb", "user": "anna", "uid": 0,
        "authenticationType": "Password", "from": true, "outcome": outcome, "statusText": status,
    });
    line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    line
}

#[test]
fn smb_clients_leave_a_line_for_each_kind_of_operation() {
    let (machine, file) = Machine::to_file(&[]);
    let commands =
        "put /etc/hostname a.txt; rename a.txt b.txt; mkdir d; rmdir d; del b.txt; get none.txt /dev/null";
    let Some(said) = machine.smb("anna%hush-hush", commands) else { return };
    assert!(said.contains("NT_STATUS_OBJECT_NAME_NOT_FOUND"), "{said}");
    let on = |path: &str| json!({ "share": "data", "path": path });
    expect(
        &file,
        &[
            by_anna("logon", "SessionSetup", "STATUS_SUCCESS", &json!({})),
            by_anna("mount", "TreeConnect", "STATUS_SUCCESS", &json!({ "share": "data" })),
            by_anna("create", "Create", "STATUS_SUCCESS", &on("/a.txt")),
            by_anna(
                "rename",
                "SetInfo",
                "STATUS_SUCCESS",
                &json!({ "share": "data", "path": "/a.txt", "newPath": "/b.txt" }),
            ),
            by_anna("create", "Create", "STATUS_SUCCESS", &on("/d")),
            by_anna("delete", "Close", "STATUS_SUCCESS", &on("/d")),
            by_anna("open", "Create", "STATUS_SUCCESS", &on("/b.txt")),
            by_anna("delete", "Close", "STATUS_SUCCESS", &on("/b.txt")),
            by_anna("open", "Create", "STATUS_OBJECT_NAME_NOT_FOUND", &on("/none.txt")),
        ],
    );
    let is_end = |line: &Value| line["kind"] == "logoff" && line["user"] == "anna";
    until("the session has ended", || lines(&file).iter().any(is_end).then_some(()));
    assert!(lines(&file).iter().all(|line| !["read", "write"].contains(&line["kind"].as_str().unwrap())));

    machine.smb("anna%wrong", "ls").unwrap();
    expect(
        &file,
        &[json!({
            "kind": "logon", "operationName": "SessionSetup", "protocol": "smb", "user": "anna", "from": true,
            "outcome": "refused", "statusText": "STATUS_LOGON_FAILURE",
        })],
    );
    // Another list, and who may not do something.
    fs::write(machine.directory.path().join("data/kept"), "x").unwrap();
    machine.smb("anna%hush-hush", "allinfo kept").unwrap();
    let (_, port) = machine.server.address("smb").rsplit_once(':').unwrap();
    let set = [
        "//127.0.0.1/data",
        "kept",
        "-p",
        port,
        "-U",
        "anna%hush-hush",
        "-S",
        "ACL:Everyone:ALLOWED/0x0/FULL",
    ];
    let ran = Command::new("smbcacls").args(set).output();
    if needs::installed("smbcacls", ran).is_some_and(|ran| ran.status.success()) {
        expect(&file, &[by_anna("permission", "SetInfo", "STATUS_SUCCESS", &on("/kept"))]);
    }
}

/// What an operation of NFSv3 has.
fn by_nfs3(kind: &str, operation: &str, status: &str, more: &Value) -> Value {
    let outcome = if status.ends_with("_OK") { "success" } else { "refused" };
    let mut line = json!({
        "kind": kind, "operationName": operation, "protocol": "nfs3", "share": "data", "uid": 1000,
        "authenticationType": "Stated", "from": true, "outcome": outcome, "statusText": status,
    });
    line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    line
}

#[test]
fn nfs_clients_leave_a_line_for_each_kind_of_operation_and_forge_none() {
    let (machine, file) = Machine::to_file(&[]);
    let data = machine.directory.path().join("data");
    std::os::unix::fs::chown(&data, Some(1000), Some(1000)).unwrap();
    fs::create_dir(data.join("private")).unwrap();
    let forged = "x\n{\"kind\":\"logon\",\"user\":\"root\"}";
    let operations = [
        "creat\t/a",
        "chmod\t/a",
        "rename\t/a\t/b",
        "mkdir\t/d",
        "rmdir\t/d",
        "link\t/b\t/c",
        "unlink\t/b",
        "unlink\t/none",
        "mkdir\t/private/d",
        &format!("mkdir\t/{forged}"),
        "mkdir\t/\u{9b}31m",
    ];
    let Some(said) = machine.libnfs(1000, &operations) else { return };
    assert!(said.contains("creat 0") && said.contains("unlink -2"), "{said}");
    let on = |path: &str| json!({ "path": path });
    let both = |path: &str, new: &str| json!({ "path": path, "newPath": new });
    expect(
        &file,
        &[
            by_nfs3("mount", "Mount", "MNT3_OK", &json!({ "path": "/" })),
            by_nfs3("create", "Create", "NFS3_OK", &on("/a")),
            by_nfs3("permission", "SetAttr", "NFS3_OK", &on("/a")),
            by_nfs3("rename", "Rename", "NFS3_OK", &both("/a", "/b")),
            by_nfs3("create", "MkDir", "NFS3_OK", &on("/d")),
            by_nfs3("delete", "RmDir", "NFS3_OK", &on("/d")),
            by_nfs3("create", "Link", "NFS3_OK", &both("/b", "/c")),
            by_nfs3("delete", "Remove", "NFS3_OK", &on("/b")),
            by_nfs3("delete", "Remove", "NFS3ERR_NOENT", &on("/none")),
            by_nfs3("create", "MkDir", "NFS3ERR_ACCES", &on("/private/d")),
            by_nfs3("create", "MkDir", "NFS3_OK", &on(&format!("/{forged}"))),
            by_nfs3("create", "MkDir", "NFS3_OK", &on("/\u{9b}31m")),
        ],
    );
    let text = fs::read_to_string(&file).unwrap();
    assert!(lines(&file).iter().all(|line| line["user"] != "root"), "{text}");
    assert!(!text.contains('\u{9b}') && text.contains("\\u009b31m"), "a terminal would obey");

    // A client of NFSv4 creates a session; nobody else can tell who it is.
    let mut nfs4 = Nfs4::start("127.0.0.1".parse().unwrap(), machine.server.address("nfs"), "a test");
    let top = nfs4.top("data").unwrap();
    nfs4.open(&top, "c", ShareDeny::empty()).unwrap();
    nfs4.open(&top, "new", ShareDeny::empty()).unwrap();
    let is_it = |line: &Value| {
        (line["kind"] == "logon" && line["operationName"] == "CreateSession").then(|| facts(line))
    };
    let logon = until("a session of NFSv4", || lines(&file).iter().find_map(is_it));
    assert_eq!((&logon["protocol"], &logon["statusText"]), (&json!("nfs4"), &json!("NFS4_OK")));
    // It asks for files to be created that are not there.
    let by_nfs4 = |kind: &str, path: &str| {
        by_nfs3(kind, "Open", "NFS4_OK", &json!({ "path": path, "uid": 0, "protocol": "nfs4" }))
    };
    expect(&file, &[by_nfs4("open", "/c"), by_nfs4("create", "/new")]);
}

#[test]
fn administration_is_written_with_the_token_and_filters_are_used_after_a_reload() {
    let directory = TempDir::new().unwrap();
    fs::create_dir(directory.path().join("data")).unwrap();
    let (config, file) = (path(&directory, "anabranch.toml"), directory.path().join("access.json"));
    let write = |settings: &str, share: &str| {
        let text = format!(
            "smb = \"127.0.0.1:0\"\nnfs = \"127.0.0.1:0\"\ncontrol = \"127.0.0.1:0\"\nstate = \"{}\"\nnfs-squash = \"none\"\n\
             access-log-file = \"{}\"\n{settings}\n[[share]]\nname = \"data\"\ndirectory = \"{}\"\n{share}\n",
            path(&directory, "state"),
            file.display(),
            path(&directory, "data"),
        );
        fs::write(&config, text).unwrap();
    };
    write("", "");
    let server = Server::start(&["serve", "--config", &config]);
    let machine = Machine { directory: TempDir::new().unwrap(), server };
    let state = path(&directory, "state");
    let run = |arguments: &[&str]| {
        let ran = program(arguments).args(["--state", &state]).output().unwrap();
        assert!(ran.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
    };
    let by_http = |method: &str, path: &str, status: &str| {
        json!({
            "kind": "administration", "operationName": method, "protocol": "http", "path": path, "user": "control-token",
            "authenticationType": "Token", "from": true, "outcome": "success", "statusText": status,
        })
    };
    run(&["share", "list"]);
    run(&["token", "create", "grafana", "--scope", "read"]);
    run(&["token", "remove", "grafana"]);
    let url = format!("http://{}/v1/shares", machine.server.address("control"));
    Command::new("curl").args(["-s", "-H", "Authorization: Bearer wrong", &url]).output().unwrap();
    expect(
        &file,
        &[
            by_http("POST", "/v1/tokens/grafana", "Created"),
            by_http("DELETE", "/v1/tokens/grafana", "OK"),
            json!({
                "kind": "administration", "operationName": "GET", "protocol": "http", "path": "/v1/shares",
                "from": true, "outcome": "refused", "statusText": "Unauthorized",
            }),
        ],
    );
    assert!(lines(&file).iter().all(|line| line["operationName"] != "GET" || line["outcome"] == "refused"));

    // Renamed by another program, and opened anew on SIGHUP, which is a line itself; then only what was refused.
    let mut nfs = Nfs::connect(machine.server.address("nfs"));
    let top = nfs.mount((0, 0), "/data").unwrap();
    let moved = directory.path().join("moved.json");
    fs::rename(&file, &moved).unwrap();
    assert_eq!(nfs.mkdir((0, 0), &top, "before"), Status::OK);
    write("access-log-outcomes = \"failures\"\naccess-log-kinds = [\"create\"]", "");
    let pid = machine.server.child.id().to_string();
    assert!(Command::new("kill").args(["-s", "HUP", &pid]).status().unwrap().success());
    until("the file is made anew", || file.exists().then_some(()));
    let is_at = |path: &'static str| move |line: &Value| line["path"] == path;
    assert!(lines(&moved).iter().any(is_at("/before")));
    assert_eq!(nfs.mkdir((0, 0), &top, "unwritten"), Status::OK);
    assert_eq!(nfs.mkdir((1000, 1000), &top, "refused"), Status::ACCES);
    let refused = until("what was refused", || lines(&file).into_iter().find(is_at("/refused")));
    assert_eq!(refused["statusText"], "NFS3ERR_ACCES");
    assert!(!lines(&file).iter().any(is_at("/unwritten")));

    // Nothing of a share that is left out.
    write("", "access-log = false");
    run(&["reload"]);
    assert_eq!(nfs.mkdir((0, 0), &top, "left-out"), Status::OK);
    run(&["token", "create", "last", "--scope", "read"]);
    until("the last line", || lines(&file).into_iter().find(is_at("/v1/tokens/last")));
    assert!(!lines(&file).iter().any(is_at("/left-out")));
}

#[test]
fn the_log_has_the_chosen_users_and_shares() {
    let users = ["--access-log-users", "1000", "--access-log-users", "Control-Token"];
    let (machine, file) = Machine::to_file(&users);
    let open_to_all = |directory: &Path| {
        fs::set_permissions(directory, fs::Permissions::from_mode(0o777)).unwrap();
    };
    open_to_all(&machine.directory.path().join("data"));
    let mut nfs = Nfs::connect(machine.server.address("nfs"));
    let top = nfs.mount((1000, 1000), "/data").unwrap();
    assert_eq!(nfs.mkdir((1001, 1001), &top, "of-another"), Status::OK);
    assert_eq!(nfs.mkdir((1000, 1000), &top, "chosen"), Status::OK);
    let is_at = |path: &'static str| move |line: &Value| line["path"] == path;
    until("the line of the chosen user", || lines(&file).into_iter().find(is_at("/chosen")));
    assert!(!lines(&file).iter().any(is_at("/of-another")));

    let directory = machine.directory.path().join("projects");
    fs::create_dir(&directory).unwrap();
    open_to_all(&directory);
    let state = path(&machine.directory, "state");
    let run = |arguments: &[&str]| {
        let ran = program(arguments).args(["--state", &state]).output().unwrap();
        assert!(ran.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap()
    };
    run(&["share", "create", "projects", directory.to_str().unwrap(), "--access-log", "off"]);
    until("the share is made", || lines(&file).into_iter().find(is_at("/v1/shares/projects")));
    let logged = |shown: &str| serde_json::from_str::<Value>(shown).unwrap()["access_log"].clone();
    assert_eq!(logged(&run(&["share", "show", "projects", "--json"])), false);
    let top = nfs.mount((1000, 1000), "/projects").unwrap();
    assert_eq!(nfs.mkdir((1000, 1000), &top, "unwritten"), Status::OK);
    run(&["share", "set", "projects", "--access-log", "on"]);
    assert_eq!(logged(&run(&["share", "show", "projects", "--json"])), true);
    assert_eq!(nfs.mkdir((1000, 1000), &top, "written"), Status::OK);
    until("a line of the share", || lines(&file).into_iter().find(is_at("/written")));
    assert!(!lines(&file).iter().any(is_at("/unwritten")));
}

/// Lines of this many directories that are made, with long names.
fn make(nfs: &mut Nfs, top: &[u8], numbers: std::ops::Range<u32>) {
    for number in numbers {
        assert_eq!(nfs.mkdir((0, 0), top, &format!("{number:0>200}")), Status::OK);
    }
}

#[test]
fn rotation_under_load_loses_no_line_and_repeats_none() {
    const MADE: u32 = 6000;
    let (machine, file) = Machine::to_file(&["--access-log-mib", "1", "--access-log-files", "9"]);
    let mut nfs = Nfs::connect(machine.server.address("nfs"));
    let top = nfs.mount((0, 0), "/data").unwrap();
    make(&mut nfs, &top, 0..MADE);
    until("all is written", || {
        (machine.counter("anabranch_access_log_lines_total") > u64::from(MADE)).then_some(())
    });
    assert_eq!(machine.counter("anabranch_dropped_access_log_lines_total"), 0);
    let numbered = |number: u32| PathBuf::from(format!("{}.{number}", file.display()));
    assert!(numbered(2).exists());
    let files = (1..10).rev().map(numbered).chain([file.clone()]);
    let mut written: Vec<_> = files.flat_map(|file| lines(&file)).map(|line| line["path"].clone()).collect();
    assert_eq!(written.remove(0), "/", "the mount");
    let expected: Vec<Value> = (0..MADE).map(|number| json!(format!("/{number:0>200}"))).collect();
    assert!(written == expected, "{} lines", written.len());
    assert!(fs::metadata(numbered(1)).unwrap().len() <= 1 << 20);
}

#[test]
fn a_pipe_that_nobody_reads_and_a_full_disk_hold_up_no_client() {
    let directory = TempDir::new().unwrap();
    let pipe = path(&directory, "pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let machine = Machine::start(directory, &["--access-log-file", &pipe]);
    let mut nfs = Nfs::connect(machine.server.address("nfs"));
    let top = nfs.mount((0, 0), "/data").unwrap();
    // 4 MiB of lines wait, and lines of these names have half a KiB.
    make(&mut nfs, &top, 0..12_000);
    let dropped = machine.counter("anabranch_dropped_access_log_lines_total");
    assert!(dropped > 0);
    let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap();
    let mut reader = OpenOptions::new().read(true).custom_flags(flags).open(&pipe).unwrap();
    let mut text = Vec::new();
    let mut made = 12_000;
    let told = until("the lines, and how many were dropped", || {
        let mut piece = vec![0; 1 << 16];
        while let Ok(count @ 1..) = reader.read(&mut piece) {
            text.extend_from_slice(&piece[..count]);
        }
        make(&mut nfs, &top, made..made + 1);
        made += 1;
        let whole = text.rsplitn(2, |byte| *byte == b'\n').nth(1)?;
        let lines =
            whole.split(|byte| *byte == b'\n').map(|line| serde_json::from_slice::<Value>(line).unwrap());
        lines.filter_map(|line| line["dropped"].as_u64()).next()
    });
    assert!(told >= dropped, "{told} of {dropped}");

    let full = Machine::start(TempDir::new().unwrap(), &["--access-log-file", "/dev/full"]);
    let mut nfs = Nfs::connect(full.server.address("nfs"));
    let top = nfs.mount((0, 0), "/data").unwrap();
    make(&mut nfs, &top, 0..10);
    assert_eq!(full.counter("anabranch_access_log_lines_total"), 0);
    let said = || fs::read_to_string(full.directory.path().join("log")).unwrap();
    until("the log has it", || {
        said().contains("the access log cannot be written to /dev/full: No space left").then_some(())
    });
}

#[test]
fn what_cannot_be_written_is_refused_at_the_start() {
    let directory = TempDir::new().unwrap();
    let refused = |more: [&str; 2]| {
        let mut flags = flags(&directory);
        flags.extend(more.map(str::to_owned));
        let ran = program(&flags.iter().map(String::as_str).collect::<Vec<_>>()).output().unwrap();
        assert_eq!(ran.status.code(), Some(2), "{more:?}");
        String::from_utf8(ran.stderr).unwrap()
    };
    let said = refused(["--access-log-file", "/no/such/place"]);
    assert!(said.contains("the access log cannot be written to /no/such/place: No such file"), "{said}");
    let inside = path(&directory, "data/access.json");
    let said = refused(["--access-log-file", &inside]);
    assert!(said.contains("which the share data serves"), "{said}");
    assert!(!Path::new(&inside).exists());
    assert!(refused(["--access-log-file", "access.json"]).contains("is no absolute path"));
    assert!(refused(["--access-log-users", " "]).contains("the name of a user"));
    assert!(refused(["--access-log-kinds", "reads"]).contains("expected logon, logoff"));
    assert!(refused(["--access-log-syslog", "/no/such/socket"]).contains("/no/such/socket"));
}

#[test]
fn rsyslog_gets_each_line() {
    let directory = TempDir::new().unwrap();
    let [socket, written, config] =
        ["log.socket", "written", "rsyslog.conf"].map(|name| path(&directory, name));
    let text = format!(
        "module(load=\"imuxsock\" SysSock.Use=\"off\")\ninput(type=\"imuxsock\" Socket=\"{socket}\")\n\
         template(name=\"line\" type=\"string\" string=\"%syslogfacility-text% %syslogseverity-text% %programname% %msg:2:$%\\n\")\n\
         action(type=\"omfile\" file=\"{written}\" template=\"line\")\n"
    );
    fs::write(&config, text).unwrap();
    let pid = path(&directory, "pid");
    let daemon =
        Command::new("rsyslogd").args(["-n", "-f", &config, "-i", &pid]).stdin(Stdio::null()).spawn();
    let Some(_daemon) = needs::installed("rsyslogd", daemon).map(Daemon) else { return };
    until("rsyslog listens", || Path::new(&socket).exists().then_some(()));
    let machine = Machine::start(directory, &["--access-log-syslog", &socket]);
    let mut nfs = Nfs::connect(machine.server.address("nfs"));
    let top = nfs.mount((0, 0), "/data").unwrap();
    assert_eq!(nfs.mkdir((0, 0), &top, "made"), Status::OK);
    assert_eq!(nfs.mkdir((1000, 1000), &top, "made-too"), Status::ACCES);
    let text = || fs::read_to_string(&written).unwrap_or_default();
    until("both lines", || (text().matches("/made").count() == 2).then_some(()));
    let made = text()
        .lines()
        .find_map(|line| {
            line.strip_prefix("authpriv info anabranch ")?.contains("/made").then(|| line.to_owned())
        })
        .unwrap();
    let line: Value =
        serde_json::from_str(made.split_once('{').map(|(_, rest)| format!("{{{rest}")).unwrap().as_str())
            .unwrap();
    assert_eq!((&line["kind"], &line["path"]), (&json!("create"), &json!("/made")));
    assert!(text().contains("authpriv notice anabranch "), "{}", text());
}

#[test]
fn systemds_journal_gets_each_line_with_its_fields() {
    const JOURNALD: &str = "/lib/systemd/systemd-journald";
    let directory = TempDir::new().unwrap();
    let run = path(&directory, "run");
    fs::create_dir_all(format!("{run}/systemd/journal")).unwrap();
    fs::create_dir_all(format!("{run}/log/journal")).unwrap();
    let script = format!("mount --bind {run} /run && exec {JOURNALD}");
    let unshare = ["--mount", "--propagation", "private", "sh", "-c", &script];
    let daemon = Path::new(JOURNALD).metadata().and_then(|_| Command::new("unshare").args(unshare).spawn());
    let Some(mut daemon) = needs::installed("systemd-journald", daemon).map(Daemon) else { return };
    let socket = format!("{run}/systemd/journal/socket");
    let is_there = until("the journal listens", || {
        let has_ended = daemon.0.try_wait().unwrap().is_some();
        (has_ended || Path::new(&socket).exists()).then_some(!has_ended)
    });
    if !is_there {
        return needs::not_tested("systemd-journald does not run in a mount namespace here");
    }
    let machine = Machine::start(directory, &["--access-log-journal", &socket]);
    let mut nfs = Nfs::connect(machine.server.address("nfs"));
    let top = nfs.mount((0, 0), "/data").unwrap();
    assert_eq!(nfs.mkdir((0, 0), &top, "made\nUNIT=sshd.service"), Status::OK);
    let entry = until("the entry", || {
        let query = [
            "-D",
            &format!("{run}/log/journal"),
            "-o",
            "json",
            "ANABRANCH_KIND=create",
            "ANABRANCH_SHARE=data",
        ];
        let found = Command::new("journalctl").args(query).output().unwrap().stdout;
        serde_json::from_slice::<Value>(found.split(|byte| *byte == b'\n').next()?).ok()
    });
    assert_eq!(entry["ANABRANCH_PATH"], "/made\nUNIT=sshd.service");
    assert_eq!((entry.get("UNIT"), &entry["SYSLOG_IDENTIFIER"]), (None, &json!("anabranch")));
    let line: Value = serde_json::from_str(entry["MESSAGE"].as_str().unwrap()).unwrap();
    assert_eq!(line["path"], entry["ANABRANCH_PATH"]);
}
