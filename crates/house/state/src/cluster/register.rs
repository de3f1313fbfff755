//! What the gateways of a cluster have written down for each other: which gateways there are, which vservers, each with the gateway
//! that is to serve it, and who may log on to all of them.
//!
//! All gateways change the register: its group has one owner for ever, in whose name each writes. So a change says what it was decided
//! by ([`Seen`]), and fails if somebody was faster. What it says is what is *to be*; who serves a vserver is told by its own group
//! ([`super::Ownership`]).

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::{ClusterStore, Listening, SharesServed, VserverRecord};
use crate::account_domain::{AccountDomain, RIDS};
use crate::records::UserRecord;
use crate::server_records::ServerRecords;
use crate::state::ADDED_USERS as USERS;
use crate::store::{Batch, Change, Form, Store, StoreError, Table};

/// The group of the register.
const GROUP: &str = "cluster";
/// Tells that the register has changed, or that a vserver was let go.
const TOPIC: &str = "cluster";
/// How the records of a register are written. A later version that writes others raises it.
const FORM: &[u8] = b"1";

const ABOUT: Table = Table { name: "about", form: Form::TextToBytes };
const FORM_KEY: &[u8] = b"form";
/// How often the users have changed.
const USER_CHANGES: &[u8] = b"user-changes";
const GATEWAYS: Table = Table { name: "gateways", form: Form::TextToBytes };
const VSERVERS: Table = Table { name: "vservers", form: Form::TextToBytes };
/// Why a vserver is not served, by its name.
const TROUBLES: Table = Table { name: "troubles", form: Form::TextToBytes };
/// The keytabs of vservers, by name: who has one can log on to its vserver as anybody.
const KEYTABS: Table = Table { name: "keytabs", form: Form::TextToBytes };

/// What the gateways that serve vservers have made of their shares, by the names of the vservers.
const SHARES: Table = Table { name: "shares", form: Form::TextToBytes };

/// The most bytes of a keytab.
pub const KEYTAB_BYTES_MAX: usize = 1 << 20;

/// A gateway of the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GatewayRecord {
    /// Its name.
    pub name: String,
    /// The version of its program when it joined.
    pub version: String,
    /// Whether no vserver is to come to it.
    pub is_drained: bool,
    /// Its interfaces for vservers that have no carrier: clients do not reach it there. Versions before 0.2.0 say nothing of them.
    #[serde(default)]
    pub cut_off: Vec<String>,
}

/// A record as it was read: a change of it is made only if it still is what it was.
#[derive(Clone)]
pub struct Seen<T> {
    /// The record.
    pub record: T,
    kept: Vec<u8>,
}

/// What was kept may have secrets.
impl<T: fmt::Debug> fmt::Debug for Seen<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seen").field("record", &self.record).finish_non_exhaustive()
    }
}

/// All records of one kind, by name.
#[derive(Debug, Clone)]
pub struct Listed<T> {
    /// Those that can be read.
    pub seen: Vec<Seen<T>>,
    /// The others.
    pub unreadable: Vec<Unreadable>,
}

/// A record that is damaged, or was written by a later version of this program. Nobody changes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// Whose record it is.
    pub name: String,
    /// What is wrong, in words.
    pub what: String,
}

/// What has a name of its own among the records of its kind.
trait Named {
    /// What it is, in words.
    const KIND: &'static str;
    fn name(&self) -> &str;
    /// Under what it is kept.
    fn key(&self) -> Cow<'_, str> {
        self.name().into()
    }
}

impl Named for GatewayRecord {
    const KIND: &'static str = "gateway";
    fn name(&self) -> &str {
        &self.name
    }
}

impl Named for VserverRecord {
    const KIND: &'static str = "vserver";
    fn name(&self) -> &str {
        &self.name
    }
}

