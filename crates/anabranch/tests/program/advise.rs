//! `anabranch advise`: from a file to advice.

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
        "\"Multi-threaded/single file workloads with SMB Multichannel\" (1.28)",
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

/// Results of a directory: one list, each setting once, and the rows with it for programs.
#[test]
fn a_directory_of_results_has_one_list() {
    let place = TempDir::new().unwrap();
    let [local, results] = ["local", "results"].map(|name| place.path().join(name));
    std::fs::create_dir(&local).unwrap();
    std::fs::create_dir(&results).unwrap();
    for family in ["metadata", "mix-10"] {
        let target = format!("dir:{}", local.display());
        let out = results.join(format!("{family}.json"));
        let short = ["--quick", "--seconds", "0.05", "--ramp", "0.01", "--file-size", "1M"];
        let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
        command
            .args(["bench", "run", family, "--target", &target, "--out", out.to_str().unwrap()])
            .args(short);
        let Output { status, stderr, .. } = command.output().unwrap();
        assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    }
    let directory = results.to_str().unwrap();
    let (status, printed, said) = advise(&[directory]);
    assert_eq!(status, 0, "{said}");
    assert!(printed.contains("  undecided  metadata cache: "), "{printed}");
    assert_eq!(printed.matches("metadata cache: ").count(), 1, "{printed}");
    assert!(!printed.contains("op=metadata"), "rows are told when they are asked for: {printed}");
    let (_, printed, _) = advise(&[directory, "--rows"]);
    assert!(
        printed.contains("op=metadata files=1 threads=1 qd=1") && printed.contains("mix-10.json"),
        "{printed}"
    );
    let (_, printed, _) = advise(&[directory, "--json"]);
    let all: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(all["recommendations"][0]["setting"], "metadata-cache");
    assert_eq!(all["results"][0]["name"], "metadata.json");
    // One file is an array of its rows, as it has always been.
    let (_, printed, _) = advise(&[results.join("metadata.json").to_str().unwrap(), "--json"]);
    let rows: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert!(rows[0]["row"].as_str().unwrap().contains("op=metadata"), "{rows:#}");
    let empty = place.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let (status, _, said) = advise(&[empty.to_str().unwrap()]);
    assert!(status == 2 && said.contains("no file in it ends in .json"), "{said}");
}
