//! The snapshots of a share in the form of the API: `/v1/shares/NAME/snapshots`.

use serde::{Deserialize, Serialize};

/// All snapshots of a share, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshots {
    /// The server's own, and those that other programs have made.
    pub snapshots: Vec<Snapshot>,
}

/// One snapshot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Its name: `anabranch.LABEL.TIME`, or whatever other programs call it.
    pub name: String,
    /// When it was taken, in seconds of the Unix epoch: no other snapshot of the share has this time.
    pub taken: i64,
    /// Whether this server made it, and may remove it.
    pub own: bool,
    /// The policy that took it; none for one that was taken by command or by another program.
    pub policy: Option<String>,
    /// How often the rule of the policy takes one: `hourly`, `daily`, `weekly` or `monthly`.
    pub period: Option<String>,
    /// Until when nobody can remove it, in seconds of the Unix epoch.
    pub protected_until: Option<u64>,
}

/// A snapshot to be taken.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NewSnapshot {
    /// A part of its name. None: `manual`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// For how many seconds nobody can remove it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protect_for_seconds: Option<u64>,
    /// Until when nobody can remove it, in seconds of the Unix epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protected_until: Option<u64>,
}

/// A change of a snapshot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SnapshotChange {
    /// Until when nobody can remove it, in seconds of the Unix epoch: never earlier than before.
    pub protected_until: u64,
}

/// To which snapshot a share goes back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SnapshotRevert {
    /// The name of the snapshot.
    pub to: String,
}

/// What is known of the snapshots of one share, for metrics and health.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SnapshotFigures {
    /// The name of the share.
    pub share: String,
    /// How many there are. None: the share has none, or was not asked yet.
    pub count: Option<u64>,
    /// When the newest was taken, in seconds of the Unix epoch.
    pub newest: Option<i64>,
    /// The snapshot policy of the share.
    pub policy: Option<String>,
    /// How many snapshots the policy has taken since the server started.
    pub taken: u64,
    /// How often taking or removing one has failed, or a hook.
    pub failed: u64,
    /// Why the policy fails, or that it is behind.
    pub problem: Option<String>,
}

/// What there is to say of the snapshots of one share.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotSummary {
    /// How many there are.
    pub count: u64,
    /// When the newest was taken, in seconds of the Unix epoch.
    pub newest: Option<i64>,
    /// Why there can be none, and what would be needed.
    pub unsupported: Option<String>,
}
