//! `anabranch snapshot`: snapshots of a share on Btrfs.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::json;

use crate::server::path;
use crate::subvolume::{Machine, btrfs, text};

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

#[test]
fn snapshots_are_taken_listed_and_removed() {
    let Some(machine) = Machine::serving() else { return };
    assert_eq!(machine.names(), Vec::<String>::new());
    let first = machine.json(&["snapshot", "create", "live"]);
    let name = text(&first["name"]);
    assert!(name.starts_with("anabranch.manual.") && first["own"] == true, "{first}");
    assert_eq!((&first["policy"], &first["protected_until"]), (&json!(null), &json!(null)));
    std::fs::write(machine.at("live/file"), "second").unwrap();
    let kept = machine.at(&format!("live/.anabranch-snapshots/{name}/file"));
    assert_eq!(std::fs::read_to_string(kept).unwrap(), "first");

    // In one second: each has a second of its own.
    let more: Vec<_> =
        ["a", "b", "c"].map(|label| machine.json(&["snapshot", "create", "LIVE", "--label", label])).into();
    let mut seconds: Vec<i64> =
        more.iter().chain([&first]).map(|taken| taken["taken"].as_i64().unwrap()).collect();
    seconds.sort_unstable();
    seconds.dedup();
    assert_eq!(seconds.len(), 4);

    btrfs(&["subvolume", "snapshot", "-r"], &[&machine.at("live"), &machine.at("theirs")]);
    let listed = machine.done(&["snapshot", "list", "live"]);
    assert!(
        listed.contains("theirs") && listed.contains("  others\n") && listed.contains("  command\n"),
        "{listed}"
    );
    assert_eq!(machine.snapshots("live").len(), 5);
    let shown = machine.done(&["share", "show", "live"]);
    assert!(shown.contains("snapshots  5, the newest of 2"), "{shown}");

    let said = machine.done(&["snapshot", "remove", "live", &name]);
    assert_eq!(said, format!("The snapshot {name} was removed.\n"));
    assert!(!machine.names().contains(&name));
    machine.refused(&["snapshot", "remove", "live", &name], &["has no snapshot"]);
    machine.refused(&["snapshot", "remove", "live", "theirs"], &["another program made"]);
    machine
        .refused(&["snapshot", "protect", "live", "theirs", "--until", "2030-01-01"], &["another program"]);
    assert!(machine.at("theirs/file").exists());
}

#[test]
fn what_cannot_be_a_snapshot_is_refused() {
    let Some(machine) = Machine::serving() else { return };
    for label in ["a.b", "", "hourly-office", "before-revert", "../x"] {
        machine.refused(&["snapshot", "create", "live", "--label", label], &["label"]);
    }
    machine.refused(&["snapshot", "create", "live", "--protected-until", "2020-01-01"], &["is in the past"]);
    machine.refused(&["snapshot", "create", "live", "--protect-for", "9999d"], &["ten years"]);
    machine.refused(&["snapshot", "list", "nothing"], &["no share nothing is served"]);
    assert_eq!(machine.names(), Vec::<String>::new());
    for of_data in [vec!["snapshot", "list", "data"], vec!["snapshot", "create", "data"]] {
        machine.refused(&of_data, &["the share data has no snapshots", "they need Btrfs"]);
    }
    let shown = machine.done(&["share", "show", "data"]);
    assert!(shown.contains("snapshots  none: the file system has no snapshots: they need Btrfs"), "{shown}");
}

#[test]
fn a_protected_snapshot_stays_whoever_asks_and_under_whatever_name() {
    let Some(mut machine) = Machine::serving() else { return };
    let taken = machine.json(&["snapshot", "create", "live", "--protect-for", "1h"]);
    let (name, until) = (text(&taken["name"]), taken["protected_until"].as_u64().unwrap());
    assert!(until > now() + 3500 && until <= now() + 3600);
    machine.refused(&["snapshot", "remove", "live", &name], &["is protected until", "Nobody can remove it"]);
    let sooner = "2026-01-01T00:00:00Z";
    machine.refused(&["snapshot", "protect", "live", &name, "--until", sooner], &["is in the past"]);
    machine.done(&["snapshot", "protect", "live", &name, "--until", "2030-01-01"]);
    machine.refused(&["snapshot", "protect", "live", &name, "--until", "2029-12-31"], &["only be extended"]);

    // The same directory as another share, after a restart.
    machine.stop();
    machine.start(&[]);
    machine.refused(&["snapshot", "remove", "live", &name], &["is protected until 2030-01-01T00:00:00Z"]);
    machine.stop();
    let top = machine.at("live").display().to_string();
    let mut flags = crate::server::flags(&machine.directory);
    flags.extend(["--share".to_owned(), format!("renamed={top}")]);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    machine.server = Some(crate::server::Server::start(&flags));
    machine.refused(&["snapshot", "remove", "renamed", &name], &["is protected until 2030-01-01T00:00:00Z"]);
    assert_eq!(machine.snapshots("renamed").len(), 1);
}

