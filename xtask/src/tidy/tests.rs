//! Faults planted in a repository.

use super::*;

const CONTRIBUTING: &str = "## Glossary\n\n| term | meaning | do not write |\n|---|---|---|\n| filehandle | a name | file handle |\n";

struct Planted {
    folder: tempfile::TempDir,
}

impl Planted {
    fn new() -> Self {
        let planted = Self { folder: tempfile::tempdir().unwrap() };
        let begun = Command::new("git").args(["init", "-q"]).current_dir(planted.folder.path()).status();
        assert!(begun.unwrap().success());
        planted.write("CONTRIBUTING.md", CONTRIBUTING);
        planted
    }

    fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn verdict(&self) -> Verdict {
        check(self.folder.path()).unwrap()
    }

    /// The faults in the form in which they are printed.
    fn faults(&self) -> Vec<String> {
        self.verdict().faults.iter().map(|(path, what)| format!("{path}: {what}")).collect()
    }
}

fn lines(count: usize) -> String {
    "x\n".repeat(count)
}

#[test]
fn files_are_those_that_git_does_not_ignore() {
    let planted = Planted::new();
    planted.write(".gitignore", "target/\n");
    planted.write("target/a.rs", "no newline");
    let verdict = planted.verdict();
    assert_eq!((verdict.files, verdict.failed()), (2, 0));
}

#[test]
fn a_file_with_several_faults_counts_once() {
    let planted = Planted::new();
    planted.write("a.rs", "// TODO\nmod util;");
    let found =
        ["a.rs: no newline at the end", "a.rs: line 1: a note to oneself", "a.rs: line 2: the name util"];
    assert_eq!(planted.faults(), found);
    assert_eq!(planted.verdict().failed(), 1);
}

#[test]
fn files_are_short() {
    let planted = Planted::new();
    planted.write("a.rs", lines(LINES_MAX));
    planted.write("b.rs", lines(LINES_MAX - 1) + "#[cfg(test)]\n" + &lines(LINES_MAX));
    planted.write("c/tests/d.rs", lines(TEST_LINES_MAX - 1));
    planted.write("e/tests.rs", lines(TEST_LINES_MAX));
    planted.write("f.md", "x".repeat(BYTES_MAX) + "\n");
    planted.write("g.bin", "x".repeat(BYTES_MAX + 1));
    planted.write("testdata/h.bin", "x".repeat(BYTES_MAX + 1));
    let found = [
        "a.rs: 701 lines, at most 700: does it hold one idea?",
        "e/tests.rs: 1001 lines, at most 1000: does it hold one idea?",
        "f.md: 65537 bytes, at most 65536",
        "g.bin: 65537 bytes, at most 65536",
    ];
    assert_eq!(planted.faults(), found);
}

#[test]
fn sources_are_ascii() {
    let planted = Planted::new();
    planted.write("script", "#!/bin/sh\n# \u{e9}\n\n# \u{e9}\n# \u{e9}\n# \u{e9}\n");
    planted.write("data", "\u{e9}");
    let found = ["script: line 2: not ASCII", "script: line 4: not ASCII", "script: line 5: not ASCII"];
    assert_eq!(planted.faults(), found);
}

#[test]
fn links_lead_somewhere() {
    let planted = Planted::new();
    planted
        .write("docs/a.md", "# One `b`\n\n[b](#one-b) [c](../README.md#two) [d](../docs) [e](https://e)\n");
    planted.write("README.md", "# Two\n\n[a](docs/a.md#one-c) [b](docs/b.md) [c](#three)\n");
    planted.write("c.rs", "//! docs/a.md, docs/c.md\n");
    let found = [
        "README.md: names docs/b.md, which is not there",
        "README.md: links to docs/a.md#one-c: no such heading",
        "README.md: links to docs/b.md: no such file",
        "README.md: links to #three: no such heading",
        "c.rs: names docs/c.md, which is not there",
    ];
    assert_eq!(planted.faults(), found);
}

#[test]
fn the_glossary_holds_for_pages() {
    let planted = Planted::new();
    planted.write("a.md", "a file\nhandle\n");
    assert_eq!(planted.faults(), ["a.md: line 1: the glossary does not allow \"file handle\""]);
    planted.write("CONTRIBUTING.md", "# No glossary\n");
    let problem = check(planted.folder.path()).err().unwrap();
    assert_eq!(problem, "CONTRIBUTING.md: the glossary forbids no phrase: has its form changed?");
}

#[test]
fn the_manifest_of_a_library_says_whether_it_has_examples() {
    let planted = Planted::new();
    let manifest = "crates/a/Cargo.toml";
    planted.write(manifest, "[lib]\n");
    assert!(planted.faults().is_empty(), "a program");
    planted.write("crates/a/src/lib.rs", "//! ```text\n//! a\n//! ```\n");
    assert_eq!(planted.faults(), [format!("{manifest}: no example, and no doctest = false")]);
    planted.write(manifest, "[lib]\ndoctest = false\n");
    assert!(planted.faults().is_empty());
    let fault = [format!("{manifest}: doctest = false, and crates/a/src/b.rs has an example")];
    for example in [
        "    /// ```\n    /// a();\n",
        "//! ```text\n//! ```\n//! ```no_run\n",
        "#[doc = include_str!(\"../README.md\")]\n",
    ] {
        planted.write("crates/a/src/b.rs", example);
        assert_eq!(planted.faults(), fault);
        planted.write(manifest, "[lib]\n");
        assert!(planted.faults().is_empty());
        planted.write(manifest, "[lib]\ndoctest = false\n");
    }
}
