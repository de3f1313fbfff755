//! Shares whose directories the server makes in a pool, and removes again.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{DEADLINE, Machine};
use crate::disk::Disk;
use crate::needs;
use crate::server::{path, program};

const ANNA: &str = "anna%hush-hush";

/// Waits until this is so.
fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < DEADLINE, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A number below `end`.
fn random(end: u64) -> u64 {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).unwrap();
    u64::from_le_bytes(bytes) % end
}

impl Machine {
    /// With a server that has a pool. None, which is said: only root makes the marks of pools.
    fn with_pool(test: &str, more: &[&str]) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            needs::not_tested(&format!("{test}: only root makes the marks of pools"));
            return None;
        }
        let mut machine = Self::new();
        machine.make_directory("pool");
        machine.serve_pool(more);
        Some(machine)
    }

    /// Starts a server that declares the pool.
    fn serve_pool(&mut self, more: &[&str]) {
        self.serve_pool_named("fast", more);
    }

    fn serve_pool_named(&mut self, name: &str, more: &[&str]) {
        let config = path(&self.directory, "pools.toml");
        let overcommit = "[[pool]]\nname = \"loose\"\novercommit = \"yes\"\ndirectory";
        self.make_directory("loose");
        let text = format!(
            "[[pool]]\nname = \"{name}\"\ndirectory = \"{}\"\n{overcommit} = \"{}\"\n",
            path(&self.directory, "pool"),
            path(&self.directory, "loose")
        );
        fs::write(&config, text).unwrap();
        self.start(&[&["--config", &config][..], more].concat());
    }

    fn in_pool(&self, name: &str) -> PathBuf {
        self.directory.path().join("pool").join(name)
    }

    /// What is in the pool.
    fn pool_names(&self) -> Vec<String> {
        let found = fs::read_dir(self.directory.path().join("pool")).unwrap();
        let mut names: Vec<_> =
            found.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn pool(&self) -> Value {
        self.json(&["pool", "list"])["pools"][0].clone()
    }

    fn create_in_pool(&self, name: &str) -> PathBuf {
        self.done(&["share", "create", name, "--pool", "fast", "--size", "64MiB"]);
        self.in_pool(name)
    }

    fn kill(&mut self) {
        self.server.take().unwrap().end_with("KILL");
    }
}

#[test]
fn a_share_of_a_pool_has_a_directory_and_a_size() {
    let Some(machine) = Machine::with_pool("a_share_of_a_pool_has_a_directory_and_a_size", &[]) else {
        return;
    };
    let create = ["share", "create", "Small", "--pool", "FAST", "--size", "1MiB", "--owner", "1000:100"];
    assert_eq!(machine.done(&create), "The share Small was created.\n");
    let made = fs::metadata(machine.in_pool("Small")).unwrap();
    assert_eq!((made.uid(), made.gid(), made.mode() & 0o7777), (1000, 100, 0o755));
    let shown = machine.json(&["share", "show", "small"]);
    assert_eq!(
        (&shown["pool"], &shown["size"], &shown["served"]),
        (&json!("fast"), &json!(1 << 20), &json!(true))
    );
    let pool = machine.pool();
    assert_eq!(
        (&pool["name"], &pool["shares"], &pool["promised"]),
        (&json!("fast"), &json!(1), &json!(1 << 20))
    );
    assert_eq!(pool["problem"], Value::Null);
    // What is there, is limited.
    let large = path(&machine.directory, "large");
    fs::write(&large, vec![1; 2 << 20]).unwrap();
    if let Some((ok, said)) = machine.smb("small", ANNA, &format!("put {large} large")) {
        assert!(!ok && said.contains("NT_STATUS_DISK_FULL"), "{said}");
    }
    // The size is the quota of `/`: it can be changed, not removed.
    machine.done(&["quota", "set", "small", "/", "--hard", "8MiB"]);
    assert_eq!(machine.pool()["promised"], 8 << 20);
    machine.refused(&["quota", "remove", "small", "/"], &["is the size of the share Small"]);
    machine.refused(&["quota", "set", "small", "/", "--soft", "8MiB"], &["is the size of the share Small"]);
    machine.refused(
        &["quota", "set", "small", "/", "--hard", "1000TiB"],
        &["the shares of the pool fast would be"],
    );
    machine.done(&["quota", "set", "small", "/", "--hard", "4MiB"]);
    assert_eq!(machine.json(&["share", "show", "small"])["size"], 4 << 20);
}

