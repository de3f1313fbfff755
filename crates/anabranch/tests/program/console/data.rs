//! The pages on what shares hold: snapshots, quotas, replicas, shares that were deleted, and the form for shares of pools.

use std::fs;

use super::{Console, ENTER, ESCAPE, Machine, PHONE, TAB, WIDE};
use crate::needs;
use crate::server::path;
use crate::subvolume;

/// The control address of a machine on Btrfs, and a token for everything.
fn address_and_token(machine: &subvolume::Machine) -> (String, String) {
    let address = machine.server.as_ref().unwrap().address("control");
    let token = fs::read_to_string(machine.directory.path().join("state/control-token")).unwrap();
    (format!("http://{address}/"), token.trim().to_owned())
}

#[test]
fn a_snapshot_is_taken_and_a_directory_restored_from_it() {
    let Some(on_btrfs) = subvolume::Machine::serving() else { return };
    fs::create_dir(on_btrfs.at("live/docs")).unwrap();
    fs::write(on_btrfs.at("live/docs/a"), "then").unwrap();
    let (url, token) = address_and_token(&on_btrfs);
    let mut console = Console::open_at(&url, WIDE, "en-US");
    console.sign_in(&token);
    console.go("shares/live", "live");
    console.wait_for_text("#content a", "Snapshots");
    console.go("shares/live/snapshots", "Snapshots of live");
    console.wait_for_text("#content", "There are no snapshots yet.");
    console.click("#content", "Take a snapshot");
    console.fill("label", "before");
    console.click("dialog", "Take a snapshot");
    console.wait_for_text("#messages", "was taken.");
    console.wait_for_text("#content tbody", "anabranch.before.");
    console.check_that_it_fits("the snapshots", WIDE);
    fs::remove_dir_all(on_btrfs.at("live/docs")).unwrap();
    console.click("#content tbody", "Restore \u{2026}");
    console.fill("path", "none");
    console.click("dialog", "Restore");
    console.wait_for_text("dialog .problem", "has no /none");
    console.fill("path", "docs");
    console.click("dialog", "Restore");
    console.wait_for_text("section[aria-label='Last restore']", "done");
    assert_eq!(fs::read_to_string(on_btrfs.at("live/docs/a")).unwrap(), "then");
    go_back_and_clone(&mut console, &on_btrfs);
    console.go("shares/data/snapshots", "Snapshots of data");
    console.wait_for_text("#content .problem", "The share data has no snapshots.");
    console.check_that_all_is_well();
}

#[test]
fn quotas_are_set_changed_and_removed() {
    let machine = Machine::start();
    machine.run(&["share", "create", "projects", &path(&machine.directory, "projects")]);
    let token = machine.token("admin", "all");
    let mut console = Console::open(&machine, WIDE, "en-US");
    console.sign_in(&token);
    console.go("shares/projects", "projects");
    console.wait_for_text("#content a", "Quotas");
    console.go("shares/projects/quotas", "Quotas of projects");
    console.wait_for_text("#content", "The share has no quotas.");
    console.click("#content", "Add a quota");
    console.fill("subject", "/a b");
    console.click("dialog", "Set");
    console.wait_for_text("dialog .problem", "a quota needs a soft or a hard limit");
    console.fill("soft", "512 MiB");
    console.fill("hard", "2 GB");
    console.click("dialog", "Set");
    console.wait_for_text("dialog .problem", "\u{201c}2 GB\u{201d} is no size");
    console.fill("hard", "2 GiB");
    console.browser.press(&console.page, ENTER);
    console.wait_for_text("#messages", "The quota of /a b was set.");
    console.wait_for_text("#content tbody", "2 GiB");
    console.wait_for_text("#content", "All files were last counted at");
    console.check_that_it_fits("the quotas", WIDE);
    console.click("#content tbody", "Change");
    assert_eq!([console.filled("soft"), console.filled("hard")], ["512 MiB", "2 GiB"]);
    console.fill("soft", "");
    console.fill("hard", "3 TiB");
    console.click("dialog", "Set");
    console.wait_for_text("#content tbody", "3 TiB");
    let told = machine.run(&["quota", "show", "projects", "/a b", "--json"]);
    assert!(
        told.contains("\"soft\": null") && told.contains(&format!("\"hard\": {}", 3_u64 << 40)),
        "{told}"
    );
    console.click("#content tbody", "Remove");
    console.click("dialog", "Remove");
    console.wait_for_text("#content", "The share has no quotas.");
    console.check_that_all_is_well();
    for screen in [WIDE, PHONE] {
        let mut german = Console::open(&machine, screen, "de-DE");
        german.sign_in(&token);
        german.go("shares/projects/quotas", "Kontingente von projects");
        german.wait_for_text("#content", "Die Freigabe hat keine Kontingente.");
        german.check_that_it_fits("the quotas", screen);
    }
}

