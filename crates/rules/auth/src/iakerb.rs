//! What a server needs to authenticate clients with a password and without NTLM: a KDC that they reach through it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kdc::{Client, Clients, Kdc};
use krb5::crypto::CryptoError;
use krb5::{Accepted, HostRule};

use crate::accounts::{Account, Accounts};
use crate::failure::Reason;

/// How a server accepts IAKERB. Nobody else has its keys, and they end with the process.
pub struct Iakerb {
    /// Makes the tickets
    pub(crate) kdc: Kdc,
    /// Accepts them
    pub(crate) acceptor: krb5::Acceptor,
    /// The tickets that were used; it has a lock of its own
    pub(crate) replays: Arc<dyn krb5::Replays + Send + Sync>,
}

impl Iakerb {
    /// A server whose accounts get their tickets from this KDC.
    ///
    /// # Errors
    /// The cryptographic library refuses.
    pub fn new(kdc: Kdc, replays: Arc<dyn krb5::Replays + Send + Sync>) -> Result<Self, CryptoError> {
        let kdc::Settings { services, clock_skew, .. } = kdc.settings().clone();
        let settings = krb5::Settings {
            services,
            clock_skew: Duration::max(clock_skew, Duration::from_secs(1)),
            pac: krb5::PacRule::Required,
            hosts: HostRule::Any,
        };
        let acceptor = krb5::Acceptor::new(kdc.keytab()?, settings);
        Ok(Self { kdc, acceptor, replays })
    }

    /// The realm of the accounts.
    #[must_use]
    pub fn realm(&self) -> &str {
        &self.kdc.settings().realm
    }

    /// The account to which a ticket was given. It must be the one that has the name now: its SID is in the ticket.
    pub(crate) fn identify(&self, accepted: &Accepted, accounts: &dyn Accounts) -> Result<Account, Reason> {
        let logon = accepted.pac.as_ref().and_then(|pac| pac.logon.as_ref()).ok_or(Reason::NoSid)?;
        if accepted.client.realm() != self.realm() {
            return Err(Reason::OtherDomain);
        }
        let account = accounts.find(accepted.client.name()).ok_or(Reason::UnknownUser)?;
        match account.sid == Some(logon.sid) {
            true if account.disabled => Err(Reason::Disabled),
            true => Ok(account),
            false => Err(Reason::UnknownUser),
        }
    }
}

impl fmt::Debug for Iakerb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iakerb").field("kdc", &self.kdc).finish_non_exhaustive()
    }
}

/// The accounts as the KDC sees them: those with keys and a SID.
pub(crate) struct AccountClients<'a>(pub(crate) &'a dyn Accounts);

impl Clients for AccountClients<'_> {
    fn client(&self, name: &str) -> Option<Client> {
        let Account { name, sid, keys, disabled, .. } = self.0.find(name)?;
        Some(Client { name, sid: sid?, keys: keys?, is_disabled: disabled })
    }
}
