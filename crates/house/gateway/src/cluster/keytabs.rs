//! The keytabs of vservers: commands change them in the register, and whoever serves a vserver accepts tickets with what is there.

use std::sync::Arc;

use control::RefusalKind;
use control::cluster::{Vserver, VserverKey};
use krb5::keytab::{BYTES_MAX, Entry, Keytab, KeytabError};
use state::cluster::{KEYTAB_BYTES_MAX, Register, VserverRecord};
use state::store::StoreError;
use zeroize::Zeroizing;

use super::Seat;
use super::calls::{Result, refused, too_quick};
use crate::kerberos;
use crate::ticket_keys::{KeysOf, ServerKeys};
use crate::vserver_commands::Host;

const _: () = assert!(KEYTAB_BYTES_MAX == BYTES_MAX);

type Stored = std::result::Result<Option<Zeroizing<Vec<u8>>>, StoreError>;

impl Seat {
    /// Gives a vserver a keytab.
    ///
    /// # Errors
    /// The keytab cannot be used, or there is no such vserver.
    pub(super) fn store_keytab(&self, vserver: &str, keytab: &[u8]) -> Result<Vserver> {
        let unusable = |error| {
            let advice = "Make a keytab with adcli, net ads, samba-tool, ktpass or kadmin.";
            refused(RefusalKind::Invalid, format!("the keytab cannot be used: {error}"), advice)
        };
        Keytab::parse(keytab).map_err(unusable)?;
        let stored = self.change_keytab(vserver, Some(keytab))?;
        tracing::info!(vserver, "a keytab was stored in the cluster");
        Ok(stored)
    }

    /// Takes the keytab of a vserver away.
    ///
    /// # Errors
    /// There is no such vserver, or it has none.
    pub(super) fn withdraw_keytab(&self, vserver: &str) -> Result<Vserver> {
        let removed = self.change_keytab(vserver, None)?;
        tracing::info!(vserver, "the keytab was removed from the cluster");
        Ok(removed)
    }

    fn change_keytab(&self, vserver: &str, to: Option<&[u8]>) -> Result<Vserver> {
        let register = self.asked_register()?;
        let seen = self.one_vserver(&register, vserver)?;
        // One that cannot be read can be replaced and removed.
        if to.is_none() && matches!(register.keytab(vserver), Ok(None)) {
            let what = format!("the vserver {vserver} has no keytab in the cluster");
            let advice = "It accepts tickets with the keytab of the gateway that serves it.";
            return Err(refused(RefusalKind::NotFound, what, advice));
        }
        if !register.set_keytab(&seen, to).map_err(|error| self.no_answer(&error))? {
            return Err(too_quick());
        }
        self.tell(&register);
        self.told(&register, &seen.record)
    }
}

/// The keys of a vserver's keytab, and what is wrong with it. None: it has no keytab.
pub(super) fn told(stored: Stored) -> (Option<Vec<VserverKey>>, Option<String>) {
    let key = |entry: &Entry| VserverKey {
        principal: entry.principal().to_string(),
        kvno: entry.kvno(),
        encryption: entry.enctype().name().to_owned(),
    };
    match stored.map(|stored| stored.map(|bytes| Keytab::parse(&bytes))) {
        Ok(None) => (None, None),
        Ok(Some(Ok(keytab))) => (Some(keytab.entries().iter().map(key).collect()), None),
        Ok(Some(Err(error))) => (Some(Vec::new()), Some(unusable(&error))),
        Err(error) => (Some(Vec::new()), Some(unread(&error))),
    }
}

fn unusable(why: &KeytabError) -> String {
    format!("the keytab in the cluster cannot be used, and no ticket is accepted: {why}")
}

fn unread(why: &StoreError) -> String {
    format!("the keytab in the cluster cannot be read: {why}")
}

/// The keys of a vserver that is about to be served. Whatever its keytab is, it is served.
pub(super) fn at_the_beginning(register: &Register, record: &VserverRecord) -> ServerKeys {
    read(register, record).unwrap_or_else(|error| {
        tracing::error!(vserver = record.name, "{}: no ticket is accepted until it can", unread(&error));
        ServerKeys { of: KeysOf::Server(None), change: None }
    })
}

/// Gives a vserver that is served here the keys that it has now, if it has others.
///
/// # Errors
/// The store does not answer: the vserver keeps the keys that it has.
pub(super) fn look(
    host: &Host,
    register: &Register,
    record: &VserverRecord,
) -> std::result::Result<(), StoreError> {
    let as_of = host.vservers.with(&record.name, |served| served.vserver.keys_as_of());
    let Some((change, of_gateway)) = as_of else { return Ok(()) };
    let is_changed = change != Some(record.keytab_changes);
    if !is_changed && of_gateway == host.lent.keys.changes() {
        return Ok(());
    }
    // The list of vservers is not held meanwhile. One that begins at this moment reads the same.
    let keys = if is_changed { Some(read(register, record)?) } else { None };
    host.vservers.with(&record.name, |served| served.vserver.use_keys(keys));
    Ok(())
}

/// The keys in the register. They are at least as new as the record, and whoever sees a newer record reads them again.
fn read(register: &Register, record: &VserverRecord) -> std::result::Result<ServerKeys, StoreError> {
    let vserver = &*record.name;
    let of = match register.keytab(vserver)? {
        None => KeysOf::Gateway,
        Some(bytes) => match Keytab::parse(&bytes) {
            Ok(keytab) => {
                let (entries, skipped) = (keytab.entries().len(), keytab.skipped());
                tracing::info!(
                    vserver,
                    entries,
                    skipped,
                    "tickets are accepted with the keytab in the cluster"
                );
                KeysOf::Server(Some(Arc::new(kerberos::acceptor(keytab))))
            }
            Err(error) => {
                tracing::error!(vserver, "{}", unusable(&error));
                KeysOf::Server(None)
            }
        },
    };
    Ok(ServerKeys { of, change: Some(record.keytab_changes) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_of_a_keytab_are_told_without_the_keys() {
        let recorded = include_bytes!("../../../../rules/krb5/testdata/recorded/mit.keytab");
        let (keys, problem) = told(Ok(Some(Zeroizing::new(recorded.to_vec()))));
        assert_eq!(problem, None);
        let keys = keys.unwrap();
        let first = keys.iter().find(|key| key.principal.starts_with("cifs/")).unwrap();
        assert!(first.principal.ends_with("@LAB.TEST") && first.encryption.starts_with("aes"), "{first:?}");
        assert_eq!(told(Ok(None)), (None, None));
        let (keys, problem) = told(Ok(Some(Zeroizing::new(b"hello".to_vec()))));
        assert_eq!(keys, Some(Vec::new()));
        assert!(problem.unwrap().contains("not a keytab"));
        let (keys, problem) = told(Err("a record of the table keytabs is not readable".into()));
        assert_eq!(keys, Some(Vec::new()));
        assert!(problem.unwrap().contains("not readable"));
    }
}
