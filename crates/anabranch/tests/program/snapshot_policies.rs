//! `anabranch policy`: snapshots that the server takes by itself, on Btrfs.

use crate::asked::{OK, ask, health, until};
use crate::server::{Server, path};
use crate::subvolume::Machine;

/// Says that something is missing on a share since long ago, as after months without a server. None runs now.
fn note_long_ago(machine: &Machine, share: &str) {
    let long_ago = state::DoneRecord {
        policy: "office".to_owned(),
        done: [("hourly", 0), ("daily", 0), ("weekly", 0), ("monthly", 0)]
            .map(|(period, secs)| (period.to_owned(), secs))
            .into(),
        ..state::DoneRecord::default()
    };
    let state = state::State::open(path(&machine.directory, "state").as_ref()).unwrap();
    state.keep_snapshots_done(share, &long_ago).unwrap();
}

fn metric(server: &Server, line: &str) -> String {
    let metrics = ask(server, "/metrics");
    metrics.lines().find_map(|found| found.strip_prefix(line)).unwrap_or_default().trim().to_owned()
}

fn create(machine: &Machine) -> String {
    machine.done(&[
        "policy",
        "create",
        "office",
        "--hourly",
        ":05/24",
        "--daily",
        "01:10/14",
        "--weekly",
        "sun/8",
        "--monthly",
        "1/12",
    ])
}

