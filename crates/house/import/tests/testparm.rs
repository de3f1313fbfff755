//! Samba's own `testparm` reads the samples: the shares are the same, and so are the effective values of the parameters that are
//! carried over.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anabranch_import::{Configuration, Section};

mod machine;

use machine::{Here, TestMachine};

/// Parameters, their kinds, and Samba's defaults (`testparm -sv`).
const COMPARED: [(&str, bool, &str); 19] = [
    ("path", false, ""),
    ("comment", false, ""),
    ("browseable", false, "yes"),
    ("available", false, "yes"),
    ("read only", false, "yes"),
    ("guest ok", false, "no"),
    ("guest only", false, "no"),
    ("valid users", true, ""),
    ("invalid users", true, ""),
    ("read list", true, ""),
    ("write list", true, ""),
    ("hosts allow", true, ""),
    ("hosts deny", true, ""),
    ("hide unreadable", false, "no"),
    ("veto files", false, ""),
    ("vfs objects", true, ""),
    ("root preexec close", false, "no"),
    ("force user", false, ""),
    ("server smb encrypt", false, "default"),
];

/// What a list says, however it is separated and quoted.
fn entries(text: &str) -> String {
    let (mut out, mut is_quoted) = (String::new(), false);
    for c in text.chars() {
        match c {
            '"' => is_quoted = !is_quoted,
            ' ' | ',' | ';' | '\t' if !is_quoted => out.push('|'),
            c => out.push(c),
        }
    }
    out.split('|').filter(|entry| !entry.is_empty()).collect::<Vec<_>>().join("|")
}

fn values(section: &Section) -> BTreeMap<&'static str, String> {
    let of = |(name, is_list, default): &(&'static str, bool, &str)| {
        let value = section.value(name).unwrap_or(default);
        let value = match value.to_lowercase().as_str() {
            _ if *is_list => entries(value),
            // "Setting it to off or if_required for a share has no effect."
            "off" | "no" | "disabled" | "if_required" if *name == "server smb encrypt" => {
                "default".to_owned()
            }
            "mandatory" | "required" => "required".to_owned(),
            _ => value.trim_matches('"').to_owned(),
        };
        (*name, value)
    };
    let mut values: BTreeMap<&'static str, String> = COMPARED.iter().map(of).collect();
    // "No path in service ... - making it unavailable!"
    if section.value("path").is_none() && !matches!(section.name.as_str(), "homes" | "printers") {
        values.insert("available", "no".to_owned());
    }
    values
}

fn served(configuration: &Configuration) -> BTreeMap<String, BTreeMap<&'static str, String>> {
    let is_there = |section: &&Section| section.value("-valid") != Some("no");
    let sections = configuration.sections.iter().filter(is_there);
    sections.map(|section| (section.name.clone(), values(section))).collect()
}

fn read(name: &str, text: &str) -> Configuration {
    anabranch_import::read_samba(name, text, &Here, &TestMachine).unwrap()
}

#[test]
fn samba_reads_the_same() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samba");
    let mut files: Vec<PathBuf> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "conf"));
    let debian = PathBuf::from("/usr/share/samba/smb.conf");
    files.extend(Some(debian).filter(|path| path.exists()));
    for file in files {
        let ran = Command::new("testparm").arg("-s").arg(&file).current_dir(&folder).output();
        let output = match ran {
            Ok(output) => output,
            Err(e) => {
                assert!(
                    std::env::var_os("CI").is_none(),
                    "testparm: {e} (scripts/install-test-deps installs it)"
                );
                eprintln!("not tested: samba_reads_the_same: testparm: {e}");
                return;
            }
        };
        assert!(output.status.success(), "{}: {}", file.display(), String::from_utf8_lossy(&output.stderr));
        // What testparm prints is a configuration without includes: those were read.
        let printed = String::from_utf8(output.stdout).unwrap();
        let is_kept = |line: &&str| {
            !line.trim_start().starts_with("include =") && !line.trim_start().starts_with("copy =")
        };
        let printed: String = printed.lines().filter(is_kept).flat_map(|line| [line, "\n"]).collect();
        let theirs = served(&read("testparm", &printed));
        let ours = served(&read("ours", &fs::read_to_string(&file).unwrap()));
        assert_eq!(ours, theirs, "{}", file.display());
    }
}
