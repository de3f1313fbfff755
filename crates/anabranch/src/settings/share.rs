//! A share as given by a flag or by a table of the file.

use std::path::PathBuf;
use std::str::FromStr;

use control::shares::Rules as Written;
use gateway::settings::{ShareSettings, check_reserved_name, check_share_name, split_directory};
use limits::{Media, Plan, PlanError};
use serde::Deserialize;
use share::{QUOTAS_MAX, QuotaRule, QuotaRuleError, RansomwareRule, RecycleBin, Rules, Terms};
use state::rules;

/// `NAME=DIR`, or a table in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShareGiven(pub(crate) ShareSettings);

impl FromStr for ShareGiven {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, directory) =
            text.split_once('=').ok_or_else(|| "expected NAME=DIR, for example data=/srv/data".to_owned())?;
        let (share, wrong) =
            ShareTable { name: name.to_owned(), directory: directory.into(), ..ShareTable::default() }
                .settle();
        check_share_name(name)?;
        wrong.into_iter().next().map_or(Ok(share), |(_, what)| Err(what))
    }
}

/// The keys of `[[share]]` with their values.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct ShareTable {
    name: String,
    directory: PathBuf,
    read_only: bool,
    guest: bool,
    continuous_availability: bool,
    access_based_enumeration: bool,
    encrypted: bool,
    tls_required: bool,
    devices: bool,
    set_id: bool,
    secure_port: bool,
    nfs_security: Option<Vec<String>>,
    nfs_groups: String,
    nfs_snapshots: String,
    protocols: Option<Vec<String>>,
    /// In one line each.
    #[serde(skip)]
    pub(crate) client: Vec<String>,
    read: Vec<String>,
    write: Vec<String>,
    elevated: Vec<String>,
    admin: Vec<String>,
    default_role: String,
    comment: String,
    hidden: bool,
    access_log: bool,
    plan: Option<String>,
    tier: String,
    metadata_cache: bool,
    reserved_names: Vec<String>,
    snapshot_policy: String,
    recycle_bin: String,
    ransomware_alarm: String,
    quotas: Vec<String>,
}

impl Default for ShareTable {
    fn default() -> Self {
        Self {
            name: String::new(),
            directory: PathBuf::new(),
            read_only: false,
            guest: false,
            continuous_availability: false,
            access_based_enumeration: false,
            encrypted: false,
            tls_required: false,
            devices: false,
            set_id: false,
            secure_port: false,
            nfs_security: None,
            nfs_groups: String::new(),
            nfs_snapshots: String::new(),
            protocols: None,
            client: Vec::new(),
            read: Vec::new(),
            write: Vec::new(),
            elevated: Vec::new(),
            admin: Vec::new(),
            default_role: String::new(),
            comment: String::new(),
            hidden: false,
            access_log: true,
            plan: None,
            tier: String::new(),
            metadata_cache: true,
            reserved_names: Vec::new(),
            snapshot_policy: String::new(),
            recycle_bin: String::new(),
            ransomware_alarm: String::new(),
            quotas: Vec::new(),
        }
    }
}

