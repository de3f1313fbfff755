//! The part of GlobalOpenTable in which opens are looked up: by their persistent identifier, by the CREATE that made
//! them, and by their application.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use limits::HeldCount;
use net::Repeats;
use parking_lot::Mutex;
use share::{Holder, Share, folded_name};
use smb_proto::durable::{Durability, Kind};
use smb_wire::{FileId, Guid, NtStatus};
use tokio::sync::Notify;

use super::journal::Journal;
use crate::state::lease::LeaseId;
use crate::state::open::Open;
use crate::state::session::Session;
use crate::status::Failure;
use crate::tree::{Tree, TreeTarget};

/// How long a client that has returned waits for the end of its former connection. Another shard may not have noticed
/// that end yet.
const NOTICED: Duration = Duration::from_millis(300);

/// The opens that outlive their connection or may be looked up from another one.
#[derive(Debug)]
pub(crate) struct DurableOpens {
    /// Guards the tables. While it is held, the tables of a session and of a share's open files may be locked, but
    /// never the other way round.
    tables: Mutex<Tables>,
    /// Wakes the task that closes opens whose timeout has passed.
    changed: Notify,
    /// Wakes tasks that wait until an open has no session.
    left: Notify,
    /// The most opens without a session.
    disconnected_max: usize,
    /// The log lines that clients cause.
    repeats: Arc<Repeats>,
    /// The most persistent opens.
    persistent_max: usize,
    /// The journal in which persistent opens are recorded; without it there are none.
    journal: OnceLock<Arc<Journal>>,
}

#[derive(Debug, Default)]
struct Tables {
    /// The opens by their persistent identifier.
    opens: HashMap<u64, DurableOpen>,
    /// The CREATEs by the client and its CreateGuid.
    creates: HashMap<CreateKey, Create>,
    /// The opens by AppInstanceId.
    instances: HashMap<Guid, Vec<u64>>,
    /// The opens without a session, by the time until which they are kept.
    deadlines: BTreeSet<(Instant, u64)>,
    /// The opens without a session, by their owners.
    disconnected: HeldCount<String>,
    /// The persistent opens, by their owners.
    persistent: HeldCount<String>,
    /// The persistent opens by their leases.
    leases: HashMap<LeaseId, Vec<u64>>,
    /// The persistent opens by the folded names by which they were opened: every CREATE searches for them.
    names: HashMap<String, Vec<u64>>,
}

/// Open.ClientGuid and Open.CreateGuid
type CreateKey = (Guid, Guid);

#[derive(Debug)]
struct DurableOpen {
    open: Arc<Open>,
    session: OpenSession,
}

/// Open.Session
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenSession {
    /// The session with this SessionId.
    Session(u64),
    /// No session: the open is kept until then.
    Disconnected(Instant),
}

/// The state of a CREATE with this CreateGuid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Create {
    /// The CREATE is being carried out.
    Pending,
    /// The CREATE has made the open with this persistent identifier.
    Made(u64),
}

/// The result of the search before a CREATE with a CreateGuid is carried out.
#[derive(Debug)]
pub(crate) enum Before {
    /// No such CREATE is known.
    Nothing(Reservation),
    /// The open that an earlier transmission has made, and the SessionId of its session, if it has one.
    Made(Arc<Open>, Option<u64>),
}

/// A CREATE that is being carried out: a replay of it is held off until this is dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    key: CreateKey,
    table: Weak<DurableOpens>,
}

impl Reservation {
    /// Ends the CREATE, which has made the open with this persistent identifier. From now on a replay of the CREATE
    /// gets this open.
    pub(crate) fn made(self, id: u64) {
        let Some(table) = self.table.upgrade() else { return };
        let tables = &mut *table.tables.lock();
        if self.key.1 != Guid::ZERO
            && tables.opens.contains_key(&id)
            && let Some(create @ Create::Pending) = tables.creates.get_mut(&self.key)
        {
            *create = Create::Made(id);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some(table) = self.table.upgrade() {
            let creates = &mut table.tables.lock().creates;
            if creates.get(&self.key) == Some(&Create::Pending) {
                creates.remove(&self.key);
            }
        }
    }
}

impl DurableOpens {
    /// Empty tables, with room for this many opens without a session and this many persistent ones, and the log lines that
    /// clients have caused.
    pub(crate) fn new(disconnected_max: usize, persistent_max: usize, repeats: Arc<Repeats>) -> Arc<Self> {
        Arc::new(Self {
            tables: Mutex::default(),
            changed: Notify::new(),
            left: Notify::new(),
            disconnected_max,
            repeats,
            persistent_max,
            journal: OnceLock::new(),
        })
    }

