//! The shares in the form of the API: `/v1/shares`.

use serde::{Deserialize, Serialize};
use share::Role;

use crate::redundancy::{Redundancy, Tier};
use crate::snapshots::SnapshotSummary;

/// All shares, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shares {
    /// The shares of the configuration, and those created by command.
    pub shares: Vec<Share>,
}

/// One share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// The name of the share.
    pub name: String,
    /// The directory that it serves.
    pub directory: String,
    /// Where the configuration declares it; none for a share created by command.
    pub declared_in: Option<String>,
    /// Whether clients can use it now.
    pub served: bool,
    /// Why it is not served, though it should be.
    pub problem: Option<String>,
    /// What is wrong with its storage: `full`, `read-only`, `stuck`.
    #[serde(default)]
    pub alarms: Vec<String>,
    /// Whether the share is read-only.
    pub read_only: bool,
    /// Whether SMB clients without an account are admitted, as the user nobody.
    pub guest: bool,
    /// Whether listings show only what the user may read.
    pub access_based_enumeration: bool,
    /// Whether SMB clients get handles that outlive a restart of the server.
    pub continuous_availability: bool,
    /// Whether SMB messages about the share must be encrypted, whatever the server requires elsewhere.
    pub encrypted: bool,
    /// Whether NFS clients must use TLS. Such a share is `encrypted`, too.
    pub tls_required: bool,
    /// How NFS clients may secure their calls: some of `sys`, `krb5`, `krb5i` and `krb5p`.
    pub nfs_security: Vec<String>,
    /// Who says in which groups users of NFS with AUTH_SYS are: `client` or `server`; empty: as the server's `nfs-groups` says.
    pub nfs_groups: String,
    /// Whether NFS clients find earlier versions in `.snapshot`: `off`, `hidden` (by its name only) or `shown` (in the root).
    pub nfs_snapshots: String,
    /// Whether the superuser of an NFS client may create device nodes, even if the share has a client list.
    pub devices: bool,
    /// Whether the superuser of an NFS client may set the set-user-id and set-group-id bits of files.
    pub set_id: bool,
    /// Whether NFS clients must use privileged ports.
    pub secure_port: bool,
    /// Whether the share is left out when clients list the shares.
    pub hidden: bool,
    /// The comment that clients see when they list the shares.
    pub comment: String,
    /// Whether names and directories are cached, if the store reports changes by others.
    pub metadata_cache: bool,
    /// Whether the access log has what clients do in the share.
    pub access_log: bool,
    /// The plan of the share.
    pub plan: String,
    /// Who may use the share.
    pub rules: Rules,
    /// The protocols over which the share is served: those in its rules, and if encryption is required, only those that
    /// can encrypt.
    pub served_by: Vec<String>,
    /// Its snapshot policy; empty: it has none.
    #[serde(default)]
    pub snapshot_policy: String,
    /// Its recycle bin: `off`, or `on` with what is kept there.
    #[serde(default)]
    pub recycle_bin: String,
    /// Its ransomware alarm: `off`, or `on` with when it is raised and what is done then.
    #[serde(default)]
    pub ransomware_alarm: String,
    /// How its directory is encrypted on the disk, where one share is asked for that is served: `fscrypt`, `dm-crypt`, or
    /// `none-seen`. Null if the system does not say.
    #[serde(default)]
    pub encryption_at_rest: Option<String>,
    /// Its snapshots, where one share is asked for that is served and answers.
    #[serde(default)]
    pub snapshots: Option<SnapshotSummary>,
    /// The pool in which the server made its directory. Null: the directory was there.
    #[serde(default)]
    pub pool: Option<String>,
    /// What a share of a pool may hold, in bytes: its quota of `/`. Null: it is of no pool.
    #[serde(default)]
    pub size: Option<u64>,
    /// How its data is kept, where one share is asked for that is served.
    #[serde(default)]
    pub redundancy: Option<Redundancy>,
    /// Its storage medium: of a share in CephFS, where one share is asked for that is served; of a directory of this machine, what was
    /// stated.
    #[serde(default)]
    pub tier: Option<Tier>,
    /// How the service whose plan it has would bill it. Null: the plan is of no service.
    #[serde(default)]
    pub billing: Option<String>,
    /// Of a share that was removed just now: until when it can be brought back, in seconds of the Unix epoch.
    #[serde(default)]
    pub restorable_until: Option<u64>,
}

