//! Leases: what all opens of a lease key may cache. [MS-SMB2] 3.3.1.11, 3.3.1.12, 3.3.4.7.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use share::{AcknowledgeError, Break, Caching, GrantHolder, GrantKey, Holder};
use smb_wire::create_context::{self, LeaseFlags, LeaseState, LeaseV2};
use smb_wire::oplock_break::{LeaseBreak, LeaseBreakFlags, Notification};
use smb_wire::{Guid, NtStatus};
use tokio::runtime::Handle;

use crate::endpoint::Endpoint;
use crate::state::clients::Clients;
use crate::state::durable::PersistentLease;
use crate::state::oplock::{Delivery, GrantTarget, Site};
use crate::state::session::Session;

/// The Linux kernel's client knows a directory's lease only some time after the reply that granted it has arrived. It
/// cannot match a break that comes at once to a lease, and would trust its listing for ever
/// (docs/measured/linux-client.md).
const LEARNED_WITHIN: Duration = Duration::from_millis(10);
/// How long a break waits, at most, for the first frame that the client sends after that reply. A client that gets no
/// processor receives reply and break together, however far apart they were sent.
const HEARD_WITHIN: Duration = Duration::from_millis(200);

/// Tables of leases, each with its own lock: clients rarely use the same one.
const TABLES: usize = 16;

/// Identifies a lease: a lease key belongs to one client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct LeaseId {
    /// LeaseTable.ClientGuid
    pub(crate) client: Guid,
    /// Lease.LeaseKey
    pub(crate) key: [u8; 16],
}

impl LeaseId {
    /// The lease's key among the grants of a share.
    pub(crate) fn grant_key(self) -> GrantKey {
        GrantKey::Lease { client: self.client.0, key: self.key }
    }

    /// The lease among the holders of grants.
    pub(crate) fn holder(self) -> Holder {
        Holder::Lease { client: self.client.0, key: self.key }
    }
}

/// A break that the client has to acknowledge.
#[derive(Debug, Clone, Copy)]
struct PendingLeaseBreak {
    /// The notification.
    notification: Notification,
    /// The connection over which it was sent, if it was.
    connection: Option<u64>,
}

/// GlobalLeaseTableList: all leases of all clients. A lease is in the table while an open works under it, or is about
/// to, so the limits of opens also limit leases.
#[derive(Debug)]
pub(crate) struct LeaseTable {
    tables: [Mutex<HashMap<LeaseId, Listed>>; TABLES],
    clients: Arc<Clients>,
}

/// A lease with the number of its [`LeaseHold`]s.
#[derive(Debug)]
struct Listed {
    lease: Arc<Lease>,
    holds: usize,
}

impl LeaseTable {
    /// An empty table. Clients are reached through `clients`.
    pub(crate) fn new(clients: &Arc<Clients>) -> Arc<Self> {
        let tables = std::array::from_fn(|_| Mutex::default());
        Arc::new(Self { tables, clients: Arc::clone(clients) })
    }

    fn table(&self, id: LeaseId) -> &Mutex<HashMap<LeaseId, Listed>> {
        let [first, ..] = id.key;
        let [client, ..] = id.client.0;
        &self.tables[usize::from(first ^ client) % TABLES]
    }

    /// The lease with this key, if there is one.
    pub(crate) fn find(&self, id: LeaseId) -> Option<Arc<Lease>> {
        self.table(id).lock().get(&id).map(|listed| Arc::clone(&listed.lease))
    }

    /// Sends breaks again that were sent over a connection that has ended. The client has others.
    pub(crate) fn resend(&self, client: Guid, connection: u64) {
        for table in &self.tables {
            let of_client =
                |(id, listed): (&LeaseId, &Listed)| (id.client == client).then(|| Arc::clone(&listed.lease));
            let leases: Vec<_> = table.lock().iter().filter_map(of_client).collect();
            leases.iter().for_each(|lease| lease.resend(connection));
        }
    }

    /// Finds or makes the requested lease, and holds it. 3.3.5.9.8, 3.3.5.9.11.
    ///
    /// # Errors
    /// STATUS_INVALID_PARAMETER for a key that belongs to another file.
    pub(crate) fn hold(
        self: &Arc<Self>,
        id: LeaseId,
        place: GrantTarget<'_>,
        asked: &create_context::Lease,
        session: Weak<Session>,
    ) -> Result<LeaseHold, NtStatus> {
        let mut table = self.table(id).lock();
        let listed = match table.entry(id) {
            Entry::Occupied(listed) if !listed.get().lease.is_at(place) => {
                return Err(NtStatus::INVALID_PARAMETER);
            }
            Entry::Occupied(listed) => listed.into_mut(),
            Entry::Vacant(free) => {
                free.insert(Listed { lease: Lease::new(id, place, asked, &self.clients), holds: 0 })
            }
        };
        listed.holds += 1;
        listed.lease.note_heard();
        listed.lease.add_session(session.clone());
        Ok(LeaseHold { table: Arc::clone(self), lease: Arc::clone(&listed.lease), session })
    }
}

