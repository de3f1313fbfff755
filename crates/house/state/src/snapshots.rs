//! Until when snapshots are protected.
//!
//! The protection belongs to a snapshot, not to a share: a share that is created anew on its directory, under whatever name, has it,
//! too. A snapshot is known by what tells it from all others ([`ProtectedSnapshot::identity`]). Records without that are of servers
//! that knew it by its directory and its name: it is known so until its time is over.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::store::{Form, Table};
use crate::{Result, State};

/// Protected snapshots, as JSON, by directory and identity, or by directory and name.
pub(crate) const PROTECTED: Table = Table { name: "protected-snapshots", form: Form::TextToBytes };

/// How an identity begins that no other snapshot has, of any directory.
const EVERYWHERE: &str = "uuid:";

/// A snapshot that nobody may remove for some time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProtectedSnapshot {
    /// The directory of which it is a snapshot: absolute.
    pub directory: PathBuf,
    /// Its name, when it was protected.
    pub name: String,
    /// In seconds of the Unix epoch.
    pub until: u64,
    /// What tells it from all other snapshots of its directory; one that begins with `uuid:`, from those of all directories. None: its
    /// name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
}

impl ProtectedSnapshot {
    /// Whether this is the snapshot with this identity and, now, this name.
    #[must_use]
    pub fn is_of(&self, identity: &str, name: &str) -> bool {
        self.identity.as_ref().map_or(self.name == name, |known| known == identity)
    }

    fn is_in(&self, directory: &Path) -> bool {
        let is_known_everywhere = self.identity.as_ref().is_some_and(|known| known.starts_with(EVERYWHERE));
        is_known_everywhere || self.directory.to_string_lossy() == directory.to_string_lossy()
    }

    /// Of names that are not UTF-8, several may become one. What is protected then is more than what was asked for.
    fn key(&self) -> String {
        let what = self.identity.as_ref().unwrap_or(&self.name);
        format!("{}\0{what}", self.directory.to_string_lossy())
    }
}

impl State {
    /// The protected snapshots that may be those of a directory, also those whose time is over.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn protected_snapshots(&self, directory: &Path) -> Result<Vec<ProtectedSnapshot>> {
        let mut all: Vec<ProtectedSnapshot> = self.records(PROTECTED)?;
        all.retain(|snapshot| snapshot.is_in(directory));
        Ok(all)
    }

    /// Protects a snapshot until a time. A protection that lasts longer stays as it is.
    ///
    /// # Errors
    /// The database cannot be read or written.
    pub fn protect_snapshot(&self, snapshot: &ProtectedSnapshot) -> Result<()> {
        let key = snapshot.key();
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
    pub fn forget_protection(&self, snapshot: &ProtectedSnapshot) -> Result<()> {
        self.change(vec![PROTECTED.remove(snapshot.key().as_bytes())])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, until: u64, identity: Option<&str>) -> ProtectedSnapshot {
        let identity = identity.map(str::to_owned);
        ProtectedSnapshot { directory: "/srv/data".into(), name: name.to_owned(), until, identity }
    }

    #[test]
    fn a_protection_is_only_extended() {
        let place = tempfile::tempdir().unwrap();
        let state = State::open(&place.path().join("state")).unwrap();
        let of = |name: &str, until| of(name, until, Some(&format!("number:{name}")));
        let protected = |directory: &str| state.protected_snapshots(Path::new(directory)).unwrap();
        state.protect_snapshot(&of("1", 5)).unwrap();
        state.protect_snapshot(&of("2", 5)).unwrap();
        state.protect_snapshot(&of("1", 4)).unwrap();
        assert_eq!(protected("/srv/data"), [of("1", 5), of("2", 5)]);
        state.protect_snapshot(&of("1", 6)).unwrap();
        assert_eq!(protected("/srv/data"), [of("1", 6), of("2", 5)]);
        assert_eq!(protected("/srv/dat"), []);
        state.forget_protection(&of("1", 6)).unwrap();
        assert_eq!(protected("/srv/data"), [of("2", 5)]);
    }

    #[test]
    fn what_has_a_uuid_is_known_at_every_path_and_under_every_name() {
        let place = tempfile::tempdir().unwrap();
        let state = State::open(&place.path().join("state")).unwrap();
        let all = [of("a", 5, Some("uuid:1")), of("a", 6, Some("number:7")), of("a", 7, None)];
        for one in &all {
            state.protect_snapshot(one).unwrap();
        }
        let known = |directory: &str, identity: &str, name: &str| -> Vec<u64> {
            let known = state.protected_snapshots(Path::new(directory)).unwrap();
            let mut until: Vec<_> =
                known.iter().filter(|one| one.is_of(identity, name)).map(|one| one.until).collect();
            until.sort_unstable();
            until
        };
        assert_eq!(known("/srv/data", "uuid:1", "b"), [5]);
        assert_eq!(known("/mnt/other", "uuid:1", "b"), [5]);
        assert_eq!(known("/srv/data", "number:7", "b"), [6]);
        assert_eq!(known("/mnt/other", "number:7", "a"), [0; 0]);
        assert_eq!(known("/srv/data", "uuid:2", "a"), [7], "a record of a server that knew names");
        assert_eq!(known("/srv/data", "uuid:2", "b"), [0; 0]);
    }
}
