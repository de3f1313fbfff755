//! `anabranch import`: what it writes, and a server with it.

use std::fs::{self, Permissions};
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::needs;
use crate::nfs::{Nfs, Status};
use crate::server::{Server, path, program};

const PAGE: &str = include_str!("../../../../docs/migrate.md");

/// The NT hash of `Password` ([MS-NLMP] 4.2.2.1.2), as smbpasswd(5) has it.
const HASH: &str = "A4F49C406510BDCAB6824EE7C30FD852";

fn account(name: &str, uid: u32) -> String {
    format!("{name}:{uid}:{}:{HASH}:[U          ]:LCT-6B06EE80:\n", "X".repeat(32))
}

fn write(directory: &TempDir, name: &str, text: &str) -> String {
    let file = path(directory, name);
    fs::write(&file, text).unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    file
}

/// A directory in which everybody may do everything.
fn directory(within: &TempDir, name: &str) -> String {
    let directory = path(within, name);
    fs::create_dir(&directory).unwrap();
    fs::set_permissions(&directory, Permissions::from_mode(0o777)).unwrap();
    fs::write(Path::new(&directory).join("greeting"), "hello\n").unwrap();
    directory
}

fn import(arguments: &[&str]) -> Output {
    program(&[&["import"], arguments].concat()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn refused(arguments: &[&str], status: i32) -> String {
    let Output { status: ended, stdout, stderr } = import(arguments);
    let said = text(&stderr);
    assert!(ended.code() == Some(status) && stdout.is_empty(), "{ended} {said}");
    said
}

fn serve(directory: &TempDir, config: &str, more: &[&str]) -> Server {
    let state = path(directory, "state");
    let any = "127.0.0.1:0";
    let flags = ["serve", "--config", config, "--control", any, "--state", &state];
    Server::start(&[&flags[..], more].concat())
}

/// Whether smbclient may do this in a share; None: there is no smbclient.
fn smb(address: &str, share: &str, user: &str, what: &str) -> Option<bool> {
    let (_, port) = address.rsplit_once(':').unwrap();
    let share = format!("//127.0.0.1/{share}");
    // `mkdir` ends well even if it is refused.
    let what = what.replace("put", concat!("put ", env!("CARGO_MANIFEST_DIR"), "/Cargo.toml made"));
    let mut command = Command::new("smbclient");
    command.args([&share, "-p", port, "-U", user, "-c", &what]);
    if user == "%" {
        // Guests have no key, so the client must not insist on signing.
        command.args(["-N", "--client-protection=off"]);
    }
    let ran = command.output();
    Some(needs::installed("smbclient", ran)?.status.success())
}

#[test]
fn a_server_with_an_imported_configuration_admits_whom_samba_admitted() {
    let here = TempDir::new().unwrap();
    let paths = ["data", "frozen", "others", "elsewhere", "open"].map(|name| directory(&here, name));
    let [data, frozen, others, elsewhere, open] = &paths;
    let smb_conf = write(
        &here,
        "smb.conf",
        &format!(
            "[global]\n map to guest = bad user\n server signing = auto\n\
             [data]\n path = {data}\n writable = yes\n valid users = anna\n veto files = /greeting/\n\
             [frozen]\n path = {frozen}\n\
             [others]\n path = {others}\n valid users = otto\n\
             [elsewhere]\n path = {elsewhere}\n hosts deny = 127.0.0.1\n\
             [open]\n path = {open}\n public = yes\n\
             [refusing]\n path = {open}/x\n invalid users = @staff\n"
        ),
    );
    let users = write(&here, "users", &account("anna", 1000));
    let out = path(&here, "anabranch.toml");
    let Output { status, stdout, stderr } = import(&["samba", &smb_conf, "--users", &users, "--out", &out]);
    let (said, errors) = (text(&stdout), text(&stderr));
    assert!(status.success() && errors.is_empty(), "{said}{errors}");
    assert!(said.contains("5 shares, 1 as a comment, 1 user"), "{said}");
    assert!(!said.to_uppercase().contains(HASH), "{said}");
    assert_eq!(fs::metadata(&out).unwrap().mode() & 0o777, 0o600);
    let server = serve(&here, &out, &["--smb", "127.0.0.1:0"]);
    assert!(server.ready.contains("nfs=off"), "{}", server.ready);
    for (share, user, what, expected) in [
        ("data", "anna%Password", "put", true),
        ("data", "anna%wrong", "ls", false),
        ("data", "anna%Password", "get greeting -", false),
        ("frozen", "anna%Password", "get greeting -", true),
        ("frozen", "anna%Password", "put", false),
        ("others", "anna%Password", "ls", false),
        ("elsewhere", "anna%Password", "ls", false),
        ("open", "%", "get greeting -", true),
        ("data", "%", "ls", false),
        ("refusing", "anna%Password", "ls", false),
    ] {
        let Some(done) = smb(server.address("smb"), share, user, what) else { return };
        assert_eq!(done, expected, "{share} {user} {what}");
    }
}

/// A Samba of its own, below a directory: what its configuration begins with.
fn samba_global(here: &TempDir) -> String {
    let samba = directory(here, "samba");
    let places = [
        "private dir",
        "state directory",
        "cache directory",
        "lock directory",
        "pid directory",
        "ncalrpc dir",
    ];
    let places: String = places.iter().map(|key| format!(" {key} = {samba}\n")).collect();
    format!("[global]\n{places} log file = {samba}/log\n disable netbios = yes\n disable spoolss = yes\n")
}

/// What `pdbedit` prints; None: it is not there.
fn pdbedit(smb_conf: &str, arguments: &[&str], input: &str) -> Option<String> {
    let mut command = Command::new("pdbedit");
    command.args(["-s", smb_conf]).args(arguments);
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut child = needs::installed("pdbedit", child)?;
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{arguments:?}");
    Some(text(&output.stdout))
}

/// Gives users that every machine has accounts of this Samba, with the password `correct horse`; what `pdbedit -L -w` prints then.
fn accounts(smb_conf: &str, users: &[&str]) -> Option<String> {
    for user in users {
        pdbedit(smb_conf, &["-a", "-t", "-u", user], "correct horse\ncorrect horse\n")?;
    }
    pdbedit(smb_conf, &["-L", "-w"], "")
}

fn is_root(here: &TempDir) -> bool {
    let is_root = fs::metadata(here.path()).unwrap().uid() == 0;
    if !is_root {
        needs::not_tested("this user is not root");
    }
    is_root
}

#[test]
fn an_account_of_a_real_passdb_logs_on_with_its_password() {
    let here = TempDir::new().unwrap();
    if !is_root(&here) {
        return;
    }
    let data = directory(&here, "data");
    let global = samba_global(&here);
    let smb_conf = write(&here, "smb.conf", &format!("{global}[data]\n path = {data}\n read only = no\n"));
    let Some(accounts) = accounts(&smb_conf, &["daemon"]) else { return };
    let out = path(&here, "anabranch.toml");
    let mut command = program(&["import", "samba", &smb_conf, "--users", "-", "--out", &out]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(accounts.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    let server = serve(&here, &out, &["--smb", "127.0.0.1:0"]);
    let smb = |user, what| smb(server.address("smb"), "data", user, what);
    assert_ne!(smb("daemon%correct horse", "put"), Some(false));
    assert_ne!(smb("daemon%wrong", "ls"), Some(true));
    let database = path(&here, "samba/passdb.tdb");
    let said = refused(&["samba", &smb_conf, "--users", &database, "--out", &path(&here, "other")], 2);
    assert!(said.contains("pdbedit -L -w"), "{said}");
}

/// smbd, until the end of the test.
struct Smbd(Child, String);

impl Drop for Smbd {
    fn drop(&mut self) {
        // It ends its children itself.
        let _ = Command::new("kill").args(["-s", "TERM", &self.0.id().to_string()]).status();
        let _ = self.0.wait();
    }
}

impl Smbd {
    fn start(smb_conf: &str, port: u16) -> Option<Self> {
        let mut command = Command::new("smbd");
        command
            .args(["-F", "--no-process-group", "-s", smb_conf])
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // At its end it ends its process group.
        command.process_group(0);
        let child = needs::installed("smbd", command.spawn())?;
        let smbd = Self(child, format!("127.0.0.1:{port}"));
        let deadline = Instant::now() + Duration::from_secs(60);
        while TcpStream::connect(&smbd.1).is_err() {
            assert!(Instant::now() < deadline, "smbd does not listen on {}", smbd.1);
            std::thread::sleep(Duration::from_millis(50));
        }
        Some(smbd)
    }
}

/// Shares in which Samba and this server, with the imported configuration, allow the same; in `uncertain`, this server allows less,
/// because the import does not know who is in a group.
const BESIDE_SAMBA: [(&str, &str); 15] = [
    ("valid", "read only = no\nvalid users = daemon"),
    ("groups", "valid users = @daemon, bin\nwrite list = bin"),
    ("invalid", "read only = no\ninvalid users = bin"),
    ("readers", "read only = no\nread list = bin"),
    ("writers", "write list = daemon"),
    ("both", "writable = yes\nvalid users = bin daemon\nread list = bin\nwrite list = bin"),
    ("uncertain", "writable = yes\nvalid users = bin daemon\nread list = @bin"),
    ("denied", "hosts deny = 127.0.0.1"),
    ("allowed", "hosts allow = 192.0.2."),
    ("elsewhere", "hosts allow = 192.0.2.\nhosts deny = ALL"),
    ("except", "hosts deny = ALL EXCEPT 127."),
    ("guests", "public = yes\nread only = no"),
    ("off", "available = no"),
    ("vetoed", "read only = no\nveto files = /greeting/made/"),
    ("root", "invalid users = root\nwriteable = yes"),
];

#[test]
fn users_may_do_what_samba_lets_them_do() {
    let here = TempDir::new().unwrap();
    if !is_root(&here) {
        return;
    }
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let share = |(name, keys): &(&str, &str)| {
        let path = directory(&here, name);
        format!("[{name}]\n path = {path}\n{keys}\n")
    };
    let shares: String = BESIDE_SAMBA.iter().map(share).collect();
    let global = samba_global(&here);
    let smb_conf = format!(
        "{global} interfaces = lo\n bind interfaces only = yes\n smb ports = {port}\n server signing = auto\n{shares}"
    );
    let smb_conf = write(&here, "smb.conf", &smb_conf);
    let Some(accounts) = accounts(&smb_conf, &["daemon", "bin"]) else { return };
    let users = write(&here, "users", &accounts);
    let out = path(&here, "anabranch.toml");
    let output = import(&["samba", &smb_conf, "--users", &users, "--out", &out]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let Some(samba) = Smbd::start(&smb_conf, port) else { return };
    let server = serve(&here, &out, &["--smb", "127.0.0.1:0"]);
    for (share, keys) in BESIDE_SAMBA {
        for user in ["daemon%correct horse", "bin%correct horse", "%"] {
            for what in ["ls", "get greeting -", "put"] {
                let theirs = smb(&samba.1, share, user, what);
                let Some(ours) = smb(server.address("smb"), share, user, what) else { return };
                let is_right = if share == "uncertain" { Some(ours) <= theirs } else { Some(ours) == theirs };
                assert!(is_right, "[{share}] {keys:?}, {user}: {what}: {ours}, Samba: {theirs:?}");
            }
        }
    }
}

#[test]
fn a_server_with_imported_exports_admits_whom_the_kernel_admitted() {
    let here = TempDir::new().unwrap();
    let paths = ["rw", "ro", "others", "krb"].map(|name| directory(&here, name));
    let [rw, ro, others, krb] = &paths;
    write(
        &here,
        "one.exports",
        &format!("{rw} 127.0.0.1(rw,insecure,no_root_squash) \\\n  *(ro)\n{ro} *(insecure)\n"),
    );
    write(
        &here,
        "two.exports",
        &format!("{others} 192.0.2.1(rw,insecure)\n{krb} *(rw,insecure,sec=krb5p)\n"),
    );
    write(&here, ".hidden.exports", "not one\n");
    write(&here, "three", "not one\n");
    let out = path(&here, "anabranch.toml");
    let folder = here.path().to_str().unwrap();
    let output = import(&["exports", folder, "--out", &out]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let server = serve(&here, &out, &["--nfs", "127.0.0.1:0"]);
    assert!(server.ready.contains("smb=off"), "{}", server.ready);
    let mut nfs = Nfs::connect(server.address("nfs"));
    let root = (0, 0);
    let handle = nfs.mount(root, "/rw").unwrap();
    assert_eq!(nfs.mkdir(root, &handle, "new"), Status::OK);
    let handle = nfs.mount(root, "/ro").unwrap();
    assert_eq!((nfs.look(root, &handle), nfs.mkdir(root, &handle, "new")), (Status::OK, Status::ROFS));
    assert_eq!(nfs.mount(root, "/others"), Err(Status::ACCES));
    assert!(nfs.mount(root, "/krb").is_err());
}

#[test]
fn nothing_is_overwritten() {
    let here = TempDir::new().unwrap();
    let smb_conf = write(&here, "smb.conf", "[a]\npath = /srv/a\n");
    let out = write(&here, "anabranch.toml", "mine\n");
    let said = refused(&["samba", &smb_conf, "--out", &out], 7);
    assert!(said.contains(&format!("{out} exists")) && said.contains("not changed"), "{said}");
    assert_eq!(fs::read_to_string(&out).unwrap(), "mine\n");
    let link = path(&here, "link");
    std::os::unix::fs::symlink(path(&here, "nowhere"), &link).unwrap();
    assert!(refused(&["exports", &smb_conf, "--out", &link], 7).contains("exists"));
    assert!(refused(&["samba", &path(&here, "missing")], 2).contains("missing"));
    let latin = path(&here, "latin");
    fs::write(&latin, b"[a]\npath = /srv/\xe4\n").unwrap();
    let said = refused(&["samba", &latin], 2);
    assert!(said.contains("line 2 is not UTF-8") && said.contains("iconv"), "{said}");
}

#[test]
fn without_a_file_the_configuration_is_printed() {
    let here = TempDir::new().unwrap();
    let smb_conf = write(&here, "smb.conf", "[a]\npath = /srv/a\nveto files = /*.exe/\nmagic script = x\n");
    let users = write(&here, "users", &account("anna", 1000));
    fs::set_permissions(&users, Permissions::from_mode(0o644)).unwrap();
    let output = import(&["samba", &smb_conf, "--users", &users]);
    let (printed, said) = (text(&output.stdout), text(&output.stderr));
    assert!(printed.contains("# name = \"a\"") && printed.contains(&HASH.to_lowercase()), "{printed}");
    assert!(said.contains("warning: users other than its owner may read"), "{said}");
    assert!(said.contains("Changes who may access what") && !said.to_uppercase().contains(HASH), "{said}");
    let output = import(&["samba", &smb_conf, "--json"]);
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(told["configuration"].as_str().unwrap().contains("directory = \"/srv/a\""), "{told}");
    assert_eq!(told["shares"][0]["name"], "a");
    assert!(!told["shares"][0]["closed"].as_array().unwrap().is_empty(), "{told}");
    let note = &told["notes"][0];
    assert_eq!((&note["grade"], &note["line"]), (&"changes-access".into(), &3.into()), "{told}");
    assert_eq!((&note["section"], &note["parameter"]), (&"a".into(), &"veto files".into()), "{told}");
}

#[test]
fn what_distributions_install_can_be_imported() {
    let samba = "/usr/share/samba/smb.conf";
    if needs::installed(samba, fs::metadata(samba)).is_some() {
        let output = import(&["samba", samba, "--json"]);
        let told: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(told["shares"], Value::Array(Vec::new()), "homes and printers only: {told}");
        let notes = told["notes"].as_array().unwrap();
        let has = |section: &str, parameter: &str| {
            notes.iter().any(|note| note["section"] == section && note["parameter"] == parameter)
        };
        assert!(
            has("homes", "") && has("printers", "") && has("print$", "") && has("global", "workgroup"),
            "{told}"
        );
    }
    let here = TempDir::new().unwrap();
    let exports = write(
        &here,
        "exports",
        "# /etc/exports: the access control list for filesystems which may be exported\n#\n",
    );
    let output = import(&["exports", &exports]);
    assert!(output.status.success() && text(&output.stderr).contains("0 shares"), "{}", text(&output.stderr));
}

/// The text of a block of the page, between fences of this kind.
fn fenced(kind: &str) -> String {
    let begin = format!("\n```{kind}\n");
    PAGE.split(&begin).nth(1).unwrap().split("\n```").next().unwrap().to_owned() + "\n"
}

/// The lines that are set off after a command.
fn printed_by(command: &str) -> String {
    let lines = PAGE.lines().skip_while(|line| *line != format!("    $ {command}")).skip(1);
    let lines = lines.take_while(|line| line.is_empty() || line.starts_with("    "));
    let lines: Vec<&str> = lines.map(|line| line.strip_prefix("    ").unwrap_or_default()).collect();
    lines.join("\n").trim_end().to_owned()
}

#[test]
fn the_page_shows_what_is_printed() {
    let here = TempDir::new().unwrap();
    write(&here, "smb.conf", &fenced("ini"));
    write(&here, "accounts", &account("anna", 1000));
    write(&here, "exports", &fenced("exports"));
    let mut made = String::new();
    for command in [
        "anabranch import samba smb.conf --users accounts --out files.toml",
        "anabranch import exports exports --out nfs.toml",
    ] {
        let words: Vec<&str> = command.split(' ').skip(1).collect();
        let output = program(&words).current_dir(here.path()).output().unwrap();
        assert_eq!(text(&output.stdout).trim_end(), printed_by(command), "{}", text(&output.stderr));
        made.push_str(&fs::read_to_string(here.path().join(words.last().unwrap())).unwrap());
    }
    let shown = fenced("toml");
    assert!(made.contains(shown.trim_end()), "{made}\n{shown}");
}
