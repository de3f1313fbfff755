//! Connection: the state of one connection. [MS-SMB2] 3.3.1.7.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::sync::{Arc, Weak};

use auth::Acceptor;
use krb5::ChannelBindings;
use net::{Outbox, Peer};
use share::Accounts;
use smb_proto::channel::Channel;
use smb_proto::credits;
use smb_proto::dialect::Dialect;
use smb_proto::negotiate::Negotiated;
use smb_proto::preauth::PreauthHash;
use smb_proto::request::RequestList;
use smb_proto::sequence_window::SequenceWindow;
use smb_wire::{Header, NtStatus};
use storage::Moment;
use tokio::sync::Notify;

use crate::endpoint::Endpoint;
use crate::logged::Ended;
use crate::server::Server;
use crate::state::open::Open;
use crate::state::session::Session;
use crate::status::Failure;

/// The most bytes of a READ, WRITE or transaction without multi-credit requests (SMB 2.0.2).
const IO_BYTES_SINGLE_CREDIT: u32 = 64 * 1024;
/// How many logons may fail on a connection on which no user has logged on.
pub const FAILED_LOGONS_MAX: u32 = 5;

/// One connection of a client. It lives on one shard.
pub struct Connection {
    pub(crate) id: u64,
    pub(crate) server: Arc<Server>,
    pub(crate) peer: Peer,
    /// The connection as other shards see it.
    pub(crate) endpoint: Arc<Endpoint>,
    pub(crate) outbox: Outbox,
    /// Dialect, ciphers, capabilities: set by NEGOTIATE.
    pub(crate) negotiated: OnceCell<Negotiated>,
    /// Whether an SMB1 NEGOTIATE was answered, so that the SMB2 NEGOTIATE is next.
    pub(crate) upgraded: Cell<bool>,
    /// Connection.PreauthIntegrityHashValue
    pub(crate) preauth: Cell<PreauthHash>,
    /// Connection.CommandSequenceWindow
    pub(crate) window: RefCell<SequenceWindow>,
    /// Connection.AsyncCommandList: the waiting requests, with the signals that tell them to stop.
    pub(crate) requests: RefCell<RequestList<Arc<Notify>>>,
    /// Connection.SessionTable
    sessions: RefCell<Vec<Bound>>,
    /// The counters of the connection for each share.
    pub(crate) accounts: Accounts,
    /// As of when directories are read for the request that is being polled.
    pub(crate) moment: Rc<Moment>,
    /// Authentications under way.
    pub(crate) setups: RefCell<Vec<Setup>>,
    /// The TLS channel to which logons may be bound; unset: there is none, or it does not matter.
    tls_channel: OnceCell<krb5::Channel>,
    /// Failed logons on this connection.
    failed_logons: Cell<u32>,
    /// Set when too many logons have failed.
    ends_behind_answer: Cell<bool>,
    /// Replies to CREATE that grant caching.
    answered: RefCell<Vec<Answered>>,
    /// Set when the connection ends because of a fault, so that no more replies are sent.
    dropped: Cell<bool>,
}

/// A reply to a CREATE.
#[derive(Debug)]
struct Answered {
    /// Messages that had been queued before the reply.
    queued_before: u64,
    open: Weak<Open>,
    /// The number of the reply among those about the open ([`Open::note_heard`]).
    number: u64,
}

/// A session on a connection.
#[derive(Debug, Clone)]
pub(crate) struct Bound {
    /// The session.
    pub(crate) session: Arc<Session>,
    /// The session's channel on this connection; none before the session is valid.
    pub(crate) channel: Option<Arc<Channel>>,
}

/// An authentication under way on a connection.
#[derive(Debug)]
pub(crate) struct Setup {
    /// The session that is being authenticated.
    pub(crate) session_id: u64,
    /// Whether the session belongs to another connection, and this connection is to become a channel of it.
    pub(crate) binding: bool,
    /// Session.PreauthIntegrityHashValue
    pub(crate) preauth: PreauthHash,
    /// The state of the authentication.
    pub(crate) acceptor: Acceptor,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("id", &self.id).field("peer", &self.peer).finish_non_exhaustive()
    }
}