/// A share goes back to the snapshot, another is made from it, and the snapshot is removed.
fn go_back_and_clone(console: &mut Console, machine: &subvolume::Machine) {
    fs::write(machine.at("live/docs/a"), "now").unwrap();
    console.click("#content tbody", "New share \u{2026}");
    console.fill("name", "twin");
    console.fill("directory", machine.at("twin").to_str().unwrap());
    console.click("dialog", "Create");
    console.wait_for_text("#messages", "The share twin was created.");
    assert_eq!(fs::read_to_string(machine.at("twin/docs/a")).unwrap(), "then");
    console.click("#content tbody", "Go back \u{2026}");
    console.click("dialog", "Go back");
    console.wait_for_text("#messages", "The share live went back. What it had is the snapshot anabranch.");
    assert_eq!(fs::read_to_string(machine.at("live/docs/a")).unwrap(), "then");
    console.wait_for_text("#content tbody tr:first-child", "before-revert");
    console.click("#content tbody tr:first-child", "Remove");
    console.click("dialog", "Remove");
    console.wait_for("one to be left", "document.querySelectorAll('#content tbody tr').length === 1");
    console.wait_for_text("#content tbody", "anabranch.before.");
}

#[test]
fn a_share_becomes_a_replica_is_broken_off_resynced_and_stopped() {
    let Some(on_btrfs) = subvolume::Machine::serving() else { return };
    fs::write(on_btrfs.at("live/plan"), "Build a bridge.").unwrap();
    subvolume::btrfs(&["-q", "subvolume", "create"], &[&on_btrfs.at("copy")]);
    on_btrfs.done(&["share", "create", "copy", on_btrfs.at("copy").to_str().unwrap()]);
    let replicas = on_btrfs.json(&["token", "create", "replicas", "--scope", "replicate"]);
    let (url, token) = address_and_token(&on_btrfs);
    let mut console = Console::open_at(&url, WIDE, "en-US");
    console.sign_in(&token);
    console.go("shares/copy", "copy");
    console.wait_for_text("#content a", "Replication");
    console.go("shares/copy/replication", "Replication of copy");
    console.wait_for_text("#content", "No server replicates this share.");
    console.click("#content", "Make it a replica");
    console.fill("from", "nas.example.org/live");
    console.fill("token", replicas["token"].as_str().unwrap());
    console.fill("minutes", "often");
    console.click("dialog", "Make it a replica");
    console.wait_for_text("dialog .problem", "\u{201c}often\u{201d} is no number");
    console.fill("minutes", "10");
    console.click("dialog", "Make it a replica");
    console.wait_for_text("dialog .problem", "xpected https://HOST:PORT/SHARE");
    assert_eq!(console.filled("minutes"), "10", "what was typed stays");
    console.fill("from", &format!("{url}live"));
    console.browser.press(&console.page, ENTER);
    console.wait_for_text("#messages", "The share copy is a replica.");
    let section = "section[aria-label='This share is a replica']";
    console.wait_for_text(&format!("{section} .badge.good"), "mirrored");
    console.wait_for_text(section, "1 completed, 0 failed");
    console.wait_for_text(section, "2 files and 20 B taken over");
    console.check_that_it_fits("a replica", WIDE);
    console.go("shares/live/replication", "Replication of live");
    console.wait_for_text("#content tbody", "anabranch.replica-");
    replicas_fit_a_phone_in_german(&url, &token);

    console.go("shares/copy/replication", "Replication of copy");
    console.click(section, "Break");
    console.click("dialog", "Break");
    console.wait_for_text(&format!("{section} .badge.warn"), "broken");
    fs::write(on_btrfs.at("copy/plan"), "Paint it.").unwrap();
    console.click(section, "Resync");
    console.click("dialog", "Resync");
    console.wait_for_text("#messages", "becomes a replica again");
    console.click(section, "Update now");
    console.wait_for_text(&format!("{section} .badge.good"), "mirrored");
    stop_by_keyboard(&mut console, section);
    let replication = on_btrfs.json(&["share", "replicate", "live", "--destinations"]);
    assert_eq!(replication["destinations"], serde_json::json!([]));
    console.check_that_all_is_well();
}

