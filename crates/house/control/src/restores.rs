//! What is restored from a snapshot into a share, in the form of the API: `/v1/shares/NAME/restore`.

use serde::{Deserialize, Serialize};

/// What is to be restored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewRestore {
    /// The name of the snapshot, or the time at which it was taken, such as `2026-11-23T05:45:18Z`.
    pub from: String,
    /// The path of a file or directory in the snapshot, from the root of the share. `/` is all of it.
    pub path: String,
    /// The path of the place in the share. None: the same path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Whether files take the place of those that are there. Directories are merged then.
    #[serde(default)]
    pub replace: bool,
}

/// The restore of a share, which goes on, or was the last.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restore {
    /// The name of the snapshot.
    pub from: String,
    /// The path in the snapshot.
    pub path: String,
    /// The path in the share.
    pub to: String,
    /// Whether files take the place of those that are there.
    pub replace: bool,
    /// `running`; `waiting`, for the share to be served again; `done`, `cancelled` or `failed`.
    pub state: String,
    /// When it was ordered, in seconds of the Unix epoch.
    pub ordered: u64,
    /// When it ended, in seconds of the Unix epoch.
    pub ended: Option<u64>,
    /// How many files were restored. A restore that went on after the server was stopped counts those of before as unchanged.
    pub restored: u64,
    /// How many files were as in the snapshot already.
    pub unchanged: u64,
    /// How many files and directories were left alone.
    pub left: u64,
    /// The first of these.
    pub left_alone: Vec<LeftAlone>,
    /// How many bytes the files have that were gone through.
    pub bytes: u64,
    /// How many files there are to go through, once counted.
    pub files_total: Option<u64>,
    /// How many bytes they have.
    pub bytes_total: Option<u64>,
    /// Why it could not go on.
    pub problem: Option<String>,
}

/// Something that was not restored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftAlone {
    /// Its path in the share.
    pub path: String,
    /// Why.
    pub why: String,
}
