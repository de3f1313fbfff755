//! The program from outside: what it prints, refuses and leaves behind.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Output, Stdio};

use tempfile::TempDir;

use crate::server::{Server, flags, path, program};

/// Runs the program, which must end by itself with this status; returns what it wrote to standard error.
fn refused(status: i32, arguments: &[&str]) -> String {
    let Output { status: found, stdout, stderr } = program(arguments).output().unwrap();
    let stderr = String::from_utf8(stderr).unwrap();
    assert_eq!(found.code(), Some(status), "{stderr}");
    assert!(stdout.is_empty(), "standard output is for the ready line alone");
    stderr
}

fn with<'a>(flags: &'a [String], more: &[&'a str]) -> Vec<&'a str> {
    flags.iter().map(String::as_str).chain(more.iter().copied()).collect()
}

fn replaced<'a>(flags: &'a [String], flag: &str, value: &'a str) -> Vec<&'a str> {
    let at = flags.iter().position(|f| f == flag).unwrap();
    let mut flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    flags[at + 1] = value;
    flags
}

#[test]
fn it_prints_one_ready_line_and_ends_cleanly_on_sigterm_and_sigint() {
    for signal in ["TERM", "INT"] {
        let directory = TempDir::new().unwrap();
        let mut server = Server::start(&with(&flags(&directory), &[]));
        assert!(server.ready.starts_with("ready smb=127.0.0.1:"), "{}", server.ready);
        for name in ["smb", "nfs", "control"] {
            TcpStream::connect(server.address(name)).unwrap();
        }
        let mut stream = TcpStream::connect(server.address("control")).unwrap();
        stream.write_all(b"GET /healthz HTTP/1.0\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.ends_with("ok\n"), "{answer}");
        assert_eq!(server.end_with(signal), Some(0));
        let mut rest = String::new();
        server.child.stdout.as_mut().unwrap().read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "", "one line, exactly");
    }
}

#[test]
fn a_protocol_can_be_off_and_commands_still_answer() {
    let directory = TempDir::new().unwrap();
    let flags = flags(&directory);
    for (off, on) in [("smb", "nfs"), ("nfs", "smb")] {
        let flag = format!("--{off}");
        let mut server = Server::start(&replaced(&flags, &flag, "off"));
        assert_eq!(server.address(off), "off", "{}", server.ready);
        TcpStream::connect(server.address(on)).unwrap();
        for asked in [["client", "list"], ["client", "explain"], ["client", "hint"], ["share", "list"]] {
            let asked = [asked[0], asked[1], "--state", &path(&directory, "state")];
            let Output { status, stderr, .. } = program(&asked).output().unwrap();
            assert!(status.success(), "{asked:?}: {}", String::from_utf8_lossy(&stderr));
        }
        assert_eq!(server.end_with("TERM"), Some(0));
    }
    let said = refused(2, &["serve", "--share", "data=/", "--smb", "off", "--nfs", "off"]);
    assert!(said.contains("both SMB and NFS are off") && said.contains("--nfs ADDR:PORT"), "{said}");
    assert!(refused(2, &["serve", "--smb", "of"]).contains("nor off"));
}

#[test]
fn an_idle_client_does_not_keep_it_from_ending() {
    let directory = TempDir::new().unwrap();
    let mut server = Server::start(&with(&flags(&directory), &[]));
    let _idle: Vec<_> =
        ["smb", "nfs", "control"].map(|name| TcpStream::connect(server.address(name)).unwrap()).into();
    let mut half = TcpStream::connect(server.address("smb")).unwrap();
    half.write_all(&[0, 0, 1]).unwrap();
    assert_eq!(server.end_with("TERM"), Some(0));
}

#[test]
fn a_taken_port_is_explained() {
    let directory = TempDir::new().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for (flag, instead) in [("--smb", "10445"), ("--nfs", "12049"), ("--control", "18080")] {
        let said = refused(4, &replaced(&flags(&directory), flag, &address));
        assert!(
            said.contains("is taken by") && said.contains(&format!("{flag} 127.0.0.1:{instead}")),
            "{said}"
        );
        assert!(said.contains(&format!("(process {})", std::process::id())), "{said}");
    }
}

#[test]
fn a_missing_directory_is_explained() {
    let directory = TempDir::new().unwrap();
    let said = refused(5, &replaced(&flags(&directory), "--share", "data=/no/such/place"));
    assert!(
        said.contains("/no/such/place does not exist") && said.contains("mkdir -p /no/such/place"),
        "{said}"
    );
    let file = path(&directory, "file");
    std::fs::write(&file, "x").unwrap();
    let said = refused(5, &replaced(&flags(&directory), "--share", &format!("data={file}")));
    assert!(said.contains("is not a directory"), "{said}");
}

#[test]
fn a_second_server_on_the_same_state_is_refused() {
    let directory = TempDir::new().unwrap();
    let flags = flags(&directory);
    let _first = Server::start(&with(&flags, &[]));
    let said = refused(3, &with(&flags, &[]));
    assert!(said.contains("in use by another server") && said.contains("--state"), "{said}");
}

#[test]
fn nothing_to_serve_is_refused() {
    let directory = TempDir::new().unwrap();
    let state = path(&directory, "state");
    let said = refused(2, &["serve", "--state", &state]);
    assert!(said.contains("--share NAME=DIR") && said.contains("anabranch share create"), "{said}");
    assert!(!Path::new(&state).exists());
}

#[test]
fn a_state_directory_that_was_used_is_served_without_a_share() {
    let directory = TempDir::new().unwrap();
    let flags = flags(&directory);
    drop(Server::start(&with(&flags, &[])));
    let at = flags.iter().position(|flag| flag == "--share").unwrap();
    let without: Vec<&str> = flags
        .iter()
        .enumerate()
        .filter(|(i, _)| ![at, at + 1].contains(i))
        .map(|(_, f)| f.as_str())
        .collect();
    assert!(Server::start(&without).ready.starts_with("ready "));
}

#[test]
fn an_unknown_flag_or_setting_is_refused_with_the_nearest() {
    assert!(refused(2, &["serve", "--smb-singing", "off"]).contains("--smb-signing"));
    let directory = TempDir::new().unwrap();
    let file = path(&directory, "anabranch.toml");
    std::fs::write(&file, "# mine\nsmb-singing = \"off\"\n").unwrap();
    let said = refused(2, &["serve", "--config", &file]);
    assert!(
        said.contains(&format!("{file} line 2")) && said.contains("Did you mean `smb-signing`?"),
        "{said}"
    );
    assert!(refused(2, &["serve", "--config", "/no/such/file"]).contains("/no/such/file"));
}

#[test]
fn a_configuration_file_serves_and_flags_go_before_it() {
    let directory = TempDir::new().unwrap();
    let file = path(&directory, "anabranch.toml");
    std::fs::create_dir(directory.path().join("data")).unwrap();
    let text = format!(
        "smb = \"127.0.0.1:0\"\nnfs = \"192.0.2.1:1\"\ncontrol = \"127.0.0.1:0\"\nstate = {:?}\n\
         [[share]]\nname = \"data\"\ndirectory = {:?}\n[[user]]\nname = \"anna\"\npassword = \"hush-hush\"\nuid = 1000\n",
        path(&directory, "state"),
        path(&directory, "data"),
    );
    std::fs::write(&file, text).unwrap();
    let mut server = Server::start(&["serve", "--config", &file, "--nfs", "127.0.0.1:0"]);
    assert!(server.ready.starts_with("ready smb="), "{}", server.ready);
    assert_eq!(server.end_with("TERM"), Some(0));
}

#[test]
fn a_password_is_in_no_log_and_not_in_the_state() {
    let directory = TempDir::new().unwrap();
    let flags = flags(&directory);
    for format in ["text", "json"] {
        let log = directory.path().join("log");
        let mut child = program(&with(&flags, &["--log", "trace", "--log-format", format]))
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let mut ready = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut ready).unwrap();
        assert_eq!(Server { child, ready }.end_with("TERM"), Some(0));
        let said = std::fs::read_to_string(&log).unwrap();
        assert!(said.contains("serving the share data"), "{said}");
        assert!(!said.contains("hush"), "{said}");
        assert_eq!(said.starts_with('{'), format == "json");
    }
    let database = std::fs::read(directory.path().join("state/anabranch.redb")).unwrap();
    for form in
        ["hush-hush".as_bytes().to_vec(), "hush-hush".encode_utf16().flat_map(u16::to_le_bytes).collect()]
    {
        assert!(!database.windows(form.len()).any(|window| window == form));
    }
}