    /// Begins a CREATE with this CreateGuid of this client.
    ///
    /// # Errors
    /// STATUS_FILE_NOT_AVAILABLE while an earlier transmission of the same CREATE is being carried out.
    pub(crate) fn begin(self: &Arc<Self>, client_guid: Guid, create_guid: Guid) -> Result<Before, NtStatus> {
        let key = (client_guid, create_guid);
        let mut tables = self.tables.lock();
        match tables.creates.get(&key) {
            Some(Create::Pending) => return Err(NtStatus::FILE_NOT_AVAILABLE),
            Some(Create::Made(id)) => {
                if let Some(entry) = tables.opens.get(id).filter(|entry| entry.is_replayable()) {
                    return Ok(Before::Made(Arc::clone(&entry.open), entry.session.id()));
                }
            }
            None => {}
        }
        tables.creates.insert(key, Create::Pending);
        Ok(Before::Nothing(Reservation { key, table: Arc::downgrade(self) }))
    }

    /// Sets the journal in which persistent opens are recorded.
    pub(super) fn set_journal(&self, journal: Arc<Journal>) {
        let _ = self.journal.set(journal);
    }

    /// The journal in which persistent opens are recorded.
    pub(super) fn journal(&self) -> Option<Arc<Journal>> {
        self.journal.get().map(Arc::clone)
    }

    /// Whether persistent opens are available at all.
    pub(crate) fn offers_persistence(&self) -> bool {
        self.journal.get().is_some()
    }

    /// Whether there is room for another persistent open of this user.
    pub(crate) fn has_room_for_persistent(&self, owner: &str) -> bool {
        self.offers_persistence() && self.tables.lock().persistent.may_take(owner, self.persistent_max)
    }

    /// Enters an open that belongs to a session.
    pub(crate) fn enter(&self, open: &Arc<Open>, session_id: u64) {
        self.tables.lock().enter(open, OpenSession::Session(session_id));
    }

    /// Enters an open that has waited for its client since before the server was started.
    pub(super) fn enter_disconnected(&self, open: &Arc<Open>, now: Instant) {
        let timeout = open.durable.get().and_then(|durable| durable.durability()).map(|had| had.timeout);
        let deadline = timeout.and_then(|timeout| now.checked_add(timeout)).unwrap_or(now);
        let mut tables = self.tables.lock();
        tables.enter(open, OpenSession::Disconnected(deadline));
        tables.disconnect(open, deadline);
        drop(tables);
        self.changed.notify_one();
    }

    /// Keeps an open whose session has ended, if it is to be kept. Returns false if it must be closed.
    pub(crate) fn keep(&self, open: &Arc<Open>, now: Instant) -> bool {
        let durability = open.durable.get().and_then(|durable| durable.durability());
        let survives = |durability: &Durability| durability.survives(open.keeps_handle());
        let Some(durability) = durability.filter(survives).filter(|_| !open.tree.is_of_withdrawn_share())
        else {
            return false;
        };
        let id = open.id.persistent;
        {
            let tables = &mut *self.tables.lock();
            let Some(entry) = tables.opens.get_mut(&id) else { return false };
            let has_room = tables.disconnected.may_take(owner_of(open), self.disconnected_max);
            if !has_room && durability.kind != Kind::Persistent {
                let kind = "an open is closed with its connection: too many are kept already";
                if let Some(left_out) = self.repeats.admit(None, kind, now) {
                    tracing::warn!(left_out, "{kind}");
                }
                return false;
            }
            let deadline = now.checked_add(durability.timeout).unwrap_or(now);
            entry.session = OpenSession::Disconnected(deadline);
            tables.disconnect(open, deadline);
        }
        open.detach();
        self.changed.notify_one();
        self.left.notify_waiters();
        true
    }

