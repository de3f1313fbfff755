//! How clients authenticate: with NTLM unless it is off, with Kerberos while the server has keys.

use std::fmt;
use std::sync::Arc;

use auth::ntlm::ServerNames;
use auth::{Account, Iakerb, Mapping, spnego};
use kdc::Kdc;
use krb5::crypto::CryptoError;
use krb5::{Noted, ReplayCache, ReplayId, Replays, Time};
use parking_lot::{Mutex, RwLock};

use crate::config::Config;

/// The keys with which the server accepts tickets, and whom it makes of their users.
pub struct KerberosKeys {
    /// The keys, and the rules for tickets
    pub acceptor: krb5::Acceptor,
    /// Who the users are
    pub mapping: Mapping,
}

impl fmt::Debug for KerberosKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KerberosKeys").field("mapping", &self.mapping).finish_non_exhaustive()
    }
}

/// How clients authenticate, now.
pub(crate) struct Mechanisms {
    /// Guards the three configurations, which are replaced together. A logon takes one of them and lets go.
    current: RwLock<Current>,
    /// Shared by all shards, and kept when the keys change.
    replays: Arc<UsedTickets>,
}

/// The configurations of an authentication.
struct Current {
    /// In a session that begins.
    first: Arc<auth::Config>,
    /// The same while some share admits guests.
    with_guests: Arc<auth::Config>,
    /// In a session that has its keys.
    again: Arc<auth::Config>,
}

impl Current {
    fn of(first: auth::Config, guest: Account) -> Self {
        let again = auth::Config { allow_anonymous: true, ..first.clone() };
        let with_guests = auth::Config { guest: Some(guest), ..again.clone() };
        Self { first: Arc::new(first), with_guests: Arc::new(with_guests), again: Arc::new(again) }
    }
}

impl Mechanisms {
    pub(crate) fn new(config: &Config) -> Self {
        let names = ServerNames {
            nb_computer: config.server_name.clone(),
            nb_domain: config.server_name.clone(),
            dns_computer: config.server_name.to_lowercase(),
            dns_domain: String::new(),
        };
        let first = auth::Config {
            names,
            allow_anonymous: config.anonymous_ipc,
            guest: None,
            kerberos: None,
            iakerb: None,
            ntlm: config.ntlm,
        };
        let current = RwLock::new(Current::of(first, guest(config)));
        Self { current, replays: Arc::default() }
    }

    pub(crate) fn first(&self) -> Arc<auth::Config> {
        Arc::clone(&self.current.read().first)
    }

    pub(crate) fn with_guests(&self) -> Arc<auth::Config> {
        Arc::clone(&self.current.read().with_guests)
    }

    pub(crate) fn again(&self) -> Arc<auth::Config> {
        Arc::clone(&self.current.read().again)
    }

    /// What a client learns before it authenticates: the mechanisms of this server. If there are none, nothing.
    pub(crate) fn security_token(&self) -> Vec<u8> {
        let mechanisms = self.first().mechanisms();
        let oids: Vec<&[u8]> = mechanisms.iter().flat_map(|mechanism| mechanism.oids()).copied().collect();
        // [MS-SMB2] 2.2.4: with a buffer of no bytes, the client chooses the mechanism.
        if oids.is_empty() { Vec::new() } else { spnego::neg_token_init2(&oids) }
    }

    /// Lets clients get tickets of this KDC through the server.
    ///
    /// # Errors
    /// The cryptographic library refuses.
    pub(crate) fn use_iakerb(&self, kdc: Option<Kdc>) -> Result<(), CryptoError> {
        let iakerb = kdc.map(|kdc| Iakerb::new(kdc, Arc::clone(&self.replays) as _)).transpose()?;
        self.change(|first| auth::Config { iakerb: iakerb.map(Arc::new), ..first });
        Ok(())
    }

    fn change(&self, change: impl FnOnce(auth::Config) -> auth::Config) {
        let mut current = self.current.write();
        let first = change((*current.first).clone());
        if let Some(guest) = current.with_guests.guest.clone() {
            *current = Current::of(first, guest);
        }
    }

    pub(crate) fn use_kerberos(&self, keys: Option<KerberosKeys>) {
        let kerberos = keys.map(|KerberosKeys { acceptor, mapping }| {
            Arc::new(auth::Kerberos { acceptor, replays: Arc::clone(&self.replays) as _, mapping })
        });
        self.change(|first| auth::Config { kerberos, ..first });
    }
}

/// The tickets that were used. The lock guards the cache, for one look-up and without a wait.
struct UsedTickets(Mutex<ReplayCache>);

impl Default for UsedTickets {
    fn default() -> Self {
        let clock_skew = krb5::Settings::default().clock_skew;
        Self(Mutex::new(ReplayCache::new(ReplayCache::CAPACITY, clock_skew)))
    }
}

impl Replays for UsedTickets {
    fn note(&self, id: ReplayId, now: Time) -> Noted {
        self.0.lock().note(id, now)
    }
}

/// The account for users without one.
fn guest(config: &Config) -> Account {
    let guest = &config.guest;
    Account {
        name: "guest".to_owned(),
        nt_hash: None,
        keys: None,
        uid: guest.uid(),
        gid: guest.gid(),
        groups: guest.groups().to_vec(),
        sid: None,
        disabled: false,
    }
}
