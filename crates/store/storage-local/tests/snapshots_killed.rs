//! A server that is killed while it takes snapshots, removes them and goes back to them.
#![expect(clippy::unwrap_used, reason = "a check that fails panics: that is how it tells")]

#[expect(dead_code, reason = "nothing is mounted read-only here")]
mod disk;
#[path = "../../../anabranch/tests/program/needs/mod.rs"]
mod needs;

use std::io::{BufRead, BufReader, IoSlice, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anabranch_storage_local::{LocalOptions, LocalStore};
use disk::{Disk, succeeds};
use storage::conformance::MAY;
use storage::{Error, Name, NewKind, NewNode, Stability, Storage, Wait};

const FOLDER: &str = ".anabranch-snapshots";
const FILES: [&str; 2] = ["first", "second"];
const NEW_FILE: NewNode<'static> = NewNode { kind: NewKind::Regular, mode: 0o644, uid: 0, gid: 0 };
/// How often the server is killed.
const KILLS: u32 = 40;
/// How many snapshots the server keeps.
const KEPT: usize = 6;

fn open(root: &Path) -> LocalStore {
    LocalStore::open(root, LocalOptions::default()).unwrap()
}

/// The numbers in both files; None where a file is not there.
fn numbers(store: &dyn Storage) -> [Option<u64>; 2] {
    FILES.map(|file| {
        let name = Name::new(file.as_bytes()).unwrap();
        let node = match store.root().lookup(name, Wait::May(MAY)) {
            Err(Error::NotFound) => return None,
            found => found.unwrap(),
        };
        let mut bytes = [0; 8];
        (node.read(0, &mut bytes, Wait::May(MAY)).unwrap() == 8).then(|| u64::from_le_bytes(bytes))
    })
}

/// Writes a number to the first file, and then to the second.
fn write(store: &dyn Storage, number: u64) {
    for file in FILES {
        let name = Name::new(file.as_bytes()).unwrap();
        let node = match store.root().create(name, &NEW_FILE, MAY) {
            Err(Error::Exists) => store.root().lookup(name, Wait::May(MAY)).unwrap(),
            made => made.unwrap(),
        };
        let bytes = number.to_le_bytes();
        node.write(0, &[IoSlice::new(&bytes)], Stability::File, Wait::May(MAY)).unwrap();
    }
}

/// A number below `end`.
fn random(end: u32) -> u32 {
    let mut bytes = [0; 4];
    getrandom::fill(&mut bytes).unwrap();
    u32::from_le_bytes(bytes) % end
}

/// Run by the test below, until it is killed; alone it does nothing.
#[test]
fn works_until_it_is_killed() {
    let Ok(root) = std::env::var("SNAPSHOTS_OF") else { return };
    let root = Path::new(&root);
    let mut number = 0;
    for _ in 0..1000 {
        let store = open(root);
        let snapshots = store.snapshots().unwrap();
        number = numbers(&store).into_iter().flatten().fold(number, u64::max) + 1;
        write(&store, number);
        snapshots.take("killed", MAY).unwrap();
        let listed = snapshots.list(MAY).unwrap();
        for old in listed.iter().take(listed.len().saturating_sub(KEPT)) {
            snapshots.remove(old.id, MAY).unwrap();
        }
        let listed = snapshots.list(MAY).unwrap();
        let to = random(u32::try_from(listed.len()).unwrap());
        snapshots.revert(listed[usize::try_from(to).unwrap()].id, MAY).unwrap();
        println!("round");
        std::io::stdout().flush().unwrap();
    }
}

/// Starts a server, and kills it some rounds and a moment later.
fn work_and_kill(root: &Path) {
    let program = std::env::current_exe().unwrap();
    let mut server = Command::new(program)
        .args(["--exact", "--nocapture", "works_until_it_is_killed"])
        .env("SNAPSHOTS_OF", root)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // The server would end by itself if nobody read what it prints.
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let rounds = usize::try_from(1 + random(3)).unwrap();
    let seen =
        lines.by_ref().map_while(Result::ok).filter(|line| line.ends_with("round")).take(rounds).count();
    std::thread::sleep(Duration::from_micros(random(60_000).into()));
    let _ = server.kill();
    server.wait().unwrap();
    assert_eq!(seen, rounds, "it ended by itself");
}

#[test]
fn a_server_that_is_killed_leaves_whole_snapshots_and_one_state() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().join("top");
    let Some(_disk) = Disk::make("btrfs", &["-q"], 256, &top) else { return };
    let root = top.join("live");
    if !succeeds("btrfs", &["-q", "subvolume", "create"], &[&root]) {
        return;
    }
    for round in 0..KILLS {
        work_and_kill(&root);
        let store = open(&root);
        let [first, second] = numbers(&store);
        assert!(first >= second, "{round}: {first:?} {second:?}");
        let snapshots = store.snapshots().unwrap();
        let listed = snapshots.list(MAY).unwrap();
        assert!(!listed.is_empty());
        for snapshot in &listed {
            let [first, second] = numbers(&*snapshots.open(snapshot.id, MAY).unwrap());
            assert!(
                snapshot.is_own && first.is_some() && first >= second,
                "{round}: {snapshot:?} {first:?} {second:?}"
            );
        }
        // What can be written would not be listed.
        let entries = |dir: &Path| std::fs::read_dir(dir).unwrap().count();
        assert_eq!(entries(&root.join(FOLDER)), listed.len(), "{round}");
        assert_eq!(entries(&top), 1, "{round}: something is left beside the root");
        // A round that was interrupted does not count for the next one.
        write(&store, u64::from(round) << 32);
    }
}