fn replicas_fit_a_phone_in_german(url: &str, token: &str) {
    let mut german = Console::open_at(url, PHONE, "de-DE");
    german.sign_in(token);
    german.go("shares/live/replication", "Replikation von live");
    german.wait_for_text("#content tbody", "anabranch.replica-");
    german.check_that_it_fits("the destinations", PHONE);
    german.go("shares/copy/replication", "Replikation von copy");
    german.wait_for_text("#content .badge", "gespiegelt");
    german.check_that_it_fits("a replica", PHONE);
    german.check_that_all_is_well();
}

/// The last of the buttons beside the heading: reached with the tabulator, and confirmed with Enter.
fn stop_by_keyboard(console: &mut Console, section: &str) {
    console.value("document.querySelector('h1').focus(); 1");
    let is_there = "document.activeElement.innerText === 'Stop'";
    for _ in 0..10 {
        if console.value(is_there) == true {
            break;
        }
        console.browser.press(&console.page, TAB);
    }
    assert_eq!(console.value(is_there), true);
    console.browser.press(&console.page, ENTER);
    console.wait_for("the dialog", "document.querySelector('dialog[open]') !== null");
    console.browser.press(&console.page, ESCAPE);
    console.wait_for("the dialog to close", "document.querySelector('dialog') === null");
    assert_eq!(console.count(section), 1, "nothing was done");
    console.browser.press(&console.page, ENTER);
    console.wait_for("the focus", "document.activeElement.type === 'submit'");
    console.browser.press(&console.page, ENTER);
    console.wait_for_text("#messages", "The share copy is no replica any more.");
    console.wait_for("the replica to go", "document.querySelector('dialog, .facts') === null");
}

/// A machine with a pool that has room for a share.
fn with_pool() -> Machine {
    Machine::start_with(|directory| {
        fs::create_dir(directory.path().join("pool")).unwrap();
        let config = path(directory, "pools.toml");
        let pool = format!("[[pool]]\nname = \"fast\"\ndirectory = \"{}\"\n", path(directory, "pool"));
        fs::write(&config, pool).unwrap();
        vec!["--config".to_owned(), config]
    })
}

