//! Shares that are removed, and are brought back.

use std::process::Stdio;
use std::time::Duration;

use serde_json::json;

use super::Machine;
use crate::server::{path, program};

const ANNA: &str = "anna%hush-hush";

impl Machine {
    pub(super) fn deleted(&self) -> Vec<serde_json::Value> {
        self.json(&["share", "list", "--deleted"])["shares"].as_array().unwrap().clone()
    }
}

/// What a share is, without what is going on in it.
fn settings(machine: &Machine, name: &str) -> serde_json::Value {
    let mut shown = machine.json(&["share", "show", name]);
    shown.as_object_mut().unwrap().remove("activity");
    shown
}

#[test]
fn a_removed_share_is_gone_for_clients_and_comes_back_as_it_was() {
    let mut machine = Machine::serving();
    let place = machine.make_directory("place");
    let create = ["share", "create", "Place", &place, "--comment", "What we do", "--plan", "custom iops=500"];
    machine.done(&create);
    machine.done(&["quota", "set", "place", "*", "--hard", "1GiB"]);
    for no_path in ["/a hard=1GiB", "/a "] {
        machine.refused(&["quota", "set", "place", no_path, "--soft", "512MiB"], &["cannot be kept"]);
    }
    if let Some((ok, said)) = machine.smb("place", ANNA, "put /etc/passwd kept") {
        assert!(ok, "{said}");
    }
    let before = settings(&machine, "place");

    let said = machine.done(&["share", "remove", "place"]);
    assert!(said.contains("`anabranch share undelete Place` brings it back"), "{said}");
    if let Some((ok, said)) = machine.smb("place", ANNA, "ls") {
        assert!(!ok && said.contains("NT_STATUS_BAD_NETWORK_NAME"), "{said}");
    }
    assert!(!machine.exports().contains("/Place"));
    // The name is free, and the deleted share is still there after a restart.
    let other = machine.make_directory("other");
    machine.done(&["share", "create", "place", &other]);
    machine.stop();
    machine.start(&[]);
    let deleted = machine.deleted();
    assert_eq!(
        (deleted.len(), &deleted[0]["name"], &deleted[0]["directory"]),
        (1, &json!("Place"), &json!(place))
    );
    assert!(machine.done(&["share", "list", "--deleted"]).contains("custom iops=500"));
    machine.refused(&["share", "undelete", "place"], &["the name Place is taken", "--as NEW"]);
    machine.refused(&["share", "undelete", "none"], &["there is no deleted share none"]);

    assert_eq!(machine.done(&["share", "undelete", "place", "--as", "old"]), "The share old is back.\n");
    if let Some((ok, said)) = machine.smb("old", ANNA, "ls") {
        assert!(ok && said.contains(" kept "), "{said}");
    }
    let mut back = settings(&machine, "old");
    back["name"] = json!("Place");
    assert_eq!(back, before);
    assert_eq!(machine.json(&["quota", "list", "old"])["quotas"][0]["hard"], 1 << 30);
    assert_eq!(machine.deleted(), Vec::<serde_json::Value>::new());
}

#[test]
fn a_purge_asks_for_the_name_and_leaves_the_directory() {
    let machine = Machine::serving();
    let place = machine.make_directory("place");
    for _ in 0..2 {
        machine.done(&["share", "create", "place", &place]);
        machine.done(&["share", "remove", "place"]);
    }
    let ids: Vec<String> = machine.deleted().iter().map(|share| share["id"].to_string()).collect();
    machine.refused(&["share", "purge", "place", "--yes"], &["several deleted shares", "--id"]);
    let purge = ["share", "purge", "place", "--id", &ids[0]];
    machine.refused_with(&purge, "data\n", &["nothing was purged"]);
    machine.refused_with(&purge, "", &["nothing was purged"]);
    let said = machine.done_with(&purge, "place\n");
    assert!(said.contains(&format!("The directory {place} is unchanged.")), "{said}");
    machine.done(&["share", "purge", "place", "--yes"]);
    assert!(machine.deleted().is_empty() && std::path::Path::new(&place).is_dir());
}

#[test]
fn without_a_retention_nothing_comes_back() {
    let mut machine = Machine::new();
    machine.start(&["--deleted-share-retention", "off"]);
    let place = machine.make_directory("place");
    machine.done(&["share", "create", "place", &place]);
    let said = machine.done(&["share", "remove", "place"]);
    assert_eq!(said, "The share place was removed; its directory is unchanged.\n");
    assert!(machine.deleted().is_empty());
}

/// Ends a command that is under way by killing the server after so long. Whether the command was told that it was done.
fn kill_under(machine: &mut Machine, command: &str, after: Duration) -> bool {
    let state = path(&machine.directory, "state");
    let mut asked = program(&["share", command, "place"]);
    let mut asked =
        asked.args(["--state", &state]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(after);
    machine.server.take().unwrap().end_with("KILL");
    asked.wait().unwrap().success()
}

#[test]
fn a_server_killed_meanwhile_has_the_share_or_the_deleted_share() {
    let mut machine = Machine::serving();
    let place = machine.make_directory("place");
    machine.done(&["share", "create", "place", &place]);
    // Kills come closer and closer to the moment at which it is done, from both sides.
    let (mut after, mut early, mut late) = (Duration::from_millis(20), 0, 0);
    let mut is_there = true;
    for turn in 0.. {
        if early >= 4 && late >= 4 {
            break;
        }
        assert!(turn < 100, "{early} kills were early and {late} late");
        let command = if is_there { "remove" } else { "undelete" };
        let is_done = kill_under(&mut machine, command, after);
        machine.start(&[]);
        let was_there = std::mem::replace(&mut is_there, machine.names().contains(&"place".to_owned()));
        if is_done {
            assert_ne!(is_there, was_there, "turn {turn}: {command} was done, and is not");
            (late, after) = (late + 1, after * 3 / 4);
        } else {
            (early, after) = (early + 1, after * 3 / 2 + Duration::from_millis(1));
        }
        let deleted = machine.deleted();
        assert_eq!(deleted.len(), usize::from(!is_there), "turn {turn}: {command}");
        assert!(deleted.iter().all(|share| share["directory"] == place), "turn {turn}: {deleted:?}");
        if is_there {
            let share = machine.json(&["share", "show", "place"]);
            assert_eq!((&share["served"], &share["directory"]), (&json!(true), &json!(place)), "turn {turn}");
        }
    }
}
