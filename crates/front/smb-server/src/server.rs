//! The server: its shares, accounts and sessions. [MS-SMB2] 3.3.1.5.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use auth::Accounts;
use net::{Origin, Repeats};
use parking_lot::Mutex;
use share::{Opener, QuotaAuthority, Share, ShareTable, Terms};
use smb_proto::open::FileIds;
use smb_proto::session::{Principal, SessionIds};
use smb_wire::{FileId, FileTime, Guid, NtStatus};

use crate::config::Config;
use crate::guesses::{Guesses, LogonCounts, MechanismLogons};
use crate::logged::{self, Ended};
use crate::login::Login;
use crate::mechanisms::{KerberosKeys, Mechanisms};
use crate::network_interfaces::NetworkInterfaces;
use crate::pipe::Host;
use crate::report;
use crate::session_table::SessionTable;
use crate::state::clients::Clients;
use crate::state::durable::DurableOpens;
use crate::state::lease::LeaseTable;
use crate::state::open::Open;
use crate::state::session::Session;
use crate::status::Failure;

/// An SMB server, shared by all its connections.
pub struct Server {
    pub(crate) config: Config,
    guid: Guid,
    /// ServerStartTime
    pub(crate) started: FileTime,
    pub(crate) accounts: Arc<dyn Accounts + Send + Sync>,
    /// How clients authenticate.
    mechanisms: Mechanisms,
    /// ShareList
    pub(crate) shares: Arc<ShareTable>,
    /// GlobalSessionTable
    sessions: SessionTable,
    /// ConnectionList
    pub(crate) clients: Arc<Clients>,
    /// GlobalLeaseTableList
    pub(crate) leases: Arc<LeaseTable>,
    session_ids: Mutex<SessionIds>,
    file_ids: Mutex<FileIds>,
    /// GlobalOpenTable: the opens that may be looked up from other sessions.
    pub(crate) durable: Arc<DurableOpens>,
    next_connection: AtomicU64,
    /// Failed logons.
    pub(crate) guesses: Guesses,
    /// The log lines that clients cause.
    pub(crate) repeats: Arc<Repeats>,
    /// The interfaces that are reported to clients.
    pub(crate) interfaces: NetworkInterfaces,
    quota_authority: OnceLock<Arc<dyn QuotaAuthority>>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("guid", &self.guid).finish_non_exhaustive()
    }
}

impl Server {
    /// A server for these shares and accounts.
    #[must_use]
    pub fn new(
        config: Config,
        shares: Arc<ShareTable>,
        accounts: Arc<dyn Accounts + Send + Sync>,
    ) -> Arc<Self> {
        let guid = Guid(config.server_guid.unwrap_or_else(random));
        let clients = Arc::default();
        let repeats = Arc::new(Repeats::default());
        Arc::new(Self {
            guid,
            started: now(),
            mechanisms: Mechanisms::new(&config),
            accounts,
            shares,
            sessions: SessionTable::new(config.limits.sessions_max),
            leases: LeaseTable::new(&clients),
            clients,
            // The identifiers begin within 32 bits, because some clients keep no more.
            session_ids: Mutex::new(SessionIds::new((u32::from_le_bytes(random()) >> 1).into())),
            durable: DurableOpens::new(
                config.limits.disconnected_opens_max,
                config.limits.persistent_opens_max,
                Arc::clone(&repeats),
            ),
            file_ids: Mutex::new(FileIds::new(u64::from_le_bytes(random()))),
            next_connection: AtomicU64::new(1),
            guesses: Guesses::default(),
            repeats,
            interfaces: NetworkInterfaces::new(config.interfaces.clone()),
            quota_authority: OnceLock::new(),
            config,
        })
    }

    /// Has clients' changes of quotas carried out. Without that, they are refused. Only the first call has an effect.
    pub fn change_quotas_with(&self, authority: Arc<dyn QuotaAuthority>) {
        let _ = self.quota_authority.set(authority);
    }

    /// Who carries out changes of quotas.
    pub(crate) fn quota_authority(&self) -> Option<&dyn QuotaAuthority> {
        self.quota_authority.get().map(|authority| &**authority)
    }

    /// The GUID by which the server identifies itself.
    pub(crate) fn guid(&self) -> Guid {
        self.guid
    }

