//! `anabranch bench peers`: servers that are started for a measurement, and end with it. Samba and Ganesha need root; their
//! packages are among those that `scripts/install-test-deps` installs.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::needs;
use crate::server::{path, program};

/// What makes a run of a few seconds, without how long each measurement takes.
const TINY: [&str; 6] = ["--ramp", "0.02", "--repetitions", "2", "--file-size", "1M"];
/// How long each measurement takes. The next one is for a machine so busy that a server has answered nothing in that time.
const SECONDS: [&str; 3] = ["0.3", "3", "30"];

pub(crate) fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        needs::not_tested("this needs root");
    }
    is_root
}

/// A directory that servers with accounts of their own can enter.
fn place() -> TempDir {
    let place = TempDir::new().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    place
}

/// Starts `bench peers` with its directories in a place, and results beside them.
fn command(place: &TempDir, family: &str, more: &[&str]) -> Command {
    fs::create_dir_all(place.path().join("files")).unwrap();
    let (files, out) = (path(place, "files"), path(place, "out"));
    let mut command = program(&["bench", "peers", family, "--directory", &files, "--out", &out]);
    command.args(more).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn measured(place: &TempDir, name: &str) -> Value {
    serde_json::from_slice(&fs::read(place.path().join("out").join(name)).unwrap()).unwrap()
}

/// Processes: their parent and their session, by their number (proc(5), `/proc/PID/stat`).
pub(crate) fn processes() -> Vec<(u32, u32, u32)> {
    let of = |entry: fs::DirEntry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let is_gone = matches!(*fields.first()?, "Z" | "X");
        (!is_gone).then(|| Some((pid, fields.get(1)?.parse().ok()?, fields.get(3)?.parse().ok()?)))?
    };
    fs::read_dir("/proc").unwrap().filter_map(|entry| of(entry.ok()?)).collect()
}

fn children(parent: u32) -> BTreeSet<u32> {
    processes().into_iter().filter(|(_, of, _)| *of == parent).map(|(pid, _, _)| pid).collect()
}

fn check_nothing_is_left(place: &TempDir, sessions: &BTreeSet<u32>) {
    let left: Vec<_> = processes().into_iter().filter(|(_, _, session)| sessions.contains(session)).collect();
    assert!(left.is_empty(), "{left:?} of {sessions:?}");
    assert!(fs::read_dir(place.path().join("files")).unwrap().next().is_none());
}

/// What two servers did, as `bench peers` says and writes it: the names of the results of both, for each protocol. Each row of one was
/// measured on the other, too, unless the machine is too busy for the longest measurement.
fn run(family: &str, more: &[&str], names: &[[String; 2]]) -> (TempDir, String, Vec<[Value; 2]>) {
    let mut last = None;
    for seconds in SECONDS {
        let place = place();
        let arguments = [&["--seconds", seconds], &TINY[..], more].concat();
        let Output { status, stdout, stderr } = command(&place, family, &arguments).output().unwrap();
        assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
        let of = |names: &[String; 2]| [0, 1].map(|which| measured(&place, &names[which]));
        let results: Vec<_> = names.iter().map(of).collect();
        let rows = |result: &Value| result["rows"].as_array().unwrap().len();
        let is_whole = results.iter().all(|[ours, theirs]| rows(ours) > 0 && rows(ours) == rows(theirs));
        last = Some((place, String::from_utf8(stdout).unwrap(), results));
        if is_whole {
            break;
        }
    }
    last.unwrap()
}

/// Both servers did something at the same time, each on CPU time of its own, and it can be compared.
fn check_beside(results: [&Value; 2]) {
    let [ours, theirs] = results;
    let rows = |result: &Value| result["rows"].as_array().unwrap().clone();
    assert_eq!([&ours["problems"], &theirs["problems"]], [&json!([]), &json!([])]);
    assert!(!rows(ours).is_empty() && rows(ours).len() == rows(theirs).len(), "{ours:#} {theirs:#}");
    for (our, their) in rows(ours).iter().zip(&rows(theirs)) {
        assert_eq!(our["key"], their["key"]);
        for row in [our, their] {
            assert_eq!(row["repetitions"].as_array().unwrap().len(), 2);
            assert!(row["measure"]["rate"]["median"].as_f64().unwrap() > 0.0, "{row:#}");
            assert!(row["measure"]["server_cpu_us"]["median"].as_f64().unwrap() > 0.0, "{row:#}");
        }
        let began = |row: &Value, at: usize| row["repetitions"][at]["began_seconds"].as_f64().unwrap();
        let first = began(our, 0) < began(their, 0);
        assert_ne!(first, began(our, 1) < began(their, 1), "who is first changes");
    }
}

#[test]
fn a_family_is_measured_beside_samba() {
    if !is_root() {
        return;
    }
    let few = ["--connections", "1,4", "--block-size", "4k", "--quick"];
    let names = ["anabranch", "samba"].map(|server| format!("smb-mc-multifile.{server}.smb.json"));
    let (place, said, results) = run("smb-mc-multifile", &few, &[names]);
    assert!(said.contains("beside Samba 4.") && said.contains("SAMBA CPU US"), "{said}");
    let [ours, theirs] = &results[0];
    check_beside([ours, theirs]);
    assert_eq!(theirs["environment"]["negotiated"]["connections"], 4);
    assert!(theirs["environment"]["server"].as_str().unwrap().starts_with("Samba 4."));
    // Each measurement is short, and what is under way at its edges is in one count only: how much that is depends on the machine.
    let (mut client, mut server) = (0.0, 0.0);
    for row in ours["rows"].as_array().unwrap().iter().filter(|row| row["key"]["mix"]["read-percent"] == 100)
    {
        for repetition in row["repetitions"].as_array().unwrap() {
            client += repetition["operations"]["read"]["bytes"].as_f64().unwrap();
            server += repetition["server"]["read_bytes"].as_f64().unwrap();
        }
        assert!((0.0..=1.0).contains(&row["measure"]["from_cache"]["median"].as_f64().unwrap()), "{row:#}");
    }
    println!("the server has counted {server} of {client} bytes");
    assert!(server > 0.0 && client > 0.0);
    check_nothing_is_left(&place, &BTreeSet::new());
}

