//! The shares, as the API tells and takes them: `/v1/shares`.

use serde::{Deserialize, Serialize};

/// All shares, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shares {
    /// Those of the configuration and those made by command.
    pub shares: Vec<Share>,
}

/// One share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// Its name.
    pub name: String,
    /// The directory that it serves.
    pub directory: String,
    /// Where the configuration declares it; none for a share made by command.
    pub declared_in: Option<String>,
    /// Whether clients can use it now.
    pub served: bool,
    /// Why it is not served, though it should be.
    pub problem: Option<String>,
    /// Nothing can be changed through it.
    pub read_only: bool,
    /// SMB clients without an account are let in, as nobody.
    pub guest: bool,
    /// Listings show only what their reader may read.
    pub access_based_enumeration: bool,
    /// SMB clients get handles that outlive a restart of the server.
    pub continuous_availability: bool,
    /// SMB messages about it are encrypted, whatever the server demands elsewhere.
    pub encrypted: bool,
    /// What was read of its names and directories is kept, where the store tells what others change.
    pub metadata_cache: bool,
    /// What is provisioned for it.
    pub plan: String,
}

/// A share to be made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewShare {
    /// Its name.
    pub name: String,
    /// The directory that it serves: an absolute path.
    pub directory: String,
    /// Nothing can be changed through it.
    #[serde(default)]
    pub read_only: bool,
    /// SMB clients without an account are let in, as nobody.
    #[serde(default)]
    pub guest: bool,
    /// Listings show only what their reader may read.
    #[serde(default)]
    pub access_based_enumeration: bool,
    /// SMB clients get handles that outlive a restart of the server.
    #[serde(default)]
    pub continuous_availability: bool,
    /// SMB messages about it are encrypted, whatever the server demands elsewhere.
    #[serde(default)]
    pub encrypted: bool,
    /// What was read of its names and directories is kept, where the store tells what others change; without a word it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata_cache: Option<bool>,
    /// What is provisioned for it; without a word nothing is limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
}

/// What becomes of a share; what is not given stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ShareChange {
    /// Nothing can be changed through it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// SMB clients without an account are let in, as nobody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guest: Option<bool>,
    /// Listings show only what their reader may read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_based_enumeration: Option<bool>,
    /// SMB clients get handles that outlive a restart of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continuous_availability: Option<bool>,
    /// SMB messages about it are encrypted, whatever the server demands elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encrypted: Option<bool>,
    /// What was read of its names and directories is kept, where the store tells what others change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata_cache: Option<bool>,
    /// What is provisioned for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
}