/// Names of users do not differ by case.
impl Named for UserRecord {
    const KIND: &'static str = "user";
    fn name(&self) -> &str {
        &self.name
    }
    fn key(&self) -> Cow<'_, str> {
        auth::folded_name(&self.name).into()
    }
}

impl Seen<VserverRecord> {
    /// A record as it was written by whoever calls this.
    ///
    /// # Errors
    /// The record cannot be written.
    pub fn written(record: VserverRecord) -> Result<Self, StoreError> {
        let kept = serde_json::to_vec(&record)?;
        Ok(Self { record, kept })
    }
}

impl<T> Default for Listed<T> {
    fn default() -> Self {
        Self { seen: Vec::new(), unreadable: Vec::new() }
    }
}

impl<T> Listed<T> {
    /// What is wrong with the record of this name, if it cannot be read.
    #[must_use]
    pub fn unreadable(&self, name: &str) -> Option<&Unreadable> {
        self.unreadable.iter().find(|unreadable| unreadable.name == name)
    }
}

/// See the module.
#[derive(Debug)]
pub struct Register {
    store: Arc<dyn ClusterStore>,
    records: Arc<dyn Store>,
}

impl Register {
    /// Makes the register of a cluster. None: there is one already.
    ///
    /// # Errors
    /// The store does not answer.
    pub fn make(store: &Arc<dyn ClusterStore>) -> Result<Option<Self>, StoreError> {
        // Whoever began to make it may not have come to its end.
        let owner = match store.take(GROUP, None)? {
            Some(owner) => owner,
            None => match store.owner(GROUP)? {
                Some(owner) => owner,
                None => return Ok(None),
            },
        };
        let records = store.records(GROUP, &owner)?;
        let made = records.write(&Batch {
            expected: vec![ABOUT.expect(FORM_KEY, None)],
            changes: vec![ABOUT.put(FORM_KEY, FORM)],
        })?;
        Ok(made.then(|| Self { store: Arc::clone(store), records }))
    }

    /// The register of the cluster. None: nobody has made one.
    ///
    /// # Errors
    /// The store does not answer, or the register is one of a later version.
    pub fn open(store: &Arc<dyn ClusterStore>) -> Result<Option<Self>, StoreError> {
        let Some(owner) = store.owner(GROUP)? else { return Ok(None) };
        let records = store.records(GROUP, &owner)?;
        match records.read(ABOUT, FORM_KEY)? {
            // Who makes it is not done yet.
            None => Ok(None),
            Some(form) if form == FORM => Ok(Some(Self { store: Arc::clone(store), records })),
            Some(_) => {
                Err("the cluster is one of a later version of this program: install that version here".into())
            }
        }
    }

    /// The store that it is in.
    pub fn store(&self) -> &Arc<dyn ClusterStore> {
        &self.store
    }

    /// All gateways, by name.
    ///
    /// # Errors
    /// The store does not answer, as for all calls here.
    pub fn gateways(&self) -> Result<Listed<GatewayRecord>, StoreError> {
        self.all(GATEWAYS)
    }

    /// Enters a gateway. False: there is one of this name.
    ///
    /// # Errors
    /// As above.
    pub fn add_gateway(&self, new: &GatewayRecord) -> Result<bool, StoreError> {
        self.change(GATEWAYS, &new.name, None, Some(new))
    }

    /// Changes a gateway, or takes it out. False: it is not what was seen.
    ///
    /// # Errors
    /// As above.
    pub fn change_gateway(
        &self,
        seen: &Seen<GatewayRecord>,
        to: Option<&GatewayRecord>,
    ) -> Result<bool, StoreError> {
        self.change(GATEWAYS, &seen.record.name, Some(&seen.kept), to)
    }

    /// All vservers, by name.
    ///
    /// # Errors
    /// As above.
    pub fn vservers(&self) -> Result<Listed<VserverRecord>, StoreError> {
        self.all(VSERVERS)
    }