    /// Gives an open that has no session to a new one, if `check` allows that.
    ///
    /// # Errors
    /// STATUS_OBJECT_NAME_NOT_FOUND when the share of the tree connect has no such open without a session; the error of
    /// `check` or of the session. After an error the open is unchanged.
    pub(crate) fn reclaim(
        &self,
        id: FileId,
        session: &Arc<Session>,
        tree: &Arc<Tree>,
        check: impl FnOnce(&Open) -> Result<(), NtStatus>,
    ) -> Result<Arc<Open>, Failure> {
        let tables = &mut *self.tables.lock();
        let entry = tables.opens.get_mut(&id.persistent).ok_or(NtStatus::OBJECT_NAME_NOT_FOUND)?;
        let OpenSession::Disconnected(deadline) = entry.session else {
            return Err(NtStatus::OBJECT_NAME_NOT_FOUND.into());
        };
        if !is_same_share(&entry.open.tree, tree) {
            return Err(NtStatus::OBJECT_NAME_NOT_FOUND.into());
        }
        check(&entry.open)?;
        let again = Open::resume(&entry.open, id, Arc::clone(tree))?;
        session.add_open(&again)?;
        again.take_grant(&entry.open, session);
        entry.open = Arc::clone(&again);
        entry.session = OpenSession::Session(session.id);
        tables.connect(&again, deadline);
        Ok(again)
    }

    /// The open with this persistent identifier.
    pub(crate) fn get(&self, id: u64) -> Option<Arc<Open>> {
        self.tables.lock().opens.get(&id).map(|entry| Arc::clone(&entry.open))
    }

    /// Waits a short time until the open has no session, if it belongs to another session than this one.
    pub(crate) async fn left_by_others(&self, id: u64, session_id: u64) {
        let end = Instant::now() + NOTICED;
        loop {
            // Registered before the check, so that no change between the two is missed.
            let mut left = std::pin::pin!(self.left.notified());
            left.as_mut().enable();
            let session = self.tables.lock().opens.get(&id).and_then(|entry| entry.session.id());
            if session.is_none_or(|session| session == session_id)
                || tokio::time::timeout_at(end.into(), left).await.is_err()
            {
                return;
            }
        }
    }

    /// The persistent identifier of the open that a CREATE has made.
    pub(crate) fn made_by(&self, client_guid: Guid, create_guid: Guid) -> Option<u64> {
        match self.tables.lock().creates.get(&(client_guid, create_guid)) {
            Some(Create::Made(id)) => Some(*id),
            Some(Create::Pending) | None => None,
        }
    }

    /// The opens of an application, with the SessionIds of their sessions.
    pub(crate) fn of_instance(&self, instance: Guid) -> Vec<(Arc<Open>, Option<u64>)> {
        let tables = self.tables.lock();
        let ids = tables.instances.get(&instance).map_or(&[][..], Vec::as_slice);
        let entries = ids.iter().filter_map(|id| tables.opens.get(id));
        entries.map(|entry| (Arc::clone(&entry.open), entry.session.id())).collect()
    }

    /// Records the current state of the persistent opens of a lease.
    ///
    /// # Errors
    /// STATUS_UNEXPECTED_IO_ERROR when it is not certain that the state is stored.
    pub(crate) async fn write_down_lease(&self, lease: LeaseId) -> Result<(), Failure> {
        let opens: Vec<Arc<Open>> = {
            let tables = self.tables.lock();
            let ids = tables.leases.get(&lease).map_or(&[][..], Vec::as_slice);
            ids.iter().filter_map(|id| tables.opens.get(id)).map(|entry| Arc::clone(&entry.open)).collect()
        };
        for open in opens {
            open.write_down().await?;
        }
        Ok(())
    }

