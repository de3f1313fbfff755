//! One history of a share: changes by two protocols, snapshots, restores, reverts and kills, each compared with the model.

use std::process::{Child, Output, Stdio};
use std::time::{Duration, Instant};

use nfs_wire::v3::types::StableHow;
use smb_wire::{FileTime, NtStatus};

use crate::chance::Chance;
use crate::model::{Change, Tree, acknowledge, difference, learn, restored};
use crate::nfs::{self, Nfs};
use crate::nfs4::{self, Nfs4};
use crate::plan;
use crate::server::{path, program};
use crate::smb::Smb;
use crate::subvolume::{Machine, btrfs, text};

const STEPS: usize = 120;
/// How long what takes its time may take.
const LONG: Duration = Duration::from_secs(120);

/// A snapshot, and what was in it.
struct Kept {
    name: String,
    taken: i64,
    tree: Tree,
}

/// How often what happened in the histories of one server.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Counts {
    pub(crate) changes: usize,
    pub(crate) snapshots: usize,
    pub(crate) restores: usize,
    pub(crate) reverts: usize,
    pub(crate) kills: usize,
    pub(crate) kills_under_way: usize,
}

pub(crate) struct History<'m> {
    machine: &'m mut Machine,
    share: String,
    chance: Chance,
    live: Tree,
    kept: Vec<Kept>,
    clients: Option<(Smb, Nfs)>,
    nfs4: Option<Nfs4>,
    counts: &'m mut Counts,
    /// What happened, told if the test fails.
    events: Vec<String>,
    seed: u64,
}

impl Drop for History<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("HISTORIES=1 SEED={} fails; what happened:\n{}", self.seed, self.events.join("\n"));
        }
    }
}

/// A share is made, has this history and is removed.
pub(crate) fn run(machine: &mut Machine, seed: u64, counts: &mut Counts) {
    let share = format!("history{seed}");
    let at = machine.at(&share);
    btrfs(&["subvolume", "create"], &[&at]);
    let at = at.to_str().unwrap();
    // What chance does looks like extortion, and the alarm takes snapshots.
    let terms = ["--nfs-snapshots", "hidden", "--ransomware-alarm", "off"];
    machine.done(&[&["share", "create", &share, at], &terms[..]].concat());
    let (chance, live, kept) = (Chance::new(seed), Tree::new(), Vec::new());
    let mut history = History {
        machine,
        share,
        chance,
        live,
        kept,
        clients: None,
        nfs4: None,
        counts,
        events: Vec::new(),
        seed,
    };
    for _ in 0..STEPS {
        history.step();
    }
    history.check();
    history.kill();
    history.check();
    history.check_versions();
    history.clients = None;
    let share = history.share.clone();
    history.machine.done(&["share", "remove", &share]);
    history.remove_subvolumes();
}

