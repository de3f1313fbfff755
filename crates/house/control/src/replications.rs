//! Shares that are replicated to other servers, in the form of the API: `/v1/shares/NAME/replication` at the destination,
//! `/v1/shares/NAME/destinations` at the source, and below `/v1/replication` what the destination asks the source for.

use std::io;

use serde::{Deserialize, Serialize};

/// A share that is to be a replica.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewReplication {
    /// The source: `https://HOST:PORT/SHARE`, with the control address of the other server.
    pub from: String,
    /// A token of the other server, with the scope `replicate`.
    pub token: String,
    /// The certificate of the other server's control address, in PEM.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub certificate: String,
    /// After how many seconds it is brought up to date again: 60 to 604800. None: 600.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every_seconds: Option<u64>,
    /// The most bytes of each second. None: as many as there can be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<u64>,
    /// Whether the source was a replica of this share until it was broken off, and both exchange their roles: the share need not be
    /// empty then. What it has stays as a snapshot.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reverse: bool,
}

/// The token is a secret.
impl std::fmt::Debug for NewReplication {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewReplication").field("from", &self.from).finish_non_exhaustive()
    }
}

/// What is to become of a replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReplicationAction {
    /// It is brought up to date now.
    Now,
    /// It can be written from now on, and is not brought up to date any more.
    Break,
    /// It becomes a replica again. What was changed meanwhile stays as a snapshot.
    Resync,
}

/// An order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplicationChange {
    /// What is to be done.
    pub action: ReplicationAction,
}

/// A replica.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replication {
    /// The source.
    pub from: String,
    /// `mirrored`, `broken` or `resync`: it becomes a replica again, and was not brought up to date since.
    pub state: String,
    /// Whether it is being brought up to date.
    pub transferring: bool,
    /// After how many seconds it is brought up to date again.
    pub every_seconds: u64,
    /// The most bytes of each second.
    pub bandwidth: Option<u64>,
    /// When the source was as the replica is, in seconds of the Unix epoch. None: nothing was transferred yet.
    pub as_of: Option<i64>,
    /// How many transfers were completed.
    pub transfers: u64,
    /// How many have failed since the server started.
    pub failures: u64,
    /// Directories compared, files and bytes taken over by the present transfer, or by the last.
    pub directories: u64,
    /// See `directories`.
    pub files: u64,
    /// See `directories`.
    pub bytes: u64,
    /// Why the last transfer has failed.
    pub problem: Option<String>,
}

/// The servers that replicate a share.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Destinations {
    /// All of them.
    pub destinations: Vec<Destination>,
}

/// A server that replicates a share.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Destination {
    /// By which it is known: 16 hexadecimal digits.
    pub id: String,
    /// The snapshot that it has, which nobody can remove meanwhile.
    pub completed: Option<String>,
    /// The snapshot that it is about to have, which nobody can remove meanwhile.
    pub pending: Option<String>,
    /// When it was heard of last, in seconds of the Unix epoch.
    pub seen: u64,
}

/// A share that can be replicated.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceShare {
    /// Its name.
    pub share: String,
    /// The version of the form in which its contents are sent.
    pub version: u32,
    /// If it was a replica until it was broken off, how it is known at the source of that: [`Destination::id`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub was_destination: Option<String>,
}

/// A transfer to be begun.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewTransfer {
    /// By which the destination is known: 16 hexadecimal digits.
    pub destination: String,
    /// The snapshot that it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed: Option<String>,
    /// The snapshot that it was about to have, and of which it may have a part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<String>,
}

/// A transfer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transfer {
    /// The snapshot that the destination is to have.
    pub snapshot: String,
    /// When it was taken, in seconds of the Unix epoch.
    pub taken: i64,
    /// The snapshot from which the changes are. None: all of it.
    pub from: Option<String>,
}

/// What is known of one replica, for metrics.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplicationFigures {
    /// The name of the share.
    pub share: String,
    /// How it is.
    pub replication: Replication,
    /// All bytes that were received since the server started.
    pub received: u64,
}

/// Writes the contents of an answer, on whatever thread that may wait, until it is over or nobody reads it any more.
pub type Contents = Box<dyn FnOnce(Box<dyn io::Write + Send>) + Send>;
