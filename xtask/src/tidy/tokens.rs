//! The files that may make the token that lets a call to a store wait (docs/adr/0014-waiting-is-a-token.md).
//!
//! The compiler does not let other code make a `MayWait`. A few values lend it, and few files make those values; the
//! files are listed here.

/// The makers of tokens, and the files that may name them outside of tests.
const MAKERS: [(&str, &[&str]); 4] = [
    (
        "StoreThread::spawn",
        &[
            "crates/service/share/src/store/pool.rs",
            "crates/service/share/src/watch/observe.rs",
            "crates/service/share/src/budget/capacity.rs",
            "crates/service/share/src/empty_bin.rs",
            "crates/service/share/src/quotas/keeper.rs",
            "crates/house/gateway/src/servers.rs",
            "crates/house/gateway/src/administration/awaited.rs",
            "crates/house/gateway/src/snapshots/restores.rs",
            "crates/house/gateway/src/administration/replication.rs",
            "crates/house/gateway/src/administration/replication_source.rs",
            "crates/house/gateway/src/replication/replicator.rs",
        ],
    ),
    ("StoreThread::simulated", &["crates/service/share/src/store/pool.rs"]),
    ("KnownLocal::of", &["crates/service/share/src/store.rs", "crates/house/gateway/src/opening.rs"]),
    ("conformance::MAY", &[]),
];

/// The faults of a source: tokens of tests, and makers of tokens in the wrong files.
pub(super) fn faults(path: &str, text: &str) -> Vec<String> {
    let is_test =
        ["/tests/", "/tests.rs", "/examples/", "/conformance"].iter().any(|part| path.contains(part));
    if !path.starts_with("crates/") || !path.ends_with(".rs") || is_test {
        return Vec::new();
    }
    let lines = (1..).zip(text.lines()).take_while(|(_, line)| *line != "#[cfg(test)]");
    let code = lines.filter(|(_, line)| !line.trim_start().starts_with("//"));
    let named = code.flat_map(|(number, line)| {
        let makers =
            MAKERS.iter().filter(move |(maker, files)| line.contains(maker) && !files.contains(&path));
        makers.map(move |(maker, _)| {
            format!("line {number}: {maker} is not for this file (xtask/src/tidy/tokens.rs)")
        })
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const POOL: &str = "crates/service/share/src/store/pool.rs";
    const OTHER: &str = "crates/front/smb-server/src/state/open.rs";

    #[test]
    fn tokens_are_made_by_few() {
        let text = "use storage::StoreThread;\nStoreThread::spawn(\"a\", work);\n";
        assert!(faults(POOL, text).is_empty());
        let found = ["line 2: StoreThread::spawn is not for this file (xtask/src/tidy/tokens.rs)"];
        assert_eq!(faults(OTHER, text), found);
        assert_eq!(faults(OTHER, "KnownLocal::of(&store)\nStoreThread::simulated()").len(), 2);
        assert_eq!(faults(POOL, "use storage::conformance::MAY;").len(), 1);
    }

    #[test]
    fn tests_and_comments_may_name_them() {
        let text =
            "/// KnownLocal::of\nfn a() {}\n#[cfg(test)]\nmod tests {\n    use storage::conformance::MAY;\n";
        assert!(faults(OTHER, text).is_empty());
        for path in ["crates/a/tests/b.rs", "crates/a/src/tests.rs", "crates/a/examples/b.rs", "xtask/a.rs"] {
            assert!(faults(path, "storage::conformance::MAY").is_empty(), "{path}");
        }
    }

    #[test]
    fn the_files_are_there() {
        let top = crate::repository::top();
        for path in MAKERS.iter().flat_map(|(_, files)| *files) {
            assert!(top.join(path).is_file(), "{path}");
        }
    }
}
