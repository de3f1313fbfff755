//! A pool as given by a table of the file.

use std::path::PathBuf;

use gateway::settings::{PoolSettings, check_pool_name};
use serde::Deserialize;

/// A table in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PoolGiven(pub(crate) PoolSettings);

/// The keys of `[[pool]]` with their values.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct PoolTable {
    name: String,
    directory: PathBuf,
    overcommit: Overcommit,
}

/// Whether the shares of a pool may be larger together than its file system.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Overcommit {
    #[default]
    No,
    Yes,
}

impl PoolTable {
    /// The pool, if its values are right; otherwise what is wrong with which key.
    pub(crate) fn settle(self) -> Result<PoolGiven, Vec<(&'static str, String)>> {
        let Self { name, directory, overcommit } = self;
        let mut wrong = Vec::new();
        if let Err(why) = check_pool_name(&name) {
            wrong.push(("name", why));
        }
        if gateway::path_in_cephfs(&directory).is_some() {
            wrong.push(("directory", format!("the pool {name}: pools in CephFS are not supported")));
        } else if !directory.is_absolute() {
            wrong
                .push(("directory", format!("the pool {name}: the directory {directory:?} is not absolute")));
        }
        if !wrong.is_empty() {
            return Err(wrong);
        }
        let overcommits = overcommit == Overcommit::Yes;
        Ok(PoolGiven(PoolSettings { name, directory, overcommits }))
    }
}

/// As the key `overcommit` is written.
pub(crate) fn write_overcommit(overcommits: bool) -> &'static str {
    if overcommits { "yes" } else { "no" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(text: &str) -> Result<PoolGiven, Vec<(&'static str, String)>> {
        toml::from_str::<PoolTable>(text).unwrap().settle()
    }

    #[test]
    fn what_is_wrong_is_told_at_its_key() {
        for (text, keys) in [
            ("name = 'a'\ndirectory = 'pool'", &["directory"][..]),
            ("name = 'a'\ndirectory = 'cephfs:/pool'", &["directory"]),
            ("name = ''\ndirectory = ''", &["name", "directory"]),
            ("name = 'a/b'\ndirectory = '/srv/pool'", &["name"]),
            ("name = '..'\ndirectory = '/srv/pool'", &["name"]),
        ] {
            let wrong = settled(text).unwrap_err();
            assert_eq!(wrong.iter().map(|(key, _)| *key).collect::<Vec<_>>(), keys, "{text}");
        }
        let overcommits =
            |text: &str| settled(&format!("name = 'a'\ndirectory = '/p'{text}")).unwrap().0.overcommits;
        assert_eq!(
            ["", "\novercommit = 'no'", "\novercommit = 'yes'"].map(overcommits),
            [false, false, true]
        );
    }
}
