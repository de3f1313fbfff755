//! Vservers, as the register has them.
//!
//! As long as the shares of a vserver are those with which it was made, its record is one that each version reads and writes. Later it is
//! not: a version that knows nothing of the settings of shares would serve them to clients that they keep out, and forget them with its next
//! change. It takes such a record for one of a later version, and leaves it as it is.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use share::{Terms, folded_name};

use crate::records::ShareRecord;

/// A vserver.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct VserverRecord {
    /// Its name.
    pub name: String,
    /// The gateway that is to serve it.
    pub gateway: String,
    /// Where clients find it: `ADDRESS%INTERFACE[/PREFIX]`, or `ADDRESS` for one that each gateway has.
    pub addresses: Vec<String>,
    /// The port of SMB; None: SMB is off.
    pub smb: Option<u16>,
    /// The port of NFS.
    pub nfs: Option<u16>,
    /// Its shares.
    pub shares: Vec<VserverShareRecord>,
    /// How often its shares were changed since it was made.
    pub share_changes: u64,
    /// The vservers to which shares have gone, by the names of the shares.
    pub went: BTreeMap<String, String>,
    /// How often its keytab was set or removed: who sees another number reads the keytab again.
    pub keytab_changes: u64,
}

/// A share of a vserver.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VserverShareRecord {
    /// What it is: the same as of a share that a gateway has by itself.
    pub share: ShareRecord,
    /// Whether it has not come yet. None: it was opened, and a vserver without it is not served.
    pub coming: Option<Coming>,
}

/// A share that is to come to a vserver. It is served as soon as it can be opened, and the vserver until then without it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Coming {
    /// It was added.
    New,
    /// It was moved. The gateway of the other vserver must have withdrawn it before.
    From {
        /// The vserver.
        vserver: String,
        /// The change of the shares of that vserver by which it has gone.
        change: u64,
    },
}

/// What the gateway that serves a vserver has made of its shares.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharesServed {
    /// The epoch in which it serves the vserver.
    pub epoch: u64,
    /// It has seen this many changes of the shares, and serves none that is not there any more.
    pub changes: u64,
    /// What stands in the way of shares, by their names.
    #[serde(default)]
    pub problems: BTreeMap<String, String>,
    /// The names of those of them whose problem may pass without anything done, such as a storage that does not answer now.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub passing: BTreeSet<String>,
}

impl VserverRecord {
    /// The share of this name.
    #[must_use]
    pub fn share(&self, name: &str) -> Option<&VserverShareRecord> {
        let name = folded_name(name);
        self.shares.iter().find(|share| folded_name(&share.share.name) == name)
    }

    /// The same with another share in place of the one of its name, or beside the others. A share of that name has not gone elsewhere.
    #[must_use]
    pub fn with_share(&self, new: VserverShareRecord) -> Self {
        let mut changed = self.without_share(&new.share.name);
        let name = folded_name(&new.share.name);
        let place = self.shares.iter().position(|share| folded_name(&share.share.name) == name);
        changed.shares.insert(place.unwrap_or(changed.shares.len()), new);
        changed.went.retain(|gone, _| folded_name(gone) != name);
        changed
    }

    /// The same without the share of this name.
    #[must_use]
    pub fn without_share(&self, name: &str) -> Self {
        let mut changed = self.clone();
        let name = folded_name(name);
        changed.shares.retain(|share| folded_name(&share.share.name) != name);
        changed.share_changes = self.share_changes.wrapping_add(1);
        changed
    }
}

impl VserverShareRecord {
    /// A share as vservers are made with it.
    #[must_use]
    pub fn plain(name: &str, directory: &str, terms: Terms, plan: &str) -> Self {
        let share = ShareRecord {
            name: name.to_owned(),
            directory: directory.into(),
            plan: plan.to_owned(),
            ..ShareRecord::default()
        };
        Self { share: share.on(terms), coming: None }
    }
}