#[test]
fn an_account_without_a_password_uses_the_one_that_is_kept() {
    let directory = TempDir::new().unwrap();
    let flags = flags(&directory);
    let file = path(&directory, "anabranch.toml");
    std::fs::write(&file, "[[user]]\nname = \"anna\"\nuid = 0\n").unwrap();
    let without: Vec<&str> = {
        let at = flags.iter().position(|f| f == "--user").unwrap();
        let rest = flags.iter().enumerate().filter(|(i, _)| *i != at && *i != at + 1);
        rest.map(|(_, f)| f.as_str()).chain(["--config", &file]).collect()
    };
    assert!(refused(2, &without).contains("anna has no password"));
    assert_eq!(Server::start(&with(&flags, &[])).end_with("TERM"), Some(0));
    assert!(Server::start(&without).ready.starts_with("ready "));
}

/// What a demo in this directory says until it serves, and the demo.
fn demo(directory: &TempDir, more: &[&str]) -> (Server, String) {
    let mut child = program(&["demo"])
        .args(more)
        .current_dir(directory.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut said = String::new();
    let mut lines = BufReader::new(child.stdout.as_mut().unwrap());
    while !said.contains("Ctrl-C") && lines.read_line(&mut said).unwrap() > 0 {}
    (Server { child, ready: String::new() }, said)
}

#[test]
fn demo_says_how_to_mount_it() {
    let directory = TempDir::new().unwrap();
    let (mut server, said) = demo(&directory, &[]);
    for expected in [
        "mount -t cifs //127.0.0.1/demo",
        "mount -t nfs 127.0.0.1:/demo",
        "New-SmbMapping",
        "mount_smbfs",
        "password",
    ] {
        assert!(said.contains(expected), "{expected} is not in\n{said}");
    }
    assert!(Path::new(&path(&directory, "anabranch-demo/share")).is_dir());
    assert_eq!(server.end_with("INT"), Some(0));
}

#[test]
fn demo_keeps_its_password_and_takes_ports_and_a_state_directory() {
    let directory = TempDir::new().unwrap();
    let state = path(&directory, "kept");
    let flags = ["--smb", "0", "--nfs", "0", "--control", "0", "--state", &state];
    let password = |said: &str| said.split("password   ").nth(1).unwrap().lines().next().unwrap().to_owned();
    let (mut server, first) = demo(&directory, &flags);
    assert_eq!(server.end_with("INT"), Some(0));
    let (mut server, second) = demo(&directory, &flags);
    assert_eq!(server.end_with("INT"), Some(0));
    assert_eq!(password(&first), password(&second));
    assert!(!Path::new(&path(&directory, "anabranch-demo/state")).exists());
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let refused = program(&["demo", "--smb", &port]).current_dir(directory.path()).output().unwrap();
    assert_eq!(refused.status.code(), Some(4), "a port that was asked for is had, or nothing is served");
}

#[test]
fn completions_and_manual_pages_know_the_commands() {
    for (shell, sign) in
        [("bash", "complete -F"), ("zsh", "#compdef anabranch"), ("fish", "complete -c anabranch")]
    {
        let Output { status, stdout, .. } = program(&["completions", shell]).output().unwrap();
        let script = String::from_utf8(stdout).unwrap();
        assert!(
            status.success() && script.contains(sign) && script.contains("smb-signing"),
            "{shell}: {script}"
        );
    }
    let directory = TempDir::new().unwrap();
    let pages = path(&directory, "pages");
    assert!(program(&["manual-pages", &pages]).output().unwrap().status.success());
    let page = std::fs::read_to_string(Path::new(&pages).join("anabranch-serve.1")).unwrap();
    assert!(page.contains("smb\\-signing"), "{page}");
    assert!(Path::new(&pages).join("anabranch.1").exists());
    let said = refused(2, &["manual-pages", &pages]);
    assert!(said.contains("exists") && said.contains("Name a new folder"), "{said}");
}
