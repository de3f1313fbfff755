//! The NFSv4 state of a connection.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use bytes::Bytes;
use net::Outbox;
use nfs_proto::v4::session::Channels;
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::{ClientId, SessionId};
use nfs_wire::xdr::Reader;

use super::link::Link;
use super::state::{Client, Session, V4State};

/// The most clients without sessions that a connection remembers: more than any client has.
const CLIENTS_MAX: usize = 64;

/// The NFSv4 side of a connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) link: Link,
    /// The sessions with which the connection is associated, the last used one at the end.
    sessions: RefCell<Vec<Arc<Session>>>,
    /// The clients without sessions that have sent operations over the connection.
    clients: RefCell<Vec<Arc<Client>>>,
    /// Whether the connection has ended.
    ended: Cell<bool>,
}

impl Connection {
    pub(crate) fn new(state: &V4State, outbox: &Outbox) -> Self {
        let link = Link { number: state.number_connection(), mailbox: outbox.mailbox() };
        Self { link, sessions: RefCell::default(), clients: RefCell::default(), ended: Cell::new(false) }
    }

    /// The session to which a request over this connection belongs. RFC 8881 2.10.3.1: a request is enough to associate
    /// its connection with the fore channel, since no state protection is offered.
    pub(super) fn session(&self, state: &V4State, id: SessionId) -> Option<Arc<Session>> {
        let mut known = self.sessions.borrow_mut();
        if let Some(place) = known.iter().rposition(|session| session.id == id) {
            let last = known.len().saturating_sub(1);
            known.swap(place, last);
            return known.last().filter(|session| !session.is_gone()).cloned();
        }
        drop(known);
        let session = state.session(id)?;
        let limits = &state.sessions;
        let used = session.associate(&self.link, |connections, number| {
            let _ = connections.used(number, limits);
            Ok(Channels::FORE)
        });
        if used.is_ok() {
            self.remember(&session);
        }
        Some(session)
    }

    /// Notes that the connection was associated with a session.
    pub(super) fn remember(&self, session: &Arc<Session>) {
        if self.ended.get() {
            session.disassociate(self.link.number); // its request came over this connection, which has ended
            return;
        }
        let mut known = self.sessions.borrow_mut();
        known.retain(|other| !other.is_gone() && other.id != session.id);
        known.push(Arc::clone(session));
    }

    /// The client without sessions that an operation over this connection names.
    ///
    /// # Errors
    /// Those of [`V4State::sessionless_client`].
    pub(super) fn client(&self, state: &V4State, id: ClientId) -> Result<Arc<Client>, Status> {
        let mut known = self.clients.borrow_mut();
        if let Some(client) = known.iter().find(|client| client.id == id && !client.files.is_over()) {
            return Ok(Arc::clone(client));
        }
        let client = state.sessionless_client(id)?;
        known.retain(|other| !other.files.is_over() && other.id != id);
        if self.ended.get() {
            return Ok(client); // its request came over this connection, which has ended
        }
        if known.len() >= CLIENTS_MAX {
            self.forget(&known.remove(0));
        }
        known.push(Arc::clone(&client));
        if let Some(sessionless) = &client.sessionless {
            sessionless.associate(self.link.number, &state.sessions);
        }
        Ok(client)
    }

    fn forget(&self, client: &Client) {
        if let Some(sessionless) = &client.sessionless {
            sessionless.disassociate(self.link.number);
        }
    }

    /// Whether the connection belongs to a client: one that has sent operations over it, or the client of an existing
    /// session.
    pub(crate) fn has_client(&self) -> bool {
        self.sessions.borrow().iter().any(|session| !session.is_gone())
            || self.clients.borrow().iter().any(|client| !client.files.is_over())
    }

    /// Whether the connection is associated with this session.
    pub(super) fn is_of(&self, id: SessionId) -> bool {
        self.sessions.borrow().iter().any(|session| session.id == id)
    }

    /// Passes on a reply of the client. Returns false if it answers no call.
    pub(crate) fn replied(&self, state: &V4State, record: &Bytes) -> bool {
        if state.callbacks.replied(self.link.number, record) {
            return true;
        }
        let Ok(xid) = Reader::new(record).u32() else { return false };
        self.sessions.borrow().iter().any(|session| session.back.answered_late(xid))
    }

    /// Handles the end of the connection.
    pub(crate) fn ended(&self, state: &V4State) {
        self.ended.set(true);
        for session in self.sessions.take() {
            session.disassociate(self.link.number);
        }
        for client in self.clients.take() {
            self.forget(&client);
        }
        state.callbacks.connection_ended(self.link.number);
    }
}