#[test]
fn a_share_of_a_pool_gets_another_size_but_none_below_what_it_holds() {
    let test = "a_share_of_a_pool_gets_another_size_but_none_below_what_it_holds";
    let Some(mut machine) = Machine::with_pool(test, &[]) else { return };
    let one = machine.create_in_pool("one");
    fs::write(one.join("file"), vec![1; 4 << 20]).unwrap();
    machine.done(&["share", "set", "one", "--size", "128MiB"]);
    assert_eq!(machine.json(&["share", "show", "one"])["size"], 128 << 20);
    assert_eq!(machine.pool()["promised"], 128 << 20);
    machine.done(&["quota", "check", "one"]);
    until("the file is counted", || {
        machine.json(&["quota", "list", "one"])["quotas"][0]["used"].as_u64() == Some(4 << 20)
    });
    machine.refused(
        &["share", "set", "one", "--size", "2MiB"],
        &["the share one holds 4MiB, which is more than 2MiB"],
    );
    machine.done(&["share", "set", "one", "--size", "4MiB"]);
    machine.refused(&["share", "set", "one", "--size", "1000TiB"], &["the shares of the pool fast would be"]);
    machine.refused(&["share", "set", "data", "--size", "1MiB"], &["the share data is declared in"]);
    let place = machine.make_directory("place");
    machine.done(&["share", "create", "place", &place]);
    machine.refused(&["share", "set", "place", "--size", "1MiB"], &["the share place is of no pool"]);
    assert_eq!(machine.json(&["share", "show", "one"])["size"], 4 << 20);
    machine.stop();
    machine.refused(&["share", "set", "one", "--size", "8MiB"], &["only a running server"]);
}

#[test]
fn what_cannot_be_made_in_a_pool_is_refused_and_leaves_nothing() {
    let test = "what_cannot_be_made_in_a_pool_is_refused_and_leaves_nothing";
    let Some(mut machine) = Machine::with_pool(test, &[]) else { return };
    let refused = |name: &str, pool: &str, more: &[&str], words: &str| {
        machine.refused(&[&["share", "create", name, "--pool", pool][..], more].concat(), &[words]);
    };
    refused("new", "none", &["--size", "1MiB"], "there is no pool none");
    refused("new", "fast", &["--size", "0KiB"], "larger than nothing");
    refused("new", "fast", &["--size", "1000TiB"], "its file system has");
    for name in ["a/b", "..", "/", ".hidden", ""] {
        refused(name, "fast", &["--size", "1MiB"], "");
    }
    refused("data", "fast", &["--size", "1MiB"], "the name data is taken");
    // One that is refused when its directory is there already.
    machine.done(&["policy", "create", "office", "--hourly", ":05/24"]);
    refused("new", "fast", &["--size", "1MiB", "--snapshot-policy", "office"], "has no snapshots");
    let inside = path(&machine.directory, "pool/inside");
    fs::create_dir(&inside).unwrap();
    machine.refused(&["share", "create", "inside", &inside], &["lies in the pool fast"]);
    fs::remove_dir(&inside).unwrap();
    machine.refused(&["share", "create", "pool", &path(&machine.directory, "pool")], &["is the pool fast"]);
    until("nothing is left", || machine.pool_names().is_empty());
    machine.done(&["share", "create", "huge", "--pool", "loose", "--size", "1000TiB"]);
    machine.stop();
    machine
        .refused(&["share", "create", "new", "--pool", "fast", "--size", "1MiB"], &["only a running server"]);
    machine.refused(&["pool", "list"], &["only a running server"]);
}

