//! `include`: further files.

use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::settings::Key;

/// The key.
pub(super) const KEY: Key = Key { name: "include", example: "[\"conf.d/*.toml\"]", default: Some("[]") };

/// What stands behind the key.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Includes {
    pub(super) include: Vec<String>,
}

/// The files that a pattern in this file means, in the order of their names. A pattern without special characters means
/// one file, which may be missing.
///
/// # Errors
/// It is no pattern, or a directory cannot be read.
pub(super) fn files(file: &Path, pattern: &str) -> io::Result<Vec<PathBuf>> {
    let beside = file.parent().unwrap_or_else(|| Path::new(""));
    if !pattern.contains(['*', '?', '[']) {
        return Ok(vec![beside.join(pattern)]);
    }
    // The directory of the file is no pattern, whatever its name is.
    let beside = if pattern.starts_with('/') { String::new() } else { escaped(beside) };
    let whole = if beside.is_empty() { pattern.to_owned() } else { format!("{beside}/{pattern}") };
    let found = glob::glob(&whole).map_err(|e| io::Error::other(e.to_string()))?;
    found.map(|path| path.map_err(|e| io::Error::new(e.error().kind(), e.to_string()))).collect()
}

fn escaped(directory: &Path) -> String {
    glob::Pattern::escape(&directory.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_come_in_the_order_of_their_names() {
        let directory = tempfile::tempdir().unwrap();
        let here = directory.path().join("a [b] *");
        std::fs::create_dir_all(here.join("conf.d")).unwrap();
        for name in ["20.toml", "10.toml", "note.txt"] {
            std::fs::write(here.join("conf.d").join(name), "").unwrap();
        }
        let found = |pattern: &str| {
            let found = files(&here.join("main.toml"), pattern).unwrap();
            found
                .iter()
                .map(|path| path.strip_prefix(&here).unwrap().display().to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(found("conf.d/*.toml"), ["conf.d/10.toml", "conf.d/20.toml"]);
        assert_eq!(found("conf.d/?0.toml").len(), 2);
        assert_eq!(found("none.d/*.toml"), Vec::<String>::new());
        assert_eq!(found("one.toml"), ["one.toml"]);
        let absolute = files(&here.join("main.toml"), "/no/such/file.toml").unwrap();
        assert_eq!(absolute, [Path::new("/no/such/file.toml")]);
        assert!(files(Path::new("main.toml"), "a/***").is_err());
    }
}