#[test]
fn a_family_is_measured_beside_ganesha() {
    if !is_root() {
        return;
    }
    let documents = place();
    let document = path(&documents, "performance.md");
    fs::write(
        &document,
        "# Before\n\ntext\n\n# Anabranch beside NFS-Ganesha, NFSv3: nfs-nconnect\n\nold\n\n# After\n",
    )
    .unwrap();
    let few = ["--connections", "4", "--block-size", "64k", "--quick", "--over", "nfs3,nfs4.1"];
    let few = [&few[..], &["--markdown", &document]].concat();
    let of = |version| ["anabranch", "ganesha"].map(|server| format!("nfs-nconnect.{server}.{version}.json"));
    let (place, said, results) = run("nfs-nconnect", &few, &[of("nfs3"), of("nfs4.1")]);
    assert!(said.contains("beside NFS-Ganesha 4.") && said.contains("NFSv3, in turns"), "{said}");
    for [ours, theirs] in &results {
        check_beside([ours, theirs]);
    }
    let document = fs::read_to_string(document).unwrap();
    let heads: Vec<_> = document.lines().filter(|line| line.starts_with("# ")).collect();
    let beside = |dialect| format!("# Anabranch beside NFS-Ganesha, {dialect}: nfs-nconnect");
    assert_eq!(heads, ["# Before", &beside("NFSv3"), "# After", &beside("NFSv4.1")], "{document}");
    assert!(
        document.contains("| connections=4 bs=64KiB op=randread ")
            && document.contains("(quick: a rough idea only)")
            && !document.contains("old"),
        "{document}"
    );
    check_nothing_is_left(&place, &BTreeSet::new());
}

/// Starts a run that is to be interrupted, and waits until its load is on: what it has started.
fn begin(place: &TempDir, more: &[&str]) -> (Child, BTreeSet<u32>) {
    let long = ["--seconds", "60", "--file-size", "1M"];
    let child = command(place, "smb-mc-singlefile", &[&long[..], more].concat()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    let is_on = |of: &fs::DirEntry| {
        let files = fs::read_dir(of.path().join("files-of-anabranch"));
        files.is_ok_and(|files| files.flatten().any(|run| run.path().join("f0").exists()))
    };
    while !fs::read_dir(Path::new(&path(place, "files"))).unwrap().flatten().any(|of| is_on(&of)) {
        assert!(Instant::now() < deadline, "no load");
        std::thread::sleep(Duration::from_millis(20));
    }
    let started = children(child.id());
    (child, started)
}

fn signal(child: &Child, name: &str) {
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
}

#[test]
fn an_interrupted_run_ends_its_servers_and_removes_its_directories() {
    let place = place();
    let peers: &[&str] = if is_root() { &[] } else { &["--peers", "none"] };
    let (child, sessions) = begin(&place, peers);
    assert_eq!(sessions.len(), if peers.is_empty() { 2 } else { 1 }, "{sessions:?}");
    signal(&child, "INT");
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    assert!(String::from_utf8_lossy(&stdout).contains("stopped: "));
    check_nothing_is_left(&place, &sessions);
}

#[test]
fn servers_end_with_a_run_that_is_killed() {
    let place = place();
    let (mut child, sessions) = begin(&place, &["--peers", "none"]);
    assert_eq!(sessions.len(), 1);
    signal(&child, "KILL");
    child.wait().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while processes().iter().any(|(pid, _, _)| sessions.contains(pid)) {
        assert!(Instant::now() < deadline, "{sessions:?} still runs");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// In a mount namespace of its own the program of the package is covered.
#[test]
fn a_missing_package_is_named() {
    if !is_root() {
        return;
    }
    for (program_file, family, package) in [
        ("/usr/sbin/smbd", "smb-mc-multifile", "samba"),
        ("/usr/bin/ganesha.nfsd", "nfs-nconnect", "nfs-ganesha"),
    ] {
        let script = format!("mount --bind /dev/null {program_file} && exec \"$@\"");
        let covered = Command::new("unshare")
            .args([
                "--mount",
                "sh",
                "-c",
                &script,
                "sh",
                env!("CARGO_BIN_EXE_anabranch"),
                "bench",
                "peers",
                family,
            ])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&covered.stderr);
        assert_eq!(covered.status.code(), Some(2), "{said}");
        assert!(said.contains(&format!("apt-get install {package} ")), "{said}");
    }
}

#[test]
fn too_little_time_for_all_is_refused() {
    let place = place();
    let (files, out) = (path(&place, "."), path(&place, "out"));
    let few = ["bench", "all", "--minutes", "3", "--peers", "none", "--directory", &files, "--out", &out];
    let Output { status, stderr, .. } = program(&few).output().unwrap();
    let said = String::from_utf8(stderr).unwrap();
    let least: u32 = said
        .split("--minutes ")
        .nth(1)
        .unwrap()
        .split(|c: char| !c.is_ascii_digit())
        .next()
        .unwrap()
        .parse()
        .unwrap();
    assert_eq!(status.code(), Some(2), "{said}");
    assert!(said.contains("not enough time") && least > 3 && least < 60, "{said}");
}
