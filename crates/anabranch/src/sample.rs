//! The configuration file of the packages (`packaging/anabranch.toml`): it names each setting, with its default.

use std::fs;
use std::path::Path;

use clap::Args as _;

use crate::config;
use crate::settings::{CLIENT_KEYS, Given, POLICY_KEYS, POOL_KEYS, SHARE_KEYS, Settings, USER_KEYS};

fn sample() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/anabranch.toml")).unwrap()
}

/// The text without the comment signs of those settings of which this is true.
fn with(text: &str, is_wanted: impl Fn(&str) -> bool) -> String {
    let setting = |line: &str| {
        let setting = line.strip_prefix('#')?;
        let begins = setting.starts_with(|c: char| c.is_ascii_lowercase() || c == '[');
        (begins && is_wanted(setting)).then(|| setting.to_owned())
    };
    text.lines().map(|line| setting(line).unwrap_or_else(|| line.to_owned()) + "\n").collect()
}

/// What a file with this text amounts to.
fn amounts_to(text: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("anabranch.toml");
    fs::write(&file, text).unwrap();
    let read = config::read(&file);
    assert_eq!(read.from.mistakes, [], "{text}");
    let given = Given { from: Default::default(), ..read };
    let settings = Settings::new(given).unwrap();
    let shown = format!("{settings:#?}");
    let is_of_state = |line: &str| line.contains("is_state_given");
    shown.lines().filter(|line| !is_of_state(line)).collect::<Vec<_>>().join("\n")
}

fn is_setting(line: &str, key: &str) -> bool {
    line.strip_prefix(key).is_some_and(|rest| rest.starts_with(" = "))
}

fn is_example(line: &str) -> bool {
    line.ends_with("# example")
}

#[test]
fn the_settings_of_the_sample_are_the_defaults() {
    let sample = sample();
    let top = |text: &str| text.split("#[[user]]").next().unwrap_or_default().to_owned();
    assert_eq!(amounts_to(&with(&top(&sample), |line| !is_example(line))), amounts_to(""));

    // The names of shares and users are needed, and have no default.
    let tables = |line: &str| line.starts_with("[[");
    let is_named =
        |line: &str| ["name", "directory", "network", "hourly"].iter().any(|key| is_setting(line, key));
    let least = with(&sample, |line| tables(line) || is_named(line));
    let most = with(&sample, |line| tables(line) || is_named(line) || !is_example(line));
    assert!(most.len() < least.len());
    assert_eq!(amounts_to(&most), amounts_to(&least));
    amounts_to(&with(&sample, |_| true).replace("/etc/anabranch/", "/nowhere/"));
}

#[test]
fn the_sample_names_every_setting() {
    let sample = sample();
    let (top, tables) = sample.split_once("#[[user]]").unwrap();
    let (user, tables) = tables.split_once("#[[snapshot-policy]]").unwrap();
    let (policy, tables) = tables.split_once("#[[pool]]").unwrap();
    let (pool, shares) = tables.split_once("#[[share]]").unwrap();
    let (share, client) = shares.split_once("#[[share.client]]").unwrap();
    let names =
        |text: &str, key: &str| text.lines().any(|line| is_setting(line.trim_start_matches('#'), key));
    let command = Given::augment_args(clap::Command::new("names"));
    let flags = command.get_arguments().filter(|flag| !flag.is_hide_set()).filter_map(|flag| flag.get_long());
    for key in flags.filter(|flag| !["share", "user"].contains(flag)) {
        assert!(names(top, key), "{key} is not in the sample");
    }
    for (table, keys) in [
        (user, &USER_KEYS[..]),
        (policy, &POLICY_KEYS[..]),
        (pool, &POOL_KEYS[..]),
        (share, &SHARE_KEYS[..]),
        (client, &CLIENT_KEYS[..]),
    ] {
        for key in keys.iter().map(|key| key.name).filter(|key| *key != "client") {
            assert!(names(table, key), "{key} is not in the sample");
        }
    }
}