#[test]
fn policies_are_created_listed_and_removed() {
    let Some(machine) = Machine::serving() else { return };
    assert_eq!(create(&machine), "The policy office was created.\n");
    machine.refused(
        &["policy", "create", "OFFICE", "--hourly", ":05/1"],
        &["there is a snapshot policy office"],
    );
    machine.refused(&["policy", "create", "other"], &["it has no rule"]);
    machine.refused(&["policy", "create", "other", "--hourly", ":05/256"], &["how many snapshots are kept"]);
    machine
        .refused(&["policy", "create", "other", "--hourly", ":05/200", "--monthly", "31/56"], &["keeps 256"]);
    machine.refused(&["policy", "create", "other", "--monthly", "32/1"], &["such as 1 or 1,15@03:00"]);
    machine.refused(&["policy", "create", "a.b", "--hourly", ":05/1"], &["cannot be the name of a policy"]);
    let listed = machine.done(&["policy", "list"]);
    assert!(listed.ends_with("\noffice  :05/24  01:10/14  sun@00:00/8  1@00:00/12\n"), "{listed}");
    machine.refused(&["share", "set", "live", "--snapshot-policy", "office"], &["is declared in"]);

    let (top, data) = (machine.at("made"), path(&machine.directory, "plain"));
    crate::subvolume::btrfs(&["subvolume", "create"], &[&top]);
    std::fs::create_dir(&data).unwrap();
    let top = top.display().to_string();
    machine.refused(
        &["share", "create", "made", &top, "--snapshot-policy", "none"],
        &["no snapshot policy none"],
    );
    machine.refused(
        &["share", "create", "plain", &data, "--snapshot-policy", "office"],
        &["has no snapshots", "Btrfs"],
    );
    machine.done(&["share", "create", "made", &top, "--snapshot-policy", "OFFICE"]);
    assert_eq!(machine.json(&["share", "show", "made"])["snapshot_policy"], "office");
    assert!(machine.done(&["policy", "show", "office"]).contains("shares     made\n"));
    machine.refused(&["policy", "remove", "office"], &["is that of these shares: made"]);
    // It is changed while the share has it.
    let set = |rules: &[&'static str]| [&["policy", "set", "OFFICE"], rules].concat();
    let said = machine.done(&set(&["--hourly", ":10/4", "--weekly", ""]));
    assert_eq!(said, "The policy office was changed.\n");
    let shown = machine.done(&["policy", "show", "office"]);
    let rules =
        "policy     office\nhourly     :10/4\ndaily      01:10/14\nmonthly    1@00:00/12\nshares     made\n";
    assert_eq!(shown, rules);
    machine.refused(&set(&["--daily", "25:00/1"]), &["such as 01:10"]);
    machine.refused(&set(&["--hourly", ":10/255"]), &["keeps 281"]);
    machine.refused(&set(&["--hourly", "", "--daily", "", "--monthly", ""]), &["it has no rule"]);
    machine.refused(&["policy", "set", "none", "--hourly", ":05/1"], &["there is no snapshot policy none"]);
    assert_eq!(machine.done(&["policy", "show", "office"]), shown);
    machine.done(&["share", "set", "made", "--snapshot-policy", ""]);
    machine.done(&["policy", "remove", "office"]);
    machine.refused(&["policy", "show", "office"], &["there is no snapshot policy office"]);
}

#[test]
fn what_was_missed_is_made_up_for_once_after_downtime() {
    let Some(mut machine) = Machine::serving() else { return };
    create(&machine);
    let top = machine.at("made");
    crate::subvolume::btrfs(&["subvolume", "create"], &[&top]);
    machine.done(&["share", "create", "made", &top.display().to_string(), "--snapshot-policy", "office"]);
    machine.stop();
    note_long_ago(&machine, "made");
    machine.start(&[]);
    let labels = ["made by four rules", "daily", "hourly", "monthly", "weekly"];
    until(labels[0], || machine.snapshots("made").len() == 4);
    let listed = machine.done(&["snapshot", "list", "made"]);
    for period in &labels[1..] {
        assert_eq!(listed.matches(&format!("office ({period})")).count(), 1, "{listed}");
    }
    let server = machine.server.as_ref().unwrap();
    let labels = "{share=\"made\",policy=\"office\"";
    let taken = format!("anabranch_snapshot_policy_runs_total{labels},result=\"success\"}}");
    until("counted", || metric(server, &taken) == "4");
    assert_eq!(metric(server, &format!("anabranch_snapshot_policy_failing{labels}}}")), "0");
    until("counted", || metric(server, "anabranch_share_snapshots{share=\"made\"}") == "4");
    assert!(health(server).ends_with(OK));

    // Nothing is missing at the next start.
    machine.stop();
    machine.start(&[]);
    machine.done(&["snapshot", "create", "made"]);
    assert_eq!(machine.snapshots("made").len(), 5);
}

#[test]
fn policies_of_the_configuration_run_their_hooks() {
    let Some(mut machine) = Machine::new() else { return };
    let (state, file) = (path(&machine.directory, "state"), path(&machine.directory, "anabranch.toml"));
    let trace = path(&machine.directory, "trace");
    let live = machine.at("live");
    let write = |policy: &str, end: &str| {
        let hook = |word: &str, end: &str| {
            let script = format!("echo {word} $ANABRANCH_POLICY $ANABRANCH_SNAPSHOT >>{trace}; exit {end}");
            format!("{word} = [\"/bin/sh\", \"-c\", \"{script}\"]\n")
        };
        let text = format!(
            "smb = \"127.0.0.1:0\"\nnfs = \"127.0.0.1:0\"\ncontrol = \"127.0.0.1:0\"\nstate = \"{state}\"\n\
             [[snapshot-policy]]\nname = \"office\"\nhourly = \":05/2\"\n{}{}\
             [[share]]\nname = \"live\"\ndirectory = \"{}\"\nsnapshot-policy = \"{policy}\"\n",
            hook("before", end),
            hook("after", "0"),
            live.display()
        );
        std::fs::write(&file, text).unwrap();
    };
    write("office", "3");
    note_long_ago(&machine, "live");
    machine.start_with(&["serve", "--config", &file]);
    until("a snapshot", || machine.names().len() == 1);
    let server = machine.server.as_ref().unwrap();
    let said = "share live: the snapshot policy office (hourly): the hook before the snapshot: /bin/sh failed: exit status: 3";
    until("an alarm", || health(server).contains(said));
    let name = machine.names().remove(0);
    let expected = format!("before office\nafter office {name}\n");
    assert_eq!(std::fs::read_to_string(&trace).unwrap(), expected);
    machine.refused(&["policy", "remove", "office"], &["is declared in", "anabranch.toml"]);
    machine.refused(&["policy", "set", "office", "--hourly", ":06/2"], &["is declared in", "anabranch.toml"]);
    assert!(machine.done(&["policy", "show", "office"]).contains("shares     live\n"));

    // Another configuration, while it runs.
    write("none", "0");
    machine.refused(&["reload"], &["no snapshot policy none is declared"]);
    write("", "0");
    machine.done(&["reload"]);
    until("it is well", || health(machine.server.as_ref().unwrap()).ends_with(OK));
    assert_eq!(machine.names(), [name], "the snapshots of a policy stay");
}

#[test]
fn a_policy_that_cannot_be_carried_out_is_an_alarm() {
    let Some(mut machine) = Machine::serving() else { return };
    create(&machine);
    let top = machine.at("made");
    crate::subvolume::btrfs(&["subvolume", "create"], &[&top]);
    machine.done(&["share", "create", "made", &top.display().to_string(), "--snapshot-policy", "office"]);
    machine.stop();
    // Another directory in its place, which is no subvolume.
    std::fs::rename(&top, machine.at("away")).unwrap();
    std::fs::create_dir(&top).unwrap();
    note_long_ago(&machine, "made");
    machine.start(&[]);
    let server = machine.server.as_ref().unwrap();
    let said = "share made: the snapshot policy office (hourly): the share made has no snapshots";
    until("an alarm", || health(server).contains(said));
    assert!(health(server).contains("\r\n\r\ndegraded\n"));
    assert!(machine.done(&["share", "list"]).contains("served, snapshots"));
    assert!(machine.done(&["status"]).contains(said));
    let failing = "anabranch_snapshot_policy_failing{share=\"made\",policy=\"office\"}";
    assert_eq!(metric(server, failing), "1");
    machine.done(&["share", "set", "made", "--snapshot-policy", ""]);
    until("it is well", || health(server).ends_with(OK));
}
