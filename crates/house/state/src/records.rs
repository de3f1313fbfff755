//! Shares and users that were created by command, as the state database keeps them.

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use control::Digest;
use control::shares::Rules;
use control::tokens::Scope;
use limits::Provisioned;
use serde::{Deserialize, Serialize};
use share::{QuotaRule, QuotaRuleError, RansomwareRule, RecycleBin, Terms};
use zeroize::Zeroizing;

use crate::pool_directories::PoolDirectory;
use crate::rules;
use crate::{Error, Result};

/// What a program must know of to open a share. A program that does not know the word takes it for a protocol that it does not
/// know, and does not serve the share: it would admit whom the share keeps out.
const NEEDS_NFS_SECURITY: &str = "needs nfs-security";
const NEEDS_ROLES: &str = "needs roles";
const NEEDS_NFS_GROUPS: &str = "needs nfs-groups";

/// A share.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShareRecord {
    /// As it was given: lookups do not regard case.
    pub name: String,
    /// Absolute.
    pub directory: PathBuf,
    /// The lower bits of [`Terms`]: [`Self::terms`] has all, and [`Self::set_terms`] enters them.
    pub terms: u16,
    /// Who says in which groups users of NFS are, as it is written; empty: the setting of the server counts.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub nfs_groups: String,
    /// Whether NFS clients find earlier versions, as it is written; empty: they do not.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub nfs_snapshots: String,
    /// As it is written; empty: nothing is limited.
    pub plan: String,
    /// The storage medium for which its plan must be: `ssd` or `hdd`; empty: any.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tier: String,
    /// When it was last increased, in seconds of the Unix epoch.
    pub increased: Option<u64>,
    /// The metadata cache is switched off.
    pub uncached: bool,
    /// Who may use it, as it is written.
    pub rules: Rules,
    /// What clients that list the shares are told of it.
    pub comment: String,
    /// The snapshot policy; empty: it has none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub snapshot_policy: String,
    /// The recycle bin, as it is written; empty: it has none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub recycle_bin: String,
    /// When the ransomware alarm is raised, as it is written; empty: as usual.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ransomware_alarm: String,
    /// The quotas, as they are written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub quotas: Vec<String>,
    /// Its directory, if the server made it in a pool. A program that does not know this removes no directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<PoolDirectory>,
}

impl ShareRecord {
    /// As the database has it: what it demands of a program stands among its protocols.
    pub(crate) fn kept(&self) -> Self {
        let mut kept = self.clone();
        let flavors = self.terms() & Terms::RPC_FLAVORS;
        if !flavors.is_empty() && !flavors.contains(Terms::RPC_SYS) {
            kept.rules.protocols.push(NEEDS_NFS_SECURITY.to_owned());
        }
        let Rules { read, write, elevated, admin, default_role, .. } = &self.rules;
        let is_limited_by_roles = !elevated.is_empty() || !admin.is_empty() || !default_role.is_empty();
        if is_limited_by_roles && read.is_empty() && write.is_empty() {
            kept.rules.protocols.push(NEEDS_ROLES.to_owned());
        }
        if self.terms().contains(Terms::GROUPS_OF_SERVER) {
            kept.rules.protocols.push(NEEDS_NFS_GROUPS.to_owned());
        }
        kept
    }

    /// As it was before it was kept.
    pub(crate) fn of_kept(mut self) -> Self {
        let needs = [NEEDS_NFS_SECURITY, NEEDS_ROLES, NEEDS_NFS_GROUPS];
        self.rules.protocols.retain(|word| !needs.contains(&word.as_str()));
        self
    }

    /// On what terms clients use it.
    pub fn terms(&self) -> Terms {
        // A word that this program does not know is not one that believes clients.
        let groups = rules::parse_nfs_groups(&self.nfs_groups).unwrap_or(Terms::GROUPS_OF_SERVER);
        let snapshots = rules::parse_nfs_snapshots(&self.nfs_snapshots).unwrap_or_default();
        Terms::from_bits_truncate(self.terms.into()) | groups | snapshots
    }

    /// Enters on what terms clients use it.
    pub fn set_terms(&mut self, terms: Terms) {
        self.nfs_groups = rules::write_nfs_groups(terms);
        let snapshots = terms & Terms::SNAPSHOT_FOLDERS;
        self.nfs_snapshots =
            if snapshots.is_empty() { String::new() } else { rules::write_nfs_snapshots(snapshots) };
        let apart = Terms::GROUPS_OF_CLIENT | Terms::GROUPS_OF_SERVER | Terms::SNAPSHOT_FOLDERS;
        let bits = (terms - apart).bits();
        self.terms = u16::try_from(bits).unwrap_or(u16::MAX);
    }

    /// The same share on these terms.
    #[must_use]
    pub fn on(mut self, terms: Terms) -> Self {
        self.set_terms(terms);
        self
    }

    /// Who may use it.
    ///
    /// # Errors
    /// The rules are such that this program does not know.
    pub fn rules(&self) -> Result<share::Rules> {
        rules::parse(&self.rules).map_err(|e| {
            let what = format!("the share {} has rules that cannot be: {e}", self.name);
            Error::new(what, "Give it others: anabranch share set NAME --client RULE")
        })
    }

    /// Its quotas.
    ///
    /// # Errors
    /// One is such that this program does not know it.
    pub fn quotas(&self) -> Result<Vec<QuotaRule>> {
        let parsed = self.quotas.iter().map(|rule| rule.parse()).collect::<std::result::Result<_, _>>();
        parsed.map_err(|e: QuotaRuleError| {
            let what = format!("the share {} has a quota that cannot be: {e}", self.name);
            Error::new(what, "A newer program made it: use that one")
        })
    }