/// Keeps a lease in the table: one of Lease.LeaseOpens. Its session receives breaks.
#[derive(Debug)]
pub(crate) struct LeaseHold {
    table: Arc<LeaseTable>,
    lease: Arc<Lease>,
    session: Weak<Session>,
}

impl LeaseHold {
    /// The lease.
    pub(crate) fn lease(&self) -> &Arc<Lease> {
        &self.lease
    }

    /// Notes that the reply that grants the lease will never be sent. If no other open works under the lease, a break
    /// is carried out without the client, unless the client asks for the reply again.
    pub(crate) fn note_unheard(&self) {
        {
            // Under the table's lock, so that no other open gets a hold of the lease meanwhile.
            let table = self.table.table(self.lease.id).lock();
            if table.get(&self.lease.id).is_none_or(|listed| listed.holds != 1) {
                return;
            }
            self.lease.state.lock().is_unheard = true;
        }
        self.lease.give_up_unheard();
    }

    /// Moves the open to another session, which receives breaks from now on, including one that has not been
    /// acknowledged.
    pub(crate) fn move_to(&mut self, session: &Arc<Session>) {
        self.lease.add_session(Arc::downgrade(session));
        self.lease.remove_session(&std::mem::replace(&mut self.session, Arc::downgrade(session)));
        let told = self.lease.state.lock().told;
        // Another open of the lease may have returned earlier, and the break been sent.
        let clients = &self.lease.clients;
        let has = |connection| clients.has(self.lease.id.client, connection);
        told.filter(|told| !told.connection.is_some_and(has)).into_iter().for_each(|told| {
            self.lease.tell(&told.notification);
        });
    }
}

impl Drop for LeaseHold {
    fn drop(&mut self) {
        self.lease.remove_session(&self.session);
        let mut table = self.table.table(self.lease.id).lock();
        if let Entry::Occupied(mut listed) = table.entry(self.lease.id) {
            let holds = &mut listed.get_mut().holds;
            debug_assert!(*holds > 0, "a lease that nothing holds is not listed");
            *holds = holds.saturating_sub(1);
            if *holds == 0 {
                listed.remove();
            }
        }
    }
}

/// A lease. The share knows what the client may cache under it.
pub(crate) struct Lease {
    itself: Weak<Self>,
    /// The identifier of the lease.
    pub(crate) id: LeaseId,
    site: Site,
    clients: Arc<Clients>,
    /// Lease.Version: whether the client knows epochs.
    is_v2: bool,
    state: Mutex<MutableLease>,
}

/// Shows only the name in a log, because the lease reaches the whole server.
impl std::fmt::Debug for Lease {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lease").field("id", &self.id).field("file", &self.site.file).finish_non_exhaustive()
    }
}

/// The state of a lease that changes; guarded by [`Lease::state`].
#[derive(Debug)]
struct MutableLease {
    /// Lease.Epoch
    epoch: u16,
    /// The first reply to a CREATE that granted the lease.
    answered: Option<Answered>,
    /// Lease.ParentLeaseKey
    parent_key: Option<[u8; 16]>,
    /// The sessions of the opens in Lease.LeaseOpens, one for each open.
    sessions: Vec<Weak<Session>>,
    /// The break that the client has to acknowledge.
    told: Option<PendingLeaseBreak>,
    /// Whether the reply that grants the lease was never sent. If so, the client cannot acknowledge a break.
    is_unheard: bool,
}

/// A reply to a CREATE.
#[derive(Debug, Clone, Copy)]
struct Answered {
    at: Instant,
    /// The frames that had arrived from the client by then.
    frames: u64,
}

impl Answered {
    /// Whether the client has taken note of the reply by `now`, when so many frames have arrived from it.
    fn is_noted(self, frames: u64, now: Instant) -> bool {
        let since = now.saturating_duration_since(self.at);
        since >= HEARD_WITHIN || (since >= LEARNED_WITHIN && frames > self.frames)
    }
}

