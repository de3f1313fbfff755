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
    /// What is wrong with its storage: `full`, `read-only`, `stuck`.
    #[serde(default)]
    pub alarms: Vec<String>,
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
    /// The superuser of an NFS client makes device nodes, also where the share has a list of its clients.
    pub devices: bool,
    /// Likewise it sets the set-user-id and set-group-id bits of files.
    pub set_id: bool,
    /// NFS clients come from privileged ports.
    pub secure_port: bool,
    /// Clients that list the shares are not told of it.
    pub hidden: bool,
    /// What clients that list the shares are told of it.
    pub comment: String,
    /// What was read of its names and directories is kept, where the store tells what others change.
    pub metadata_cache: bool,
    /// What is provisioned for it.
    pub plan: String,
    /// Who may use it.
    pub rules: Rules,
    /// The protocols that it is served by: of those in its rules the ones that can encrypt, where it must be encrypted.
    pub served_by: Vec<String>,
}

/// Who may use a share.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rules {
    /// By which protocols: `smb`, `nfs`. None are all.
    pub protocols: Vec<String>,
    /// From where, and how: `NETWORK [access=rw|ro] [squash=none|root|all] [protocols=smb,nfs] [secure-port]`, of which the first
    /// that holds a client's address counts. None: from everywhere.
    pub clients: Vec<String>,
    /// Users (`NAME`) and groups of the system (`@NAME`) who read. None in both lists: everybody.
    pub read: Vec<String>,
    /// Likewise, who change things too.
    pub write: Vec<String>,
}

/// What becomes of who may use a share; what is not given stays as it is. An empty list takes the list away.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RulesChange {
    /// By which protocols.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocols: Option<Vec<String>>,
    /// From where, and how.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clients: Option<Vec<String>>,
    /// Who reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<Vec<String>>,
    /// Who changes things.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write: Option<Vec<String>>,
}

impl RulesChange {
    /// Whether it changes nothing.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// The rules with the change.
    #[must_use]
    pub fn of(&self, rules: &Rules) -> Rules {
        let Self { protocols, clients, read, write } = self.clone();
        Rules {
            protocols: protocols.unwrap_or_else(|| rules.protocols.clone()),
            clients: clients.unwrap_or_else(|| rules.clients.clone()),
            read: read.unwrap_or_else(|| rules.read.clone()),
            write: write.unwrap_or_else(|| rules.write.clone()),
        }
    }
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
    /// The superuser of an NFS client makes device nodes, also where the share has a list of its clients.
    #[serde(default)]
    pub devices: bool,
    /// Likewise it sets the set-user-id and set-group-id bits of files.
    #[serde(default)]
    pub set_id: bool,
    /// NFS clients come from privileged ports.
    #[serde(default)]
    pub secure_port: bool,
    /// Clients that list the shares are not told of it.
    #[serde(default)]
    pub hidden: bool,
    /// What clients that list the shares are told of it.
    #[serde(default)]
    pub comment: String,
    /// What was read of its names and directories is kept, where the store tells what others change; without a word it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata_cache: Option<bool>,
    /// What is provisioned for it; without a word nothing is limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// Who may use it; without a word everybody.
    #[serde(default, skip_serializing_if = "RulesChange::is_nothing")]
    pub rules: RulesChange,
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
    /// The superuser of an NFS client makes device nodes, also where the share has a list of its clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub devices: Option<bool>,
    /// Likewise it sets the set-user-id and set-group-id bits of files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set_id: Option<bool>,
    /// NFS clients come from privileged ports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secure_port: Option<bool>,
    /// Clients that list the shares are not told of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden: Option<bool>,
    /// What clients that list the shares are told of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// What was read of its names and directories is kept, where the store tells what others change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata_cache: Option<bool>,
    /// What is provisioned for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// Who may use it.
    #[serde(skip_serializing_if = "RulesChange::is_nothing")]
    pub rules: RulesChange,
}
