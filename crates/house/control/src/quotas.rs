//! The quotas of shares in the form of the API: `/v1/shares/{name}/quotas`.

use serde::{Deserialize, Serialize};

/// The quotas of a share, and who holds how much.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quotas {
    /// The name of the share.
    pub share: String,
    /// Where the configuration declares the quotas; none for those of a command.
    pub declared_in: Option<String>,
    /// When all files were last counted, in seconds of the Unix epoch: what local programs have changed since then is not in
    /// the figures. None: not yet, or no server runs; nobody is held back then.
    pub counted: Option<u64>,
    /// Whether they are being counted.
    pub counting: bool,
    /// The quotas, in the order in which they were given.
    pub quotas: Vec<Quota>,
    /// Users and groups without a quota of their own that hold something, the largest first, at most 1,000.
    pub holders: Vec<Holder>,
}

/// One quota. Sizes are bytes of allocated space.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quota {
    /// Whose it is, as it is written: `/projects`, `anna`, `@staff`, `*`, `@*`.
    pub subject: String,
    /// For a user or group, the number that the name stands for; none while nobody knows.
    pub id: Option<u32>,
    /// More than this may be held for the time `grace`.
    pub soft: Option<u64>,
    /// More than this is never held.
    pub hard: Option<u64>,
    /// In seconds.
    pub grace: u64,
    /// What is held; none until all files were counted, and for the quotas of each user and each group.
    pub used: Option<u64>,
    /// Since when more than `soft` is held, in seconds of the Unix epoch.
    pub over_since: Option<u64>,
}

/// A user or group that holds something.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// A user (`1000`) or group (`@1000`), by number.
    pub subject: String,
    /// Bytes of allocated space.
    pub used: u64,
    /// Since when more than the soft limit for each user or group is held, in seconds of the Unix epoch.
    pub over_since: Option<u64>,
}

/// What a quota is to be. A quota has at least one of the limits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewQuota {
    /// The soft limit in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soft: Option<u64>,
    /// The hard limit in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hard: Option<u64>,
    /// How long more than `soft` may be held, in seconds; seven days if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace: Option<u64>,
}
