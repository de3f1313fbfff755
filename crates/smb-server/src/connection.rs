//! Connection: frames in, frames out. [MS-SMB2] 3.3.1.7.

use std::cell::{Cell, OnceCell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use net::{Answer, Buffer, Outbox, Peer, Prefix, PrefixError, Protocol};
use share::Accounts;
use smb_proto::channel::Channel;
use smb_proto::credits;
use smb_proto::dialect::Dialect;
use smb_proto::negotiate::Negotiated;
use smb_proto::preauth::PreauthHash;
use smb_proto::request::RequestList;
use smb_proto::sequence_window::SequenceWindow;
use smb_proto::session::SessionCrypto;
use smb_wire::{Command, Header, NtStatus, header};
use tokio::sync::Notify;

use crate::context::RequestContext;
use crate::endpoint::Endpoint;
use crate::handler::session_setup::Setup;
use crate::handler::{cancel, negotiate};
use crate::receive::{FrameKind, Violation};
use crate::reply::Compound;
use crate::server::Server;
use crate::session::Session;
use crate::status::Failure;
use crate::{dispatch, receive, reply};

/// The most bytes of a READ, WRITE or transaction without multi-credit requests (SMB 2.0.2).
const IO_BYTES_SINGLE_CREDIT: u32 = 64 * 1024;
/// What a frame may have beside the payload of one request: headers, and the small requests of its compound.
const FRAME_OVERHEAD: usize = 64 * 1024;

/// One connection of a client. It lives on one shard.
pub struct Connection {
    pub(crate) id: u64,
    pub(crate) server: Arc<Server>,
    pub(crate) peer: Peer,
    /// The connection as other shards know it.
    pub(crate) endpoint: Arc<Endpoint>,
    pub(crate) outbox: Outbox,
    /// Dialect, ciphers, capabilities: set by NEGOTIATE.
    pub(crate) negotiated: OnceCell<Negotiated>,
    /// Whether an SMB1 NEGOTIATE was answered: the SMB2 one follows.
    pub(crate) upgraded: Cell<bool>,
    /// Connection.PreauthIntegrityHashValue
    pub(crate) preauth: Cell<PreauthHash>,
    /// Connection.CommandSequenceWindow
    pub(crate) window: RefCell<SequenceWindow>,
    /// Connection.AsyncCommandList: the requests that wait, with what tells them to stop.
    pub(crate) requests: RefCell<RequestList<Arc<Notify>>>,
    /// Connection.SessionTable
    sessions: RefCell<Vec<Bound>>,
    /// What it counts of each share.
    pub(crate) accounts: Accounts,
    /// Authentications under way.
    pub(crate) setups: RefCell<Vec<Setup>>,
    /// Set when the connection ends for a fault: nothing is answered any more.
    dropped: Cell<bool>,
}

/// A session on a connection.
#[derive(Debug, Clone)]
pub(crate) struct Bound {
    /// The session.
    pub(crate) session: Arc<Session>,
    /// Its channel on this connection; none before the session is valid.
    pub(crate) channel: Option<Arc<Channel>>,
}

/// How a frame came encrypted.
#[derive(Debug)]
pub(crate) struct Encryption {
    /// The session that its transform header names.
    pub(crate) session_id: u64,
    /// The keys of that session.
    pub(crate) crypto: Arc<SessionCrypto>,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("id", &self.id).field("peer", &self.peer).finish_non_exhaustive()
    }
}

