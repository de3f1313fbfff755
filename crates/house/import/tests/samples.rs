//! Configurations of real shapes, and what becomes of each, compared as a whole. `IMPORT_WRITE=1` writes the expected files anew, to be
//! read before they are committed.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use anabranch_import::{Error, File, Imported, Machine, Reader, Samba};

mod machine;

use machine::{Here, TestMachine};

fn samples(folder: &str, extension: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let is_sample = |path: &PathBuf| path.extension().is_some_and(|found| found == extension);
    let mut samples: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(is_sample).collect();
    samples.sort();
    samples
}

fn name(path: &Path) -> &str {
    path.file_name().unwrap().to_str().unwrap()
}

/// What was made and what is noted, for people.
fn told(imported: &Imported) -> String {
    let mut text = imported.text.clone();
    text.push_str("\n# ---- notes ----\n");
    for note in &imported.notes {
        let said = [note.parameter.as_str(), note.value.as_str()].join(" = ");
        text.push_str(&format!(
            "# {:?} {} [{}] {said}: {}\n",
            note.grade, note.place, note.section, note.why
        ));
    }
    text
}

fn compare(sample: &Path, imported: &Imported) {
    assert!(imported.text.parse::<toml::Table>().is_ok(), "{}: {}", sample.display(), imported.text);
    let expected = sample.with_extension("expected");
    let told = told(imported);
    if std::env::var_os("IMPORT_WRITE").is_some() {
        fs::write(expected, told).unwrap();
        return;
    }
    let expected = fs::read_to_string(&expected).unwrap_or_default();
    assert_eq!(told, expected, "{}", sample.display());
}

fn import(sample: &Path) -> Result<Imported, Error> {
    let text = fs::read_to_string(sample).unwrap();
    let users = fs::read_to_string(sample.with_extension("users")).ok();
    let users_name = format!("{}.users", sample.file_stem().unwrap().to_str().unwrap());
    let reader: &dyn Reader = &Here;
    let machine: &dyn Machine = &TestMachine;
    let users = users.as_deref().map(|text| (users_name.as_str(), text));
    anabranch_import::samba(&Samba { file: name(sample), text: &text, users, reader, machine })
}

#[test]
fn configurations_of_samba() {
    let samples = samples("samba", "conf");
    assert!(samples.len() >= 12, "{samples:?}");
    for sample in samples {
        compare(&sample, &import(&sample).unwrap());
    }
}

#[test]
fn tables_of_exports() {
    let samples = samples("exports", "exports");
    assert!(samples.len() >= 6, "{samples:?}");
    for sample in samples {
        let text = fs::read_to_string(&sample).unwrap();
        compare(&sample, &anabranch_import::exports(&[File { name: name(&sample), text: &text }]).unwrap());
    }
}

#[test]
fn what_samba_does_not_load_is_refused_with_its_line() {
    for (text, line, why) in [
        ("[global]\n[x\npath = /x\n", 2, "no ]"),
        ("[]\n", 1, "no name"),
        ("[x]\n = 7\n", 2, "no name"),
        ("[x]\nread only = maybe\n", 2, "neither yes nor no"),
        ("[x]\ncopy = y\n", 2, "[y]"),
        ("[x]\ncopy = X\n", 2, "[X]"),
        ("[global]\n\nconfig file = /etc/other.conf\n", 3, "/etc/other.conf"),
        ("[global]\ninclude = itself\n", 2, "include each other"),
    ] {
        let samba = Samba { file: "f", text, users: None, reader: &Itself, machine: &TestMachine };
        let error = anabranch_import::samba(&samba).unwrap_err();
        assert!(error.place.line == line || why.contains("include"), "{error}");
        assert!(error.what.contains(why), "{error}");
    }
    let refused = anabranch_import::exports(&[File { name: "e", text: "\n/a b(rw\n" }]).unwrap_err();
    assert_eq!(refused.to_string(), "e line 2: b(rw has no list of options in parentheses");
}

struct Itself;

impl Reader for Itself {
    fn read(&self, _: &str) -> Result<Option<String>, String> {
        Ok(Some("include = itself\n".to_owned()))
    }
}