#[test]
fn a_protection_is_that_of_one_snapshot_and_not_of_a_name_or_a_path() {
    let Some(mut machine) = Machine::serving() else { return };
    let take = |machine: &Machine| {
        text(&machine.json(&["snapshot", "create", "live", "--protected-until", "2030-01-01"])["name"])
    };
    let (renamed, again) = (take(&machine), take(&machine));
    let at = |machine: &Machine, name: &str| machine.at(&format!("live/.anabranch-snapshots/{name}"));
    // Another program renames one, and makes another one in the place of the other.
    let other = "anabranch.manual.2026-01-01T00:00:00Z";
    std::fs::rename(at(&machine, &renamed), at(&machine, other)).unwrap();
    btrfs(&["subvolume", "delete"], &[&at(&machine, &again)]);
    btrfs(&["subvolume", "snapshot", "-r"], &[&machine.at("live"), &at(&machine, &again)]);
    machine.refused(&["snapshot", "remove", "live", other], &["is protected until 2030-01-01T00:00:00Z"]);
    let of_again = machine.snapshots("live").into_iter().find(|one| one["name"] == again.as_str()).unwrap();
    assert_eq!(of_again["protected_until"], json!(null), "it is not the one that was protected");
    machine.done(&["snapshot", "remove", "live", &again]);
    machine.stop();
    std::fs::rename(machine.at("live"), machine.at("moved")).unwrap();
    let mut flags = crate::server::flags(&machine.directory);
    flags.extend(["--share".to_owned(), format!("live={}", machine.at("moved").display())]);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    machine.start_with(&flags);
    machine.refused(&["snapshot", "remove", "live", other], &["is protected until 2030-01-01T00:00:00Z"]);
    machine.refused(&["snapshot", "protect", "live", other, "--until", "2029-12-31"], &["only be extended"]);
}

#[test]
fn a_protection_ends_by_itself() {
    let Some(machine) = Machine::serving() else { return };
    let taken = machine.json(&["snapshot", "create", "live", "--protect-for", "2s"]);
    let (name, until) = (text(&taken["name"]), taken["protected_until"].as_u64().unwrap());
    let deadline = Instant::now() + Duration::from_secs(60);
    while now() < until {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(50));
    }
    machine.done(&["snapshot", "remove", "live", &name]);
}

/// Writes until there is no space left: large files first, then small ones.
fn fill(machine: &Machine) {
    for bytes in [4 << 20, 64 << 10, 4 << 10, 1] {
        let is_written = |n: &u32| {
            let file = machine.at(&format!("fill-{bytes}-{n}"));
            std::fs::write(&file, vec![7; bytes]).and_then(|()| std::fs::File::open(file)?.sync_all()).is_ok()
        };
        let written = (0..10_000_u32).take_while(is_written).count();
        assert!(written < 10_000);
    }
}

#[test]
fn a_full_file_system_is_told_and_has_no_half_snapshot() {
    let Some(machine) = Machine::serving() else { return };
    let before = machine.names();
    fill(&machine);
    let output = crate::server::program(&["snapshot", "create", "live", "--state"])
        .arg(path(&machine.directory, "state"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    // Btrfs keeps some space for such calls, and may have enough of it.
    if output.status.success() {
        assert_eq!(machine.names().len(), before.len() + 1);
    } else {
        assert!(said.contains("is full"), "{said}");
        assert_eq!(machine.names(), before);
    }
}

#[test]
fn a_server_killed_while_it_takes_snapshots_starts_with_whole_ones() {
    let Some(mut machine) = Machine::serving() else { return };
    for _ in 0..3 {
        let state = path(&machine.directory, "state");
        let mut taking: Vec<_> = (0..4)
            .map(|_| {
                crate::server::program(&["snapshot", "create", "live", "--state", &state])
                    .stderr(std::process::Stdio::null())
                    .stdout(std::process::Stdio::null())
                    .spawn()
                    .unwrap()
            })
            .collect();
        drop(machine.server.take()); // SIGKILL
        for command in &mut taking {
            command.wait().unwrap();
        }
        machine.start(&[]);
        for name in machine.names() {
            let kept = machine.at(&format!("live/.anabranch-snapshots/{name}/file"));
            assert_eq!(std::fs::read_to_string(kept).unwrap(), "first", "{name}");
        }
    }
    let name = text(&machine.json(&["snapshot", "create", "live"])["name"]);
    assert!(machine.names().contains(&name));
}
