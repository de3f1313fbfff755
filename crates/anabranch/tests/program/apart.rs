//! No share holds the state directory or lies in it, and no share lies in another: by flag, file, command and API.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::needs;
use crate::server::{Server, flags, path, program};

const ANY: &str = "127.0.0.1:0";

/// Directories to be served, none of them yet; `link` leads to the state directory.
fn directories() -> TempDir {
    let directory = TempDir::new().unwrap();
    for name in ["data/inside", "state/inside", "other"] {
        std::fs::create_dir_all(directory.path().join(name)).unwrap();
    }
    for (target, link) in [("state", "link"), ("data/inside", "link-inside")] {
        symlink(directory.path().join(target), directory.path().join(link)).unwrap();
    }
    for private in ["state", "state/inside"] {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(directory.path().join(private), mode).unwrap();
    }
    directory
}

fn ended(arguments: &[&str]) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = program(arguments).output().unwrap();
    (status.code(), String::from_utf8(stderr).unwrap())
}

/// What the server says that is to serve these, each `NAME=` and a path below the directory; it must end with status 5.
fn refused(directory: &TempDir, state: &str, shares: &[(&str, &str)]) -> String {
    let state = path(directory, state);
    let mut flags: Vec<String> =
        ["serve", "--smb", ANY, "--nfs", ANY, "--control", ANY, "--state", &state].map(str::to_owned).into();
    let mut file = String::new();
    for (name, place) in shares {
        let place = path(directory, place);
        flags.extend(["--share".to_owned(), format!("{name}={place}")]);
        file += &format!("[[share]]\nname = {name:?}\ndirectory = {place:?}\n");
    }
    let (status, said) = ended(&flags.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(status, Some(5), "{said}");

    let config = path(directory, "anabranch.toml");
    std::fs::write(
        &config,
        format!("smb = {ANY:?}\nnfs = {ANY:?}\ncontrol = {ANY:?}\nstate = {state:?}\n{file}"),
    )
    .unwrap();
    assert_eq!(ended(&["serve", "--config", &config]), (Some(5), said.clone()), "by file as by flag");
    said
}

#[test]
fn serve_refuses_a_share_that_holds_the_state_directory_or_lies_in_it() {
    let directory = directories();
    for (state, place, how) in [
        ("state", "state", " is the state directory"),
        ("state", "state/inside", " lies in the state directory"),
        ("state", ".", " holds the state directory"),
        ("link", ".", " holds the state directory"),
        ("state", "link", " is the state directory"),
        ("data/new/state", "data", " holds the state directory"),
        ("link-inside", "data", " holds the state directory"),
    ] {
        let said = refused(&directory, state, &[("other", "other"), ("Share", place)]);
        assert!(said.contains("of the share Share") && said.contains(how), "{state} {place}: {said}");
        assert!(said.contains("--state DIR"), "{said}");
    }
    assert!(!Path::new(&path(&directory, "data/new")).exists(), "nothing was made");
}

#[test]
fn serve_refuses_shares_that_lie_in_each_other() {
    let directory = directories();
    for (one, other, how) in [
        ("data", "data", "is served already, by the share one"),
        ("data", "data/inside", "lies in that of the share one"),
        ("data", "link-inside", "lies in that of the share one"),
        ("data/inside", "data", "holds that of the share one"),
    ] {
        let said = refused(&directory, "state", &[("one", one), ("other", other)]);
        assert!(said.contains(how) && said.contains("share modes would not hold"), "{one} {other}: {said}");
    }
}

#[test]
fn another_mount_of_a_directory_is_the_same_directory() {
    let directory = directories();
    let (state, data, mounted) =
        (path(&directory, "state"), path(&directory, "other"), path(&directory, "other/mounted"));
    for made in [&mounted, &path(&directory, "upper"), &path(&directory, "work")] {
        std::fs::create_dir(made).unwrap();
    }
    let share = format!("x={mounted}");
    let top = directory.path().to_str().unwrap();
    for (options, source, how) in [
        ("--bind", state.as_str(), "is the state directory"),
        ("--bind", top, "holds"),
        ("-t overlay -o lowerdir=$1/state,upperdir=$1/upper,workdir=$1/work", top, "is the state directory"),
    ] {
        let script = format!(r#"mount {options} "$1" "$2" || exit 77; shift 2; exec "$@""#);
        let ran = Command::new("unshare")
            .args(["--mount", "sh", "-c", &script, "sh", source, &mounted, env!("CARGO_BIN_EXE_anabranch")])
            .args([
                "serve",
                "--smb",
                ANY,
                "--nfs",
                ANY,
                "--control",
                ANY,
                "--state",
                &state,
                "--share",
                &share,
            ])
            .output();
        let Some(Output { status, stderr, .. }) = needs::installed("unshare", ran) else { return };
        let said = String::from_utf8(stderr).unwrap();
        if said.contains("unshare") || status.code() == Some(77) {
            return needs::not_tested(&format!("no mounts here: {said}"));
        }
        assert!(status.code() == Some(5) && said.contains(how), "{data}: {status} {said}");
    }
}

#[test]
fn a_command_makes_no_such_share_with_a_server_or_without() {
    let directory = TempDir::new().unwrap();
    let flags = flags(&directory);
    let state = path(&directory, "state");
    let create = |place: &str| {
        let place = path(&directory, place);
        ended(&["share", "create", "x", &place, "--state", &state])
    };
    drop(Server::start(&flags.iter().map(String::as_str).collect::<Vec<_>>()));
    std::fs::create_dir(directory.path().join("state/inside")).unwrap();
    symlink(&state, directory.path().join("link")).unwrap();
    let refused_by_command = || {
        for (place, how) in
            [("state", "is the"), ("state/inside", "lies in the"), (".", "holds the"), ("link", "is the")]
        {
            let (status, said) = create(place);
            let how = format!("of the share x {how} state directory");
            assert!(status == Some(7) && said.contains(&how), "{place}: {said}");
        }
    };
    refused_by_command();
    let server = Server::start(&flags.iter().map(String::as_str).collect::<Vec<_>>());
    refused_by_command();

    let token = std::fs::read_to_string(directory.path().join("state/control-token")).unwrap();
    let body = format!("{{\"name\":\"x\",\"directory\":{state:?}}}");
    let mut stream = TcpStream::connect(server.address("control")).unwrap();
    write!(
        stream,
        "POST /v1/shares HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        token.trim(),
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 409 ") && answer.contains("is the state directory"), "{answer}");
}

/// One that was made while the state was elsewhere.
#[test]
fn a_share_that_was_made_is_not_served_around_the_state_directory() {
    let directory = TempDir::new().unwrap();
    let flags = flags(&directory);
    let (away, state, place) =
        (path(&directory, "away"), path(&directory, "place/state"), path(&directory, "place"));
    std::fs::create_dir(&place).unwrap();
    assert_eq!(ended(&["share", "create", "x", &place, "--state", &away]).0, Some(0));
    std::fs::rename(&away, &state).unwrap();
    let at = flags.iter().position(|flag| flag == "--state").unwrap();
    let mut flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    flags[at + 1] = &state;
    let mut server = Server::start(&flags);
    let shown = program(&["share", "show", "x", "--state", &state]).output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("holds the state directory"), "{shown}");
    let (status, said) = ended(&["share", "set", "x", "--read-only", "true", "--state", &state]);
    assert!(status == Some(7) && said.contains("holds the state directory"), "{said}");
    assert_eq!(server.end_with("TERM"), Some(0));
}
