//! `anabranch advise`: from a file to advice.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::{Command, Output};

use tempfile::TempDir;

/// The exit status, and what the program printed and said.
fn advise(arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    let Output { status, stdout, stderr } = command.arg("advise").args(arguments).output().unwrap();
    (status.code().unwrap(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

/// Advice on facts that stand in a file.
fn advise_on(facts: &str, more: &[&str]) -> (i32, String, String) {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("facts.json");
    std::fs::write(&path, facts).unwrap();
    advise(&[&["--facts", path.to_str().unwrap()], more].concat())
}

const SMALL_ON_ONE_FILE: &str =
    r#"{"protocol": "smb", "work": {"threads": 8, "files": 1, "io-bytes": 4096}}"#;

#[test]
fn advice_has_verdict_figures_source_and_commands() {
    let (status, printed, _) = advise_on(SMALL_ON_ONE_FILE, &[]);
    assert_eq!(status, 0);
    for part in [
        "red",
        "R2",
        "8 threads, 1 file, 4 KiB an operation",
        "line 124 (1.28)",
        "-EnableMultiChannel $false",
    ] {
        assert!(printed.contains(part), "{part} in {printed}");
    }
    let (_, printed, _) = advise_on(SMALL_ON_ONE_FILE, &["--json"]);
    let said: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(said[0]["advice"][0]["rule"], 2);
    assert_eq!(said[0]["advice"][0]["verdict"], "red");
}

#[test]
fn without_facts_nothing_is_said() {
    let (status, printed, _) = advise_on("{}", &[]);
    assert_eq!(status, 0);
    assert!(printed.contains("nothing to say"), "{printed}");
}

#[test]
fn what_is_no_fact_is_named() {
    for (facts, named) in [
        (r#"{"work": {"thread": 8}}"#, "unknown field `thread`"),
        (r#"{"protocol": "ftp"}"#, "unknown variant `ftp`"),
        ("not JSON", "line 1 column 2"),
    ] {
        let (status, printed, said) = advise_on(facts, &[]);
        assert_eq!((status, printed.as_str()), (2, ""), "{facts}");
        assert!(said.contains("facts.json") && said.contains(named), "{said}");
    }
    let (status, _, said) = advise(&["--facts", "/nonexistent.json"]);
    assert!(status == 2 && said.contains("/nonexistent.json"), "{said}");
    let (status, _, said) = advise(&["/nonexistent.json"]);
    assert!(status == 2 && said.contains("/nonexistent.json"), "{said}");
    let (status, _, _) = advise(&[]);
    assert_eq!(status, 2, "neither a result nor facts");
}
