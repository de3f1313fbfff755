//! A server without NTLM: who is refused, what is on the disk, and the accounts that have nothing else.

use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::needs;
use crate::server::{Server, flags, path, program};

/// An NT hash, which is all that is known of the password of otto.
const HASH: &str = "d9a2f9e1ea9f2f1b9d7f3c4b5a697887";

fn start(directory: &TempDir, more: &[&str]) -> Server {
    let flags = flags(directory);
    let log = File::options().create(true).append(true).open(directory.path().join("log")).unwrap();
    let flags: Vec<&str> = flags.iter().map(String::as_str).chain(more.iter().copied()).collect();
    Server::start_logging(&flags, log.into())
}

fn log(directory: &TempDir) -> String {
    fs::read_to_string(directory.path().join("log")).unwrap()
}

fn stop(mut server: Server) {
    assert_eq!(server.end_with("TERM"), Some(0));
}

fn run(directory: &TempDir, arguments: &[&str], input: &str) -> Output {
    let mut command = program(arguments);
    command.args(["--state", &path(directory, "state")]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn done(directory: &TempDir, arguments: &[&str], input: &str) -> String {
    let Output { status, stdout, stderr } = run(directory, arguments, input);
    assert!(status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap()
}

/// Whether a user has Kerberos keys.
fn has_keys(directory: &TempDir, name: &str) -> bool {
    let listed: Value = serde_json::from_str(&done(directory, &["user", "list", "--json"], "")).unwrap();
    let user = listed["users"].as_array().unwrap().iter().find(|user| user["name"] == name).unwrap();
    user["aes_keys"].as_bool().unwrap()
}

/// What smbclient says to its standard error and output; None: there is none.
fn smbclient(server: &Server, user: &str, more: &[&str]) -> Option<(bool, String)> {
    let (_, port) = server.address("smb").rsplit_once(':').unwrap();
    let mut command = Command::new("smbclient");
    command.args(["//127.0.0.1/data", "-p", port, "-U", user, "-c", "ls"]).args(more);
    let Output { status, stdout, stderr } = needs::installed("smbclient", command.output())?;
    Some((status.success(), String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned()))
}

/// The files of the state directory that have an NT hash of this password, as bytes or in JSON.
fn files_with_hash_of(directory: &TempDir, password: &str) -> Vec<String> {
    let hash = auth::nt_hash(password);
    let forms = [hash.to_vec(), hash.map(|byte| byte.to_string()).join(",").into_bytes()];
    let has = |bytes: &[u8]| forms.iter().any(|form| bytes.windows(form.len()).any(|part| part == form));
    let entries = fs::read_dir(path(directory, "state")).unwrap().map(|entry| entry.unwrap());
    let holding = entries.filter(|entry| has(&fs::read(entry.path()).unwrap_or_default()));
    holding.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn without_ntlm_clients_of_it_are_refused_and_no_hash_is_on_the_disk() {
    let directory = TempDir::new().unwrap();
    let server = start(&directory, &[]);
    done(&directory, &["user", "add", "zoe", "--uid", "1000"], "correct horse\n");
    let Some((ok, said)) = smbclient(&server, "zoe%correct horse", &[]) else { return };
    assert!(ok, "{said}");
    stop(server);
    for password in ["hush-hush", "correct horse"] {
        assert!(!files_with_hash_of(&directory, password).is_empty(), "the test finds hashes");
    }

    let server = start(&directory, &["--ntlm", "off"]);
    let (ok, said) = smbclient(&server, "zoe%correct horse", &[]).unwrap();
    assert!(!ok, "{said}");
    let (ok, said) = smbclient(&server, "zoe%correct horse", &["--option=client use spnego=no"]).unwrap();
    assert!(!ok && said.contains("NT_STATUS_NTLM_BLOCKED"), "{said}");
    assert!(log(&directory).contains("ntlm is off: it must use Kerberos"), "{}", log(&directory));
    // Passwords that are set now leave no hash either, with a server and without one.
    done(&directory, &["user", "set", "zoe", "--password"], "other horse\n");
    assert!(has_keys(&directory, "zoe") && has_keys(&directory, "anna"));
    stop(server);
    done(&directory, &["user", "add", "later", "--uid", "1001"], "battery staple\n");
    for password in ["hush-hush", "correct horse", "other horse", "battery staple"] {
        assert_eq!(files_with_hash_of(&directory, password), Vec::<String>::new(), "{password}");
    }

    // Back again: declared passwords are known, others must be set once more.
    let server = start(&directory, &[]);
    assert!(smbclient(&server, "anna%hush-hush", &[]).unwrap().0);
    let (ok, said) = smbclient(&server, "zoe%other horse", &[]).unwrap();
    assert!(!ok && said.contains("NT_STATUS_LOGON_FAILURE"), "{said}");
    assert!(log(&directory).contains("the account has no NT hash"), "{}", log(&directory));
    done(&directory, &["user", "set", "zoe", "--password"], "other horse\n");
    assert!(smbclient(&server, "zoe%other horse", &[]).unwrap().0);
}

#[test]
fn accounts_with_a_hash_alone_are_named_and_lost_only_by_force() {
    let directory = TempDir::new().unwrap();
    let config = path(&directory, "anabranch.toml");
    let text = format!("[[user]]\nname = \"otto\"\nuid = 1000\nnt-hash = \"{HASH}\"\n");
    fs::write(&config, text).unwrap();
    fs::set_permissions(&config, Permissions::from_mode(0o600)).unwrap();
    let mut flags = flags(&directory);
    let at = flags.iter().position(|flag| flag == "--user").unwrap();
    let without_users: Vec<&str> =
        flags[..at].iter().chain(&flags[at + 2..]).map(String::as_str).chain(["--config", &config]).collect();
    stop(Server::start(&without_users));
    // As they are after an upgrade: otto's hash is in the state directory, and in no configuration.
    flags[at + 1] = "otto=1000".to_owned();
    let with = |more: &[&str]| {
        let all: Vec<&str> = flags.iter().map(String::as_str).chain(more.iter().copied()).collect();
        all.iter().map(|flag| (*flag).to_owned()).collect::<Vec<_>>()
    };
    let started = |more: &[&str]| {
        let all = with(more);
        program(&all.iter().map(String::as_str).collect::<Vec<_>>()).output().unwrap()
    };
    let Output { status, stderr, .. } = started(&["--ntlm", "off"]);
    let said = String::from_utf8(stderr).unwrap();
    assert!(status.code() == Some(2) && said.contains("no Kerberos key: otto"), "{said}");
    assert!(said.contains("--force") && said.contains("anabranch user set"), "{said}");

    for more in [&["--ntlm", "off", "--force"][..], &["--ntlm", "off"]] {
        let all = with(more);
        let server = Server::start(&all.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(!server.ready.is_empty(), "{more:?}");
        assert!(!has_keys(&directory, "otto"));
        stop(server);
    }
    let state = fs::read(path(&directory, "state/anabranch.redb")).unwrap();
    let hash: Vec<u8> =
        (0..16).map(|at| u8::from_str_radix(&HASH[at * 2..at * 2 + 2], 16).unwrap()).collect();
    assert!(!state.windows(16).any(|part| part == hash));
}
