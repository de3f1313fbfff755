//! Who an account is to the files, and where its password comes from.

use std::fs::{self, File, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::needs;
use crate::server::{Server, flags, path, program};

/// The flags of a server without its user, and these.
fn with(directory: &TempDir, more: &[&str]) -> Vec<String> {
    let mut flags = flags(directory);
    let at = flags.iter().position(|flag| flag == "--user").unwrap();
    flags.drain(at..at + 2);
    flags.extend(more.iter().map(|flag| (*flag).to_owned()));
    flags
}

fn start(directory: &TempDir, more: &[&str]) -> Server {
    let flags = with(directory, more);
    Server::start(&flags.iter().map(String::as_str).collect::<Vec<_>>())
}

/// The same, with this on its standard input.
fn start_given(directory: &TempDir, more: &[&str], input: &[u8]) -> Server {
    let flags = with(directory, more);
    let mut command = program(&flags.iter().map(String::as_str).collect::<Vec<_>>());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    ready(child)
}

/// The server, once it serves.
fn ready(mut child: Child) -> Server {
    let mut ready = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut ready).unwrap();
    Server { child, ready }
}

/// It is refused with status 2; what it says.
fn refused(directory: &TempDir, more: &[&str]) -> String {
    let flags = with(directory, more);
    let Output { status, stdout, stderr } =
        program(&flags.iter().map(String::as_str).collect::<Vec<_>>()).output().unwrap();
    let said = String::from_utf8(stderr).unwrap();
    assert!(status.code() == Some(2) && stdout.is_empty(), "{said}");
    said
}

/// A server that is not root does everything as itself.
fn is_root(directory: &TempDir) -> bool {
    let is_root = fs::metadata(directory.path()).unwrap().uid() == 0;
    if !is_root {
        needs::not_tested("this user is not root");
    }
    is_root
}

fn user_add(directory: &TempDir, arguments: &[&str], password: &[u8]) {
    let state = path(directory, "state");
    let mut child = program(&[&["user", "add"], arguments, &["--state", &state]].concat())
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(password).unwrap();
    assert!(child.wait().unwrap().success());
}

/// The uid that the server that runs gives a user.
fn uid_of(directory: &TempDir, name: &str) -> Option<u64> {
    told_of(directory, name)?["uid"].as_u64()
}

/// What the server that runs says of a user.
fn told_of(directory: &TempDir, name: &str) -> Option<Value> {
    let listed = program(&["user", "list", "--json", "--state", &path(directory, "state")]).output().unwrap();
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    listed["users"].as_array().unwrap().iter().find(|user| user["name"] == name).cloned()
}

/// Whether the user gets into the share; None: there is no smbclient.
fn logs_on(server: &Server, user: &str) -> Option<bool> {
    let (_, port) = server.address("smb").rsplit_once(':').unwrap();
    let ran =
        Command::new("smbclient").args(["//127.0.0.1/data", "-p", port, "-U", user, "-c", "ls"]).output();
    Some(needs::installed("smbclient", ran)?.status.success())
}

#[test]
fn an_account_that_stands_for_nobody_is_refused_with_both_ways_out() {
    let directory = TempDir::new().unwrap();
    if !is_root(&directory) {
        return;
    }
    // The directory of the share is root's: until now that was who the user became.
    let said = refused(&directory, &["--user", "zoe-is-not-here:pw"]);
    assert!(said.contains("--user zoe-is-not-here=UID") && said.contains("[[user]]"), "{said}");
    assert!(refused(&directory, &["--user", "root:pw"]).contains("--user root=UID"), "root is written");
    let server = start(&directory, &["--user", "root=0:pw", "--user", "zoe-is-not-here=1234:99:pw"]);
    assert_eq!((uid_of(&directory, "root"), uid_of(&directory, "zoe-is-not-here")), (Some(0), Some(1234)));
    assert_ne!(logs_on(&server, "zoe-is-not-here%pw"), Some(false));
}

/// `nss_wrapper` stands for a directory service: it answers getpwnam(3) and getgrouplist(3) from files of the test.
#[test]
fn an_account_stands_for_a_user_of_any_source_of_the_name_service() {
    let directory = TempDir::new().unwrap();
    let wrapper = format!("/usr/lib/{}-linux-gnu/libnss_wrapper.so", std::env::consts::ARCH);
    if !is_root(&directory) || needs::installed("libnss-wrapper", fs::metadata(&wrapper)).is_none() {
        return;
    }
    fs::write(directory.path().join("passwd"), "lena:x:4711:4712::/:/bin/false\n").unwrap();
    fs::write(directory.path().join("group"), "lena:x:4712:\nmusic:x:4713:lena\nart:x:4714:otto\n").unwrap();
    assert!(refused(&directory, &["--user", "lena:pw"]).contains("--user lena=UID"), "nobody here");
    let flags = with(&directory, &["--user", "lena:pw"]);
    let mut command = program(&flags.iter().map(String::as_str).collect::<Vec<_>>());
    command.env("LD_PRELOAD", &wrapper).stdout(Stdio::piped()).stderr(Stdio::null());
    command.env("NSS_WRAPPER_PASSWD", path(&directory, "passwd"));
    command.env("NSS_WRAPPER_GROUP", path(&directory, "group"));
    let server = ready(command.spawn().unwrap());
    let lena = told_of(&directory, "lena").unwrap();
    assert_eq!([&lena["uid"], &lena["gid"], &lena["groups"]], [&json!(4711), &json!(4712), &json!([4713])]);
    assert_ne!(logs_on(&server, "lena%pw"), Some(false));
}

