//! Password guessing: the outcome of an authentication is delayed as [`auth::Brake`] demands, and failures are counted.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use auth::{Brake, Failure, FailureClass, Identity, Mechanism, RefusedTicket, RefusedTickets, Step};
use parking_lot::Mutex;

/// The number of failures of one address after which the log no longer reports each.
const TOLD_MAX: u32 = 5;

/// Logons since the server started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogonCounts {
    /// Logons that succeeded: sessions that began, and channels that were added to sessions.
    pub succeeded: u64,
    /// Logons that failed, for any reason.
    pub failed: u64,
    /// Logons that were refused without being evaluated, because too many failures of their address were waiting.
    pub unheard: u64,
}

/// Logons by one mechanism since the server started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MechanismLogons {
    /// How the users wanted to log on.
    pub mechanism: Mechanism,
    /// Logons that succeeded.
    pub succeeded: u64,
    /// Logons that failed after the mechanism was agreed on.
    pub failed: u64,
}

/// The counts of one mechanism.
#[derive(Debug, Default)]
struct Counts {
    succeeded: AtomicU64,
    failed: AtomicU64,
}

/// The counts of all mechanisms.
#[derive(Debug, Default)]
struct ByMechanism {
    kerberos: Counts,
    iakerb: Counts,
    ntlm: Counts,
}

impl ByMechanism {
    fn of(&self, mechanism: Mechanism) -> &Counts {
        match mechanism {
            Mechanism::Kerberos => &self.kerberos,
            Mechanism::Iakerb => &self.iakerb,
            Mechanism::Ntlm => &self.ntlm,
        }
    }
}

/// Recent failures, and the total counts.
#[derive(Debug, Default)]
pub(crate) struct Guesses {
    /// Guards the recent failures.
    brake: Mutex<Brake>,
    succeeded: AtomicU64,
    failed: AtomicU64,
    unheard: AtomicU64,
    by_mechanism: ByMechanism,
    /// Guards the tickets that were refused lately.
    refused_tickets: Mutex<RefusedTickets>,
}

impl Guesses {
    pub(crate) fn counts(&self) -> LogonCounts {
        let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
        LogonCounts {
            succeeded: count(&self.succeeded),
            failed: count(&self.failed),
            unheard: count(&self.unheard),
        }
    }

    /// The tickets that were refused lately, the last one first.
    pub(crate) fn refused_tickets(&self) -> Vec<RefusedTicket> {
        self.refused_tickets.lock().last_first()
    }

    pub(crate) fn by_mechanism(&self) -> [MechanismLogons; 3] {
        Mechanism::ALL.map(|mechanism| {
            let Counts { succeeded, failed } = self.by_mechanism.of(mechanism);
            let (succeeded, failed) = (succeeded.load(Ordering::Relaxed), failed.load(Ordering::Relaxed));
            MechanismLogons { mechanism, succeeded, failed }
        })
    }

    /// Counts a logon that succeeded.
    pub(crate) fn note_success(&self, mechanism: Mechanism) {
        self.succeeded.fetch_add(1, Ordering::Relaxed);
        self.by_mechanism.of(mechanism).succeeded.fetch_add(1, Ordering::Relaxed);
    }

    /// How long to delay the outcome of an authentication. None: the logon is not evaluated, whatever the outcome.
    pub(crate) fn delay(&self, peer: SocketAddr, outcome: &Step) -> Option<Duration> {
        let now = Instant::now();
        let passed = |user: &str| self.brake.lock().passed(peer.ip(), user, now);
        let delay = match outcome {
            // a client of IAKERB learns that its password is right
            Step::Continue { proved: Some(user), .. } => passed(user),
            Step::Continue { proved: None, .. } | Step::Ask(_) => Some(Duration::ZERO),
            Step::Done(authenticated) => match (&authenticated.identity, authenticated.mechanism) {
                (Identity::Account(account), Mechanism::Ntlm | Mechanism::Iakerb) => passed(&account.name),
                // who has guessed passwords has no ticket
                (_, Mechanism::Kerberos)
                | (
                    Identity::Domain(_) | Identity::Guest(_) | Identity::Anonymous,
                    Mechanism::Ntlm | Mechanism::Iakerb,
                ) => Some(Duration::ZERO),
            },
            Step::Fail(failure) if failure.reason.class() == FailureClass::LogonFailure => {
                let user = failure.user.as_deref().unwrap_or_default();
                let failed = self.brake.lock().failed(peer.ip(), user, now);
                failed.map(|failed| {
                    self.tell(peer, failure, failed.of_address);
                    failed.delay
                })
            }
            Step::Fail(failure) => {
                let of_address = self.brake.lock().refused(peer.ip(), now);
                self.tell(peer, failure, of_address);
                failure.user.as_deref().map_or(Some(Duration::ZERO), passed)
            }
        };
        if delay.is_none() {
            self.unheard.fetch_add(1, Ordering::Relaxed);
        }
        delay
    }

    fn tell(&self, peer: SocketAddr, failure: &Failure, of_address: u32) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        if let Some(mechanism) = failure.mechanism {
            self.by_mechanism.of(mechanism).failed.fetch_add(1, Ordering::Relaxed);
        }
        if failure.mechanism == Some(Mechanism::Kerberos) {
            let (client, service) = (failure.user.clone(), failure.service.clone());
            let refused = RefusedTicket { client, service, reason: failure.reason, at: SystemTime::now() };
            self.refused_tickets.lock().note(refused);
        }
        let user = failure.user.as_deref().unwrap_or_default();
        let service = || failure.service.as_deref().map(tracing::field::debug);
        if of_address <= TOLD_MAX {
            tracing::warn!(%peer, ?user, service = service(), reason = %failure.reason, "authentication failed");
        } else {
            tracing::debug!(%peer, ?user, service = service(), reason = %failure.reason, "authentication failed");
        }
        if of_address == TOLD_MAX {
            let address = peer.ip();
            tracing::warn!(%address, "logons fail again and again: they are answered late, and counted only");
        }
    }
}