    /// Whether any persistent open without a session, opened by this case-folded name, satisfies `is_it`.
    pub(crate) fn any_disconnected(&self, name: &str, is_it: impl Fn(&Open) -> bool) -> bool {
        let tables = self.tables.lock();
        let ids = tables.names.get(name).map_or(&[][..], Vec::as_slice);
        let mut entries = ids.iter().filter_map(|id| tables.opens.get(id));
        entries.any(|entry| entry.session.id().is_none() && is_it(&entry.open))
    }

    /// Handles a break for a holder that cannot be told. Its durable opens without a session end, resilient ones
    /// continue without the caching, and persistent ones are waited for. Returns false if the grant is to be revoked at
    /// once. [MS-SMB2] 3.3.4.6, 3.3.4.7.
    pub(crate) fn cannot_be_told(&self, share: &Arc<Share>, holder: Holder) -> bool {
        let tables = &mut *self.tables.lock();
        let now = Instant::now();
        let (mut ends, mut goes_on) = (Vec::new(), false);
        // An open that still has a session will soon lose it: if that session cannot be told, its last connection is
        // ending. Then the open is closed, because part of its grant is revoked.
        let mut waits = tables.opens.values().any(|entry| {
            matches!(entry.session, OpenSession::Session(_)) && entry.open.works_under(share, holder)
        });
        for &(deadline, id) in &tables.deadlines {
            let Some(entry) = tables.opens.get(&id).filter(|entry| entry.open.works_under(share, holder))
            else {
                continue;
            };
            match entry.open.durable.get().and_then(|durable| durable.durability()).map(|had| had.kind) {
                Some(Kind::Persistent) => waits = true,
                Some(Kind::Resilient) => goes_on = true,
                Some(Kind::Durable) | None => ends.push((deadline, id)),
            }
        }
        for (deadline, id) in &ends {
            if let Some(entry) = tables.opens.get_mut(id) {
                entry.session = OpenSession::Disconnected(now);
                tables.deadlines.remove(&(*deadline, *id));
                tables.deadlines.insert((now, *id));
            }
        }
        self.changed.notify_one();
        waits || (!ends.is_empty() && !goes_on)
    }

    /// Takes an open out of the tables, since it is being closed. Returns false if its identifier belongs to another
    /// open by now.
    pub(super) fn leave(&self, open: &Open) -> bool {
        let mut tables = self.tables.lock();
        match tables.opens.get(&open.id.persistent) {
            Some(entry) if !std::ptr::eq(Arc::as_ptr(&entry.open), open) => return false,
            Some(_) => tables.remove(open.id.persistent),
            None => None,
        };
        true
    }

    /// Closes the opens whose timeout has passed, for as long as it is polled.
    pub(crate) async fn scavenge(&self) {
        loop {
            // Registered before the check, so that no change between the two is missed.
            let changed = self.changed.notified();
            let next = self.tables.lock().deadlines.first().map(|(deadline, _)| *deadline);
            match next {
                Some(deadline) => {
                    let _ = tokio::time::timeout_at(deadline.into(), changed).await;
                }
                None => changed.await,
            }
            self.close_expired(Instant::now()).await;
        }
    }

    async fn close_expired(&self, now: Instant) {
        loop {
            let expired = {
                let mut tables = self.tables.lock();
                let first = tables.deadlines.first().filter(|(deadline, _)| *deadline <= now).copied();
                first.and_then(|(_, id)| tables.remove(id))
            };
            let Some(open) = expired else { return };
            tracing::debug!(path = open.path, "nobody has taken up the open again");
            if let Err(failure) = open.close_unasked().await {
                tracing::warn!(path = open.path, status = %failure.status, "closing what nobody takes up again");
            }
        }
    }

    /// Closes the opens without a session that satisfy `is_such`.
    pub(crate) async fn close_disconnected_if(&self, is_such: impl Fn(&Open) -> bool) {
        let ids: Vec<u64> = self.tables.lock().deadlines.iter().map(|(_, id)| *id).collect();
        for id in ids {
            let such = {
                let mut tables = self.tables.lock();
                let entry = tables.opens.get(&id).filter(|entry| entry.session.id().is_none());
                if entry.is_some_and(|entry| is_such(&entry.open)) { tables.remove(id) } else { None }
            };
            let Some(open) = such else { continue };
            if let Err(failure) = open.close_unasked().await {
                tracing::warn!(path = open.path, status = %failure.status, "closing what nobody can take up again");
            }
        }
    }