#[test]
fn a_purged_share_of_a_pool_goes_with_its_directory() {
    let Some(machine) = Machine::with_pool("a_purged_share_of_a_pool_goes_with_its_directory", &[]) else {
        return;
    };
    let (one, other) = (machine.create_in_pool("one"), machine.create_in_pool("other"));
    for directory in [&one, &other] {
        fs::create_dir_all(directory.join("a/b")).unwrap();
        fs::write(directory.join("a/b/file"), "x").unwrap();
    }
    let said = machine.done(&["share", "remove", "one"]);
    assert!(said.contains("its directory is unchanged") && said.contains("undelete"), "{said}");
    assert_eq!(machine.deleted()[0]["pool"], "fast");
    assert_eq!((&machine.pool()["shares"], &machine.pool()["deleted_shares"]), (&json!(1), &json!(1)));
    assert_eq!(machine.pool()["promised"], 128 << 20, "it counts as long as it can be brought back");
    machine.done(&["share", "undelete", "one"]);
    assert!(one.join("a/b/file").is_file());
    machine.done(&["share", "remove", "one"]);
    // The name is free, and the directory of another one that has it has another name.
    machine.done(&["share", "create", "one", "--pool", "fast", "--size", "1MiB"]);
    let anew = machine.json(&["share", "show", "one"])["directory"].as_str().unwrap().to_owned();
    assert!(Path::new(&anew).is_dir() && anew.contains("/pool/one-"), "{anew}");
    let said = machine.done_with(&["share", "purge", "one"], "one\n");
    assert!(said.contains(&format!("The directory {} is being removed.", one.display())), "{said}");
    machine.refused(&["share", "undelete", "one"], &["there is no deleted share one"]);
    until("it is removed", || machine.pool()["removing"] == json!([]));
    assert_eq!(machine.pool_names(), [Path::new(&anew).file_name().unwrap().to_str().unwrap(), "other"]);
    assert!(other.join("a/b/file").is_file());
}

#[test]
fn without_a_retention_the_directory_stays_for_a_day() {
    let test = "without_a_retention_the_directory_stays_for_a_day";
    let Some(machine) = Machine::with_pool(test, &["--deleted-share-retention", "off"]) else { return };
    machine.create_in_pool("one");
    let place = machine.make_directory("place");
    machine.done(&["share", "create", "place", &place]);
    let said = machine.done(&["share", "remove", "one"]);
    assert!(said.contains("its directory is unchanged.\nUntil "), "{said}");
    machine.done(&["share", "remove", "place"]);
    let [deleted] = &machine.deleted()[..] else { panic!("the share of the pool alone can be brought back") };
    let day = deleted["until"].as_u64().unwrap() - deleted["deleted"].as_u64().unwrap();
    assert_eq!((deleted["name"].as_str(), day), (Some("one"), 24 * 3600));
    assert_eq!(machine.pool_names(), ["one"]);
    machine.done(&["share", "purge", "one", "--yes"]);
    until("it is removed", || machine.pool_names().is_empty());
    assert!(machine.deleted().is_empty() && Path::new(&place).is_dir());
}

#[test]
fn what_the_server_has_not_made_is_not_purged() {
    let Some(machine) = Machine::with_pool("what_the_server_has_not_made_is_not_purged", &[]) else { return };
    let (one, away) = (machine.create_in_pool("one"), machine.in_pool("away"));
    fs::write(one.join("file"), "x").unwrap();
    machine.done(&["share", "remove", "one"]);
    let refused = |words: &str| {
        machine.refused(&["share", "purge", "one", "--yes"], &["is not removed", words, "--keep-files"]);
        assert_eq!(machine.deleted().len(), 1);
    };
    fs::rename(&one, &away).unwrap();
    fs::create_dir(&one).unwrap();
    refused("not the directory that the server made");
    machine.refused(&["share", "undelete", "one"], &["not the directory that the server made"]);
    fs::remove_dir(&one).unwrap();
    symlink(&away, &one).unwrap();
    refused("not the directory that the server made");
    machine.refused(&["share", "undelete", "one"], &["not the directory that the server made"]);
    fs::remove_file(&one).unwrap();
    fs::rename(&away, &one).unwrap();
    // A mark that is gone.
    let mark = "trusted.anabranch.pool-directory";
    let mut value = [0; 64];
    let count = rustix::fs::getxattr(&one, mark, &mut value).unwrap();
    rustix::fs::removexattr(&one, mark).unwrap();
    refused("not the directory that the server made");
    rustix::fs::setxattr(&one, mark, &value[..count], rustix::fs::XattrFlags::empty()).unwrap();
    // Something that is mounted.
    let mounted = one.join("mounted");
    fs::create_dir(&mounted).unwrap();
    let mount = Command::new("mount").args(["-t", "tmpfs", "none"]).arg(&mounted).status().unwrap();
    if mount.success() {
        fs::write(mounted.join("file"), "x").unwrap();
        refused("another file system is mounted in it");
        assert!(mounted.join("file").is_file());
        assert!(Command::new("umount").arg(&mounted).status().unwrap().success());
    } else {
        needs::not_tested("what_the_server_has_not_made_is_not_purged: no right to mount");
    }
    // Whoever wants to keep the files can have the share forgotten.
    let said = machine.done(&["share", "purge", "one", "--yes", "--keep-files"]);
    assert!(said.contains("is unchanged") && machine.deleted().is_empty(), "{said}");
    assert!(one.join("file").is_file());
}