    /// What is provisioned for it, and when that was last increased.
    ///
    /// # Errors
    /// The plan is one that this program does not know.
    pub fn provisioned(&self) -> Result<Provisioned> {
        if self.plan.is_empty() {
            return Ok(Provisioned::default());
        }
        let plan = self.plan.parse().map_err(|e| {
            let what = format!("the share {} has a plan that cannot be: {e}", self.name);
            Error::new(what, "Give it another: anabranch share set NAME --plan PLAN")
        })?;
        let increased = self.increased.map(|seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        Ok(Provisioned { plan, increased })
    }

    /// When its ransomware alarm is raised. None: never.
    ///
    /// # Errors
    /// It is a text that this program does not know.
    pub fn ransomware_alarm(&self) -> Result<Option<RansomwareRule>> {
        rules::parse_ransomware_alarm(&self.ransomware_alarm).map_err(|e| {
            let what = format!("the share {}: {e}", self.name);
            Error::new(what, "Give it another: anabranch share set NAME --ransomware-alarm on")
        })
    }

    /// The settings of its recycle bin, if it has one.
    ///
    /// # Errors
    /// They are settings that this program does not know.
    pub fn recycle_bin(&self) -> Result<Option<RecycleBin>> {
        rules::parse_recycle_bin(&self.recycle_bin).map_err(|e| {
            let what = format!("the share {}: {e}", self.name);
            Error::new(what, "Give it another: anabranch share set NAME --recycle-bin on")
        })
    }

    /// Enters what is provisioned for it.
    pub fn provision(&mut self, provisioned: &Provisioned) {
        let since =
            |at: SystemTime| at.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        self.plan = provisioned.plan.to_string();
        self.increased = provisioned.increased.map(since);
    }
}

/// The Kerberos keys of a password. They are as good as the password: their memory is overwritten when they are dropped, and
/// they are never shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PasswordKeys {
    /// The realm for which they were made.
    pub realm: String,
    /// What was mixed with the password (RFC 4120 4). It stays when the realm or the account gets another name.
    pub salt: String,
    /// The key of aes256-cts-hmac-sha384-192 (RFC 8009).
    #[serde(with = "key_bytes")]
    pub aes256_sha384: Zeroizing<[u8; 32]>,
    /// The key of aes256-cts-hmac-sha1-96 (RFC 3962).
    #[serde(with = "key_bytes")]
    pub aes256_sha1: Zeroizing<[u8; 32]>,
}

/// What is kept of a password. Without either, nobody can log on with it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets {
    /// For NTLM. As good as the password, so it is never shown.
    pub nt_hash: Option<[u8; 16]>,
    /// For Kerberos.
    pub keys: Option<PasswordKeys>,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").field("keys", &self.keys).finish_non_exhaustive()
    }
}

impl fmt::Debug for PasswordKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PasswordKeys").field("salt", &self.salt).finish_non_exhaustive()
    }
}

#[cfg(test)]
impl Secrets {
    pub(crate) fn of_hash(byte: u8) -> Self {
        Self { nt_hash: Some([byte; 16]), keys: None }
    }
}

#[cfg(test)]
impl PasswordKeys {
    pub(crate) fn of_bytes(byte: u8) -> Self {
        let (aes256_sha384, aes256_sha1) = ([byte; 32].into(), [!byte; 32].into());
        Self { realm: String::new(), salt: String::new(), aes256_sha384, aes256_sha1 }
    }
}

mod key_bytes {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use zeroize::Zeroizing;

    pub(super) fn serialize<S: Serializer>(key: &Zeroizing<[u8; 32]>, to: S) -> Result<S::Ok, S::Error> {
        <[u8; 32]>::serialize(key, to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Zeroizing<[u8; 32]>, D::Error> {
        <[u8; 32]>::deserialize(from).map(Zeroizing::new)
    }
}

/// A user.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UserRecord {
    /// As it was given: lookups do not regard case.
    pub name: String,
    /// As good as the password. None: it was set while the server kept none. Written as null then: a program that needs a hash
    /// refuses the record, and does not take it for one of zeros.
    pub nt_hash: Option<[u8; 16]>,
    /// None: that of the user of this machine of the same name.
    pub uid: Option<u32>,
    /// None: that of the user of this machine, else the uid.
    pub gid: Option<u32>,
    /// Further groups; None: those of the user of this machine.
    pub groups: Option<Vec<u32>>,
    /// Nobody can log on with it.
    pub disabled: bool,
    /// The keys of the password; None: it was set by a program that made none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keys: Option<PasswordKeys>,
}

impl UserRecord {
    /// What is kept of the password.
    pub fn secrets(&self) -> Secrets {
        Secrets { nt_hash: self.nt_hash, keys: self.keys.clone() }
    }
}

impl fmt::Debug for UserRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserRecord").field("name", &self.name).field("uid", &self.uid).finish_non_exhaustive()
    }
}

/// A token of the control address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenRecord {
    /// As it was given: lookups do not regard case.
    pub name: String,
    /// What its holder may ask for.
    pub scope: Scope,
    /// The token itself is kept nowhere.
    pub digest: Digest,
    /// When it was made, in seconds of the Unix epoch.
    pub made: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_sees_keys() {
        let keys = PasswordKeys { salt: "FILESanna".to_owned(), ..PasswordKeys::of_bytes(0xab) };
        assert_eq!(format!("{keys:?}"), "PasswordKeys { salt: \"FILESanna\", .. }");
        let user = UserRecord { name: "anna".to_owned(), keys: Some(keys), ..UserRecord::default() };
        assert_eq!(format!("{user:?}"), "UserRecord { name: \"anna\", uid: None, .. }");
    }
}