    /// The opens without a session.
    pub(crate) fn all_disconnected(&self) -> Vec<Arc<Open>> {
        let tables = self.tables.lock();
        let entries = tables.deadlines.iter().filter_map(|(_, id)| tables.opens.get(id));
        entries.map(|entry| Arc::clone(&entry.open)).collect()
    }

    /// The number of opens without a session.
    pub(crate) fn disconnected(&self) -> usize {
        self.tables.lock().deadlines.len()
    }
}

impl Tables {
    fn enter(&mut self, open: &Arc<Open>, session: OpenSession) {
        let Some(durable) = open.durable.get() else { return };
        let (id, origin) = (open.id.persistent, &durable.origin);
        if let OpenSession::Disconnected(_) = session {
            // A restored open of an earlier run. A CREATE of this run is entered when it is over
            // ([`Reservation::made`]).
            self.creates.insert((origin.client_guid, origin.create_guid), Create::Made(id));
        }
        if let Some(instance) = origin.app_instance {
            self.instances.entry(instance).or_default().push(id);
        }
        if open.is_persistent() {
            self.persistent.enter(owner_of(open).to_owned());
            self.names.entry(folded_name(&open.path)).or_default().push(id);
        }
        if let Some(lease) = open.persistent_lease() {
            self.leases.entry(lease).or_default().push(id);
        }
        self.opens.insert(id, DurableOpen { open: Arc::clone(open), session });
    }

    /// The open has no session from now on, and is kept until then.
    fn disconnect(&mut self, open: &Open, deadline: Instant) {
        if self.deadlines.insert((deadline, open.id.persistent)) {
            self.disconnected.enter(owner_of(open).to_owned());
        }
    }

    /// The open, which was kept until then, has a session again, or is closed.
    fn connect(&mut self, open: &Open, deadline: Instant) {
        if self.deadlines.remove(&(deadline, open.id.persistent)) {
            self.disconnected.leave(owner_of(open));
        }
    }

    fn remove(&mut self, id: u64) -> Option<Arc<Open>> {
        let DurableOpen { open, session } = self.opens.remove(&id)?;
        if open.is_persistent() {
            self.persistent.leave(owner_of(&open));
            forget(&mut self.names, &folded_name(&open.path), id);
        }
        if let OpenSession::Disconnected(deadline) = session {
            self.connect(&open, deadline);
        }
        if let Some(durable) = open.durable.get() {
            let origin = &durable.origin;
            let key = (origin.client_guid, origin.create_guid);
            if self.creates.get(&key) == Some(&Create::Made(id)) {
                self.creates.remove(&key);
            }
            if let Some(instance) = origin.app_instance {
                forget(&mut self.instances, &instance, id);
            }
            if let Some(lease) = open.persistent_lease() {
                forget(&mut self.leases, &lease, id);
            }
        }
        Some(open)
    }
}

/// Open.DurableOwner
fn owner_of(open: &Open) -> &str {
    open.durable.get().map_or("", |durable| &durable.origin.owner)
}

/// Removes one of the opens with this key.
fn forget<K: Hash + Eq>(ids: &mut HashMap<K, Vec<u64>>, key: &K, id: u64) {
    if let Some(listed) = ids.get_mut(key) {
        listed.retain(|other| *other != id);
        if listed.is_empty() {
            ids.remove(key);
        }
    }
}

impl DurableOpen {
    fn is_replayable(&self) -> bool {
        self.open.durable.get().is_some_and(|durable| durable.is_replayable())
    }
}

impl OpenSession {
    /// The SessionId.
    fn id(self) -> Option<u64> {
        match self {
            Self::Session(id) => Some(id),
            Self::Disconnected(_) => None,
        }
    }
}

pub(crate) fn is_same_share(one: &Tree, other: &Tree) -> bool {
    match (&one.target, &other.target) {
        (TreeTarget::Disk(one), TreeTarget::Disk(other)) => Arc::ptr_eq(one, other),
        _ => false,
    }
}
