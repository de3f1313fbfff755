//! Until when snapshots are protected.
//!
//! The protection belongs to a snapshot of a directory, not to a share: a share that is created anew there, under whatever name, has it, too.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::store::{Form, Table};
use crate::{Result, State};

/// Protected snapshots, as JSON, by directory and name.
pub(crate) const PROTECTED: Table = Table { name: "protected-snapshots", form: Form::TextToBytes };

/// A snapshot that nobody may remove for some time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProtectedSnapshot {
    /// The directory of which it is a snapshot: absolute.
    pub directory: PathBuf,
    /// Its name.
    pub name: String,
    /// In seconds of the Unix epoch.
    pub until: u64,
}

/// Of names that are not UTF-8, several may become one. What is protected then is more than what was asked for.
fn key(directory: &Path, name: &str) -> String {
    format!("{}\0{name}", directory.to_string_lossy())
}

impl State {
    /// The protected snapshots of a directory, also those whose time is over.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn protected_snapshots(&self, directory: &Path) -> Result<Vec<ProtectedSnapshot>> {
        let mut all: Vec<ProtectedSnapshot> = self.records(PROTECTED)?;
        all.retain(|snapshot| snapshot.directory.to_string_lossy() == directory.to_string_lossy());
        Ok(all)
    }

    /// Protects a snapshot until a time. A protection that lasts longer stays as it is.
    ///
    /// # Errors
    /// The database cannot be read or written.
    pub fn protect_snapshot(&self, snapshot: &ProtectedSnapshot) -> Result<()> {
        let key = key(&snapshot.directory, &snapshot.name);
        let known = self.read(PROTECTED, &key)?;
        let known: Option<ProtectedSnapshot> =
            known.map(|json| serde_json::from_slice(&json).map_err(|e| self.trouble(e))).transpose()?;
        match known {
            Some(known) if known.until >= snapshot.until => Ok(()),
            _ => self.keep(PROTECTED, &key, snapshot),
        }
    }

    /// Forgets the protection of a snapshot that is gone.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn forget_protection(&self, directory: &Path, name: &str) -> Result<()> {
        self.change(vec![PROTECTED.remove(key(directory, name).as_bytes())])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_protection_is_only_extended() {
        let place = tempfile::tempdir().unwrap();
        let state = State::open(&place.path().join("state")).unwrap();
        let of = |name: &str, until| ProtectedSnapshot {
            directory: "/srv/data".into(),
            name: name.to_owned(),
            until,
        };
        let protected = |directory: &str| state.protected_snapshots(Path::new(directory)).unwrap();
        state.protect_snapshot(&of("a", 5)).unwrap();
        state.protect_snapshot(&of("b", 5)).unwrap();
        state.protect_snapshot(&of("a", 4)).unwrap();
        assert_eq!(protected("/srv/data"), [of("a", 5), of("b", 5)]);
        state.protect_snapshot(&of("a", 6)).unwrap();
        assert_eq!(protected("/srv/data"), [of("a", 6), of("b", 5)]);
        assert_eq!(protected("/srv/dat"), []);
        state.forget_protection(Path::new("/srv/data"), "a").unwrap();
        assert_eq!(protected("/srv/data"), [of("b", 5)]);
    }
}