#[test]
fn deleted_shares_are_brought_back_and_purged_with_the_directory_in_their_pool() {
    let test = "deleted_shares_are_brought_back_and_purged_with_the_directory_in_their_pool";
    if !rustix::process::geteuid().is_root() {
        return needs::not_tested(&format!("{test}: only root makes the marks of pools"));
    }
    let machine = with_pool();
    let token = machine.token("admin", "all");
    let mut console = Console::open(&machine, WIDE, "en-US");
    console.sign_in(&token);
    create_in_pool(&mut console, &machine);
    console.go("shares/films", "films");
    console.wait_for_text("section[aria-label=Settings]", "fast");
    console.click("section[aria-label=Settings]", "Remove");
    console.wait_for_text("dialog", "its directory in the pool fast is removed, too");
    console.click("dialog", "Remove");
    console.wait_for_text("#content a", "Deleted shares");
    console.go("deleted-shares", "Deleted shares");
    console.wait_for_text("#content tbody", "films");
    assert_eq!(console.text("document.querySelector('nav [aria-current]').innerText"), "Shares");
    console.check_that_it_fits("the deleted shares", WIDE);

    console.click("#content tbody", "Bring back");
    assert_eq!(console.filled("name"), "films");
    console.fill("name", "data");
    console.click("dialog", "Bring back");
    console.wait_for_text("dialog .problem", "data");
    console.fill("name", "old films");
    console.browser.press(&console.page, ENTER);
    console.wait_for_text("#messages", "The share old films is back.");
    console.wait_for_text("#content", "There are no deleted shares.");
    machine.run(&["share", "remove", "old films"]);

    console.click("#content tbody", "Purge");
    console.fill("typed", "films");
    console.click("dialog", "Purge");
    console.wait_for_text("dialog .problem", "This is not the name of the share: old films");
    assert!(machine.directory.path().join("pool/films").is_dir());
    console.fill("typed", "old films");
    console.click("dialog", "Purge");
    console.wait_for_text("#messages", "The share old films was purged.");
    console.wait_for_text("#content", "There are no deleted shares.");
    let left = || fs::read_dir(machine.directory.path().join("pool")).unwrap().count();
    let begun = std::time::Instant::now();
    while left() > 0 {
        assert!(begun.elapsed() < super::PATIENCE, "the directory is still there");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    console.check_that_all_is_well();
    for screen in [WIDE, PHONE] {
        machine.run(&["share", "create", "alt", &path(&machine.directory, "projects")]);
        machine.run(&["share", "remove", "alt"]);
        let mut german = Console::open(&machine, screen, "de-DE");
        german.sign_in(&token);
        german.go("deleted-shares", "Gel\u{f6}schte Freigaben");
        german.wait_for_text("#content tbody", "Endg\u{fc}ltig l\u{f6}schen");
        german.check_that_it_fits("the deleted shares", screen);
        german.click("#content tbody", "Endg\u{fc}ltig l\u{f6}schen");
        german.fill("typed", "alt");
        german.click("dialog", "Endg\u{fc}ltig l\u{f6}schen");
        german.wait_for_text("#content", "Es gibt keine gel\u{f6}schten Freigaben.");
        german.check_that_all_is_well();
    }
}

fn create_in_pool(console: &mut Console, machine: &Machine) {
    console.go("shares", "Shares");
    console.click("#content", "Create share");
    console.fill("name", "films");
    assert_eq!(console.value("document.querySelector('[name=size]').checkVisibility()"), false);
    console.choose("pool", "fast");
    console.value("document.querySelector('[name=pool]').dispatchEvent(new Event('change')); 1");
    assert_eq!(console.value("document.querySelector('[name=directory]').checkVisibility()"), false);
    assert!(console.text("document.querySelector('[name=pool]').innerText").contains(" left)"));
    console.fill("size", "1000 TiB");
    console.click("dialog form", "Create");
    console.wait_for_text("dialog .problem", "The shares of the pool fast would be");
    console.fill("size", "64 MiB");
    console.click("dialog form", "Create");
    console.wait_for_text("#messages", "The share films was created.");
    let shown = machine.run(&["share", "show", "films", "--json"]);
    assert!(shown.contains(&format!("\"size\": {}", 64 << 20)), "{shown}");
    assert!(machine.directory.path().join("pool/films").is_dir());
}
