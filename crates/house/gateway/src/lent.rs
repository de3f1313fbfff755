//! What the servers of one process have in common: accounts and their names, keys, the places of connections, the access log.

use std::sync::Arc;

use acl::Sid;
use nfs_server::Tls;
use share::{AccessLog, Terms};

use crate::accounts::AccountBook;
use crate::descriptors::Allotment;
use crate::kerberos::{self, DomainNumbers, Tickets};
use crate::prepared::Prepared;
use crate::problem::{Result, serving};
use crate::settings::Settings;
use crate::sid_names::SidNames;
use crate::ticket_keys::{GatewayKeys, GivenKeys, KeysOf};
use crate::user_groups::GroupsHere;
use crate::without_ntlm;

/// See the module.
#[derive(Debug)]
pub(crate) struct Lent {
    pub(crate) settings: Settings,
    pub(crate) accounts: Arc<AccountBook>,
    pub(crate) descriptors: Allotment,
    pub(crate) access_log: AccessLog,
    /// None: NFS does without TLS.
    pub(crate) tls: Option<Arc<Tls>>,
    /// Who SIDs and names stand for.
    pub(crate) names: Arc<SidNames>,
    /// In which groups the users of NFS clients are.
    pub(crate) groups: Arc<GroupsHere>,
    /// In whose domain the accounts are.
    pub(crate) machine: Sid,
    /// The keys of the gateway, for those that have none of their own.
    pub(crate) keys: Arc<GatewayKeys>,
}

impl Lent {
    /// # Errors
    /// The state or a keytab cannot be read, or the system lacks threads.
    pub(crate) fn new(prepared: &Prepared, tls: Option<Arc<Tls>>) -> Result<Self> {
        let Prepared { settings, state, accounts, descriptors, access_log, .. } = prepared;
        warn_of_guests(settings);
        let machine = state.account_domain().sid()?;
        let (names, groups) = start_directories(accounts, machine)?;
        let numbers = DomainNumbers::new(&settings.kerberos, state, accounts)?;
        let mapping = kerberos::mapping(&settings.kerberos, &numbers.numbering);
        let keys = kerberos::keys(settings)?;
        accounts.use_tickets(Tickets::of(&settings.kerberos, numbers, keys.as_ref()));
        for warning in without_ntlm::warnings(settings, keys.is_some()) {
            tracing::warn!("{warning}");
        }
        Ok(Self {
            settings: settings.clone(),
            accounts: Arc::clone(accounts),
            descriptors: *descriptors,
            access_log: access_log.clone(),
            tls,
            names,
            groups,
            machine,
            keys: Arc::new(GatewayKeys::new(keys, mapping)),
        })
    }

    /// The same with these accounts, whose SIDs are in another domain.
    ///
    /// # Errors
    /// The system lacks threads.
    pub(crate) fn with_accounts(&self, accounts: Arc<AccountBook>, machine: Sid) -> Result<Self> {
        let (names, groups) = start_directories(&accounts, machine)?;
        Ok(Self {
            settings: self.settings.clone(),
            accounts,
            descriptors: self.descriptors,
            access_log: self.access_log.clone(),
            tls: self.tls.clone(),
            names,
            groups,
            machine,
            keys: Arc::clone(&self.keys),
        })
    }

    /// What servers with these keys accept tickets with.
    pub(crate) fn given_keys(&self, of: &KeysOf) -> GivenKeys {
        self.keys.given(of, &self.accounts)
    }
}

/// Starts the threads that ask who people are, and in which groups. They end with these values.
fn start_directories(accounts: &Arc<AccountBook>, machine: Sid) -> Result<(Arc<SidNames>, Arc<GroupsHere>)> {
    let server_name = smb_server::Config::default().server_name;
    let names = SidNames::start(Arc::clone(accounts), &server_name, machine);
    let names = names.map_err(serving("cannot start a thread for the names of users"))?;
    let groups = GroupsHere::start(Arc::clone(accounts));
    let groups = groups.map_err(serving("cannot start a thread for the groups of users"))?;
    Ok((Arc::new(names), Arc::new(groups)))
}

/// Logs why guests are not admitted, although a share admits them.
fn warn_of_guests(settings: &Settings) {
    let required = settings.encryption_required();
    if required && settings.shares.iter().any(|share| share.terms.contains(Terms::GUESTS)) {
        tracing::warn!("guests have no key to encrypt with, as is required: none is admitted");
    }
}
