//! With which keys the servers of this process accept tickets: those of the gateway, or those that a vserver has in the cluster.

use std::sync::Arc;

use auth::Mapping;
use krb5::Acceptor;
use parking_lot::RwLock;

use crate::accounts::AccountBook;
use crate::kerberos;

/// The keys of a server.
#[derive(Debug, Clone)]
pub(crate) struct ServerKeys {
    pub(crate) of: KeysOf,
    /// As of which change of its keytab in the register. None: the keytab could not be read.
    pub(crate) change: Option<u64>,
}

/// Whose keys they are.
#[derive(Debug, Clone)]
pub(crate) enum KeysOf {
    /// The gateway's, as they are at the moment.
    Gateway,
    /// The server's own. None: they cannot be used, and no ticket is accepted, rather than one for somebody else.
    Server(Option<Arc<Acceptor>>),
}

impl ServerKeys {
    /// Those of a server that has none of its own.
    pub(crate) const OF_GATEWAY: Self = Self { of: KeysOf::Gateway, change: None };
}

/// The keys of the gateway, and whom its servers make of the users of tickets. A reload replaces them.
#[derive(Debug)]
pub(crate) struct GatewayKeys {
    /// Guards what counts at the moment.
    now: RwLock<Arc<Now>>,
}

#[derive(Debug)]
struct Now {
    /// How often they were replaced.
    changes: u64,
    /// None: the gateway has no keytab.
    acceptor: Option<Acceptor>,
    mapping: Mapping,
}

/// What the servers of both protocols accept tickets with. None: they accept none.
pub(crate) struct GivenKeys {
    /// As of which change of the gateway's keys.
    pub(crate) changes: u64,
    pub(crate) smb: Option<smb_server::KerberosKeys>,
    pub(crate) nfs: Option<nfs_server::KerberosKeys>,
}

impl GatewayKeys {
    pub(crate) fn new(acceptor: Option<Acceptor>, mapping: Mapping) -> Self {
        Self { now: RwLock::new(Arc::new(Now { changes: 0, acceptor, mapping })) }
    }

    /// Replaces them for whoever is given them from now on.
    pub(crate) fn replace(&self, acceptor: Option<Acceptor>, mapping: Mapping) {
        let mut now = self.now.write();
        *now = Arc::new(Now { changes: now.changes.wrapping_add(1), acceptor, mapping });
    }

    /// How often they were replaced.
    pub(crate) fn changes(&self) -> u64 {
        self.now.read().changes
    }

    /// What servers with these keys accept tickets with.
    pub(crate) fn given(&self, of: &KeysOf, accounts: &Arc<AccountBook>) -> GivenKeys {
        let now = Arc::clone(&self.now.read());
        let Now { changes, acceptor: of_gateway, mapping } = &*now;
        let acceptor = match of {
            KeysOf::Gateway => of_gateway.as_ref(),
            KeysOf::Server(own) => own.as_deref(),
        };
        GivenKeys {
            changes: *changes,
            smb: acceptor.map(|acceptor| kerberos::smb_keys(acceptor, mapping)),
            nfs: acceptor.map(|acceptor| kerberos::nfs_keys(acceptor, mapping, accounts)),
        }
    }
}

#[cfg(test)]
mod tests {
    use auth::Numbering;
    use krb5::keytab::Keytab;
    use share::{Domains, Formula};

    use super::*;

    fn mapping(realm: &str) -> Mapping {
        let numbering = Numbering::Formula(Arc::new(Domains::of_any(Formula::Sss)));
        Mapping { numbering, account_realms: vec![realm.to_owned()], trusted: Vec::new() }
    }

    fn acceptor(recorded: &[u8]) -> Acceptor {
        kerberos::acceptor(Keytab::parse(recorded).unwrap())
    }

    #[test]
    fn a_server_has_its_own_keys_or_the_gateways_and_never_the_wrong_ones() {
        let of_mit = include_bytes!("../../../rules/krb5/testdata/recorded/mit.keytab");
        let of_samba = include_bytes!("../../../rules/krb5/testdata/recorded/samba.keytab");
        let realms = [of_mit.as_slice(), of_samba]
            .map(|recorded| acceptor(recorded).keytab().entries()[0].principal().realm().to_owned());
        let [mit, samba] = &realms;
        assert_ne!(mit, samba);
        let accounts = Arc::new(AccountBook::default());
        let own = KeysOf::Server(Some(Arc::new(acceptor(of_samba))));
        // The realms of the keys for SMB and for NFS, and the one whose users are accounts.
        let found = |keys: &GatewayKeys, of: &KeysOf| {
            let GivenKeys { changes, smb, nfs } = keys.given(of, &accounts);
            let realm = |acceptor: &Acceptor| acceptor.keytab().entries()[0].principal().realm().to_owned();
            let smb = smb.map(|keys| (realm(&keys.acceptor), keys.mapping.account_realms.concat()));
            let nfs = nfs.map(|keys| (realm(&keys.acceptor), keys.mapping.account_realms.concat()));
            assert_eq!((&smb, changes), (&nfs, keys.changes()));
            smb
        };
        let of = |realm: &String, accounts: &str| Some((realm.clone(), accounts.to_owned()));

        let keys = GatewayKeys::new(None, mapping("ONE"));
        assert_eq!((found(&keys, &KeysOf::Gateway), found(&keys, &own)), (None, of(samba, "ONE")));
        keys.replace(Some(acceptor(of_mit)), mapping("TWO"));
        assert_eq!(keys.changes(), 1);
        assert_eq!((found(&keys, &KeysOf::Gateway), found(&keys, &own)), (of(mit, "TWO"), of(samba, "TWO")));
        assert_eq!(found(&keys, &KeysOf::Server(None)), None, "not those of the gateway");
    }
}
