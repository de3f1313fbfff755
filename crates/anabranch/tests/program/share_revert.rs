//! `anabranch share revert`: a share on Btrfs goes back to a snapshot while clients use it.

use std::process::{Command, Stdio};

use crate::connected::Connected;
use crate::nfs::{Nfs, Status};
use crate::server::{path, program};
use crate::subvolume::{Machine, text};

const ROOT: (u32, u32) = (0, 0);
/// NFS3ERR_STALE
const STALE: Status = Status(70);

fn content(machine: &Machine) -> String {
    std::fs::read_to_string(machine.at("live/file")).unwrap()
}

#[test]
fn a_share_goes_back_and_forth_and_its_clients_come_again() {
    let Some(machine) = Machine::serving() else { return };
    let first = text(&machine.json(&["snapshot", "create", "live", "--protect-for", "1h"])["name"]);
    std::fs::write(machine.at("live/file"), "second").unwrap();
    std::fs::write(machine.at("live/new"), "").unwrap();
    let server = machine.server.as_ref().unwrap();
    let mut client = Nfs::connect(server.address("nfs"));
    let root = client.mount(ROOT, "/live").unwrap();
    let file = client.lookup(ROOT, &root, "file").unwrap();
    assert_eq!(client.look(ROOT, &file), Status::OK);

    let said = machine.done(&["share", "revert", "live", "--to", &first]);
    assert!(said.starts_with(&format!("The share live is what it was in {first}.\n")), "{said}");
    let before = said.trim_end().trim_end_matches('.').rsplit(' ').next().unwrap();
    assert!(before.starts_with("anabranch.before-revert."), "{said}");
    assert_eq!(content(&machine), "first");
    for handle in [&root, &file] {
        assert_eq!(client.look(ROOT, handle), STALE);
    }
    let root = client.mount(ROOT, "/live").unwrap();
    assert_eq!(client.lookup(ROOT, &root, "new").unwrap_err(), Status::NOENT);
    if let Some(smb) = Connected::start(server, "live", "anna%hush-hush") {
        let listed = smb.say("ls");
        assert!(listed.contains(" file ") && !listed.contains(" new "), "{listed}");
    }

    // The snapshots are all there, protected as before, and reverting to `before-revert` takes the share forward again.
    assert_eq!(machine.names().len(), 2);
    machine.refused(&["snapshot", "remove", "live", &first], &["is protected until"]);
    machine.done(&["share", "revert", "live", "--to", before]);
    assert_eq!(content(&machine), "second");
    assert!(machine.at("live/new").exists());
    assert_eq!(machine.names().len(), 3);
    machine.done(&["snapshot", "remove", "live", before]);
    assert!(machine.json(&["share", "show", "live"])["served"] == true);
}

#[test]
fn a_share_that_cannot_go_back_keeps_what_it_holds() {
    let Some(mut machine) = Machine::serving() else { return };
    std::fs::write(machine.at("live/file"), "second").unwrap();
    machine.refused(&["share", "revert", "live", "--to", "none"], &["has no snapshot none"]);
    machine.refused(&["share", "revert", "data", "--to", "none"], &["the share data has no snapshots"]);
    machine.refused(&["share", "revert", "nothing", "--to", "none"], &["no share nothing is served"]);
    // Something of another program has the name that the copy needs, so it cannot even be opened again.
    let name = text(&machine.json(&["snapshot", "create", "live"])["name"]);
    let number = Command::new("btrfs").args(["inspect-internal", "rootid"]).arg(machine.at("live")).output();
    let number = String::from_utf8(number.unwrap().stdout).unwrap();
    let beside = machine.at(&format!(".anabranch-revert-{}", number.trim()));
    std::fs::create_dir(&beside).unwrap();
    let words = ["the snapshots of the share live", "and now the share is not served"];
    machine.refused(&["share", "revert", "live", "--to", &name], &words);
    let shown = machine.json(&["share", "show", "live"]);
    assert!(shown["served"] == false && text(&shown["problem"]).contains("cannot serve"), "{shown}");
    machine.stop();
    std::fs::remove_dir(&beside).unwrap();
    machine.start(&[]);
    assert_eq!(content(&machine), "second");
    machine.done(&["share", "revert", "live", "--to", &name]);
}

#[test]
fn a_server_killed_meanwhile_serves_the_one_state_or_the_other() {
    let Some(mut machine) = Machine::serving() else { return };
    let first = text(&machine.json(&["snapshot", "create", "live"])["name"]);
    for delay in [0, 5, 10, 20, 40, 80] {
        std::fs::write(machine.at("live/file"), "second").unwrap();
        let mut command = program(&["share", "revert", "live", "--to", &first, "--state"])
            .arg(path(&machine.directory, "state"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(delay));
        drop(machine.server.take()); // SIGKILL
        command.wait().unwrap();
        machine.start(&[]);
        let now = content(&machine);
        assert!(["first", "second"].contains(&now.as_str()), "{now}");
        let names = machine.names();
        assert!(names.contains(&first), "{names:?}");
        assert!(machine.json(&["share", "show", "live"])["served"] == true);
        let beside = Command::new("ls").arg("-A").arg(machine.at("")).output().unwrap();
        let beside = String::from_utf8(beside.stdout).unwrap();
        assert!(!beside.contains(".anabranch-revert-"), "{beside}");
    }
}