impl Lease {
    fn new(
        id: LeaseId,
        place: GrantTarget<'_>,
        asked: &create_context::Lease,
        clients: &Arc<Clients>,
    ) -> Arc<Self> {
        let has_parent = asked.flags.contains(LeaseFlags::PARENT_LEASE_KEY_SET);
        let state = MutableLease {
            epoch: asked.v2.map_or(0, |v2| v2.epoch),
            answered: None,
            parent_key: asked.v2.filter(|_| has_parent).map(|v2| v2.parent_key),
            sessions: Vec::new(),
            told: None,
            is_unheard: false,
        };
        Arc::new_cyclic(|itself| Self {
            itself: Weak::clone(itself),
            id,
            site: Site::new(place),
            clients: Arc::clone(clients),
            is_v2: asked.v2.is_some(),
            state: Mutex::new(state),
        })
    }

    fn is_at(&self, place: GrantTarget<'_>) -> bool {
        self.site.is_at(place)
    }

    fn add_session(&self, session: Weak<Session>) {
        self.state.lock().sessions.push(session);
    }

    fn remove_session(&self, session: &Weak<Session>) {
        let sessions = &mut self.state.lock().sessions;
        if let Some(index) = sessions.iter().position(|one| one.ptr_eq(session)) {
            sessions.swap_remove(index);
        }
    }

    /// The reply to a CREATE that was granted this. 3.3.5.9.8, 3.3.5.9.11: the epoch counts every change of the state.
    /// The first open of a lease is a change, if it was granted anything.
    pub(crate) fn answer(&self, granted: share::Granted) -> create_context::Lease {
        let mut state = self.state.lock();
        let is_first = state.answered.is_none();
        state.answered.get_or_insert_with(|| self.answered());
        if granted.grown || (is_first && !granted.state.is_empty()) {
            state.epoch = state.epoch.wrapping_add(1);
        }
        let mut flags = LeaseFlags::empty();
        flags.set(LeaseFlags::BREAK_IN_PROGRESS, granted.breaking);
        flags.set(LeaseFlags::PARENT_LEASE_KEY_SET, state.parent_key.is_some());
        let parent_key = state.parent_key.unwrap_or_default();
        create_context::Lease {
            key: self.id.key,
            state: lease_state(granted.state),
            flags,
            v2: self.is_v2.then_some(LeaseV2 { parent_key, epoch: state.epoch }),
        }
    }

    /// The record of the lease for a persistent open.
    pub(crate) fn record(&self) -> PersistentLease {
        let state = self.state.lock();
        let version = if self.is_v2 { 2 } else { 1 };
        PersistentLease { key: self.id.key, version, epoch: state.epoch, parent_key: state.parent_key }
    }

    /// Takes the epoch of the client, which reclaims an open of a lease from before the start of the server. The client
    /// knows the epoch better than the server. [MS-SMB2] 3.3.5.9.12, note 353, has the rule of Windows.
    pub(crate) fn resume(&self, client_epoch: u16, granted: Caching) {
        let mut state = self.state.lock();
        if state.answered.is_none() {
            state.answered = Some(self.answered());
            let changed = u16::from(!granted.contains(Caching::WRITE));
            state.epoch = client_epoch.wrapping_add(changed);
        }
    }

    /// Handles the client's acknowledgment of a break. The client may receive a further break at once.
    ///
    /// # Errors
    /// As [`Share::acknowledge`].
    pub(crate) fn acknowledge(&self, keeps: Caching) -> Result<(), AcknowledgeError> {
        let told = self.state.lock().told.take();
        let share = self.site.share().ok_or(AcknowledgeError::NotBreaking)?;
        let outcome = share.acknowledge(self.site.file, self.id.holder(), keeps);
        if outcome == Err(AcknowledgeError::TooMuch) {
            self.state.lock().told = told; // it is still to be acknowledged
        }
        outcome
    }

    fn acknowledged(&self) {
        self.state.lock().told = None;
    }

    /// Notes that the client gets a reply that grants the lease (again).
    pub(crate) fn note_heard(&self) {
        self.state.lock().is_unheard = false;
    }

    /// Ends a break that the client cannot acknowledge, since it has never heard of the lease.
    fn give_up_unheard(&self) {
        let is_told = {
            let mut state = self.state.lock();
            state.is_unheard && state.told.take().is_some()
        };
        if is_told {
            self.site.give_up(self.id.holder());
        }
    }

    /// Sends a break again that was sent over a connection that has ended.
    fn resend(&self, connection: u64) {
        let told = self.state.lock().told.filter(|told| told.connection == Some(connection));
        if let Some(told) = told {
            self.tell(&told.notification);
        }
    }

    /// A reply that is sent now. Only breaks of directories' leases depend on the frames.
    fn answered(&self) -> Answered {
        let frames = if self.site.is_directory { self.clients.frames_of(self.id.client) } else { 0 };
        Answered { at: Instant::now(), frames }
    }

