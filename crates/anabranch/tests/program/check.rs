//! `anabranch check`: all that is wrong with a configuration at once, and what it amounts to.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::server::{Server, path, program};

/// Writes a configuration; HERE stands for the directory.
fn write(directory: &TempDir, name: &str, text: &str) -> String {
    let file = path(directory, name);
    fs::write(&file, text.replace("HERE", directory.path().to_str().unwrap())).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    file
}

/// The exit status, and what was printed to standard output and to standard error.
fn check(arguments: &[&str]) -> (Option<i32>, String, String) {
    let ran = program(&[&["check"], arguments].concat()).output().unwrap();
    (ran.status.code(), String::from_utf8(ran.stdout).unwrap(), String::from_utf8(ran.stderr).unwrap())
}

fn check_json(file: &str) -> (Option<i32>, Value) {
    let (status, printed, _) = check(&[file, "--json"]);
    (status, serde_json::from_str(&printed).unwrap())
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(directory).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

const WRONG: &str = r#"smb = "here"
smb-singing = "off"
max-channels = 99
nfs-lease = "long"
state = "HERE/state"
log = "loud"
smb-interface = ["10.0.0.1", "eth0", "eth1"]

[[share]]
name = "data"
directory = "HERE/data"
guest = "yes"
plan = "azure-files-v9"

[[share]]
name = "DATA"
directory = "HERE/more"

[[share]]
directory = "HERE/more"

[[share]]
name = "same"
directory = "HERE/data"

[[share]]
name = "gone"
directory = "HERE/gone"
[[share.client]]
netwrok = "10.0.0.0/8"

[[user]]
name = "no-such-user-here"
password = 12345

[[user]]
name = "otto"
uid = 1001

[[user]]
name = 5
uid = "seven"
"#;

#[test]
fn every_mistake_is_reported_with_its_line_and_advice() {
    let directory = TempDir::new().unwrap();
    fs::create_dir(directory.path().join("data")).unwrap();
    fs::create_dir(directory.path().join("more")).unwrap();
    let file = write(&directory, "a.toml", WRONG);
    let before = names(directory.path());
    let (status, checked) = check_json(&file);
    assert_eq!((status, &checked["ok"]), (Some(2), &json!(false)));
    let reports = checked["reports"].as_array().unwrap();
    let found: Vec<(u64, &str)> = reports
        .iter()
        .filter(|report| report["severity"] == "error")
        .map(|report| (report["line"].as_u64().unwrap_or(0), report["message"].as_str().unwrap()))
        .collect();
    for (line, word) in [
        (1, "smb: \"here\""),
        (2, "there is no setting `smb-singing`"),
        (3, "max-channels is 99"),
        (4, "nfs-lease: invalid type"),
        (6, "the log filter \"loud\""),
        (7, "\"eth0\" is not an address"),
        (7, "\"eth1\" is not an address"),
        (12, "guest: invalid type"),
        (13, "the plan of the share data"),
        (15, "two shares have the name DATA"),
        (19, "the share has no `name`"),
        (24, "is served already, by the share data"),
        (28, "does not exist"),
        (30, "there is no setting `netwrok`"),
        (34, "password: expected a text in quotes"),
        (36, "the user otto has no password"),
        (41, "name: invalid type: integer `5`, expected a text in quotes"),
        (42, "uid: invalid type: string \"seven\", expected a whole number"),
    ] {
        assert!(
            found.iter().any(|(at, what)| *at == line && what.contains(word)),
            "{line}: {word} is not in {found:#?}"
        );
    }
    assert_eq!(checked["errors"], json!(found.len()));
    let named = found.iter().filter(|(_, what)| what.contains("the name of the user")).count();
    assert_eq!(named, 0, "one mistake is told once: {found:#?}");
    for report in reports {
        assert!(report["file"] == file.as_str(), "{report}");
        assert!(!report["advice"].as_str().unwrap().is_empty(), "{report}");
    }
    // For people: the same, and none of the passwords.
    let (status, printed, said) = check(&[&file]);
    assert_eq!(status, Some(2));
    assert!(
        printed.contains(&format!("error: {file} line 2: there is no setting `smb-singing`\n")),
        "{printed}"
    );
    assert!(printed.contains("  Did you mean `smb-signing`?\n"), "{printed}");
    assert!(said.contains("would be refused"), "{said}");
    assert!(!printed.contains("12345") && !checked.to_string().contains("12345"));
    assert_eq!(names(directory.path()), before, "nothing is created");
    // The server refuses the file with all that is wrong in it, too.
    let refused = program(&["serve", "--config", &file]).output().unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(said.contains("line 2: there is no") && said.contains("line 30: there is no"), "{said}");
}

const RIGHT: &str = r#"smb = ["127.0.0.1:0"]
nfs = "127.0.0.1:0"
control = "127.0.0.1:0"
state = "HERE/state"

[[share]]
name = "data"
directory = "HERE/data"
plan = "custom iops=500"
encrypted = true

[[user]]
name = "anna"
password = "hush-hush"
uid = 1000
"#;

#[test]
fn what_is_right_is_shown_with_where_it_is_from() {
    let directory = TempDir::new().unwrap();
    fs::create_dir(directory.path().join("data")).unwrap();
    let file = write(&directory, "a.toml", RIGHT);
    let (status, checked) = check_json(&file);
    assert_eq!(status, Some(0), "{checked}");
    let setting = |of: &Value, key: &str| {
        let of = of.as_array().unwrap();
        of.iter().find(|setting| setting["key"] == key).unwrap().clone()
    };
    let shown = &checked["configuration"];
    assert_eq!(shown["files"], json!([file]));
    let nfs = setting(&shown["settings"], "nfs");
    assert_eq!(
        (&nfs["value"], &nfs["source"], &nfs["line"]),
        (&json!(["127.0.0.1:0"]), &json!("file"), &json!(2))
    );
    let lease = setting(&shown["settings"], "nfs-lease");
    assert_eq!((&lease["value"], &lease["source"]), (&json!(90), &json!("default")));
    let plan = setting(&shown["shares"][0]["settings"], "plan");
    assert_eq!((&plan["value"], &plan["line"]), (&json!("custom iops=500"), &json!(9)));
    let password = setting(&shown["users"][0]["settings"], "password");
    assert_eq!((&password["value"], &password["line"]), (&Value::Null, &json!(14)));
    assert!(!checked.to_string().contains("hush"));
    // What the server would warn of is a warning.
    let warned = checked["reports"].to_string();
    assert!(checked["warnings"] == json!(1) && warned.contains("krb5p alone"), "{warned}");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let (status, printed, _) = check(&[&file]);
    assert_eq!(status, Some(0));
    assert!(printed.contains("warning: users other than its owner may read"), "{printed}");
    assert!(printed.contains("plan = \"custom iops=500\""), "{printed}");
    assert!(!printed.contains("hush"), "{printed}");
    // What is shown is a configuration again.
    let again = write(&directory, "b.toml", &printed[printed.find("# ").unwrap()..]);
    let (status, checked) = check_json(&again);
    assert!(status == Some(2) && checked["errors"] == json!(1), "the password is missing: {checked}");
    assert!(!directory.path().join("state").exists());
}

#[test]
fn included_files_add_up_and_contradictions_name_both_places() {
    let directory = TempDir::new().unwrap();
    for name in ["data", "more", "conf.d"] {
        fs::create_dir(directory.path().join(name)).unwrap();
    }
    let file =
        write(&directory, "a.toml", &format!("include = [\"conf.d/*.toml\"]\nmax-channels = 2\n{RIGHT}"));
    let share = "[[share]]\nname = \"more\"\ndirectory = \"HERE/more\"\n";
    let second = write(&directory, "conf.d/20.toml", share);
    let user =
        "control-name = [\"files\"]\n[[user]]\nname = \"otto\"\npassword = \"hush-hush\"\nuid = 1001\n";
    let first = write(&directory, "conf.d/10.toml", user);
    let (status, checked) = check_json(&file);
    assert_eq!(status, Some(0), "{checked}");
    let shown = &checked["configuration"];
    assert_eq!(shown["files"], json!([file, first, second]));
    let names = |of: &Value| of.as_array().unwrap().iter().map(|one| one["name"].clone()).collect::<Vec<_>>();
    assert_eq!(
        (names(&shown["shares"]), names(&shown["users"])),
        (vec![json!("data"), json!("more")], vec![json!("anna"), json!("otto")])
    );
    let (status, printed, _) = check(&[&file]);
    assert_eq!(status, Some(0));
    assert!(printed.contains(&format!("# {second} line 2\n")), "{printed}");

    write(
        &directory,
        "conf.d/20.toml",
        &format!("max-channels = 3\nsmb-singing = 1\ninclude = [\"x\"]\n{}", share.replace("more", "DATA")),
    );
    let (status, checked) = check_json(&file);
    assert_eq!(status, Some(2));
    let reports = checked["reports"].as_array().unwrap();
    for (line, word) in [
        (1, format!("max-channels is given twice: the other is in {file} line 2")),
        (2, "there is no setting `smb-singing`".to_owned()),
        (3, "an included file cannot include others".to_owned()),
        (4, format!("two shares have the name DATA: the other is in {file} line 8")),
    ] {
        let is_there = |report: &&Value| {
            report["file"] == second.as_str()
                && report["line"] == json!(line)
                && report["message"].as_str().unwrap().contains(&word)
        };
        assert!(reports.iter().any(|report| is_there(&report)), "{line}: {word}: {checked}");
    }
    for (include, word) in [("none.toml", "there is no file"), ("***", "include: ")] {
        let file = write(&directory, "b.toml", &format!("include = [\"{include}\"]\n{RIGHT}"));
        let (status, checked) = check_json(&file);
        assert_eq!(status, Some(2), "{include}");
        assert!(checked["reports"][0]["message"].as_str().unwrap().contains(word), "{checked}");
        assert_eq!(checked["reports"][0]["line"], json!(1));
    }
}

const PAGE: &str = include_str!("../../../../docs/configuration.md");

/// What docs/configuration.md shows is what is printed.
#[test]
fn the_sample_of_the_page_is_printed() {
    let (_, sample) = PAGE.split_once("With this file,\n\n```toml\n").unwrap();
    let (file, rest) = sample.split_once("```\n").unwrap();
    let (_, printed) = rest.split_once("    $ anabranch check anabranch.toml\n").unwrap();
    let lines = printed.lines().map_while(|line| line.strip_prefix("    "));
    let expected: Vec<&str> = lines.collect();
    let directory = TempDir::new().unwrap();
    let here = directory.path().to_str().unwrap();
    fs::create_dir_all(directory.path().join("srv/data/projects")).unwrap();
    let file = file.replace("/srv", "HERE/srv").replace("/var/lib", "HERE/var");
    write(&directory, "anabranch.toml", &file);
    let ran = program(&["check", "anabranch.toml"]).current_dir(directory.path()).output().unwrap();
    let printed = String::from_utf8([ran.stdout, ran.stderr].concat()).unwrap().replace(here, "");
    assert_eq!(printed.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn a_running_server_is_left_alone() {
    let directory = TempDir::new().unwrap();
    fs::create_dir(directory.path().join("data")).unwrap();
    let file = write(&directory, "a.toml", RIGHT);
    let mut server = Server::start(&["serve", "--config", &file]);
    assert!(server.ready.starts_with("ready "));
    // The password is in the state database now: the file need not have it.
    let without = RIGHT.replace("password = \"hush-hush\"\n", "");
    let other = write(&directory, "b.toml", &without);
    let (status, checked) = check_json(&other);
    assert_eq!(status, Some(0), "{checked}");
    assert_eq!(server.end_with("TERM"), Some(0));
}

#[test]
fn a_file_that_is_missing_or_no_toml_is_refused() {
    let directory = TempDir::new().unwrap();
    let (status, checked) = check_json(&path(&directory, "none.toml"));
    assert_eq!(status, Some(2));
    assert!(checked["reports"][0]["message"].as_str().unwrap().contains("No such file"), "{checked}");
    let file = write(&directory, "a.toml", "smb = \"off\nnfs = 1 2\nmax-channels = 99\n");
    let (status, checked) = check_json(&file);
    assert_eq!(status, Some(2));
    let lines: Vec<_> =
        checked["reports"].as_array().unwrap().iter().map(|report| report["line"].clone()).collect();
    assert!(lines.contains(&json!(1)) && lines.contains(&json!(2)) && lines.contains(&json!(3)), "{checked}");
}

const POOLS: &str = r#"state = "HERE/state"
[[share]]
name = "data"
directory = "HERE/data"
[[user]]
name = "anna"
password = "hush-hush"
[[pool]]
name = "fast"
directory = "HERE/data/pool"
[[pool]]
name = "Fast"
directory = "HERE/pool"
[[pool]]
name = "near"
directory = "pool"
overcommit = "maybe"
[[pool]]
name = "gone"
directory = "HERE/gone"
[[pool]]
directory = "HERE/pool"
"#;

#[test]
fn what_is_wrong_with_pools_is_told_at_its_line() {
    let directory = TempDir::new().unwrap();
    fs::create_dir_all(directory.path().join("data/pool")).unwrap();
    let (status, checked) = check_json(&write(&directory, "pools.toml", POOLS));
    assert_eq!(status, Some(2));
    let reports = checked["reports"].as_array().unwrap();
    for (line, severity, word) in [
        (10, "error", "lies in the directory of the share data"),
        (11, "error", "two pools have the name Fast"),
        (16, "error", "is not absolute"),
        (17, "error", "overcommit"),
        (20, "warning", "there is no such directory"),
        (21, "error", "the pool has no `name`"),
    ] {
        let is_it = |report: &&Value| {
            report["line"] == line
                && report["severity"] == severity
                && report["message"].to_string().contains(word)
        };
        let found = reports.iter().find(is_it);
        assert!(found.is_some_and(|report| report["advice"] != ""), "{line}: {word}: {reports:#?}");
    }
    assert_eq!(checked["configuration"]["pools"][0]["name"], "fast");
}