impl History<'_> {
    fn step(&mut self) {
        match self.chance.below(100) {
            0..=76 => self.change(),
            77..=81 => self.change_and_kill(),
            82 => {
                self.note("kill");
                self.kill();
                self.check();
            }
            83..=88 => self.snapshot(),
            89..=92 => self.restore(),
            93..=94 => self.revert(),
            95 => self.remove_snapshot(),
            96 => self.check_versions(),
            _ => self.check(),
        }
    }

    fn note(&mut self, event: impl Into<String>) {
        self.events.push(event.into());
    }

    fn clients(&mut self) -> (&mut Smb, &mut Nfs, &mut Nfs4) {
        let server = self.machine.server.as_ref().unwrap();
        // First of all this client has nothing to reclaim, so nobody waits for it.
        let nfs4 = self.nfs4.get_or_insert_with(|| Nfs4::connect(server.address("nfs"), &self.share));
        let connect = || {
            let smb = Smb::connect(server.address("smb"), &self.share);
            (smb, Nfs::connect(server.address("nfs"), &self.share))
        };
        let (smb, nfs) = self.clients.get_or_insert_with(connect);
        (smb, nfs, nfs4)
    }

    /// Whether a change is made over NFS, by chance where both protocols have it.
    fn is_over_nfs(&mut self, change: &Change) -> bool {
        match change {
            Change::MakeStream(..) | Change::WriteStream(..) | Change::RemoveStream(..) => false,
            Change::SetEntries(..) => false,
            Change::SetMode(..) => true,
            _ => self.chance.one_in(2),
        }
    }

    fn is_directory(&self, change: &Change) -> bool {
        matches!(change, Change::Remove(path) if self.live[path].is_dir())
    }

    fn change(&mut self) {
        let Some(change) = plan::next(&mut self.chance, &self.live) else { return };
        let (over_nfs, is_directory) = (self.is_over_nfs(&change), self.is_directory(&change));
        let (unstable, commits) = (self.chance.one_in(2), self.chance.one_in(2));
        self.note(told(&change, over_nfs));
        let over_nfs4 = over_nfs && nfs4::has(&change) && self.chance.one_in(2);
        let (smb, nfs, nfs4) = self.clients();
        if over_nfs4 {
            nfs4.change(&change, unstable);
            if let (Change::Write(path, ..), true) = (&change, commits) {
                nfs4.commit(path);
            }
        } else if over_nfs {
            let stable = if unstable { StableHow::Unstable } else { StableHow::FileSync };
            nfs.change(&change, is_directory, stable);
            if let (Change::Write(path, ..), true) = (&change, commits) {
                nfs.commit(path);
            }
        } else {
            smb.change(&change);
        }
        change.apply(&mut self.live);
        acknowledge(&mut self.live);
        self.counts.changes += 1;
    }

    /// The server is killed after a change was asked for: it is done or it is not, and it is if it was acknowledged.
    fn change_and_kill(&mut self) {
        let Some(change) = plan::next(&mut self.chance, &self.live) else { return };
        let (over_nfs, is_directory) = (self.is_over_nfs(&change), self.is_directory(&change));
        let delay = Duration::from_micros(u64::try_from(self.chance.below(3000)).unwrap());
        self.note(format!("{}, killed after {delay:?}", told(&change, over_nfs)));
        let mut after = self.live.clone();
        change.apply(&mut after);
        let (smb, nfs, _) = self.clients();
        if over_nfs {
            nfs.send(&change, is_directory, StableHow::FileSync);
        } else {
            smb.send(&change);
        }
        std::thread::sleep(delay);
        drop(self.machine.server.take()); // SIGKILL
        let (smb, nfs) = self.clients.as_mut().unwrap();
        let is_done = if over_nfs {
            nfs.answer().map(|results| nfs::status(&results) == 0)
        } else {
            smb.answer().map(|reply| reply.status() == NtStatus::SUCCESS)
        };
        self.note(format!("acknowledged: {is_done:?}"));
        assert_ne!(is_done, Some(false), "{change:?}");
        self.counts.kills_under_way += 1;
        self.restart();
        let states = if is_done.is_some() {
            acknowledge(&mut after);
            vec![after]
        } else {
            vec![after, self.live.clone()]
        };
        self.is_one_of(states);
    }

    fn kill(&mut self) {
        drop(self.machine.server.take()); // SIGKILL
        self.restart();
    }

    fn restart(&mut self) {
        (self.clients, self.nfs4) = (None, None);
        self.machine.start(&[]);
        self.counts.kills += 1;
        for entry in std::fs::read_dir(self.machine.at("")).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(!name.starts_with(".anabranch-revert"), "{name} is left");
        }
    }

    /// The share is what the model says, over both protocols.
    fn check(&mut self) {
        let states = vec![self.live.clone()];
        self.is_one_of(states);
    }

    /// The share is in one of these states, which becomes the model's.
    fn is_one_of(&mut self, states: Vec<Tree>) {
        let (smb, nfs, nfs4) = self.clients();
        let seen = [smb.view(None), nfs.view(None), nfs4.view(None)];
        let mut differences = Vec::new();
        for mut state in states {
            match seen.iter().find_map(|seen| difference(&state, seen)) {
                None => {
                    seen.iter().for_each(|seen| learn(&mut state, seen));
                    self.live = state;
                    return;
                }
                Some(found) => differences.push(found),
            }
        }
        panic!("the share is in none of the states that it may be in: {differences:?}");
    }

    /// The snapshots are those of the model, with what was in them, over both protocols.
    fn check_versions(&mut self) {
        let mut names = self.names();
        names.sort();
        let mut expected: Vec<String> = self.kept.iter().map(|kept| kept.name.clone()).collect();
        expected.sort();
        assert_eq!(names, expected);
        for at in 0..self.kept.len() {
            self.check_version(at);
        }
    }

    fn check_version(&mut self, at: usize) {
        let (name, taken) = (self.kept[at].name.clone(), FileTime::from_unix(self.kept[at].taken, 0));
        let begun = Instant::now();
        let (smb, nfs, nfs4) = self.clients();
        while !smb.has_version(taken) || !nfs.has_version(&name) {
            assert!(begun.elapsed() < LONG, "{name} is not seen");
            std::thread::sleep(Duration::from_millis(50));
        }
        for seen in [smb.view(Some(taken)), nfs.view(Some(&name)), nfs4.view(Some(&name))] {
            let found = difference(&self.kept[at].tree, &seen);
            assert_eq!(found, None, "in the snapshot {name}");
        }
    }

    fn names(&self) -> Vec<String> {
        self.machine.snapshots(&self.share).iter().map(|snapshot| text(&snapshot["name"])).collect()
    }

    /// Learns of the snapshots that are new; all of them hold this.
    fn keep_new(&mut self, tree: &Tree) {
        for snapshot in self.machine.snapshots(&self.share) {
            let (name, taken) = (text(&snapshot["name"]), snapshot["taken"].as_i64().unwrap());
            if self.kept.iter().all(|kept| kept.name != name) {
                self.note(format!("there is the snapshot {name}"));
                self.kept.push(Kept { name, taken, tree: tree.clone() });
            }
        }
    }

    /// Starts a command, which may be killed with its server after a while: whether it was, and what it said.
    fn command(&mut self, arguments: &[&str]) -> Option<Output> {
        let killed_after = self.chance.one_in(4).then(|| self.chance.below(120));
        self.note(format!("{} killed after {killed_after:?} ms", arguments.join(" ")));
        let command: Child = program(arguments)
            .args(["--state", &path(&self.machine.directory, "state")])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let Some(delay) = killed_after else { return Some(command.wait_with_output().unwrap()) };
        std::thread::sleep(Duration::from_millis(u64::try_from(delay).unwrap()));
        drop(self.machine.server.take()); // SIGKILL
        let output = command.wait_with_output().unwrap();
        self.note(format!("the command: {} {}", output.status, String::from_utf8_lossy(&output.stderr)));
        self.counts.kills_under_way += 1;
        self.restart();
        output.status.success().then_some(output)
    }

    fn snapshot(&mut self) {
        self.check();
        let before = self.kept.len();
        let share = self.share.clone();
        let is_done = self.command(&["snapshot", "create", &share]).map(|output| succeeded(&output));
        let tree = self.live.clone();
        self.keep_new(&tree);
        let more = self.kept.len() - before;
        assert!(more == 1 || is_done.is_none() && more == 0, "{more} more");
        if self.chance.one_in(3) && more == 1 {
            self.check_version(before);
        }
        self.counts.snapshots += 1;
    }

    fn remove_snapshot(&mut self) {
        let names: Vec<String> = self.kept.iter().map(|kept| kept.name.clone()).collect();
        let Some(name) = self.chance.pick(&names) else { return };
        let share = self.share.clone();
        let is_done = self.command(&["snapshot", "remove", &share, &name]).map(|output| succeeded(&output));
        let is_gone = !self.names().contains(&name);
        assert!(is_gone || is_done.is_none());
        self.kept.retain(|kept| !is_gone || kept.name != name);
        // A server's list may be a second old (docs/snapshots.md), and the next snapshot may have the same time and name.
        std::thread::sleep(Duration::from_millis(1001));
    }

    fn restore(&mut self) {
        let Some(at) = self.chance.pick(&(0..self.kept.len()).collect::<Vec<_>>()) else { return };
        let name = self.kept[at].name.clone();
        let mut paths: Vec<String> = self.kept[at].tree.keys().cloned().collect();
        paths.push(String::new());
        let path = self.chance.pick(&paths).unwrap();
        let is_dir = |tree: &Tree, path: &str| tree.get(path).map(crate::model::Node::is_dir);
        let above = path.rsplit_once('/').map_or(Some(true), |(above, _)| is_dir(&self.live, above));
        let there = is_dir(&self.live, &path);
        if above != Some(true) || there.is_some() && there != is_dir(&self.kept[at].tree, &path) {
            return;
        }
        self.check();
        let (after, leaves) = restored(&self.live, &self.kept[at].tree, &path);
        let share = self.share.clone();
        let whole = format!("/{path}");
        let output = self.command(&["share", "restore", &share, "--from", &name, &whole, "--replace"]);
        let is_done = output.map(|output| {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(if leaves { 7 } else { 0 }), "{said}");
        });
        if is_done.is_none() {
            self.await_restore();
        }
        let states = if is_done.is_some() { vec![after] } else { vec![after, self.live.clone()] };
        self.is_one_of(states);
        self.counts.restores += 1;
    }

    /// Until a restore that goes on after a restart has ended.
    fn await_restore(&mut self) {
        let begun = Instant::now();
        loop {
            let output = program(&["share", "restore", &self.share, "--status", "--json", "--state"])
                .arg(path(&self.machine.directory, "state"))
                .output()
                .unwrap();
            if !output.status.success() {
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                assert!(said.contains("nothing was restored"), "{said}");
                return;
            }
            let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            if !told["ended"].is_null() {
                return self.note(format!("the restore: {told}"));
            }
            assert!(begun.elapsed() < LONG, "{told}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn revert(&mut self) {
        let Some(at) = self.chance.pick(&(0..self.kept.len()).collect::<Vec<_>>()) else { return };
        self.check();
        let (name, tree) = (self.kept[at].name.clone(), self.kept[at].tree.clone());
        let share = self.share.clone();
        let is_done =
            self.command(&["share", "revert", &share, "--to", &name]).map(|output| succeeded(&output));
        self.clients = None;
        let before = self.live.clone();
        self.keep_new(&before);
        let states = if is_done.is_some() { vec![tree] } else { vec![tree, before] };
        self.is_one_of(states);
        self.counts.reverts += 1;
    }

    fn remove_subvolumes(&self) {
        let top = self.machine.at(&self.share);
        let snapshots = top.join(".anabranch-snapshots");
        let below = std::fs::read_dir(&snapshots).into_iter().flatten();
        let mut all: Vec<_> = below.map(|entry| entry.unwrap().path()).collect();
        all.extend([snapshots, top].into_iter().filter(|at| at.exists()));
        btrfs(&["subvolume", "delete"], &all.iter().collect::<Vec<_>>());
    }
}

fn succeeded(output: &Output) {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn told(change: &Change, over_nfs: bool) -> String {
    let over = if over_nfs { "NFS" } else { "SMB" };
    let what = match change {
        Change::Write(path, at, data) => format!("Write({path:?}, {at}, {} bytes)", data.len()),
        Change::WriteStream(path, name, at, data) => {
            format!("WriteStream({path:?}, {name:?}, {at}, {} bytes)", data.len())
        }
        Change::SetEntries(path, _) => format!("SetEntries({path:?})"),
        other => format!("{other:?}"),
    };
    format!("{what} over {over}")
}
