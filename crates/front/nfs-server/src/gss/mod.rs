//! RPCSEC_GSS with Kerberos, RFC 2203: contexts, the calls that are protected with them, and their replies.
//!
//! A context begins with a client's ticket ([`begin`]). What follows is opened as it arrives ([`arrive`]), before anything
//! else looks at it, and the finished reply is protected in its own buffer ([`leave`]). So a call without RPCSEC_GSS passes
//! nothing of this but a look at its flavor.

pub(crate) mod arrive;
mod begin;
mod leave;
pub(crate) mod security;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use auth::{Mapping, RefusedTicket, RefusedTickets};
use krb5::{Noted, PerMessage, ReplayCache, ReplayId, Replays, Time};
use net::{Origin, Repeats};
use nfs_proto::gss::contexts::{ContextLimits, Contexts, Dropped};
use nfs_proto::gss::window::Window;
use nfs_wire::gss::Service;
use parking_lot::{Mutex, RwLock};
use share::{Identity, Proof};

pub(crate) use leave::OVERHEAD_BYTES_MAX;
pub(crate) use security::Flavor;

/// The first component of the name that NFS clients get tickets for.
const SERVICE: &str = "nfs";

/// The keys with which the server accepts tickets, and whom it makes of their users.
pub struct KerberosKeys {
    /// The keys, and the rules for tickets
    pub acceptor: krb5::Acceptor,
    /// Who the users are
    pub mapping: Mapping,
    /// The accounts that principals may be
    pub accounts: Arc<dyn auth::Accounts + Send + Sync>,
}

impl KerberosKeys {
    /// Whether clients find this server: they ask for tickets of `nfs/HOST`.
    fn has_service(&self) -> bool {
        let entries = self.acceptor.keytab().entries();
        let first = |principal: &krb5::Principal| principal.components().next().map(str::to_ascii_lowercase);
        entries.iter().any(|entry| first(entry.principal()).as_deref() == Some(SERVICE))
    }
}

impl fmt::Debug for KerberosKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KerberosKeys").field("mapping", &self.mapping).finish_non_exhaustive()
    }
}

/// All contexts, and the keys with which they begin. They belong to the server: a client uses one over all its connections.
#[derive(Debug)]
pub(crate) struct Gss {
    keys: RwLock<Option<Arc<KerberosKeys>>>,
    /// Guards the contexts; held for one look-up.
    contexts: Mutex<Contexts<Origin, Arc<Context>>>,
    replays: UsedTickets,
    /// The number of the next context.
    next: AtomicU64,
    /// Refused tickets that were logged lately.
    refused: Repeats,
    /// Guards the tickets that were refused lately.
    refused_tickets: Mutex<RefusedTickets>,
    counted: Counted,
}

/// What is counted since the server started.
#[derive(Debug, Default)]
struct Counted {
    begun: AtomicU64,
    refused: AtomicU64,
    /// Calls by their protection: none, integrity, privacy.
    calls: [AtomicU64; 3],
}

/// The contexts of a server at one moment, and what was counted since it started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextCounts {
    /// The contexts that are kept.
    pub present: usize,
    /// The most that are kept.
    pub max: usize,
    /// Contexts that have begun.
    pub begun: u64,
    /// Tickets for which no context began.
    pub refused: u64,
    /// Contexts that clients wanted to use after the ticket had ended.
    pub expired: u64,
    /// Contexts that were dropped because there were too many.
    pub displaced: u64,
    /// Calls with krb5, krb5i and krb5p.
    pub calls: [u64; 3],
}

impl Default for Gss {
    fn default() -> Self {
        Self {
            keys: RwLock::default(),
            contexts: Mutex::new(Contexts::new(ContextLimits::default())),
            replays: UsedTickets::default(),
            next: AtomicU64::new(0),
            refused: Repeats::default(),
            refused_tickets: Mutex::default(),
            counted: Counted::default(),
        }
    }
}

impl Gss {
    /// From now on, new contexts begin with these keys. Contexts that there are stay.
    pub(crate) fn use_keys(&self, keys: Option<KerberosKeys>) {
        *self.keys.write() = keys.map(Arc::new);
    }

    fn keys(&self) -> Option<Arc<KerberosKeys>> {
        self.keys.read().clone()
    }