    /// Whether the client may not know yet that it has this lease of a directory. A request that changes entries does
    /// not wait for that.
    fn is_in_doubt(&self) -> bool {
        let answered = self.state.lock().answered;
        let frames = || self.clients.frames_of(self.id.client);
        self.site.is_directory && answered.is_none_or(|reply| !reply.is_noted(frames(), Instant::now()))
    }

    fn tell_shrinking(&self, told: &Break, notification: &Notification) {
        let sent = self.tell(notification);
        // Checked after sending: the code that sets this flag then looks for a break that was sent.
        let is_heard = !self.state.lock().is_unheard;
        self.site.settle(told, Delivery { sent, is_heard }, || self.acknowledged());
    }

    /// Sends a break. Returns false when no connection accepts it: then the next session in which one of the opens
    /// continues gets it.
    fn tell(&self, notification: &Notification) -> bool {
        loop {
            let sessions = {
                let mut state = self.state.lock();
                state.told = Some(PendingLeaseBreak { notification: *notification, connection: None });
                state.sessions.clone()
            };
            let sent = self.send(&sessions, notification);
            let mut state = self.state.lock();
            let others = || state.sessions.iter().any(|s| !sessions.iter().any(|told| told.ptr_eq(s)));
            match sent {
                None if others() => continue,
                None => return false,
                Some(endpoint) => {
                    // Unless the client has acknowledged it at once.
                    let Some(told) = &mut state.told else { return true };
                    told.connection = Some(endpoint.connection);
                    if endpoint.ended.is_set() {
                        // The connection ended before its number was stored, so no other code sends the break again.
                        continue;
                    }
                    return true;
                }
            }
        }
    }

    /// Sends a notification over the client's first connection, if a session exists that has the file open. If such a
    /// session encrypts, sends it over one of that session's own channels.
    fn send(&self, sessions: &[Weak<Session>], notification: &Notification) -> Option<Arc<Endpoint>> {
        let mut sessions: Vec<_> = sessions.iter().filter_map(Weak::upgrade).collect();
        sessions.retain(|session| !session.ended.is_set());
        let encrypted = sessions.iter().find(|session| session.encrypts(self.site.share_encrypts));
        match encrypted {
            Some(session) => session.notify(notification, self.site.share_encrypts).ok(),
            None if sessions.is_empty() => None,
            None => self.clients.notify(self.id.client, notification).ok(),
        }
    }
}

impl GrantHolder for Lease {
    fn shrink(&self, told: &Break) {
        let new_epoch = {
            let mut state = self.state.lock();
            if !told.continues {
                state.epoch = state.epoch.wrapping_add(1);
            }
            if self.is_v2 { state.epoch } else { 0 }
        };
        let mut flags = LeaseBreakFlags::empty();
        flags.set(LeaseBreakFlags::ACK_REQUIRED, told.ack_required);
        let notification = Notification::Lease(LeaseBreak {
            new_epoch,
            flags,
            lease_key: self.id.key,
            current_lease_state: lease_state(told.from),
            new_lease_state: lease_state(told.to),
        });
        match (self.is_in_doubt(), Handle::try_current()) {
            (true, Ok(runtime)) => {
                let (lease, told) = (Weak::clone(&self.itself), *told);
                let begun = Instant::now();
                runtime.spawn(async move {
                    while begun.elapsed() < HEARD_WITHIN && lease.upgrade().is_some_and(|l| l.is_in_doubt()) {
                        tokio::time::sleep(LEARNED_WITHIN).await;
                    }
                    // If the lease is gone, all of its opens are closed.
                    if let Some(lease) = lease.upgrade() {
                        lease.tell_shrinking(&told, &notification);
                    }
                });
            }
            _ => self.tell_shrinking(told, &notification),
        }
    }

    fn revoked(&self, _had: Caching) {
        self.acknowledged();
    }
}

/// The state in the terms of clients; the bits are the same.
pub(crate) fn lease_state(caching: Caching) -> LeaseState {
    LeaseState::from_bits_retain(caching.bits().into())
}

/// The caching that this lease state allows.
pub(crate) fn caching_of(state: LeaseState) -> Caching {
    Caching::from_bits_truncate(u8::try_from(state.bits() & 0x7).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_was_heard_again_knows_the_reply_before_it() {
        let at = Instant::now();
        let reply = Answered { at, frames: 7 };
        let noted = |frames, after| reply.is_noted(frames, at + Duration::from_millis(after));
        assert!(!noted(8, 9), "the thread that asked may not have run");
        assert!(noted(8, 10));
        assert!(!noted(7, 199), "it has sent nothing since");
        assert!(!noted(3, 199), "a connection has ended");
        assert!(noted(7, 200));
    }
}
