//! What is replicated from other servers, and which servers replicate from here.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::store::{Form, Table};
use crate::{Result, State};

/// Shares that are replicas, as JSON, by name in lower case.
pub(crate) const REPLICATIONS: Table = Table { name: "replications", form: Form::TextToBytes };
/// The destinations of shares, as JSON, by name of the share in lower case.
pub(crate) const DESTINATIONS: Table = Table { name: "replication-destinations", form: Form::TextToBytes };

/// A share that is, or was, a replica of one on another server.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReplicationRecord {
    /// The share.
    pub share: String,
    /// The directory that it serves.
    pub directory: PathBuf,
    /// Where the source is: `https://HOST:PORT/SHARE`.
    pub from: String,
    /// The certificate of the source, in PEM; empty: it does not use TLS.
    pub certificate: String,
    /// The token that is shown there.
    pub token: String,
    /// By which the source knows this replica.
    pub id: u64,
    /// After how many seconds it is brought up to date again.
    pub every: u64,
    /// The most bytes of each second; None: as many as there can be.
    pub bandwidth: Option<u64>,
    /// It can be written, and is not brought up to date.
    pub broken: bool,
    /// It was broken off, and was not brought up to date since it became a replica again.
    pub resync: bool,
    /// The snapshot that clients see, of this share.
    pub shown: String,
    /// The snapshot of the source that it is like; empty: nothing was transferred yet.
    pub of: String,
    /// When that one was taken, in seconds of the Unix epoch.
    pub of_taken: i64,
    /// The snapshot of the source of which it may have a part; empty: none.
    pub toward: String,
    /// How many transfers were completed.
    pub transfers: u64,
    /// The destination that has exchanged roles with this share, as long as snapshots are kept for it.
    pub former: Option<u64>,
}

/// The token opens what the other server has.
impl fmt::Debug for ReplicationRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { share, from, broken, shown, of, .. } = self;
        let mut shape = f.debug_struct("ReplicationRecord");
        shape.field("share", share).field("from", from).field("broken", broken);
        shape.field("shown", shown).field("of", of).finish_non_exhaustive()
    }
}

/// The destinations of a share.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DestinationsRecord {
    /// The share.
    pub share: String,
    /// The directory that it serves: of another one they are no destinations.
    pub directory: PathBuf,
    /// All of them.
    pub destinations: Vec<DestinationRecord>,
}

/// A server that replicates a share.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DestinationRecord {
    /// By which it is known.
    pub id: u64,
    /// The snapshot that it has; empty: none yet.
    pub completed: String,
    /// The snapshot that it is about to have; empty: none.
    pub pending: String,
    /// When it was heard of last, in seconds of the Unix epoch.
    pub seen: u64,
}

impl State {
    /// The shares that are replicas.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn replications(&self) -> Result<Vec<ReplicationRecord>> {
        self.records(REPLICATIONS)
    }

    /// What a share is a replica of.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn replication_of(&self, share: &str) -> Result<Option<ReplicationRecord>> {
        let json = self.read(REPLICATIONS, &share.to_lowercase())?;
        json.map(|json| serde_json::from_slice(&json).map_err(|e| self.trouble(e))).transpose()
    }

    /// Keeps what a share is a replica of.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn keep_replication(&self, record: &ReplicationRecord) -> Result<()> {
        self.keep(REPLICATIONS, &record.share.to_lowercase(), record)
    }

    /// Forgets what a share is a replica of.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn forget_replication(&self, share: &str) -> Result<()> {
        self.change(vec![REPLICATIONS.remove(share.to_lowercase().as_bytes())])
    }

    /// The destinations of a share.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn destinations_of(&self, share: &str) -> Result<Option<DestinationsRecord>> {
        let json = self.read(DESTINATIONS, &share.to_lowercase())?;
        json.map(|json| serde_json::from_slice(&json).map_err(|e| self.trouble(e))).transpose()
    }

    /// The destinations of all shares.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn destinations(&self) -> Result<Vec<DestinationsRecord>> {
        self.records(DESTINATIONS)
    }

    /// Keeps the destinations of a share.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn keep_destinations(&self, record: &DestinationsRecord) -> Result<()> {
        self.keep(DESTINATIONS, &record.share.to_lowercase(), record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_go_with_their_share() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("state");
        let state = State::open(&directory).unwrap();
        let replication =
            ReplicationRecord { share: "Data".to_owned(), token: "hush".to_owned(), ..Default::default() };
        let destination = DestinationRecord { id: 7, completed: "a".to_owned(), ..Default::default() };
        let destinations = DestinationsRecord {
            share: "Data".to_owned(),
            directory: "/srv".into(),
            destinations: vec![destination],
        };
        state.keep_replication(&replication).unwrap();
        state.keep_destinations(&destinations).unwrap();
        drop(state);
        let state = State::open(&directory).unwrap();
        assert_eq!(state.replication_of("DATA").unwrap(), Some(replication.clone()));
        assert_eq!(state.replications().unwrap(), std::slice::from_ref(&replication));
        assert_eq!(state.destinations_of("data").unwrap().as_ref(), Some(&destinations));
        assert_eq!(state.destinations().unwrap(), [destinations]);
        assert!(!format!("{replication:?}").contains("hush"));
        state.forget_share_number("data").unwrap();
        assert!(state.replication_of("data").unwrap().is_some(), "it went back to a snapshot");
        state.forget_share("data").unwrap();
        assert_eq!(state.replication_of("data").unwrap(), None);
        assert_eq!(state.destinations_of("data").unwrap(), None);
        state.keep_replication(&replication).unwrap();
        state.forget_replication("DATA").unwrap();
        assert_eq!(state.replications().unwrap(), []);
    }
}