    /// The server as its pipes describe it to a user.
    pub(crate) fn host<'a>(&'a self, login: &'a Login) -> Host<'a> {
        Host {
            name: &self.config.server_name,
            shares: &self.shares,
            directory: &*self.config.directory,
            user: (login.principal == Principal::User).then_some(&*login.user),
        }
    }

    /// The share that a user means by this name. The user's own name stands for the share with home directories, if no
    /// share has that name.
    pub(crate) fn share_for(&self, name: &str, login: &Login) -> Option<Arc<Share>> {
        let shares = self.shares.present();
        if let Some(share) = shares.by_name(name) {
            return Some(Arc::clone(share));
        }
        let is_own = login.principal == Principal::User && auth::same_name(&login.user, name);
        let homes = || shares.in_order().into_iter().find(|share| share.terms().contains(Terms::HOMES));
        if is_own { homes() } else { None }
    }

    /// How clients currently authenticate.
    pub(crate) fn acceptor(&self) -> Arc<auth::Config> {
        let guests = self.shares.present().iter().any(|share| self.config.lets_guests_in(share.terms()));
        if guests { self.mechanisms.with_guests() } else { self.mechanisms.first() }
    }

    /// How clients authenticate again, in a session that has its keys: as another user, or anonymously if they like.
    pub(crate) fn acceptor_again(&self) -> Arc<auth::Config> {
        self.mechanisms.again()
    }

    /// The security buffer of the NEGOTIATE response: the mechanisms that this server currently offers.
    pub(crate) fn security_token(&self) -> Vec<u8> {
        self.mechanisms.security_token()
    }

    /// Accepts tickets with these keys from now on; `None`: Kerberos is no longer offered. Sessions continue.
    pub fn use_kerberos(&self, keys: Option<KerberosKeys>) {
        self.mechanisms.use_kerberos(keys);
    }

    /// Lets accounts log on with a password and without NTLM from now on, by tickets of this KDC; `None`: IAKERB is no longer
    /// offered. Sessions continue.
    ///
    /// # Errors
    /// The cryptographic library refuses.
    pub fn use_iakerb(&self, kdc: Option<kdc::Kdc>) -> Result<(), krb5::crypto::CryptoError> {
        self.mechanisms.use_iakerb(kdc)
    }

    /// The realm of the KDC that clients reach through this server.
    pub fn iakerb_realm(&self) -> Option<String> {
        self.mechanisms.first().iakerb.as_ref().map(|iakerb| iakerb.realm().to_owned())
    }

    /// 3.3.4.15: ends every tree connect to a share that was withdrawn from the table, and closes what was opened
    /// through them, including opens of clients that have lost their connection. Clients that use the share get
    /// STATUS_NETWORK_NAME_DELETED (3.3.5.2.11).
    pub async fn end_share(&self, share: &Arc<Share>) {
        for session in self.sessions.all() {
            session.disconnect_trees_to(share).await;
        }
        self.durable.close_disconnected_if(|open| open.tree.leads_to(share)).await;
    }

    /// Ends the tree connects to a share whose clients the share's current rules would not admit in the same way: at
    /// once, even if no request comes over them.
    pub async fn reconsider(&self, share: &Arc<Share>) {
        for session in self.sessions.all() {
            session.reconsider_trees_to(share).await;
        }
    }

    /// Closes opens that outlived their connection and were not reclaimed in time, and reports the log lines that were
    /// left out, for as long as it is polled. Run it beside the server, on any runtime.
    pub async fn scavenge(&self) {
        let write = |address: &str, kind: &str, count| {
            tracing::info!(address, "{kind}: {count} more lines were left out");
        };
        tokio::join!(self.durable.scavenge(), self.repeats.tell_overdue(write));
    }

    /// Closes the opens that are kept for clients without a connection, except persistent ones. To be called when the
    /// server has ended and no client is served any more.
    pub async fn close_disconnected(&self) {
        self.durable.close_disconnected_if(|open| !open.is_persistent()).await;
    }

    /// How many logons there were, by their outcome.
    #[must_use]
    pub fn logon_counts(&self) -> LogonCounts {
        self.guesses.counts()
    }