    /// Enters a vserver. False: there is one of this name.
    ///
    /// # Errors
    /// As above.
    pub fn add_vserver(&self, new: &VserverRecord) -> Result<bool, StoreError> {
        let mut batch = changing(VSERVERS, &new.name, None, Some(new))?;
        // Nobody has the keys of a vserver that had the name before.
        batch.changes.extend([KEYTABS, SHARES].map(|table| table.remove(new.name.as_bytes())));
        self.records.write(&batch)
    }

    /// Changes a vserver, or takes it out, with its keytab. False: it is not what was seen.
    ///
    /// # Errors
    /// As above.
    pub fn change_vserver(
        &self,
        seen: &Seen<VserverRecord>,
        to: Option<&VserverRecord>,
    ) -> Result<bool, StoreError> {
        let name = &seen.record.name;
        let mut batch = changing(VSERVERS, name, Some(&seen.kept), to)?;
        if to.is_none() {
            batch.changes.extend([KEYTABS, SHARES].map(|table| table.remove(name.as_bytes())));
        }
        self.records.write(&batch)
    }

    /// The vserver of this name.
    ///
    /// # Errors
    /// As above, or the record cannot be read.
    pub fn vserver(&self, name: &str) -> Result<Option<Seen<VserverRecord>>, StoreError> {
        let Some(kept) = self.records.read(VSERVERS, name.as_bytes())? else { return Ok(None) };
        let record = read(name, &kept).map_err(|why| unreadable::<VserverRecord>(name, &why))?;
        Ok(Some(Seen { record, kept }))
    }

    /// Changes two vservers at once, or neither. False: one of them is not what was seen.
    ///
    /// # Errors
    /// As above.
    pub fn change_two_vservers(
        &self,
        changes: [(&Seen<VserverRecord>, &VserverRecord); 2],
    ) -> Result<bool, StoreError> {
        let mut both = Batch::default();
        for (seen, to) in changes {
            let one = changing(VSERVERS, &seen.record.name, Some(&seen.kept), Some(to))?;
            both.expected.extend(one.expected);
            both.changes.extend(one.changes);
        }
        self.records.write(&both)
    }

    /// What the gateway that serves a vserver has made of its shares. None: none has told.
    ///
    /// # Errors
    /// As above.
    pub fn shares_served(&self, vserver: &str) -> Result<Option<SharesServed>, StoreError> {
        let kept = self.records.read(SHARES, vserver.as_bytes())?;
        Ok(kept.map(|kept| serde_json::from_slice(&kept)).transpose()?)
    }

    /// Tells what the gateway that serves a vserver has made of its shares. False: somebody has told something newer, or tells at the same
    /// time.
    ///
    /// # Errors
    /// As above.
    pub fn set_shares_served(&self, vserver: &str, served: &SharesServed) -> Result<bool, StoreError> {
        let name = vserver.as_bytes();
        let kept = self.records.read(SHARES, name)?;
        // One that cannot be read is no reason to stop.
        let known = kept.as_deref().and_then(|kept| serde_json::from_slice::<SharesServed>(kept).ok());
        if known.is_some_and(|known| (known.epoch, known.changes) > (served.epoch, served.changes)) {
            return Ok(false);
        }
        let changes = vec![SHARES.put(name, &serde_json::to_vec(served)?)];
        self.records.write(&Batch { expected: vec![SHARES.expect(name, kept.as_deref())], changes })
    }

    /// The keytab of a vserver. None: it has none of its own.
    ///
    /// # Errors
    /// As above.
    pub fn keytab(&self, vserver: &str) -> Result<Option<Zeroizing<Vec<u8>>>, StoreError> {
        Ok(self.records.read(KEYTABS, vserver.as_bytes())?.map(Zeroizing::new))
    }