#[test]
fn a_uid_and_a_password_that_are_kept_hold_until_others_are_written() {
    let directory = TempDir::new().unwrap();
    drop(start(&directory, &["--user", "anna=1000:pw"]));
    user_add(&directory, &["otto", "--uid", "1000", "--groups", "5"], b"kept\n");
    if !is_root(&directory) {
        return;
    }
    let server = start(&directory, &["--user", "otto:newpw"]);
    assert_eq!(uid_of(&directory, "otto"), Some(1000));
    assert_ne!(logs_on(&server, "otto%newpw"), Some(false));
    assert_ne!(logs_on(&server, "otto%kept"), Some(true));
    drop(server);
    let server = start(&directory, &["--user", "otto=1001:newpw"]);
    assert_eq!(uid_of(&directory, "otto"), Some(1001));
    drop(server);
    user_add(&directory, &["emma", "--uid", "1002"], b"correct horse\n");
    let server = start(&directory, &["--user", "emma"]);
    assert_eq!(uid_of(&directory, "emma"), Some(1002));
    assert_ne!(logs_on(&server, "emma%correct horse"), Some(false));
}

#[test]
fn a_password_comes_from_a_file_that_nobody_else_may_read() {
    let directory = TempDir::new().unwrap();
    let file = path(&directory, "password");
    let flag = format!("anna={file}");
    fs::write(&file, "correct horse\nbattery staple\n").unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
    let flags = ["--user", "anna=1000", "--password-file", &flag];
    let said = refused(&directory, &flags);
    assert!(said.contains(&format!("may read {file}")) && said.contains("chmod 600"), "{said}");
    fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    let server = start(&directory, &flags);
    assert_ne!(logs_on(&server, "anna%correct horse"), Some(false));
    assert_ne!(logs_on(&server, "anna%wrong"), Some(true));
    let missing = refused(&directory, &["--user", "anna=1000", "--password-file", "anna=/no/such/file"]);
    assert!(missing.contains("/no/such/file") && !missing.contains("correct"), "{missing}");
}

#[test]
fn a_password_comes_from_standard_input() {
    let directory = TempDir::new().unwrap();
    let flags = ["--user", "anna=1000:100", "--password-file", "anna=-"];
    let mut server = start_given(&directory, &flags, b"correct horse\r\n");
    assert!(server.ready.starts_with("ready "), "{}", server.ready);
    assert_ne!(logs_on(&server, "anna%correct horse"), Some(false));
    assert_eq!(server.end_with("TERM"), Some(0));
    let said = refused(&directory, &["--user", "anna=1000", "--password-file", "anna=-"]);
    assert!(said.contains("no password for anna in standard input"), "{said}");
}

#[test]
fn a_hash_takes_the_place_of_a_password() {
    let directory = TempDir::new().unwrap();
    let file = path(&directory, "anabranch.toml");
    // [MS-NLMP] 4.2.2.1.2: NTOWFv1 of "Password".
    let hash = "a4f49c406510bdcab6824ee7c30fd852";
    let write = |text: &str| {
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    };
    write(&format!("[[user]]\nname = \"anna\"\nuid = 1000\nnt-hash = \"{hash}\"\n"));
    let server = start(&directory, &["--config", &file]);
    assert_ne!(logs_on(&server, "anna%Password"), Some(false));
    assert_ne!(logs_on(&server, &format!("anna%{hash}")), Some(true));
    drop(server);
    // The state database has it now.
    write("[[user]]\nname = \"anna\"\nuid = 1000\n");
    let server = start(&directory, &["--config", &file]);
    assert_ne!(logs_on(&server, "anna%Password"), Some(false));
    drop(server);
    write(&format!("[[user]]\nname = \"anna\"\nnt-hash = \"{hash}0\"\n"));
    let said = refused(&directory, &["--config", &file]);
    assert!(
        said.contains("anabranch.toml line ")
            && said.contains("32 hexadecimal digits")
            && !said.contains(hash),
        "{said}"
    );
    let both = format!("[[user]]\nname = \"anna\"\nuid = 1\nnt-hash = \"{hash}\"\n");
    write(&both);
    let password = path(&directory, "password");
    fs::write(&password, "x\n").unwrap();
    fs::set_permissions(&password, Permissions::from_mode(0o600)).unwrap();
    let said = refused(&directory, &["--config", &file, "--password-file", &format!("anna={password}")]);
    assert!(said.contains("the user anna has a password and a file with one"), "{said}");
}

#[test]
fn the_log_warns_of_a_configuration_file_with_passwords_that_others_may_read() {
    let directory = TempDir::new().unwrap();
    let (file, log) = (path(&directory, "anabranch.toml"), path(&directory, "log"));
    let warned = |text: &str, mode| {
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
        let flags = with(&directory, &["--config", &file]);
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        drop(Server::start_logging(&flags, File::create(&log).unwrap().into()));
        let said = fs::read_to_string(&log).unwrap();
        assert!(said.contains("serving the share data") && !said.contains("hush"), "{said}");
        said.contains(&format!("users other than its owner may read {file}, which contains passwords"))
    };
    let with_password = "[[user]]\nname = \"anna\"\nuid = 1000\npassword = \"hush-hush\"\n";
    assert!(warned(with_password, 0o644) && warned(with_password, 0o640));
    assert!(warned("user = [\"anna=1000:hush-hush\"]\n", 0o604));
    assert!(!warned(with_password, 0o600));
    assert!(!warned("[[user]]\nname = \"anna\"\nuid = 1000\n", 0o644));
    let hash = "0".repeat(32);
    assert!(warned(&format!("[[user]]\nname = \"anna\"\nuid = 1000\nnt-hash = \"{hash}\"\n"), 0o644));
}