/// The record of a vserver as it is kept.
#[derive(Serialize, Deserialize)]
struct Written {
    name: String,
    gateway: String,
    addresses: Vec<String>,
    smb: Option<u16>,
    nfs: Option<u16>,
    shares: Vec<WrittenShare>,
    #[serde(default)]
    keytab_changes: u64,
    #[serde(default, skip_serializing_if = "is_none")]
    share_changes: u64,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    went: BTreeMap<String, String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_none(changes: &u64) -> bool {
    *changes == 0
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum WrittenShare {
    WithSettings {
        share: Box<ShareRecord>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        coming: Option<Coming>,
    },
    Plain {
        name: String,
        directory: String,
        is_read_only: bool,
        is_continuously_available: bool,
        plan: String,
    },
}

impl From<VserverRecord> for Written {
    fn from(record: VserverRecord) -> Self {
        let VserverRecord { name, gateway, addresses, smb, nfs, .. } = record;
        let VserverRecord { shares, share_changes, went, keytab_changes, .. } = record;
        let written = |share| WrittenShare::of(share, share_changes == 0);
        let shares = shares.into_iter().map(written).collect();
        Self { name, gateway, addresses, smb, nfs, shares, keytab_changes, share_changes, went }
    }
}

impl From<Written> for VserverRecord {
    fn from(written: Written) -> Self {
        let Written { name, gateway, addresses, smb, nfs, shares, keytab_changes, share_changes, went } =
            written;
        let shares = shares.into_iter().map(Into::into).collect();
        Self { name, gateway, addresses, smb, nfs, shares, share_changes, went, keytab_changes }
    }
}

impl WrittenShare {
    /// A share as it is kept: as each version knows it, if it may be and can be.
    fn of(VserverShareRecord { share, coming }: VserverShareRecord, may_be_plain: bool) -> Self {
        let directory = share.directory.to_str().unwrap_or_default();
        let plain = VserverShareRecord::plain(&share.name, directory, share.terms(), &share.plan);
        let of_terms = Terms::READ_ONLY | Terms::CONTINUOUSLY_AVAILABLE;
        if may_be_plain && coming.is_none() && plain.share == share && of_terms.contains(share.terms()) {
            return Self::Plain {
                directory: directory.to_owned(),
                is_read_only: share.terms().contains(Terms::READ_ONLY),
                is_continuously_available: share.terms().contains(Terms::CONTINUOUSLY_AVAILABLE),
                name: share.name,
                plan: share.plan,
            };
        }
        Self::WithSettings { share: Box::new(share.kept()), coming }
    }
}

impl From<WrittenShare> for VserverShareRecord {
    fn from(written: WrittenShare) -> Self {
        match written {
            WrittenShare::WithSettings { share, coming } => Self { share: share.of_kept(), coming },
            WrittenShare::Plain { name, directory, is_read_only, is_continuously_available, plan } => {
                let mut terms = Terms::empty();
                terms.set(Terms::READ_ONLY, is_read_only);
                terms.set(Terms::CONTINUOUSLY_AVAILABLE, is_continuously_available);
                Self::plain(&name, &directory, terms, &plan)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As versions before the changes of shares write a vserver.
    const OLD: &str = r#"{"name":"files","gateway":"a","addresses":["192.0.2.10%eth0/24"],"smb":445,"nfs":null,"shares":[{"name":"data","directory":"cephfs:/files","is_read_only":true,"is_continuously_available":true,"plan":"unlimited"}],"keytab_changes":3}"#;

    fn old() -> VserverRecord {
        serde_json::from_str(OLD).unwrap()
    }

    fn written(record: &VserverRecord) -> serde_json::Value {
        serde_json::to_value(record).unwrap()
    }

    #[test]
    fn a_record_of_an_earlier_version_is_read_and_written_as_that_does() {
        let record = old();
        let share = &record.share("DATA").unwrap().share;
        assert_eq!(share.terms(), Terms::READ_ONLY | Terms::CONTINUOUSLY_AVAILABLE);
        assert_eq!((share.directory.to_str(), &*share.plan), (Some("cephfs:/files"), "unlimited"));
        assert_eq!((record.keytab_changes, record.share_changes), (3, 0));
        assert_eq!(serde_json::to_string(&record).unwrap(), OLD);
        let moved = VserverRecord { gateway: "b".to_owned(), ..record };
        assert_eq!(serde_json::to_string(&moved).unwrap(), OLD.replace("\"a\"", "\"b\""));
        let older = OLD.replace(r#","keytab_changes":3"#, "");
        assert_eq!(serde_json::from_str::<VserverRecord>(&older).unwrap().keytab_changes, 0);
    }

    #[test]
    fn an_earlier_version_reads_no_record_whose_shares_were_changed() {
        let share = old().shares[0].clone();
        let hidden = ShareRecord { comment: "for some".to_owned(), ..share.share.clone() };
        let hidden = VserverShareRecord { share: hidden, coming: None };
        for changed in [old().with_share(hidden), old().with_share(share)] {
            let written = written(&changed);
            for share in written["shares"].as_array().unwrap() {
                assert!(share.get("is_read_only").is_none() && share.get("directory").is_none(), "{share}");
            }
            assert_eq!(serde_json::from_value::<VserverRecord>(written).unwrap(), changed);
        }
    }

    #[test]
    fn what_a_share_demands_of_a_program_is_in_the_record() {
        let mut share = old().shares[0].share.clone();
        share.rules.admin = vec!["anna".to_owned()];
        let changed = old().with_share(VserverShareRecord { share, coming: Some(Coming::New) });
        let written = written(&changed);
        let protocols = written["shares"][0]["share"]["rules"]["protocols"].to_string();
        assert!(protocols.contains("needs roles"), "{written}");
        assert_eq!(serde_json::from_value::<VserverRecord>(written).unwrap(), changed);
    }

    #[test]
    fn a_share_is_put_in_its_place_and_each_change_is_counted() {
        let more = VserverShareRecord::plain("more", "cephfs:/more", Terms::empty(), "");
        let mut two = old().with_share(more);
        two.went.insert("Old".to_owned(), "other".to_owned());
        two.went.insert("More".to_owned(), "other".to_owned());
        let from = Coming::From { vserver: "other".to_owned(), change: 7 };
        let data = VserverShareRecord { coming: Some(from), ..two.shares[0].clone() };
        let changed = two.with_share(VserverShareRecord { share: data.share.clone(), coming: data.coming });
        let names = |record: &VserverRecord| -> Vec<_> {
            record.shares.iter().map(|share| share.share.name.clone()).collect()
        };
        assert_eq!((names(&changed), changed.share_changes), (vec!["data".to_owned(), "more".to_owned()], 2));
        assert_eq!(changed.went.len(), 2, "of other shares");
        let again = changed.without_share("MORE");
        assert_eq!((names(&again), again.share_changes, again.went.len()), (vec!["data".to_owned()], 3, 2));
        let more = VserverShareRecord::plain("more", "cephfs:/more", Terms::empty(), "");
        assert_eq!(again.with_share(more).went.keys().collect::<Vec<_>>(), ["Old"]);
        assert_eq!(serde_json::from_value::<VserverRecord>(written(&changed)).unwrap(), changed);
    }
}