    /// Gives a vserver a keytab, in place of the one that it has, or takes it away. False: the vserver is not what was seen.
    ///
    /// # Errors
    /// As above, or the keytab is larger than [`KEYTAB_BYTES_MAX`].
    pub fn set_keytab(&self, seen: &Seen<VserverRecord>, keytab: Option<&[u8]>) -> Result<bool, StoreError> {
        let (name, length) = (&seen.record.name, keytab.map_or(0, <[u8]>::len));
        if length > KEYTAB_BYTES_MAX {
            return Err(
                format!("the keytab of the vserver {name} is larger than {KEYTAB_BYTES_MAX} bytes").into()
            );
        }
        let keytab_changes = seen.record.keytab_changes.wrapping_add(1);
        let record = VserverRecord { keytab_changes, ..seen.record.clone() };
        let mut batch = changing(VSERVERS, name, Some(&seen.kept), Some(&record))?;
        batch.changes.push(match keytab {
            Some(keytab) => KEYTABS.put(name.as_bytes(), keytab),
            None => KEYTABS.remove(name.as_bytes()),
        });
        self.records.write(&batch)
    }

    /// The domain in which the accounts of the cluster have their SIDs.
    pub fn account_domain(&self) -> AccountDomain {
        AccountDomain::new(ServerRecords::new(Arc::clone(&self.records), "the register of the cluster"))
    }

    /// How often a user of the cluster was entered, changed or taken out.
    ///
    /// # Errors
    /// As above.
    pub fn user_changes(&self) -> Result<u64, StoreError> {
        Ok(number(self.records.read(ABOUT, USER_CHANGES)?.as_deref()))
    }

    /// All users of the cluster, by folded name.
    ///
    /// # Errors
    /// As above.
    pub fn users(&self) -> Result<Listed<UserRecord>, StoreError> {
        self.all(USERS)
    }

    /// The user of this name.
    ///
    /// # Errors
    /// As above, or the record cannot be read.
    pub fn user(&self, name: &str) -> Result<Option<Seen<UserRecord>>, StoreError> {
        let name = auth::folded_name(name);
        let Some(kept) = self.records.read(USERS, name.as_bytes())? else { return Ok(None) };
        let record = read(&name, &kept).map_err(|why| unreadable::<UserRecord>(&name, &why))?;
        Ok(Some(Seen { record, kept }))
    }

    /// Enters a user. False: there is one of this name.
    ///
    /// # Errors
    /// As above.
    pub fn add_user(&self, new: &UserRecord) -> Result<bool, StoreError> {
        let name = new.key();
        // An account of a gateway may have been known under this name: whoever is entered is somebody else.
        let changes = [RIDS.remove(name.as_bytes()), USERS.put(name.as_bytes(), &serde_json::to_vec(new)?)];
        self.write_user(&name, None, &changes)
    }

    /// Changes a user, whose name stays. False: it is not what was seen.
    ///
    /// # Errors
    /// As above.
    pub fn change_user(&self, seen: &Seen<UserRecord>, to: &UserRecord) -> Result<bool, StoreError> {
        let name = seen.record.key();
        self.write_user(&name, Some(&seen.kept), &[USERS.put(name.as_bytes(), &serde_json::to_vec(to)?)])
    }

    /// Takes a user out, with the RID: the next user of that name is another. False: it is not what was seen.
    ///
    /// # Errors
    /// As above.
    pub fn remove_user(&self, seen: &Seen<UserRecord>) -> Result<bool, StoreError> {
        let name = seen.record.key();
        let changes = [USERS.remove(name.as_bytes()), RIDS.remove(name.as_bytes())];
        self.write_user(&name, Some(&seen.kept), &changes)
    }

    /// Makes these changes, and counts them. False: the user is not what was seen.
    fn write_user(&self, name: &str, seen: Option<&[u8]>, changes: &[Change]) -> Result<bool, StoreError> {
        loop {
            let counted = self.records.read(ABOUT, USER_CHANGES)?;
            let next = number(counted.as_deref()).wrapping_add(1);
            let of_user = USERS.expect(name.as_bytes(), seen);
            let expected = vec![of_user, ABOUT.expect(USER_CHANGES, counted.as_deref())];
            let count = ABOUT.put(USER_CHANGES, &next.to_le_bytes());
            let changes = changes.iter().cloned().chain([count]).collect();
            if self.records.write(&Batch { expected, changes })? {
                return Ok(true);
            }
            // Else somebody has changed another user meanwhile.
            if self.records.read(USERS, name.as_bytes())?.as_deref() != seen {
                return Ok(false);
            }
        }
    }

