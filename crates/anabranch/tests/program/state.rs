//! The state directory: damage is found and told, copies are kept and restored, one process at a time has it, nobody else may
//! enter it.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use smb_proto::dialect::Dialect;
use tempfile::TempDir;

use crate::needs;
use crate::raw::Client;
use crate::server::{Server, flags, path, program};

const ANY: &str = "127.0.0.1:0";
const DATABASE: &str = "anabranch.redb";

/// Runs the program to its end: its status, and what it said on both ways.
fn ended(arguments: &[&str]) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } = program(arguments).output().unwrap();
    (status.code(), String::from_utf8([stdout, stderr].concat()).unwrap())
}

fn done(arguments: &[&str]) -> String {
    let (status, said) = ended(arguments);
    assert_eq!(status, Some(0), "{arguments:?}: {said}");
    said
}

fn started(directory: &TempDir) -> Server {
    Server::start(&flags(directory).iter().map(String::as_str).collect::<Vec<_>>())
}

/// A state directory in which a share and a user were made, and a server has ended cleanly.
fn used() -> TempDir {
    let directory = TempDir::new().unwrap();
    let (state, made) = (path(&directory, "state"), path(&directory, "made"));
    fs::create_dir(&made).unwrap();
    done(&["share", "create", "made", &made, "--state", &state]);
    let mut add = program(&["user", "add", "otto", "--uid", "1000", "--state", &state]);
    let mut add = add.stdin(Stdio::piped()).stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    add.stdin.take().unwrap().write_all(b"correct horse\n").unwrap();
    assert!(add.wait().unwrap().success());
    assert_eq!(started(&directory).end_with("TERM"), Some(0));
    directory
}

/// A server that is to serve what was made from this state directory: it does, or says why not with its status.
fn serve_from(state: &str) -> Result<Server, (Option<i32>, String)> {
    let arguments = ["serve", "--smb", ANY, "--nfs", ANY, "--control", ANY, "--state", state];
    let mut child = program(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut ready = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut ready).unwrap();
    if ready.starts_with("ready ") {
        return Ok(Server { child, ready });
    }
    let ended = child.wait_with_output().unwrap();
    Err((ended.status.code(), String::from_utf8(ended.stderr).unwrap()))
}

fn log_on_as_otto(server: &Server) {
    let mut client = Client::connect(server.address("smb").parse().unwrap());
    client.negotiate(&[Dialect::Smb311]);
    client.log_in("otto", "correct horse").unwrap();
    client.tree_connect("made").unwrap();
}

#[test]
fn a_database_with_flipped_bits_serves_right_or_is_refused_with_what_to_do() {
    let directory = used();
    let state = path(&directory, "state");
    let sound = fs::read(format!("{state}/{DATABASE}")).unwrap();
    let mut number = 0x2545_f491_4f6c_dd1d_u64;
    let mut refused = 0;
    for round in 0..24 {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let bit = usize::try_from((number >> 16) % (sound.len() as u64 * 8)).unwrap();
        // Some of them where the tables are entered, and one that matters wherever they are: of the first byte.
        let bit = match round {
            0 => 3,
            round if round % 2 == 0 => bit % (512 * 8),
            _ => bit,
        };
        let mut flipped = sound.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        fs::write(format!("{state}/{DATABASE}"), &flipped).unwrap();
        match serve_from(&state) {
            Ok(mut server) => {
                log_on_as_otto(&server);
                assert_eq!(server.end_with("TERM"), Some(0), "bit {bit}");
            }
            Err((status, said)) => {
                refused += 1;
                assert_eq!(status, Some(3), "bit {bit}: {said}");
                assert!(said.contains("is damaged") && !said.contains("panicked"), "bit {bit}: {said}");
                assert!(
                    said.contains("anabranch.redb.good") && said.contains("anabranch state restore"),
                    "{said}"
                );
            }
        }
    }
    assert!(refused > 0, "the first byte did not matter");
    fs::write(format!("{state}/{DATABASE}"), &sound[..sound.len() / 2]).unwrap();
    let (status, said) = serve_from(&state).err().unwrap();
    assert!(status == Some(3) && said.contains("is damaged"), "{said}");
    assert_eq!(ended(&["state", "check", "--state", &state]).0, Some(3));

    // As it was told.
    let said = done(&["state", "restore", "--state", &state]);
    let kept = format!("{state}/{DATABASE}.replaced-1");
    assert!(said.contains("was restored into") && said.contains(&kept), "{said}");
    assert_eq!(fs::read(kept).unwrap(), &sound[..sound.len() / 2]);
    log_on_as_otto(&serve_from(&state).unwrap());
}

