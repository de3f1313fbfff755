//! GlobalSessionTable ([MS-SMB2] 3.3.1.5): the sessions of all connections.
//!
//! A session is counted for its user and for the address that it was made from. [`limits::may_take`] decides whether a
//! holder may have one more, so that neither a user nor an address can take the sessions of all.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use parking_lot::Mutex;
use share::Opener;

use crate::state::session::Session;

/// Tables of sessions by their identifier, each with its own lock, to reduce contention.
const TABLES: usize = 16;

/// A session with the holders that it is counted for: its user, and its address.
struct Listed {
    session: Arc<Session>,
    holders: [Opener; 2],
}

/// The sessions in number.
#[derive(Default)]
struct Counts {
    all: usize,
    /// The sessions of each holder; none is zero.
    held: HashMap<Opener, usize>,
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

    /// Enters a session. Returns false if one of its holders may have no more sessions now.
    pub(crate) fn add(&self, session: &Arc<Session>, holders: [Opener; 2]) -> bool {
        let mut table = self.table(session.id).lock();
        {
            let mut counts = self.counts.lock();
            let held = holders.iter().filter_map(|holder| counts.held.get(holder)).max();
            if !limits::may_take(counts.all, held.copied().unwrap_or(0), self.most) {
                return false;
            }
            counts.all = counts.all.saturating_add(1);
            for holder in holders {
                let held = counts.held.entry(holder).or_default();
                *held = held.saturating_add(1);
            }
        }
        let before = table.insert(session.id, Listed { session: Arc::clone(session), holders });
        debug_assert!(before.is_none(), "identifiers of sessions are never used again");
        true
    }

    /// The session with this SessionId, on any connection.
    pub(crate) fn get(&self, id: u64) -> Option<Arc<Session>> {
        self.table(id).lock().get(&id).map(|listed| Arc::clone(&listed.session))
    }

    /// Removes a session; the caller ends it.
    pub(crate) fn remove(&self, id: u64) {
        let Some(Listed { holders, .. }) = self.table(id).lock().remove(&id) else { return };
        let mut counts = self.counts.lock();
        debug_assert!(counts.all > 0, "a listed session was counted");
        counts.all = counts.all.saturating_sub(1);
        for holder in holders {
            let Entry::Occupied(mut held) = counts.held.entry(holder) else { continue };
            *held.get_mut() = held.get().saturating_sub(1);
            if *held.get() == 0 {
                held.remove();
            }
        }
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