    /// Why the gateway that is to serve a vserver does not.
    ///
    /// # Errors
    /// As above.
    pub fn trouble(&self, vserver: &str) -> Result<Option<String>, StoreError> {
        let found = self.records.read(TROUBLES, vserver.as_bytes())?;
        Ok(found.map(|why| String::from_utf8_lossy(&why).into_owned()))
    }

    /// Writes down why a vserver is not served.
    ///
    /// # Errors
    /// As above.
    pub fn set_trouble(&self, vserver: &str, why: Option<&str>) -> Result<(), StoreError> {
        let change = match why {
            Some(why) => TROUBLES.put(vserver.as_bytes(), why.as_bytes()),
            None => TROUBLES.remove(vserver.as_bytes()),
        };
        self.records.write(&vec![change].into()).map(drop)
    }

    /// Tells all gateways to look what has changed.
    ///
    /// # Errors
    /// As above.
    pub fn tell(&self) -> Result<(), StoreError> {
        self.store.tell(TOPIC, b"")
    }

    /// Hears that something has changed. The function must not use the store.
    ///
    /// # Errors
    /// As above.
    pub fn listen(&self, heard: Box<dyn Fn() + Send + Sync>) -> Result<Box<dyn Listening>, StoreError> {
        self.store.listen(TOPIC, Box::new(move |_| heard()))
    }

    fn all<T: DeserializeOwned + Named>(&self, table: Table) -> Result<Listed<T>, StoreError> {
        let mut listed = Listed::default();
        for (name, kept) in self.records.scan(table)? {
            let name = String::from_utf8_lossy(&name).into_owned();
            match read(&name, &kept) {
                Ok(record) => listed.seen.push(Seen { record, kept }),
                Err(why) => {
                    let what = unreadable::<T>(&name, &why);
                    listed.unreadable.push(Unreadable { name, what });
                }
            }
        }
        Ok(listed)
    }

    fn change(
        &self,
        table: Table,
        name: &str,
        seen: Option<&[u8]>,
        to: Option<&impl Serialize>,
    ) -> Result<bool, StoreError> {
        self.records.write(&changing(table, name, seen, to)?)
    }
}

fn unreadable<T: Named>(name: &str, why: &str) -> String {
    format!("the record of the {} {name} is not readable: {why}", T::KIND)
}

/// A number of 64 bits; 0: there is none.
fn number(kept: Option<&[u8]>) -> u64 {
    kept.and_then(|kept| kept.try_into().ok()).map_or(0, u64::from_le_bytes)
}

/// The change of a record that is what was seen.
///
/// # Errors
/// The record cannot be written.
fn changing(
    table: Table,
    name: &str,
    seen: Option<&[u8]>,
    to: Option<&impl Serialize>,
) -> Result<Batch, StoreError> {
    let change = match to {
        Some(record) => table.put(name.as_bytes(), &serde_json::to_vec(record)?),
        None => table.remove(name.as_bytes()),
    };
    Ok(Batch { expected: vec![table.expect(name.as_bytes(), seen)], changes: vec![change] })
}

/// The record that is kept under this name.
///
/// # Errors
/// It is none, in words.
fn read<T: DeserializeOwned + Named>(name: &str, kept: &[u8]) -> Result<T, String> {
    let record: T = serde_json::from_slice(kept).map_err(|error| error.to_string())?;
    if record.key() != name {
        return Err(format!("it says that it is that of {}", record.name()));
    }
    Ok(record)
}