    /// Whether clients can be told to use Kerberos.
    pub(crate) fn is_offered(&self) -> bool {
        self.keys.read().as_ref().is_some_and(|keys| keys.has_service())
    }

    /// The users who have contexts, with the addresses of their clients; once each, in order.
    pub(crate) fn users(&self) -> Vec<(Origin, Arc<str>)> {
        let mut users: Vec<_> = {
            let contexts = self.contexts.lock();
            let present = contexts.present(now().as_unix());
            present.filter_map(|(address, context)| Some((address.address(), context.user.name()?))).collect()
        };
        users.sort_unstable();
        users.dedup();
        users.into_iter().map(|(address, name)| (Origin::from(address), name)).collect()
    }

    /// Counts a call.
    fn count_call(&self, service: Service) {
        let [none, integrity, privacy] = &self.counted.calls;
        let calls = match service {
            Service::None => none,
            Service::Integrity => integrity,
            Service::Privacy => privacy,
        };
        calls.fetch_add(1, Ordering::Relaxed);
    }

    /// The tickets that were refused lately, the last one first.
    pub(crate) fn refused_tickets(&self) -> Vec<RefusedTicket> {
        self.refused_tickets.lock().last_first()
    }

    /// The contexts, and what was counted.
    pub(crate) fn counts(&self) -> ContextCounts {
        let Counted { begun, refused, calls } = &self.counted;
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let contexts = self.contexts.lock();
        let Dropped { expired, displaced } = contexts.dropped();
        ContextCounts {
            present: contexts.len(),
            max: contexts.max(),
            begun: count(begun),
            refused: count(refused),
            expired,
            displaced,
            calls: calls.each_ref().map(count),
        }
    }

    /// Ends the contexts of clients at an address.
    pub(crate) fn end_contexts_of(&self, address: Origin) -> usize {
        self.contexts.lock().remove_of(address)
    }
}

/// A context.
#[derive(Debug)]
pub(crate) struct Context {
    /// Tells contexts apart for as long as the server runs.
    pub(crate) number: u64,
    /// The principal: `alice@EXAMPLE.ORG`.
    pub(crate) name: Arc<str>,
    pub(crate) user: User,
    keys: PerMessage,
    /// The number of the next token. RFC 2203 leaves the order of tokens to the mechanism, and clients do not look at it.
    next_token: AtomicU64,
    /// Guards the numbers that were seen; held for one look.
    window: Mutex<Window>,
}

/// Who has begun a context.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum User {
    /// A user of this machine, and how that was proved.
    Person(Identity, Proof),
    /// A machine: it may have state, such as that of NFSv4 clients, and for data it is nobody.
    Machine,
}

impl User {
    /// The name by which shares know the user; None: a machine.
    fn name(&self) -> Option<Arc<str>> {
        match self {
            Self::Person(_, Proof::Password(name) | Proof::Ticket(name)) => Some(Arc::clone(name)),
            Self::Person(_, Proof::Stated | Proof::Guest) | Self::Machine => None,
        }
    }
}

impl Context {
    fn next_token(&self) -> u64 {
        self.next_token.fetch_add(1, Ordering::Relaxed)
    }
}

/// What a call was protected with, and its reply is to be.
#[derive(Debug, Clone)]
pub(crate) struct Protected {
    pub(crate) context: Arc<Context>,
    sequence: u32,
    service: Service,
}

impl Protected {
    pub(crate) fn flavor(&self) -> Flavor {
        match self.service {
            Service::None => Flavor::Krb5,
            Service::Integrity => Flavor::Krb5i,
            Service::Privacy => Flavor::Krb5p,
        }
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

impl fmt::Debug for UsedTickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UsedTickets")
    }
}

impl Replays for UsedTickets {
    fn note(&self, id: ReplayId, now: Time) -> Noted {
        self.0.lock().note(id, now)
    }
}

/// The time in seconds since 1970, as tickets have it.
fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    Time::from_unix(i64::try_from(since).unwrap_or(i64::MAX))
}

fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    #[expect(clippy::expect_used, reason = "without randomness keys and handles would be worthless")]
    getrandom::fill(&mut bytes).expect("the system's source of randomness works");
    bytes
}