/// Who may use a share.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rules {
    /// The protocols: `smb`, `nfs`. An empty list means all.
    pub protocols: Vec<String>,
    /// Networks and their terms: `NETWORK [access=rw|ro] [squash=none|root|all] [protocols=smb,nfs] [secure-port]`, or
    /// `cert:NAME` with the same terms. The first entry to which a client belongs applies. An empty list means any client.
    pub clients: Vec<String>,
    /// Readers: users (`NAME`, `NAME@REALM`), groups of the system (`@NAME`) and SIDs who may read. If all lists are empty and
    /// there is no default role, everybody may do what the permissions of files allow.
    pub read: Vec<String>,
    /// Contributors: users and groups who may also make changes. If the share has elevated contributors or administrators,
    /// contributors may not change permissions.
    pub write: Vec<String>,
    /// Elevated contributors: users and groups who may also change permissions, where the permissions of files allow that.
    pub elevated: Vec<String>,
    /// Administrators: users and groups who may do everything in the share whatever the permissions of files say.
    pub admin: Vec<String>,
    /// The role of all users who are not in a list: `none`, `reader`, `contributor`, `elevated` or `admin`. An empty text: none
    /// if there is a list, and otherwise everybody is admitted.
    pub default_role: String,
}

impl Rules {
    /// The users and groups with a role.
    #[must_use]
    pub fn list(&self, role: Role) -> &[String] {
        match role {
            Role::Reader => &self.read,
            Role::Contributor => &self.write,
            Role::Elevated => &self.elevated,
            Role::Admin => &self.admin,
        }
    }

    /// Whether only some users may use the share.
    #[must_use]
    pub fn is_for_some_users(&self) -> bool {
        !self.default_role.is_empty() || Role::ALL.iter().any(|role| !self.list(*role).is_empty())
    }
}

/// Changes of who may use a share. What is not given stays as it is. An empty list removes the list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RulesChange {
    /// The protocols.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocols: Option<Vec<String>>,
    /// Networks and their terms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clients: Option<Vec<String>>,
    /// Who may read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<Vec<String>>,
    /// Who may also make changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write: Option<Vec<String>>,
    /// Who may also change permissions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elevated: Option<Vec<String>>,
    /// Whom permissions keep from nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admin: Option<Vec<String>>,
    /// The role of all other users. An empty text removes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_role: Option<String>,
}

impl RulesChange {
    /// Whether the change is empty.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// The rules after the change.
    #[must_use]
    pub fn of(&self, rules: &Rules) -> Rules {
        let Self { protocols, clients, read, write, elevated, admin, default_role } = self.clone();
        Rules {
            protocols: protocols.unwrap_or_else(|| rules.protocols.clone()),
            clients: clients.unwrap_or_else(|| rules.clients.clone()),
            read: read.unwrap_or_else(|| rules.read.clone()),
            write: write.unwrap_or_else(|| rules.write.clone()),
            elevated: elevated.unwrap_or_else(|| rules.elevated.clone()),
            admin: admin.unwrap_or_else(|| rules.admin.clone()),
            default_role: default_role.unwrap_or_else(|| rules.default_role.clone()),
        }
    }
}