#[test]
fn a_server_killed_while_it_removes_goes_on() {
    let Some(mut machine) = Machine::with_pool("a_server_killed_while_it_removes_goes_on", &[]) else {
        return;
    };
    let kept = machine.create_in_pool("kept");
    fs::write(kept.join("file"), "x").unwrap();
    for turn in 0..6 {
        let one = machine.create_in_pool("one");
        for number in 0..4000 {
            let below = one.join(format!("{}", number % 40));
            fs::create_dir_all(&below).unwrap();
            fs::write(below.join(format!("{number}")), "x").unwrap();
        }
        machine.done(&["share", "remove", "one"]);
        let state = path(&machine.directory, "state");
        let mut purge = program(&["share", "purge", "one", "--yes", "--state", &state])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(random(150)));
        machine.kill();
        purge.wait().unwrap();
        // Either it was not begun, or nobody can bring the share back.
        machine.serve_pool(&[]);
        if let [deleted] = &machine.deleted()[..] {
            assert_eq!(deleted["name"], "one", "turn {turn}");
            assert!(one.join("39/3999").is_file(), "turn {turn}: nothing is removed before it is said to be");
            machine.done(&["share", "purge", "one", "--yes"]);
        }
        until("it is removed", || machine.pool_names() == ["kept"]);
        until("and forgotten", || machine.pool()["removing"] == json!([]));
    }
    assert!(kept.join("file").is_file());
    assert_eq!(machine.json(&["share", "show", "kept"])["served"], true);
}

#[test]
fn a_server_killed_while_it_makes_a_share_has_it_or_nothing() {
    let test = "a_server_killed_while_it_makes_a_share_has_it_or_nothing";
    let Some(mut machine) = Machine::with_pool(test, &[]) else { return };
    let state = path(&machine.directory, "state");
    let mut made = 0;
    for turn in 0..12_u32 {
        let name = format!("share-{turn}");
        let create = ["share", "create", &name, "--pool", "fast", "--size", "1MiB", "--state", &state];
        let mut create = program(&create).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(random(60)));
        machine.kill();
        let _ = create.wait().unwrap();
        machine.serve_pool(&[]);
        let names: Vec<String> =
            machine.names().into_iter().filter(|name| name.starts_with("share-")).collect();
        until("what belongs to no share is removed", || machine.pool_names() == names);
        for name in &names {
            assert_eq!(machine.json(&["share", "show", name])["served"], true, "turn {turn}");
        }
        assert!(names.len() >= made, "turn {turn}");
        made = names.len();
        assert_eq!(machine.pool()["promised"], made << 20);
    }
}

#[test]
fn a_pool_that_vanished_loses_nothing() {
    let Some(mut machine) = Machine::with_pool("a_pool_that_vanished_loses_nothing", &[]) else { return };
    let one = machine.create_in_pool("one");
    machine.create_in_pool("old");
    fs::write(one.join("file"), "x").unwrap();
    machine.done(&["share", "remove", "old"]);
    machine.stop();
    let (pool, away) = (path(&machine.directory, "pool"), path(&machine.directory, "away"));
    fs::rename(&pool, &away).unwrap();
    for (is_empty, words) in
        [(false, "there is no such directory"), (true, "perhaps its file system is not mounted")]
    {
        if is_empty {
            // What a mount point is when nothing is mounted, and somebody makes the directory again.
            fs::create_dir_all(&one).unwrap();
        }
        machine.serve_pool(&[]);
        let shown = machine.json(&["share", "show", "one"]);
        assert!(shown["problem"].as_str().unwrap().contains(words), "{shown}");
        assert_eq!(machine.json(&["share", "show", "data"])["served"], true, "all else is served");
        assert!(machine.pool()["problem"].as_str().unwrap().contains(words));
        machine.refused(&["share", "create", "new", "--pool", "fast", "--size", "1MiB"], &[words]);
        machine.refused(&["share", "purge", "old", "--yes"], &["is not removed", words]);
        assert_eq!(machine.deleted().len(), 1);
        machine.stop();
    }
    fs::remove_dir_all(&pool).unwrap();
    machine.serve_pool(&[]);
    fs::rename(&away, &pool).unwrap();
    machine.done(&["reload"]);
    assert_eq!(machine.json(&["share", "show", "one"])["served"], true);
    assert!(one.join("file").is_file());
    machine.done(&["share", "undelete", "old"]);
}

