//! Faults planted in a workspace of three crates.

use super::*;

const TABLE: &str = "| layer | crate | holds | may use | its tests also |\n\
                     |---|---|---|---|---|\n\
                     | wire | `smb-wire` | bytes | - | - |\n\
                     | | `nfs-wire` | bytes | - | - |\n\
                     | front | `smb-server` | handlers | smb-wire | - |\n";

/// A workspace. Tests change some of its files.
struct Planted {
    folder: tempfile::TempDir,
}

impl Planted {
    fn new() -> Self {
        let planted = Self { folder: tempfile::tempdir().unwrap() };
        planted.write("Cargo.toml", "[workspace]\nresolver = \"2\"\nmembers = [\"crates/*/*\"]\n");
        planted.write("ARCHITECTURE.md", TABLE);
        planted.package("crates/wire/smb-wire", "");
        planted.package("crates/wire/nfs-wire", "");
        planted
            .package("crates/front/smb-server", "anabranch-smb-wire = { path = \"../../wire/smb-wire\" }\n");
        planted
    }

    fn package(&self, place: &str, dependencies: &str) {
        let name = place.rsplit('/').next().unwrap_or_default();
        let prefix = if name == CHORES { "" } else { "anabranch-" };
        let manifest = format!("[package]\nname = \"{prefix}{name}\"\nedition = \"2024\"\n[dependencies]\n");
        self.write(&format!("{place}/Cargo.toml"), &(manifest + dependencies));
        self.write(&format!("{place}/src/lib.rs"), "");
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// The faults in the form in which they are printed.
    fn faults(&self) -> Vec<String> {
        let top = self.folder.path().canonicalize().unwrap();
        let verdict = check(&top).unwrap();
        verdict.faults.iter().map(|(name, what)| format!("{name} {what}")).collect()
    }
}

#[test]
fn nothing_is_wrong_where_nothing_is_planted() {
    assert!(Planted::new().faults().is_empty());
}

#[test]
fn a_circle_of_files_that_crosses_a_folder_is_a_fault() {
    let planted = Planted::new();
    planted.write("crates/wire/smb-wire/src/lib.rs", "mod read;\nmod write;\n");
    planted.write("crates/wire/smb-wire/src/read/mod.rs", "mod reply;\npub struct Read;\n");
    planted.write("crates/wire/smb-wire/src/read/reply.rs", "use crate::write::Write;\n");
    planted.write("crates/wire/smb-wire/src/write.rs", "use crate::read::Read;\npub struct Write;\n");
    assert!(planted.faults().is_empty());

    planted.write("crates/wire/smb-wire/src/write.rs", "use crate::read::reply::Reply;\npub struct Write;\n");
    let found = ["smb-wire has a circle of files that crosses a folder: read::reply, write"];
    assert_eq!(planted.faults(), found);
}

#[test]
fn the_table_and_the_crates_are_the_same() {
    let planted = Planted::new();
    planted.package("crates/wire/acl", "");
    planted.write("ARCHITECTURE.md", &TABLE.replace("nfs-wire", "nfs-bytes"));
    let found = [
        "nfs-bytes is in the table of ARCHITECTURE.md, but there is no such crate",
        "acl is not in the table of ARCHITECTURE.md",
        "nfs-wire is not in the table of ARCHITECTURE.md",
    ];
    assert_eq!(planted.faults(), found);
}

#[test]
fn a_crate_uses_what_its_row_names() {
    let planted = Planted::new();
    planted.package("crates/front/smb-server", "anabranch-nfs-wire = { path = \"../../wire/nfs-wire\" }\n");
    let found = [
        "smb-server uses nfs-wire",
        "smb-server may use smb-wire, and does not: take it out of ARCHITECTURE.md",
        "smb-server reaches anabranch-nfs-wire",
    ];
    assert_eq!(planted.faults(), found);
}

#[test]
fn tests_do_not_count_as_the_build() {
    let planted = Planted::new();
    let uses = "anabranch-smb-wire = { path = \"../../wire/smb-wire\" }\n\
                [dev-dependencies]\nanabranch-nfs-wire = { path = \"../../wire/nfs-wire\" }\n";
    planted.package("crates/front/smb-server", uses);
    assert_eq!(planted.faults(), ["smb-server tests use nfs-wire"]);
}

#[test]
fn a_pure_crate_has_no_clock_and_no_runtime() {
    let planted = Planted::new();
    planted.write(
        "Cargo.toml",
        "[workspace]\nresolver = \"2\"\nmembers = [\"crates/*/*\"]\nexclude = [\"time\"]\n",
    );
    planted.write("time/Cargo.toml", "[package]\nname = \"time\"\nedition = \"2024\"\n");
    planted.write("time/src/lib.rs", "");
    planted.package("crates/wire/nfs-wire", "time = { path = \"../../../time\" }\n");
    planted.write("crates/wire/smb-wire/src/lib.rs", "// std::fs::read\nfn f() {\n    std::fs::read(p)\n}\n");
    let found = planted.faults();
    assert!(found.contains(&"nfs-wire has time among its dependencies".to_owned()), "{found:?}");
    assert!(
        found.contains(&"smb-wire crates/wire/smb-wire/src/lib.rs:3: std::fs::read(p)".to_owned()),
        "{found:?}"
    );
}

#[test]
fn the_chores_stand_apart() {
    let planted = Planted::new();
    let members = "[workspace]\nresolver = \"2\"\nmembers = [\"crates/*/*\", \"xtask\"]\n";
    planted.write("Cargo.toml", members);
    planted.package("xtask", "");
    assert!(planted.faults().is_empty());

    planted.package("xtask", "anabranch-smb-wire = { path = \"../crates/wire/smb-wire\" }\n");
    assert_eq!(planted.faults(), ["xtask uses smb-wire; it may use no crate of the table"]);

    planted.write("Cargo.toml", &members.replace("\"xtask\"", "\"tools/xtask\""));
    planted.package("tools/xtask", "");
    assert_eq!(planted.faults(), ["xtask stands in tools/xtask; its folder is xtask"]);
}