    /// The tickets that were refused lately, the last one first.
    #[must_use]
    pub fn refused_tickets(&self) -> Vec<auth::RefusedTicket> {
        self.guesses.refused_tickets()
    }

    /// How many logons there have been by each mechanism. Those that failed before one was agreed on are in none.
    #[must_use]
    pub fn logons_by_mechanism(&self) -> [MechanismLogons; 3] {
        self.guesses.by_mechanism()
    }

    /// How many opens are kept for clients that have lost their connection.
    #[must_use]
    pub fn disconnected_opens(&self) -> usize {
        self.durable.disconnected()
    }

    /// Whether clients of any share may have persistent handles, which is announced to them.
    pub(crate) fn offers_persistence(&self) -> bool {
        let available = |share: &Arc<Share>| share.terms().contains(Terms::CONTINUOUSLY_AVAILABLE);
        self.durable.offers_persistence() && self.shares.present().iter().any(available)
    }

    /// A number for a new connection.
    pub(crate) fn connection_id(&self) -> u64 {
        self.next_connection.fetch_add(1, Ordering::Relaxed)
    }

    /// A new SessionId, never used before.
    pub(crate) fn session_id(&self) -> u64 {
        self.session_ids.lock().allocate()
    }

    /// An identifier for a new open.
    pub(crate) fn file_id(&self) -> FileId {
        self.file_ids.lock().allocate()
    }

    /// Enters a session, counted for its user and for the address that it is made from.
    ///
    /// # Errors
    /// STATUS_INSUFFICIENT_RESOURCES if one of them may have no more sessions now.
    pub(crate) fn add_session(
        &self,
        session: &Arc<Session>,
        user: Opener,
        from: IpAddr,
    ) -> Result<(), Failure> {
        let is_entered = self.sessions.add(session, user, Origin::from(from));
        if is_entered { Ok(()) } else { Err(NtStatus::INSUFFICIENT_RESOURCES.into()) }
    }

    /// The session with this SessionId, on any connection.
    pub(crate) fn session(&self, id: u64) -> Option<Arc<Session>> {
        self.sessions.get(id)
    }

    /// The offer to clients for further channels. This may wait for the kernel, so it must not run on a shard.
    #[must_use]
    pub fn offer(&self) -> report::Offer {
        report::Offer {
            channels_max: self.config.limits.channels_per_session_max,
            interfaces: self.interfaces.current().to_vec(),
        }
    }

    /// 3.3.4.12: ends the sessions of a user who may no longer log on, and closes what is open in them, including opens
    /// kept for the user's lost connections. The account must be removed or disabled before.
    pub async fn end_user(&self, name: &str) {
        for session in self.sessions.all() {
            let login = session.login().filter(|login| login.principal == Principal::User);
            if login.is_some_and(|login| auth::same_name(&login.user, name)) {
                self.remove_session(session.id, Ended::Administered);
                session.end(&self.durable).await;
            }
        }
        let is_theirs = |open: &Open| {
            open.durable.get().is_some_and(|durable| auth::same_name(&durable.origin.owner, name))
        };
        self.durable.close_disconnected_if(is_theirs).await;
    }

    /// The sessions, in no order.
    pub(crate) fn all_sessions(&self) -> Vec<Arc<Session>> {
        self.sessions.all()
    }

    /// All sessions, in the order of their identifiers.
    #[must_use]
    pub fn report(&self) -> Vec<report::Session> {
        let mut reports: Vec<_> = self.sessions.all().iter().filter_map(|session| session.report()).collect();
        reports.sort_by_key(|session| session.id);
        reports
    }

    /// Removes a session from the table; the caller ends it.
    pub(crate) fn remove_session(&self, id: u64, how: Ended) {
        if let Some(session) = self.sessions.remove(id) {
            logged::logoff(self, &session, how);
        }
    }
}

/// Random bytes.
///
/// # Panics
/// If the system has no random bytes, since then there is no security.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    #[expect(clippy::expect_used, reason = "without randomness keys and nonces would be worthless")]
    getrandom::fill(&mut bytes).expect("the system's source of randomness works");
    bytes
}

/// The current time.
pub(crate) fn now() -> FileTime {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    FileTime::from_unix(i64::try_from(since.as_secs()).unwrap_or(i64::MAX), since.subsec_nanos())
}