impl Connection {
    /// Makes the connection of a client that has connected.
    pub(crate) fn new(server: Arc<Server>, peer: Peer, outbox: Outbox) -> Self {
        let waiting_max = server.config.limits.pending_requests_max;
        let id = server.connection_id();
        Self {
            id,
            server,
            peer,
            endpoint: Endpoint::new(id, peer, &outbox),
            outbox,
            negotiated: OnceCell::new(),
            upgraded: Cell::new(false),
            preauth: Cell::new(PreauthHash::new()),
            window: RefCell::new(SequenceWindow::new(credits::CREDITS_MAX)),
            requests: RefCell::new(RequestList::new(waiting_max)),
            sessions: RefCell::default(),
            accounts: Accounts::default(),
            moment: Rc::default(),
            setups: RefCell::default(),
            tls_channel: OnceCell::new(),
            failed_logons: Cell::new(0),
            ends_behind_answer: Cell::new(false),
            answered: RefCell::default(),
            dropped: Cell::new(false),
        }
    }

    /// Connection.Dialect, once the dialect is negotiated.
    pub(crate) fn dialect(&self) -> Option<Dialect> {
        self.negotiated.get().map(|negotiated| negotiated.dialect)
    }

    /// Connection.AcceptTransportSecurity: messages need not be encrypted, because QUIC encrypts them.
    pub(crate) fn is_secured(&self) -> bool {
        self.negotiated.get().is_some_and(|negotiated| negotiated.transport_security)
    }

    /// Notes the certificate that the client was shown.
    pub(crate) fn note_certificate(&self, certificate: &[u8]) {
        if let Some(rule) = self.server.config.channel_binding.rule() {
            let bindings = ChannelBindings::tls_server_end_point(certificate);
            let _ = self.tls_channel.set(krb5::Channel { bindings, rule }); // a connection has one handshake
        }
    }

    /// The TLS channel to which logons on this connection may be bound.
    pub(crate) fn tls_channel(&self) -> Option<krb5::Channel> {
        self.tls_channel.get().copied()
    }

    /// Connection.MaxReadSize, MaxWriteSize and MaxTransactSize.
    pub(crate) fn io_bytes_max(&self) -> u32 {
        let configured = self.server.config.limits.io_bytes_max;
        if self.supports_multi_credit() { configured } else { configured.min(IO_BYTES_SINGLE_CREDIT) }
    }

    /// Connection.SupportsMultiCredit
    pub(crate) fn supports_multi_credit(&self) -> bool {
        self.negotiated.get().is_some_and(|negotiated| negotiated.supports_multi_credit)
    }

    /// The number of message identifiers that a request uses.
    pub(crate) fn credit_charge(&self, header: &Header) -> u16 {
        if self.supports_multi_credit() { header.credit_charge.max(1) } else { 1 }
    }

    /// The session with this SessionId, if it has this connection.
    pub(crate) fn bound(&self, session_id: u64) -> Option<Bound> {
        self.sessions.borrow().iter().find(|bound| bound.session.id == session_id).cloned()
    }

    /// Enters a session that begins on this connection, or that gets this connection as a further channel.
    ///
    /// # Errors
    /// STATUS_INSUFFICIENT_RESOURCES at the limit.
    pub(crate) fn add_session(&self, session: &Arc<Session>) -> Result<(), Failure> {
        let mut sessions = self.sessions.borrow_mut();
        sessions.retain(|bound| !bound.session.ended.is_set());
        let is_here = |setup: &Setup| {
            setup.binding || sessions.iter().any(|bound| bound.session.id == setup.session_id)
        };
        self.setups.borrow_mut().retain(is_here);
        let limits = &self.server.config.limits;
        let in_progress = sessions.iter().filter(|bound| bound.channel.is_none()).count();
        if sessions.len() >= limits.sessions_per_connection_max
            || in_progress >= limits.logons_per_connection_max
        {
            return Err(NtStatus::INSUFFICIENT_RESOURCES.into());
        }
        sessions.push(Bound { session: Arc::clone(session), channel: None });
        Ok(())
    }

    /// Notes that the session is valid: from now on this channel signs its messages on this connection.
    pub(crate) fn set_channel(&self, session_id: u64, channel: &Arc<Channel>) {
        let mut sessions = self.sessions.borrow_mut();
        if let Some(bound) = sessions.iter_mut().find(|bound| bound.session.id == session_id) {
            bound.channel = Some(Arc::clone(channel));
        }
        if let Some(negotiated) = self.negotiated.get() {
            self.server.clients.enter(negotiated.client_guid, &self.endpoint);
        }
    }

    /// Removes a session from this connection.
    pub(crate) fn remove_session(&self, session_id: u64) {
        self.sessions.borrow_mut().retain(|bound| bound.session.id != session_id);
        self.setups.borrow_mut().retain(|setup| setup.session_id != session_id);
    }