#[test]
fn pools_come_and_go_with_the_configuration() {
    let Some(machine) = Machine::with_pool("pools_come_and_go_with_the_configuration", &[]) else { return };
    let one = machine.create_in_pool("one");
    let config = path(&machine.directory, "pools.toml");
    let declare = |pools: &[(&str, &str)]| {
        let table = |(name, at): &(&str, &str)| {
            format!("[[pool]]\nname = \"{name}\"\ndirectory = \"{}\"\n", path(&machine.directory, at))
        };
        fs::write(&config, pools.iter().map(table).collect::<String>()).unwrap();
    };
    machine.make_directory("more");
    declare(&[("more", "more")]);
    machine.done(&["reload"]);
    let pools = machine.json(&["pool", "list"])["pools"].clone();
    let of = |at: usize, key: &str| pools[at][key].clone();
    assert_eq!(
        (of(0, "name"), of(0, "shares"), of(0, "declared_in")),
        (json!("fast"), json!(1), Value::Null)
    );
    assert_eq!((of(1, "name"), of(1, "problem")), (json!("more"), Value::Null));
    assert!(machine.done(&["config", "show"]).contains("[[pool]]\nname = \"more\""));
    machine
        .refused(&["share", "create", "new", "--pool", "fast", "--size", "1MiB"], &["there is no pool fast"]);
    assert_eq!(machine.json(&["share", "show", "one"])["served"], true);
    // What a start would refuse, a reload refuses.
    for (pools, words) in [
        (&[("more", "more"), ("below", "more/below")][..], "lies in the pool more"),
        (&[("own", "state")], "is the state directory"),
        (&[("all", "")], "holds the state directory"),
        (&[("a", "data/pool")], "lies in the directory of the share data"),
    ] {
        declare(pools);
        machine.refused(&["reload"], &["the configuration is unchanged", words]);
    }
    // Of two shares, one is in the way: it is served, and the pool says so.
    let place = machine.make_directory("place");
    machine.done(&["share", "create", "place", &place]);
    declare(&[("late", "place")]);
    machine.done(&["reload"]);
    let late = machine.json(&["pool", "list"])["pools"][1].clone();
    assert!(late["problem"].as_str().unwrap().contains("is the directory of the share place"), "{late}");
    assert_eq!(machine.json(&["share", "show", "place"])["served"], true);
    // Without its pool, a share is purged all the same.
    machine.done(&["share", "remove", "one"]);
    machine.done(&["share", "purge", "one", "--yes"]);
    until("it is removed", || !one.exists() && machine.pool_names().is_empty());
}

#[test]
fn on_btrfs_a_share_of_a_pool_has_snapshots_which_go_with_it() {
    let test = "on_btrfs_a_share_of_a_pool_has_snapshots_which_go_with_it";
    let mut machine = Machine::new();
    let (image, pool) = (machine.directory.path().join("image"), machine.directory.path().join("pool"));
    let Some(_disk) = Disk::mount_btrfs(&image, &pool) else { return needs::not_tested(test) };
    machine.serve_pool(&[]);
    let one = machine.create_in_pool("one");
    fs::write(one.join("file"), "first").unwrap();
    machine.done(&["snapshot", "create", "one", "--label", "first"]);
    fs::write(one.join("file"), "second").unwrap();
    machine.done(&["snapshot", "create", "one", "--label", "second"]);
    let names = machine.json(&["snapshot", "list", "one"])["snapshots"].clone();
    let name = |at: usize| names[at]["name"].as_str().unwrap().to_owned();
    // After it went back to a snapshot, it is still what the server made.
    let first = if name(0).contains("first") { name(0) } else { name(1) };
    machine.done(&["share", "revert", "one", "--to", &first]);
    assert_eq!(fs::read_to_string(one.join("file")).unwrap(), "first");
    machine.done(&["share", "remove", "one"]);
    machine.done(&["share", "undelete", "one"]);
    let kept = machine.create_in_pool("kept");
    machine.done(&["snapshot", "create", "kept", "--label", "kept", "--protect-for", "1d"]);
    for name in ["one", "kept"] {
        machine.done(&["share", "remove", name]);
    }
    machine.refused(&["share", "purge", "kept", "--yes"], &["which is protected until"]);
    machine.done(&["share", "purge", "one", "--yes"]);
    until("it is removed", || machine.pool_names() == ["kept"]);
    assert!(kept.join(".anabranch-snapshots").is_dir());
    machine.stop();
}

