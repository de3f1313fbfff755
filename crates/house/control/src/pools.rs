//! Pools, in the form of the API: `/v1/pools`.

use serde::{Deserialize, Serialize};

/// All pools, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pools {
    /// The pools.
    pub pools: Vec<Pool>,
}

/// A pool: a directory in which the server makes the directories of shares.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pool {
    /// Its name.
    pub name: String,
    /// Its directory.
    pub directory: String,
    /// The place where the configuration declares it. None: it is declared no more, but has shares.
    pub declared_in: Option<String>,
    /// Whether its shares may be larger together than its file system.
    pub overcommit: bool,
    /// How many shares it has.
    pub shares: u64,
    /// How many deleted shares it has that can be brought back.
    pub deleted_shares: u64,
    /// The sizes of all these shares together, in bytes.
    pub promised: u64,
    /// The size of its file system, in bytes. None: it cannot be asked.
    pub capacity: Option<u64>,
    /// What is free in its file system, in bytes. None: it cannot be asked.
    pub free: Option<u64>,
    /// Why no shares can be created in it. None: they can, if they fit.
    pub problem: Option<String>,
    /// The directories of purged shares that are being removed.
    pub removing: Vec<RemovedDirectory>,
}

/// A directory that is being removed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovedDirectory {
    /// The name of the share to which it belonged.
    pub share: String,
    /// Its path.
    pub directory: String,
    /// What stands against it. None: it goes on.
    pub problem: Option<String>,
}