    /// Adds a message to the connection's preauthentication hash.
    pub(crate) fn extend_preauth(&self, message: &[u8]) {
        let mut hash = self.preauth.get();
        hash.update(message);
        self.preauth.set(hash);
    }

    /// Adds a message to the preauthentication hash of a session that is being set up.
    pub(crate) fn extend_setup_preauth(&self, session_id: u64, message: &[u8]) {
        let mut setups = self.setups.borrow_mut();
        if let Some(setup) = setups.iter_mut().find(|setup| setup.session_id == session_id) {
            setup.preauth.update(message);
        }
    }

    /// Memory of the logons under way, in bytes.
    pub(crate) fn logons_bytes(&self) -> usize {
        const FIXED: usize = size_of::<Setup>() + size_of::<Session>();
        let setups = self.setups.borrow();
        setups.iter().map(|setup| FIXED.saturating_add(setup.acceptor.held_bytes())).sum()
    }

    /// Whether a user has logged on and not logged off again.
    pub(crate) fn is_known(&self) -> bool {
        let is_valid = |bound: &Bound| bound.channel.is_some() && !bound.session.ended.is_set();
        self.sessions.borrow().iter().any(is_valid)
    }

    /// Notes that a logon has failed. After several failures, or one that was not evaluated, the connection ends after
    /// the reply, unless a user is logged on.
    pub(crate) fn note_failed_logon(&self, unheard: bool) {
        self.failed_logons.set(self.failed_logons.get().saturating_add(1));
        let too_many = unheard || self.failed_logons.get() >= FAILED_LOGONS_MAX;
        self.ends_behind_answer.set(too_many && !self.is_known());
    }

    /// Whether too many logons have failed, so that the connection ends after the reply.
    pub(crate) fn ends_behind_answer(&self) -> bool {
        self.ends_behind_answer.get()
    }

    /// Notes that a CREATE that grants caching is answered. If the reply is certainly not sent, the client is not asked
    /// to give anything up.
    pub(crate) fn note_answered(&self, open: &Arc<Open>) {
        let number = open.note_heard();
        if self.endpoint.ended.is_set() {
            return open.note_unheard(number);
        }
        let sent = self.outbox.sent_messages();
        let mut answered = self.answered.borrow_mut();
        answered.retain(|answered| sent <= answered.queued_before);
        let queued_before = self.outbox.queued_messages();
        answered.push(Answered { queued_before, open: Arc::downgrade(open), number });
    }

    /// Handles the end of the connection: a reply was not sent if not even the messages before it were.
    fn note_unsent(&self) {
        let sent = self.outbox.sent_messages();
        let answered = std::mem::take(&mut *self.answered.borrow_mut());
        for Answered { open, number, .. } in answered.into_iter().filter(|a| sent <= a.queued_before) {
            open.upgrade().into_iter().for_each(|open| open.note_unheard(number));
        }
    }

    /// Whether the connection ends because of a fault, so that no more replies are sent.
    pub(crate) fn is_dropped(&self) -> bool {
        self.dropped.get()
    }

    /// Ends the connection without a reply, for the reason given (for the log).
    pub(crate) fn disconnect(&self, reason: &str) {
        self.dropped.set(true);
        self.outbox.break_off(reason);
    }

    /// Handles the end of the connection. Sessions without another connection end too.
    pub(crate) async fn end_sessions(&self) {
        self.endpoint.ended.set();
        self.note_unsent();
        if let Some(negotiated) = self.negotiated.get() {
            let client = negotiated.client_guid;
            if self.server.clients.leave(client, self.id) {
                self.server.leases.resend(client, self.id);
            }
        }
        // 3.3.7.1: "All requests in Connection.RequestList MUST be canceled." Requests that must not be dropped may be
        // waiting.
        self.requests.borrow().iter().for_each(|cancel| cancel.notify_one());
        let sessions = std::mem::take(&mut *self.sessions.borrow_mut());
        for Bound { session, .. } in sessions {
            let last = session.state.lock().remove_channel(self.id);
            if last {
                self.server.remove_session(session.id, Ended::Disconnected);
                session.end(&self.server.durable).await;
            } else {
                let is_again = |setup: &Setup| !setup.binding && setup.session_id == session.id;
                if self.setups.borrow().iter().any(is_again) {
                    session.state.lock().rules.abandon_reauthentication();
                }
                session.resend_breaks(self.id);
            }
        }
    }
}