#[test]
fn a_pool_that_was_renamed_has_its_shares() {
    let Some(mut machine) = Machine::with_pool("a_pool_that_was_renamed_has_its_shares", &[]) else {
        return;
    };
    for name in ["one", "two"] {
        machine.create_in_pool(name);
    }
    machine.done(&["share", "remove", "two"]);
    machine.stop();
    machine.serve_pool_named("quick", &[]);
    let pools = machine.json(&["pool", "list"])["pools"].as_array().unwrap().clone();
    let names: Vec<_> = pools.iter().map(|pool| pool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["loose", "quick"]);
    let (quick, size) = (&pools[1], 64 << 20);
    assert_eq!(
        (&quick["shares"], &quick["deleted_shares"], &quick["promised"], &quick["problem"]),
        (&json!(1), &json!(1), &json!(2 * size), &Value::Null)
    );
    assert_eq!(machine.json(&["share", "show", "one"])["pool"], "quick");
    assert_eq!(machine.deleted()[0]["pool"], "quick");
    machine.refused(&["quota", "set", "one", "/", "--hard", "1000TiB"], &["the shares of the pool quick"]);
    machine.done(&["share", "create", "three", "--pool", "quick", "--size", "64MiB"]);
    // Each goes with its directory, whatever the pool was called when it was made.
    machine.done(&["share", "remove", "one"]);
    machine.done(&["share", "purge", "one", "--yes"]);
    machine.done(&["share", "purge", "two", "--yes"]);
    until("the directories go", || machine.pool_names() == ["three"]);
}

#[test]
fn what_was_restored_from_a_backup_comes_back_by_command() {
    let Some(mut machine) = Machine::with_pool("what_was_restored_from_a_backup_comes_back_by_command", &[])
    else {
        return;
    };
    for name in ["one", "two"] {
        fs::write(machine.create_in_pool(name).join("file"), name).unwrap();
    }
    machine.stop();
    // Everything is restored on a new disk, without the marks.
    fs::rename(machine.in_pool(""), machine.directory.path().join("lost")).unwrap();
    for name in ["one", "two"] {
        fs::create_dir_all(machine.in_pool(name)).unwrap();
        fs::write(machine.in_pool(name).join("file"), name).unwrap();
    }
    machine.serve_pool(&[]);
    assert_eq!(machine.json(&["share", "show", "one"])["served"], false);
    let back = ["share", "undelete", "one", "--restored"];
    machine.refused(&back, &["there is no deleted share one"]);
    machine.done(&["share", "remove", "one"]);
    machine.refused(&["share", "undelete", "one"], &["cannot be served", "share undelete NAME --restored"]);
    machine.refused(&["share", "purge", "one", "--yes"], &["is not removed"]);
    // What is not there is not restored.
    fs::rename(machine.in_pool("one"), machine.in_pool("elsewhere")).unwrap();
    machine.refused(&back, &["/one does not exist"]);
    symlink(machine.in_pool("elsewhere"), machine.in_pool("one")).unwrap();
    machine.refused(&back, &["is not taken for a restored one: it is no directory"]);
    fs::remove_file(machine.in_pool("one")).unwrap();
    fs::rename(machine.in_pool("elsewhere"), machine.in_pool("one")).unwrap();
    assert_eq!(machine.done(&back), "The share one is back.\n");
    assert_eq!(machine.json(&["share", "show", "one"])["served"], true);
    assert_eq!(fs::read(machine.in_pool("one").join("file")).unwrap(), b"one");
    // The pool is known again, so the others are served.
    machine.stop();
    machine.serve_pool(&[]);
    assert_eq!(machine.json(&["share", "show", "two"])["served"], true);
    assert_eq!(machine.pool()["problem"], Value::Null);
    // From now on the directory goes with its share, as any other of the pool, and nobody else's does.
    machine.done(&["share", "remove", "one"]);
    machine.done(&["share", "purge", "one", "--yes"]);
    until("it is removed", || machine.pool_names() == ["two"]);
    machine.done(&["share", "remove", "two"]);
    machine.refused(&["share", "purge", "two", "--yes"], &["not the directory that the server made"]);
    let place = machine.make_directory("place");
    machine.done(&["share", "create", "place", &place]);
    machine.done(&["share", "remove", "place"]);
    machine.refused(&["share", "undelete", "place", "--restored"], &["is of no pool"]);
}