#[test]
fn an_empty_file_is_no_new_server_and_an_empty_directory_is_announced_as_one() {
    let directory = TempDir::new().unwrap();
    let (flags, log) = (flags(&directory), directory.path().join("log"));
    let state = path(&directory, "state");
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let mut server = Server::start_logging(&flags, fs::File::create(&log).unwrap().into());
    assert_eq!(server.end_with("TERM"), Some(0));
    let said = fs::read_to_string(&log).unwrap();
    assert!(said.contains(&format!("the state directory {state} is new")), "{said}");
    let mut server = Server::start_logging(&flags, fs::File::create(&log).unwrap().into());
    assert_eq!(server.end_with("TERM"), Some(0));
    assert!(!fs::read_to_string(&log).unwrap().contains("is new"));

    fs::write(format!("{state}/{DATABASE}"), "").unwrap();
    let (status, said) = ended(&flags);
    assert!(status == Some(3) && said.contains("it is empty") && said.contains("state restore"), "{said}");
    fs::remove_file(format!("{state}/{DATABASE}")).unwrap();
    let (status, said) = ended(&flags);
    assert!(status == Some(3) && said.contains("is gone") && said.contains("state restore"), "{said}");
}

#[test]
fn who_has_the_directory_is_named_and_a_copy_is_made_meanwhile() {
    let directory = used();
    let state = path(&directory, "state");
    let server = started(&directory);
    let named = format!("anabranch (process {})", server.child.id());
    let flags = flags(&directory);
    let (status, said) = ended(&flags.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(
        status == Some(3) && said.contains("in use by another server") && said.contains(&named),
        "{said}"
    );
    let (status, said) = ended(&["state", "restore", "--state", &state]);
    assert!(status == Some(7) && said.contains(&named), "{said}");

    let copy = path(&directory, "copy");
    done(&["state", "backup", &copy, "--state", &state]);
    assert_eq!(fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o600);
    let (status, said) = ended(&["state", "backup", &copy, "--state", &state]);
    assert!(status == Some(7) && said.contains("Name a new file"), "{said}");
    let said = done(&["state", "check", "--state", &state]);
    assert!(said.contains("is sound: 1 share, 1 user and 0 tokens created by command"), "{said}");
    assert!(said.contains("Its last good copy is sound"), "{said}");

    let other = path(&directory, "other");
    done(&["state", "restore", &copy, "--state", &other]);
    drop(server);
    log_on_as_otto(&serve_from(&other).unwrap());
}

#[test]
fn a_copy_that_is_damaged_is_not_restored() {
    let directory = used();
    let state = path(&directory, "state");
    let database = fs::read(format!("{state}/{DATABASE}")).unwrap();
    let copy = path(&directory, "copy");
    fs::write(&copy, &database[..5000]).unwrap();
    let (status, said) = ended(&["state", "restore", &copy, "--state", &state]);
    assert!(status == Some(3) && said.contains("is damaged") && said.contains(&copy), "{said}");
    assert_eq!(fs::read(format!("{state}/{DATABASE}")).unwrap(), database);
    let (status, said) = ended(&["state", "restore", "/no/such/file", "--state", &state]);
    assert!(status == Some(3) && said.contains("cannot read /no/such/file"), "{said}");
}

#[test]
fn a_copy_of_a_state_directory_does_not_talk_to_the_server_of_the_first() {
    let directory = used();
    let (state, copy) = (path(&directory, "state"), path(&directory, "copy"));
    let server = started(&directory);
    assert!(Command::new("cp").args(["-a", &state, &copy]).status().unwrap().success());
    let (status, said) = ended(&["client", "list", "--state", &copy]);
    assert!(status == Some(6) && said.contains("no server is running") && said.contains("a copy"), "{said}");
    let place = path(&directory, "place");
    fs::create_dir(&place).unwrap();
    let said = done(&["share", "create", "place", &place, "--state", &copy]);
    assert!(said.contains("no server is running"), "{said}");
    assert!(done(&["share", "list", "--state", &copy]).contains("place"));
    assert!(!done(&["share", "list", "--state", &state]).contains("place"));
    drop(server);
}

#[test]
fn a_directory_that_others_may_enter_is_refused() {
    let directory = TempDir::new().unwrap();
    let state = path(&directory, "state");
    fs::create_dir(&state).unwrap();
    let flags = flags(&directory);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    for mode in [0o755, 0o750, 0o701] {
        fs::set_permissions(&state, Permissions::from_mode(mode)).unwrap();
        let (status, said) = ended(&flags);
        assert!(status == Some(3) && said.contains(&format!("chmod 700 {state}")), "{said}");
        assert_eq!(fs::read_dir(&state).unwrap().count(), 0, "nothing was made");
    }
    fs::set_permissions(&state, Permissions::from_mode(0o700)).unwrap();
    assert_eq!(Server::start(&flags).end_with("TERM"), Some(0));
}

#[test]
fn a_state_directory_that_nobody_named_is_not_made() {
    let directory = TempDir::new().unwrap();
    let (data, state) = (path(&directory, "data"), path(&directory, "named"));
    fs::create_dir(&data).unwrap();
    let share = format!("data={data}");
    let arguments = ["serve", "--smb", ANY, "--nfs", ANY, "--control", ANY, "--share", &share];
    let named = program(&arguments).env("ANABRANCH_STATE", &state).stdout(Stdio::piped()).spawn().unwrap();
    let mut server = Server { child: named, ready: String::new() };
    BufReader::new(server.child.stdout.as_mut().unwrap()).read_line(&mut server.ready).unwrap();
    assert!(server.ready.starts_with("ready "), "{}", server.ready);
    let listed = program(&["share", "list"]).env("ANABRANCH_STATE", &state).output().unwrap();
    assert!(listed.status.success() && String::from_utf8(listed.stdout).unwrap().contains("data"));
    assert_eq!(server.end_with("TERM"), Some(0));

    let default = Path::new("/var/lib/anabranch");
    if default.exists() {
        return needs::not_tested(&format!("{} is there", default.display()));
    }
    for arguments in [arguments.as_slice(), &["share", "create", "data", &data]] {
        let Output { status, stderr, .. } =
            program(arguments).env_remove("ANABRANCH_STATE").output().unwrap();
        let said = String::from_utf8(stderr).unwrap();
        assert!(status.code() == Some(3) && said.contains("--state DIR"), "{arguments:?}: {said}");
        assert!(said.contains("ANABRANCH_STATE") && !default.exists(), "{said}");
    }

    // On a terminal it asks; what is not a yes is a no.
    let line = format!("{} {}", env!("CARGO_BIN_EXE_anabranch"), arguments.join(" "));
    let terminal = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .env_remove("ANABRANCH_STATE")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Some(mut asked) = needs::installed("script", terminal) else { return };
    asked.stdin.take().unwrap().write_all(b"n\n").unwrap();
    let Output { status, stdout, .. } = asked.wait_with_output().unwrap();
    let said = String::from_utf8(stdout).unwrap();
    assert!(status.code() == Some(3) && said.contains("Create /var/lib/anabranch? [y/N]"), "{said}");
    assert!(!default.exists());
}
