//! Shares that were removed and can be brought back, in the form of the API: `/v1/deleted-shares`.

use serde::{Deserialize, Serialize};

/// The removed shares that can be brought back, in the order of their removal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeletedShares {
    /// The shares.
    pub shares: Vec<DeletedShare>,
}

/// A share that was removed, and can be brought back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeletedShare {
    /// The number of the share: two deleted shares of one name are told apart by it.
    pub id: u32,
    /// The name that it had.
    pub name: String,
    /// The directory that it served.
    pub directory: String,
    /// The plan that it had.
    pub plan: String,
    /// The pool in which the server made its directory. Null: the directory was there, and stays.
    #[serde(default)]
    pub pool: Option<String>,
    /// When it was removed, in seconds of the Unix epoch.
    pub deleted: u64,
    /// Until when it can be brought back, in seconds of the Unix epoch.
    pub until: u64,
    /// Whether its files are removed by command alone, even when its time is over: the state database was restored from a copy, or `undelete` with `restored` was refused.
    #[serde(default)]
    pub by_command_only: bool,
}

/// How a removed share is forgotten.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Purge {
    /// Whether the directory stays that the server made in a pool.
    pub keep_files: bool,
}

/// How a share is brought back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Undelete {
    /// The name that it gets. None: the one that it had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether the directory of a share of a pool was restored from a backup, and is that of the share from now on.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub restored: bool,
}