impl Connection {
    /// A client has connected.
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
            setups: RefCell::default(),
            dropped: Cell::new(false),
        }
    }

    /// Connection.Dialect, once it is negotiated.
    pub(crate) fn dialect(&self) -> Option<Dialect> {
        self.negotiated.get().map(|negotiated| negotiated.dialect)
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

    /// How many identifiers a request uses.
    pub(crate) fn credit_charge(&self, header: &Header) -> u16 {
        if self.supports_multi_credit() { header.credit_charge.max(1) } else { 1 }
    }

    /// The session with this SessionId, if it is on this connection.
    pub(crate) fn bound(&self, session_id: u64) -> Option<Bound> {
        self.sessions.borrow().iter().find(|bound| bound.session.id == session_id).cloned()
    }

    /// Enters a session that begins on this connection, or has this connection for a further channel.
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

    /// The session is valid: from now on its messages on this connection are signed by this channel.
    pub(crate) fn set_channel(&self, session_id: u64, channel: &Arc<Channel>) {
        let mut sessions = self.sessions.borrow_mut();
        if let Some(bound) = sessions.iter_mut().find(|bound| bound.session.id == session_id) {
            bound.channel = Some(Arc::clone(channel));
        }
        if let Some(negotiated) = self.negotiated.get() {
            self.server.clients.enter(negotiated.client_guid, &self.endpoint);
        }
    }

    /// Takes a session off this connection.
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

    /// Ends the connection without an answer, for the reason given (for the log).
    pub(crate) fn disconnect(&self, reason: &str) {
        tracing::warn!(peer = %self.peer.address, "disconnecting: {reason}");
        self.dropped.set(true);
        self.outbox.close();
    }

    /// 3.3.5.2, up to the point where requests are looked at one by one.
    fn receive(self: Rc<Self>, mut frame: BytesMut) -> Result<Answer, Violation> {
        let encryption = match receive::frame_kind(&frame)? {
            FrameKind::Smb1 => return negotiate::answer_smb1(&self, &frame).map(Answer::Now),
            FrameKind::Plain => None,
            FrameKind::Encrypted => Some(receive::decrypt(&self, &mut frame)?),
        };
        let must_end = receive::check_frame(&self, &frame, encryption.as_ref())?;
        let answer = Box::pin(self.process(frame, encryption));
        Ok(if must_end { Answer::Certainly(answer) } else { Answer::Later(answer) })
    }

    /// Answers the messages of a frame, one after the other.
    async fn process(self: Rc<Self>, mut rest: BytesMut, encryption: Option<Encryption>) -> Option<Buffer> {
        let encrypted = encryption.is_some();
        let mut compound = Compound::new(encryption.map(|encryption| encryption.crypto));
        while !rest.is_empty() {
            let header = Header::decode(&rest).ok()?;
            let length = match usize::try_from(header.next_command) {
                Ok(next) if (header::LEN..rest.len()).contains(&next) => next,
                _ => rest.len(),
            };
            // The last one takes all of the frame's memory with it.
            let message =
                if length == rest.len() { std::mem::take(&mut rest) } else { rest.split_to(length) };
            compound = self.answer_message(header, message, encrypted, compound).await;
            if self.dropped.get() {
                return None;
            }
        }
        compound.finish(&self)
    }

    /// Answers one message; the answer is added to the compound.
    async fn answer_message(
        self: &Rc<Self>,
        header: Header,
        mut message: BytesMut,
        encrypted: bool,
        compound: Compound,
    ) -> Compound {
        let mut ctx = RequestContext::new(self, header, encrypted, compound);
        let admitted = receive::admit(&ctx, &mut message);
        // A request that may wait for long does not hold on to all that was received together with it.
        let lingers = matches!(header.command, Command::ChangeNotify | Command::Lock);
        ctx.message = if lingers { Bytes::copy_from_slice(&message) } else { message.freeze() };
        if header.command == Command::Cancel {
            if admitted.is_ok() {
                cancel::handle(&ctx);
            }
            return ctx.compound.into_inner();
        }
        let outcome = match admitted {
            Ok(()) => dispatch::dispatch(&ctx).await,
            Err(failure) => Err(failure),
        };
        if ctx.async_id.get().is_some() {
            self.requests.borrow_mut().remove(header.message_id);
        }
        if !self.dropped.get() {
            reply::complete(&ctx, outcome);
        }
        ctx.compound.into_inner()
    }

    /// The connection has ended: so have the sessions that have no other.
    async fn end_sessions(&self) {
        self.endpoint.ended.set();
        if let Some(negotiated) = self.negotiated.get() {
            let client = negotiated.client_guid;
            if self.server.clients.leave(client, self.id) {
                self.server.leases.resend(client, self.id);
            }
        }
        // 3.3.7.1: "All requests in Connection.RequestList MUST be canceled." Those that may not be dropped may wait.
        self.requests.borrow().iter().for_each(|cancel| cancel.notify_one());
        let sessions = std::mem::take(&mut *self.sessions.borrow_mut());
        for Bound { session, .. } in sessions {
            let last = session.state.lock().remove_channel(self.id);
            if last {
                self.server.remove_session(session.id);
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

impl Protocol for Connection {
    fn prefix(&self, prefix: [u8; 4]) -> Result<Prefix, PrefixError> {
        let length = smb_wire::frame::decode_prefix(prefix).map_err(|e| PrefixError(e.to_string()))?;
        // Nobody sends much before logging on.
        let payload = if self.is_welcome() { self.io_bytes_max() } else { IO_BYTES_SINGLE_CREDIT };
        let payload = usize::try_from(payload).unwrap_or(usize::MAX);
        if length > payload.saturating_add(FRAME_OVERHEAD) {
            return Err(PrefixError(format!("a frame of {length} bytes")));
        }
        Ok(Prefix { length, last: true })
    }

    /// Somebody has logged on.
    fn is_welcome(&self) -> bool {
        self.sessions.borrow().iter().any(|bound| bound.channel.is_some())
    }

    fn answer(self: Rc<Self>, frame: BytesMut) -> Answer {
        self.endpoint.note_frame();
        if self.dropped.get() {
            return Answer::Nothing;
        }
        self.receive(frame).unwrap_or_else(|violation| Answer::Close(violation.0))
    }

    fn closed(self: Rc<Self>) -> Pin<Box<dyn Future<Output = ()>>> {
        Box::pin(async move { self.end_sessions().await })
    }
}
