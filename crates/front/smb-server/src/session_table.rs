//! GlobalSessionTable ([MS-SMB2] 3.3.1.5): the sessions of all connections.
//!
//! A session is counted for its user and for the address that it was made from. [`limits::may_take`] decides whether they
//! may have one more, so that neither a user nor an address can take the sessions of all.

use std::collections::HashMap;
use std::sync::Arc;

use limits::HeldCount;
use net::Origin;
use parking_lot::Mutex;
use share::Opener;

use crate::state::session::Session;

/// Tables of sessions by their identifier, each with its own lock, to reduce contention.
const TABLES: usize = 16;

/// A session, with its user and the address that it was made from.
struct Listed {
    session: Arc<Session>,
    user: Opener,
    from: Origin,
}

/// The sessions in number.
#[derive(Default)]
struct Counts {
    of_users: HeldCount<Opener>,
    of_addresses: HeldCount<Origin>,
}

/// The sessions of a server.
///
/// Locks: each of `by_id` guards the sessions in it, and `counts` guards the counts. `counts` may be taken under one of
/// `by_id`, and no other lock is taken under it.
pub(crate) struct SessionTable {
    most: usize,
    by_id: [Mutex<HashMap<u64, Listed>>; TABLES],
    counts: Mutex<Counts>,
}

impl SessionTable {
    /// An empty table, for at most so many sessions.
    pub(crate) fn new(most: usize) -> Self {
        Self { most, by_id: std::array::from_fn(|_| Mutex::default()), counts: Mutex::default() }
    }

    fn table(&self, session_id: u64) -> &Mutex<HashMap<u64, Listed>> {
        // The identifiers count up, so their low bits spread them evenly.
        &self.by_id[usize::try_from(session_id % TABLES as u64).unwrap_or(0)]
    }

    /// Enters a session. Returns false if its user or its address may have no more sessions now.
    pub(crate) fn add(&self, session: &Arc<Session>, user: Opener, from: Origin) -> bool {
        let mut table = self.table(session.id).lock();
        {
            let Counts { of_users, of_addresses } = &mut *self.counts.lock();
            if !of_users.may_take(&user, self.most) || !of_addresses.may_take(&from, self.most) {
                return false;
            }
            of_users.enter(user);
            of_addresses.enter(from);
        }
        let before = table.insert(session.id, Listed { session: Arc::clone(session), user, from });
        debug_assert!(before.is_none(), "identifiers of sessions are never used again");
        true
    }

    /// The session with this SessionId, on any connection.
    pub(crate) fn get(&self, id: u64) -> Option<Arc<Session>> {
        self.table(id).lock().get(&id).map(|listed| Arc::clone(&listed.session))
    }

    /// Removes a session and returns it; the caller ends it.
    pub(crate) fn remove(&self, id: u64) -> Option<Arc<Session>> {
        let Listed { session, user, from } = self.table(id).lock().remove(&id)?;
        let mut counts = self.counts.lock();
        counts.of_users.leave(&user);
        counts.of_addresses.leave(&from);
        Some(session)
    }

    /// All sessions.
    pub(crate) fn all(&self) -> Vec<Arc<Session>> {
        let mut sessions = Vec::new();
        for table in &self.by_id {
            sessions.extend(table.lock().values().map(|listed| Arc::clone(&listed.session)));
        }
        sessions
    }
}