impl ShareTable {
    /// The share, as far as its values are right; and what is wrong with which key. A name that is wrong becomes empty.
    pub(crate) fn settle(self) -> (ShareGiven, Vec<(&'static str, String)>) {
        let mut wrong = Vec::new();
        let rules = self.rules(&mut wrong);
        let terms = self.terms() | self.nfs_security(&mut wrong) | self.nfs_groups(&mut wrong);
        let terms = terms | self.nfs_snapshots(&mut wrong);
        let (directory, homes) = split_directory(&self.directory).unwrap_or_else(|e| {
            wrong.push(("directory", format!("the share {}: {e}", self.name)));
            (PathBuf::new(), Terms::empty())
        });
        let is_empty = self.directory.as_os_str().is_empty();
        let quotas = self.quotas(&mut wrong);
        let terms = terms | homes;
        let recycle_bin = self.recycle_bin(&mut wrong);
        let ransomware_alarm = self.ransomware_alarm(&mut wrong);
        let tier = self.tier(&mut wrong);
        let Self { mut name, comment, plan, metadata_cache, reserved_names, snapshot_policy, .. } = self;
        let of_share = |e| format!("the share {name}: {e}");
        if is_empty && !name.is_empty() {
            wrong.push(("directory", format!("the directory of the share {name} is empty")));
        }
        if let Err(e) = rules::check_comment(&comment) {
            wrong.push(("comment", of_share(e)));
        }
        for reserved in &reserved_names {
            if let Err(e) = check_reserved_name(reserved) {
                wrong.push(("reserved-names", of_share(e)));
            }
        }
        let plan = plan.as_deref().map_or(Ok(Plan::Unlimited), str::parse).unwrap_or_else(|e: PlanError| {
            wrong.push(("plan", format!("the plan of the share {name}: {e}")));
            Plan::Unlimited
        });
        if let Some((tier, other)) = tier.zip(plan.media()).filter(|(tier, other)| tier != other) {
            let plan = plan.name();
            wrong
                .push(("plan", format!("the share {name} is on {tier}, and the plan {plan} is for {other}")));
        }
        if let Err(e) = check_share_name(&name) {
            wrong.push(("name", e));
            name = String::new();
        }
        let settings = ShareSettings {
            name,
            directory,
            terms,
            rules,
            comment,
            plan,
            tier,
            metadata_cache,
            reserved_names,
            snapshot_policy,
            recycle_bin,
            ransomware_alarm,
            quotas,
        };
        (ShareGiven(settings), wrong)
    }

    fn tier(&self, wrong: &mut Vec<(&'static str, String)>) -> Option<Media> {
        let parsed = Some(self.tier.as_str()).filter(|tier| !tier.is_empty())?.parse();
        parsed.map_err(|e| wrong.push(("tier", format!("the share {}: {e}", self.name)))).ok()
    }

    fn quotas(&self, wrong: &mut Vec<(&'static str, String)>) -> Vec<QuotaRule> {
        if self.quotas.len() > QUOTAS_MAX {
            wrong.push(("quotas", format!("the share {} has more than {QUOTAS_MAX} quotas", self.name)));
        }
        let parse = |text: &String| {
            text.parse().map_err(|e: QuotaRuleError| format!("a quota of the share {}: {e}", self.name))
        };
        let (right, bad): (Vec<_>, Vec<_>) = self.quotas.iter().map(parse).partition(Result::is_ok);
        wrong.extend(bad.into_iter().filter_map(Result::err).map(|e| ("quotas", e)));
        right.into_iter().flatten().collect()
    }

    fn terms(&self) -> Terms {
        let mut terms = Terms::empty();
        terms.set(Terms::READ_ONLY, self.read_only);
        terms.set(Terms::GUESTS, self.guest);
        terms.set(Terms::CONTINUOUSLY_AVAILABLE, self.continuous_availability);
        terms.set(Terms::ACCESS_BASED_ENUMERATION, self.access_based_enumeration);
        // What TLS does for NFS, encryption does for SMB.
        terms.set(Terms::ENCRYPTED, self.encrypted || self.tls_required);
        terms.set(Terms::TLS, self.tls_required);
        terms.set(Terms::DEVICES, self.devices);
        terms.set(Terms::SET_ID, self.set_id);
        terms.set(Terms::SECURE_PORT, self.secure_port);
        terms.set(Terms::HIDDEN, self.hidden);
        terms.set(Terms::UNLOGGED, !self.access_log);
        terms
    }

    /// The flavors with which NFS clients may use it.
    fn nfs_security(&self, wrong: &mut Vec<(&'static str, String)>) -> Terms {
        let Some(given) = &self.nfs_security else { return Terms::empty() };
        let mut refuse = |what| wrong.push(("nfs-security", format!("the share {}: {what}", self.name)));
        if given.is_empty() {
            refuse("it has no nfs-security: expected some of sys, krb5, krb5i and krb5p".to_owned());
        }
        let flavors = rules::parse_nfs_security(given).unwrap_or_else(|e| {
            refuse(e);
            Terms::empty()
        });
        if let Err(e) = rules::check_nfs_security(self.terms() | flavors) {
            refuse(e);
        }
        flavors
    }

    /// Who says in which groups users of NFS are.
    fn nfs_groups(&self, wrong: &mut Vec<(&'static str, String)>) -> Terms {
        rules::parse_nfs_groups(&self.nfs_groups).unwrap_or_else(|e| {
            wrong.push(("nfs-groups", format!("the share {}: {e}", self.name)));
            Terms::empty()
        })
    }

    /// Whether NFS clients find earlier versions.
    fn nfs_snapshots(&self, wrong: &mut Vec<(&'static str, String)>) -> Terms {
        rules::parse_nfs_snapshots(&self.nfs_snapshots).unwrap_or_else(|e| {
            wrong.push(("nfs-snapshots", format!("the share {}: {e}", self.name)));
            Terms::empty()
        })
    }

    /// When an alarm is raised about a client that works as ransomware does.
    fn ransomware_alarm(&self, wrong: &mut Vec<(&'static str, String)>) -> Option<RansomwareRule> {
        rules::parse_ransomware_alarm(&self.ransomware_alarm).unwrap_or_else(|e| {
            wrong.push(("ransomware-alarm", format!("the share {}: {e}", self.name)));
            None
        })
    }

    /// Whether and how long deleted files are kept.
    fn recycle_bin(&self, wrong: &mut Vec<(&'static str, String)>) -> Option<RecycleBin> {
        rules::parse_recycle_bin(&self.recycle_bin).unwrap_or_else(|e| {
            wrong.push(("recycle-bin", format!("the share {}: {e}", self.name)));
            None
        })
    }

    /// Who may use it. Each part is checked by itself.
    fn rules(&self, wrong: &mut Vec<(&'static str, String)>) -> Rules {
        let protocols = self.protocols.clone().unwrap_or_default();
        let of_share = |e: String| format!("the share {}: {e}", self.name);
        if self.protocols.is_some() && protocols.is_empty() {
            let what = "it has no protocols: expected [\"smb\"], [\"nfs\"] or both".to_owned();
            wrong.push(("protocols", of_share(what)));
        }
        let whole = Written {
            protocols,
            clients: self.client.clone(),
            read: self.read.clone(),
            write: self.write.clone(),
            elevated: self.elevated.clone(),
            admin: self.admin.clone(),
            default_role: self.default_role.clone(),
        };
        let nothing = Written::default;
        // `none` is wrong only together with lists that are empty.
        let default_role =
            if self.default_role == "none" { String::new() } else { self.default_role.clone() };
        let parts = [
            ("protocols", Written { protocols: whole.protocols.clone(), ..nothing() }),
            ("client", Written { clients: whole.clients.clone(), ..nothing() }),
            ("read", Written { read: whole.read.clone(), ..nothing() }),
            ("write", Written { write: whole.write.clone(), ..nothing() }),
            ("elevated", Written { elevated: whole.elevated.clone(), ..nothing() }),
            ("admin", Written { admin: whole.admin.clone(), ..nothing() }),
            ("default-role", Written { default_role, ..nothing() }),
        ];
        let before = wrong.len();
        let bad = parts.iter().filter_map(|(key, part)| Some((*key, of_share(rules::parse(part).err()?))));
        wrong.extend(bad);
        match rules::parse(&whole) {
            Ok(rules) => return rules,
            // They do not go together, or the lists are too long together.
            Err(e) if wrong.len() == before => {
                let key = if self.default_role.is_empty() { "write" } else { "default-role" };
                wrong.push((key, of_share(e)));
            }
            Err(_) => {}
        }
        Rules::default()
    }
}

/// Checks an entry of a client list.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn check_client(line: &str) -> Result<(), String> {
    rules::parse(&Written { clients: vec![line.to_owned()], ..Written::default() }).map(drop)
}

/// The keys of `[[share.client]]` with their values.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct ClientTable {
    network: String,
    access: Option<String>,
    squash: Option<String>,
    protocols: Option<Vec<String>>,
    secure_port: Option<bool>,
}

impl ClientTable {
    /// In one line.
    pub(crate) fn line(&self) -> String {
        let Self { network, access, squash, protocols, secure_port } = self;
        let mut line = network.clone();
        let protocols = protocols.as_ref().map(|protocols| protocols.join(","));
        let secure_port = secure_port.map(|secure| secure.to_string());
        let words = [
            ("access", access),
            ("squash", squash),
            ("protocols", &protocols),
            ("secure-port", &secure_port),
        ];
        for (key, value) in words.into_iter().filter_map(|(key, value)| Some((key, value.as_ref()?))) {
            line.push_str(&format!(" {key}={value}"));
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(text: &str) -> Result<ShareSettings, String> {
        text.parse().map(|ShareGiven(share)| share)
    }

    #[test]
    fn a_share_is_a_name_and_a_directory() {
        let s = share("data=/srv/a=b").unwrap();
        assert_eq!((s.name.as_str(), s.directory.to_str()), ("data", Some("/srv/a=b")));
        for bad in [
            "data",
            "=/srv",
            "data=",
            "a/b=/srv",
            "a\\b=/srv",
            "IPC$=/srv",
            " a=/srv",
            "..=/srv",
            "a\u{7}=/srv",
        ] {
            assert!(share(bad).is_err(), "{bad:?}");
        }
        assert!(share(&format!("{}=/srv", "n".repeat(80))).is_ok());
        assert!(share(&format!("{}=/srv", "n".repeat(81))).is_err());
    }
}
