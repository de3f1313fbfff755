//! How the data of a share is kept, in the form of the API.

use serde::{Deserialize, Serialize};

/// What of the storage of a share may be lost without a loss of its data.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redundancy {
    /// `lrs`: three copies on different machines; `zrs`: three copies in different zones; `grs` and `gzrs`: the same, and a replica at
    /// another server. `local`: what the disks of this machine give, of which the server knows nothing. `none`: less than a class.
    /// Null: it is not known.
    pub class: Option<String>,
    /// Why it is not known.
    pub problem: Option<String>,
    /// The data pool of Ceph that keeps what is made in the root of the share.
    pub data_pool: Option<String>,
    /// How many copies there are; of an erasure-coded pool, parts.
    pub copies: Option<u32>,
    /// Whether these are parts, and no copies.
    pub erasure_coded: bool,
    /// Each copy is in another one of these, as CRUSH calls them: `osd`, `host`, `rack`, `zone`. Null: no single step of the rule says it.
    pub across: Option<String>,
    /// How many copies there must be for clients to write.
    pub copies_to_write: Option<u32>,
    /// When the share was as its most recent replica is, in seconds of the Unix epoch. Null: it has none.
    pub replica_as_of: Option<i64>,
}

/// The storage medium of a share.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tier {
    /// `ssd` or `hdd`; null: its devices are of several media, or of none of these.
    pub name: Option<String>,
    /// Whether the devices say so. False: somebody has stated it.
    pub checked: bool,
    /// The classes of the devices, as CRUSH calls them.
    pub device_classes: Vec<String>,
}