/// A share to be created.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewShare {
    /// The name of the share.
    pub name: String,
    /// The directory that it serves: an absolute path. Of a share of a pool: nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub directory: String,
    /// The pool in which the server makes the directory. None: it is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// What the share may hold, in bytes; for shares of a pool, which need it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// The user to whom the directory in a pool belongs. None: root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// The group to which the directory in a pool belongs. None: that of root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gid: Option<u32>,
    /// Whether the share is read-only.
    #[serde(default)]
    pub read_only: bool,
    /// Whether SMB clients without an account are admitted, as the user nobody.
    #[serde(default)]
    pub guest: bool,
    /// Whether listings show only what the user may read.
    #[serde(default)]
    pub access_based_enumeration: bool,
    /// Whether SMB clients get handles that outlive a restart of the server.
    #[serde(default)]
    pub continuous_availability: bool,
    /// Whether SMB messages about the share must be encrypted, whatever the server requires elsewhere.
    #[serde(default)]
    pub encrypted: bool,
    /// Whether NFS clients must use TLS. The share is then `encrypted`, too.
    #[serde(default)]
    pub tls_required: bool,
    /// How NFS clients may secure their calls: some of `sys`, `krb5`, `krb5i` and `krb5p`. The default, an empty list, is all.
    #[serde(default)]
    pub nfs_security: Vec<String>,
    /// Who says in which groups users of NFS with AUTH_SYS are: `client` or `server`. The default, an empty text, is what the
    /// server's `nfs-groups` says.
    #[serde(default)]
    pub nfs_groups: String,
    /// Whether NFS clients find earlier versions in `.snapshot`: `off` (the default), `hidden` (by its name only) or `shown` (in
    /// the root).
    #[serde(default)]
    pub nfs_snapshots: String,
    /// Whether the superuser of an NFS client may create device nodes, even if the share has a client list.
    #[serde(default)]
    pub devices: bool,
    /// Whether the superuser of an NFS client may set the set-user-id and set-group-id bits of files.
    #[serde(default)]
    pub set_id: bool,
    /// Whether NFS clients must use privileged ports.
    #[serde(default)]
    pub secure_port: bool,
    /// Whether the share is left out when clients list the shares.
    #[serde(default)]
    pub hidden: bool,
    /// The comment that clients see when they list the shares.
    #[serde(default)]
    pub comment: String,
    /// Whether names and directories are cached, if the store reports changes by others. The default is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata_cache: Option<bool>,
    /// Whether the access log has what clients do in the share. The default is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_log: Option<bool>,
    /// The plan of the share. The default is no limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// The redundancy class of a share in CephFS: `lrs` or `zrs`. The directory gets a data pool that gives it, and must be empty, or
    /// have such a pool. None: the data pool that the directory has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redundancy: Option<String>,
    /// The storage medium: `ssd` or `hdd`. The plan must be one for it. Of a share in CephFS, that of the data pool; of a directory of
    /// this machine, what is stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
    /// The snapshot policy of the share. The default, an empty text, is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub snapshot_policy: String,
    /// Its recycle bin: `off`, or `on` with what is kept there. The default, an empty text, is `off`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub recycle_bin: String,
    /// Its ransomware alarm: `off`, or `on` with when it is raised and what is done then. The default, an empty text, is `on`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ransomware_alarm: String,
    /// Who may use the share. The default is everybody.
    #[serde(default, skip_serializing_if = "RulesChange::is_nothing")]
    pub rules: RulesChange,
    /// The snapshot of which the directory is made, as a copy that can be changed: `SHARE@SNAPSHOT`, with the snapshot's name or its
    /// time. The default is none: then the directory must exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

/// Changes of a share. What is not given stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ShareChange {
    /// Whether the share is read-only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// Whether SMB clients without an account are admitted, as the user nobody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guest: Option<bool>,
    /// Whether listings show only what the user may read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_based_enumeration: Option<bool>,
    /// Whether SMB clients get handles that outlive a restart of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continuous_availability: Option<bool>,
    /// Whether SMB messages about the share must be encrypted, whatever the server requires elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encrypted: Option<bool>,
    /// Whether NFS clients must use TLS. True makes the share `encrypted`, too; false leaves that as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_required: Option<bool>,
    /// How NFS clients may secure their calls: some of `sys`, `krb5`, `krb5i` and `krb5p`. An empty list means all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nfs_security: Option<Vec<String>>,
    /// Who says in which groups users of NFS with AUTH_SYS are: `client` or `server`; empty: as the server's `nfs-groups` says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nfs_groups: Option<String>,
    /// Whether NFS clients find earlier versions in `.snapshot`: `off`, `hidden` (by its name only) or `shown` (in the root).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nfs_snapshots: Option<String>,
    /// Whether the superuser of an NFS client may create device nodes, even if the share has a client list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub devices: Option<bool>,
    /// Whether the superuser of an NFS client may set the set-user-id and set-group-id bits of files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set_id: Option<bool>,
    /// Whether NFS clients must use privileged ports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secure_port: Option<bool>,
    /// Whether the share is left out when clients list the shares.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden: Option<bool>,
    /// The comment that clients see when they list the shares.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Whether names and directories are cached, if the store reports changes by others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata_cache: Option<bool>,
    /// The snapshot policy of the share. An empty text removes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot_policy: Option<String>,
    /// The recycle bin: `off`, or `on` with what is kept there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recycle_bin: Option<String>,
    /// The ransomware alarm: `off`, or `on` with when it is raised and what is done then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ransomware_alarm: Option<String>,
    /// Whether the access log has what clients do in the share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_log: Option<bool>,
    /// The plan of the share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// The storage medium that is stated of a directory of this machine: `ssd` or `hdd`. An empty text removes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
    /// What a share of a pool may hold, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Who may use the share.
    #[serde(skip_serializing_if = "RulesChange::is_nothing")]
    pub rules: RulesChange,
}
