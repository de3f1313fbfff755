//! The clients and sessions of this server, and the locks around them.
//!
//! A request of a session takes one lock, that of its session, for a moment at its beginning and at its end. The tables
//! of all clients are used only when clients and sessions are created or removed. A connection remembers the sessions
//! for which it has carried requests, so finding one of them takes no lock at all.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nfs_proto::filehandle::FileHandleCodec;
use nfs_proto::v4::client::protection::Credential;
use nfs_proto::v4::client::set_client_id::{Introduced, SetClientId};
use nfs_proto::v4::client::{Clients, ExchangeId, Exchanged, Holding, NewSession, Principal};
use nfs_proto::v4::grace::Reclaims;
use nfs_proto::v4::holdings::Revoked;
use nfs_proto::v4::lease::{LeaseTimes, Standing};
use nfs_proto::v4::session::{self, Associations, Channels, ConnectionNumber};
use nfs_proto::v4::slot::{SlotTable, Usage};
use nfs_wire::v4::create_session::{self, ChannelAttributes};
use nfs_wire::v4::sequence::StatusFlags;
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::{ClientId, SessionId};
use parking_lot::{Mutex, MutexGuard};
use share::{Share, ShareId};
use tokio::sync::Notify;

use super::callback::{BackChannel, Callbacks};
use super::files::Files;
use super::link::Link;
use super::moved::Moved;
use super::recovery::Recovery;
use super::sessionless::ClientState;
use crate::config::Config;

/// The NFSv4 state of a server.
#[derive(Debug)]
pub(crate) struct V4State {
    pub(crate) times: LeaseTimes,
    pub(crate) sessions: session::SessionLimits,
    /// Identifies this server, and stays the same after each start: clients may treat several of its addresses as one
    /// server (RFC 8881 2.10.5).
    pub(crate) server_owner: [u8; 8],
    /// Distinguishes this run of the server from earlier ones.
    pub(crate) run: u32,
    /// The addresses on which the server listens.
    pub(crate) listen: Arc<[IpAddr]>,
    /// When this run of the server began, in seconds since 1970.
    pub(crate) since: i64,
    /// Guards the tables of clients and sessions: which exist, not what they have. Taken before a session's or a
    /// client's lock, never after it.
    tables: Mutex<Tables>,
    pub(crate) callbacks: Callbacks,
    pub(crate) recovery: Recovery,
    /// Notified when sessions may cache more than half of what all together may: then they should use fewer slots.
    pub(super) slots_are_short: Notify,
    next_connection: AtomicU64,
}

#[derive(Debug)]
struct Tables {
    clients: Clients<Arc<Client>, create_session::ResOk>,
    sessions: HashMap<SessionId, Arc<Session>>,
    /// The most bytes of replies that all sessions together may keep.
    kept_bytes_max: u64,
}

/// A client: one incarnation of it.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) id: ClientId,
    /// The name by which the client calls itself.
    pub(crate) owner: Arc<[u8]>,
    /// The name by which the client is recorded.
    pub(super) recorded_as: Arc<[u8]>,
    /// What a client of NFSv4.0 has in place of sessions; None for other clients.
    pub(super) sessionless: Option<Arc<ClientState>>,
    /// What SEQUENCE reports to the client, in addition to the state of its back channels: bits of [`StatusFlags`].
    flags: AtomicU32,
    /// The number of connections of back channels, over all sessions of the client.
    back_connections: AtomicU32,
    /// Whether the client ever had a back channel, and so is told when there is none.
    had_back: AtomicBool,
    /// Guards the client's sessions, and its lease while no session holds it: always, if the client has no sessions.
    sessions: Mutex<Sessions>,
    /// The shares that other servers have, and where the client has lost what it held.
    moved: Moved,
    /// What the client holds on files.
    pub(crate) files: Files,
}

#[derive(Debug)]
struct Sessions {
    present: Vec<Arc<Session>>,
    /// The last renewal by a session that has ended; before that, when the client came.
    renewed: Instant,
}

/// A session.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) client: Arc<Client>,
    pub(crate) fore: ChannelAttributes,
    pub(crate) back: BackChannel,
    is_gone: AtomicBool,
    /// Notified when a request ends for whose reply a retry waits, and when the session is gone.
    pub(crate) ended: Arc<Notify>,
    /// The session's part of the replies that all sessions may cache, in bytes. Changed under the lock of the tables.
    reserved: AtomicU64,
    /// Guards the state that every request changes.
    pub(crate) state: Mutex<SessionState>,
}

/// The state that the requests of a session change.
#[derive(Debug)]
pub(crate) struct SessionState {
    pub(crate) slots: SlotTable,
    pub(crate) connections: Associations,
    /// When a request last renewed the lease.
    pub(crate) renewed: Instant,
}

/// Precedes the names of clients of NFSv4.0 in the records.
const RECORDED_WITHOUT_SESSION: &[u8] = b"NFSv4.0 ";

/// Clients whose records were removed: they left, restarted, or were away for too long. What they held must still be
/// ended.
#[derive(Debug)]
#[must_use = "what these clients had must end"]
pub(crate) struct Gone(Vec<Arc<Client>>);

/// The reply of CREATE_SESSION, and the session if it is a new one.
type Answered = (create_session::ResOk, Option<Arc<Session>>);

impl Gone {
    /// Ends everything that the clients held.
    pub(crate) async fn end(self) {
        for client in self.0 {
            client.files.end().await;
        }
    }

    /// Ends everything that the clients held, for good: they do not return, and have nothing to reclaim after a
    /// restart.
    pub(crate) async fn leave(self, recovery: &Recovery) {
        for client in &self.0 {
            recovery.forget(client).await;
        }
        self.end().await;
    }
}

impl V4State {
    pub(crate) fn new(config: &Config) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        // As good as random: the verifier differs in each run, and the key is secret.
        let seed = FileHandleCodec::new(&config.file_handle_key).number(&config.write_verifier);
        let run = u32::try_from(seed >> 32).unwrap_or(0);
        let first_xid = u32::try_from(seed & u64::from(u32::MAX)).unwrap_or(0);
        let clients = Clients::new(config.clients, config.lease_times, run);
        Self {
            times: config.lease_times,
            sessions: config.sessions,
            server_owner: FileHandleCodec::new(&config.file_handle_key).number(b"server owner").to_be_bytes(),
            run,
            listen: config.listen.as_slice().into(),
            since: i64::try_from(since).unwrap_or(0),
            tables: Mutex::new(Tables { clients, sessions: HashMap::new(), kept_bytes_max: 0 }),
            callbacks: Callbacks::new(first_xid, config.callback_timeout),
            recovery: Recovery::begin(config, Instant::now()),
            slots_are_short: Notify::new(),
            next_connection: AtomicU64::new(1),
        }
    }

    /// A number for a new connection.
    pub(crate) fn number_connection(&self) -> ConnectionNumber {
        ConnectionNumber(self.next_connection.fetch_add(1, Ordering::Relaxed))
    }

    /// EXCHANGE_ID.
    ///
    /// # Errors
    /// Those of [`Clients::exchange_id`].
    pub(crate) fn exchange_id(
        &self,
        request: ExchangeId<'_>,
        now: Instant,
    ) -> Result<(Exchanged, Gone), Status> {
        let make = |id| Arc::new(Client::new(id, request.owner, now, None));
        let mut tables = self.tables.lock();
        let (exchanged, gone) = tables.clients.exchange_id(request, now, |client| client.holding(), make)?;
        Ok((exchanged, Self::gone(tables, gone)))
    }

    /// SETCLIENTID.
    ///
    /// # Errors
    /// Those of [`Clients::set_client_id`].
    pub(crate) fn set_client_id(
        &self,
        request: SetClientId<'_>,
        now: Instant,
    ) -> Result<(Introduced, Gone), Status> {
        let state = || Some(Arc::new(ClientState::new()));
        let make = |id| Arc::new(Client::new(id, request.name, now, state()));
        let mut tables = self.tables.lock();
        let (introduced, gone) =
            tables.clients.set_client_id(request, now, |client| client.holding(), make)?;
        Ok((introduced, Self::gone(tables, gone)))
    }

    /// SETCLIENTID_CONFIRM.
    ///
    /// # Errors
    /// Those of [`Clients::confirm_client_id`].
    pub(crate) fn confirm_client_id(
        &self,
        introduced: Introduced,
        principal: &Principal,
    ) -> Result<Gone, Status> {
        let mut tables = self.tables.lock();
        let gone = tables.clients.confirm_client_id(introduced, principal)?;
        Ok(Self::gone(tables, gone.into_iter().collect()))
    }

    /// The confirmed client of NFSv4.0 with this client ID.
    ///
    /// # Errors
    /// [`Status::StaleClientId`], [`Status::Expired`].
    pub(super) fn sessionless_client(&self, id: ClientId) -> Result<Arc<Client>, Status> {
        let clients = &self.tables.lock().clients;
        clients.confirmed_without_session(id).cloned().ok_or_else(|| clients.missing(id))
    }

    /// CREATE_SESSION. `create` makes the session of a client, given how many bytes of replies the other sessions may
    /// cache.
    ///
    /// # Errors
    /// Those of [`Clients::create_session`] and of `create`.
    pub(crate) fn create_session(
        &self,
        client: ClientId,
        sequence: u32,
        by: &Credential,
        create: impl FnOnce(
            &Arc<Client>,
            NewSession,
            u64,
        ) -> Result<(Arc<Session>, create_session::ResOk), Status>,
    ) -> (Result<Answered, Status>, Gone) {
        let mut tables = self.tables.lock();
        let Tables { clients, sessions, kept_bytes_max } = &mut *tables;
        let mut created = None;
        let (answer, gone) = clients.create_session(client, sequence, by, |client, new| {
            let (session, answer) = create(client, new, *kept_bytes_max)?;
            let reserved = session.reserve(session.fore.requests_max);
            *kept_bytes_max = kept_bytes_max.saturating_add(reserved);
            sessions.insert(new.id, Arc::clone(&session));
            client.sessions.lock().present.push(Arc::clone(&session));
            created = Some(session);
            Ok(answer)
        });
        if tables.kept_bytes_max > self.sessions.all_kept_bytes_max / 2 {
            self.slots_are_short.notify_one();
        }
        (answer.map(|answer| (answer, created)), Self::gone(tables, gone))
    }

    /// Makes all sessions use as many slots as are available to them ([`session::slots_among`]). Returns the sessions
    /// that must give slots back and have sent no request for the time `quiet`, so that no reply tells them.
    pub(super) fn share_out_slots(&self, now: Instant, quiet: Duration) -> Vec<Arc<Session>> {
        let mut tables = self.tables.lock();
        let (mut reserved, mut silent) = (0_u64, Vec::new());
        let count = tables.sessions.len();
        for session in tables.sessions.values() {
            let mut state = session.state.lock();
            let must_hear = state.slots.aim(session::slots_among(&session.fore, &self.sessions, count));
            reserved = reserved.saturating_add(session.reserve(state.slots.granted()));
            if must_hear && now.saturating_duration_since(state.renewed) >= quiet {
                silent.push(Arc::clone(session));
            }
        }
        tables.kept_bytes_max = reserved;
        silent
    }

    /// The session with this identifier.
    pub(crate) fn session(&self, id: SessionId) -> Option<Arc<Session>> {
        self.tables.lock().sessions.get(&id).cloned()
    }

    /// Checks whether a request may manage a session.
    ///
    /// # Errors
    /// [`Status::WrongCred`].
    pub(crate) fn check_manager(&self, session: &Session, by: &Credential) -> Result<(), Status> {
        self.tables.lock().clients.check_manager(session.client.id, by)
    }

    /// Ends a session: requests under way run to their end, and no others begin.
    pub(crate) fn end_session(&self, session: &Arc<Session>) {
        let mut tables = self.tables.lock();
        tables.take_session(session.id);
        tables.clients.end_session(session.client.id, session.id);
        drop(tables);
        session.client.end_session(session);
        session.shut();
    }

    /// DESTROY_CLIENTID.
    ///
    /// # Errors
    /// Those of [`Clients::destroy`].
    pub(crate) fn destroy_client(
        &self,
        client: ClientId,
        by: &Credential,
        now: Instant,
    ) -> Result<Gone, Status> {
        let mut tables = self.tables.lock();
        let gone = tables.clients.destroy(client, by, now, |client| client.holding())?;
        Ok(Self::gone(tables, vec![gone]))
    }

    /// Ends everything that a client with an expired lease holds, because another client needs it.
    pub(crate) fn expire_client(&self, client: ClientId) -> Gone {
        let mut tables = self.tables.lock();
        let gone = tables.clients.forget(client).into_iter().collect();
        Self::gone(tables, gone)
    }

    /// The clients that are late and hold something in a share.
    pub(crate) fn late_in(&self, share: ShareId, now: Instant) -> Vec<Arc<Client>> {
        let mut late = self.clients();
        late.retain(|client| self.standing(client, now) != Standing::Current && client.files.has_of(share));
        late
    }

    /// Removes the clients that have been away for too long.
    pub(crate) fn reap(&self, now: Instant) -> Gone {
        let mut tables = self.tables.lock();
        let gone = tables.clients.expire(now, |client| client.holding());
        Self::gone(tables, gone)
    }

    /// Removes clients whose lease has expired and that stay away, for ever.
    pub(crate) async fn look_after_clients(&self) {
        loop {
            tokio::time::sleep(self.times.lease / 2).await;
            let gone = self.reap(Instant::now());
            if let Some(first) = gone.0.first() {
                // One line, however many there are: a client chooses its names, and may have many.
                let (count, first) = (gone.0.len(), first.shown());
                tracing::info!(count, first, "NFSv4 clients stay away");
            }
            gone.leave(&self.recovery).await;
            for client in self.clients() {
                client.forget_idle_owners(Instant::now(), self.times.lease).await;
            }
        }
    }

    /// The standing of a client with regard to its lease.
    pub(crate) fn standing(&self, client: &Client, now: Instant) -> Standing {
        self.times.standing(client.renewed(), now)
    }

    /// The confirmed client with this client ID.
    pub(crate) fn client(&self, id: ClientId) -> Option<Arc<Client>> {
        self.tables.lock().clients.confirmed(id).cloned()
    }

    /// The confirmed client with this number in this run.
    pub(crate) fn client_numbered(&self, number: u32) -> Option<Arc<Client>> {
        self.client(ClientId(u64::from(self.run) << 32 | u64::from(number)))
    }

    /// All confirmed clients.
    pub(crate) fn clients(&self) -> Vec<Arc<Client>> {
        self.tables.lock().clients.all_confirmed().cloned().collect()
    }

    /// Ends what clients hold in a share that was withdrawn, including clients whose lease has expired. `has_gone`: another
    /// server has the share, and clients that held something there are told.
    pub(crate) async fn end_share(&self, share: &Share, has_gone: bool) {
        let told_until = Instant::now() + self.times.lease;
        for client in self.clients() {
            if has_gone && client.files.with(|holdings| holdings.of_share(share.id().0).next().is_some()) {
                client.moved.note(share.id(), told_until);
                client.tell(StatusFlags::LEASE_MOVED, true);
            }
            client.files.end_share(share).await;
        }
    }

    /// Ends the sessions of clients whose records were removed. This happens outside the lock of the tables.
    fn gone(mut tables: MutexGuard<'_, Tables>, clients: Vec<Arc<Client>>) -> Gone {
        let sessions = tables.take_sessions(&clients);
        drop(tables);
        sessions.iter().for_each(|session| session.shut());
        Gone(clients)
    }
}

impl Drop for V4State {
    fn drop(&mut self) {
        // A client and its sessions refer to each other.
        for client in self.clients() {
            client.sessions.lock().present.clear();
        }
    }
}

impl Tables {
    fn take_session(&mut self, id: SessionId) -> Option<Arc<Session>> {
        let session = self.sessions.remove(&id)?;
        let reserved = session.reserved.load(Ordering::Relaxed);
        self.kept_bytes_max = self.kept_bytes_max.saturating_sub(reserved);
        Some(session)
    }

    /// Takes out the sessions of clients that are gone.
    fn take_sessions(&mut self, clients: &[Arc<Client>]) -> Vec<Arc<Session>> {
        let ids: Vec<_> = clients
            .iter()
            .flat_map(|client| std::mem::take(&mut client.sessions.lock().present))
            .map(|session| session.id)
            .collect();
        ids.into_iter().filter_map(|id| self.take_session(id)).collect()
    }
}

impl Client {
    /// The client's name for the log. The client chooses it, so it is cut to a length that fits a line.
    pub(crate) fn shown(&self) -> String {
        const SHOWN_BYTES_MAX: usize = 64;
        match self.owner.get(..SHOWN_BYTES_MAX) {
            Some(begin) => format!("{}...", begin.escape_ascii()),
            None => self.owner.escape_ascii().to_string(),
        }
    }

    fn new(id: ClientId, owner: &[u8], now: Instant, sessionless: Option<Arc<ClientState>>) -> Self {
        let owner: Arc<[u8]> = owner.into();
        let (recorded_as, reclaims) = match sessionless {
            None => (Arc::clone(&owner), Reclaims::Incomplete),
            // The same name in another minor version is another client.
            Some(_) => ([RECORDED_WITHOUT_SESSION, &owner].concat().into(), Reclaims::Unreported),
        };
        Self {
            id,
            owner,
            recorded_as,
            sessionless,
            flags: AtomicU32::new(0),
            moved: Moved::default(),
            back_connections: AtomicU32::new(0),
            had_back: AtomicBool::new(false),
            files: Files::new(id, reclaims),
            sessions: Mutex::new(Sessions { present: Vec::new(), renewed: now }),
        }
    }

    /// The client's sessions.
    pub(crate) fn sessions(&self) -> Vec<Arc<Session>> {
        self.sessions.lock().present.clone()
    }

    /// Renews the lease of a client without sessions.
    pub(super) fn renew(&self, now: Instant) {
        let mut sessions = self.sessions.lock();
        sessions.renewed = sessions.renewed.max(now);
    }

    /// When the client's lease was last renewed: by the last request of any of its sessions.
    pub(crate) fn renewed(&self) -> Instant {
        let sessions = self.sessions.lock();
        let renewals = sessions.present.iter().map(|session| session.state.lock().renewed);
        renewals.fold(sessions.renewed, Instant::max)
    }

    fn end_session(&self, session: &Session) {
        let renewed = session.state.lock().renewed;
        let mut sessions = self.sessions.lock();
        sessions.present.retain(|other| other.id != session.id);
        sessions.renewed = sessions.renewed.max(renewed);
    }

    /// What the client holds.
    fn holding(&self) -> Holding {
        Holding { renewed: self.renewed(), state: !self.files.is_empty() }
    }

    /// Notes that the client has asked where a share has gone.
    pub(super) fn has_asked_for(&self, share: ShareId) {
        self.moved.asked(share);
    }

    /// Sets or clears flags that every SEQUENCE reports to the client from now on.
    pub(crate) fn tell(&self, flags: StatusFlags, on: bool) {
        if on {
            self.flags.fetch_or(flags.bits(), Ordering::Relaxed);
        } else {
            self.flags.fetch_and(!flags.bits(), Ordering::Relaxed);
        }
    }

    /// Makes every SEQUENCE report revoked state to the client, as long as there is any. Called under the lock of what
    /// the client holds.
    pub(super) fn tell_revoked(&self, revoked: Revoked) {
        self.tell(StatusFlags::RECALLABLE_STATE_REVOKED, revoked.delegations > 0);
        self.tell(StatusFlags::ADMIN_STATE_REVOKED, revoked.by_administrator > 0);
    }

    /// The connections of the client or of its sessions.
    pub(super) fn connections(&self) -> Vec<ConnectionNumber> {
        let sessions = self.sessions();
        let all = sessions.iter().map(|session| session.state.lock().connections.all().collect::<Vec<_>>());
        let without = self.sessionless.iter().flat_map(|sessionless| sessionless.connections());
        all.flatten().chain(without).collect()
    }

    /// Counts connections that were associated with a back channel, or are no longer.
    pub(super) fn count_back_connections(&self, more: u32, fewer: u32) {
        if more > 0 {
            self.had_back.store(true, Ordering::Relaxed);
        }
        self.back_connections.fetch_add(more, Ordering::Relaxed);
        let before = self.back_connections.fetch_sub(fewer, Ordering::Relaxed);
        debug_assert!(before >= fewer, "connections that are associated no longer were counted");
    }

    /// Whether the server has a connection for calls to the client.
    pub(super) fn can_be_called(&self) -> bool {
        self.has_back()
    }

    fn has_back(&self) -> bool {
        self.back_connections.load(Ordering::Relaxed) > 0
    }
}

/// A session of a client at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionReport {
    /// The name by which the client calls itself.
    pub client: Vec<u8>,
    /// The numbers of the session's connections ([`ConnectionReport::number`](crate::ConnectionReport::number)).
    pub connections: Vec<u64>,
    /// The use of the session's slots.
    pub slots: Usage,
    /// The most bytes of a request.
    pub request_bytes_max: u32,
    /// The most bytes of a reply.
    pub response_bytes_max: u32,
    /// Whether the server can call the client over the session.
    pub back_channel: bool,
    /// The time since the last request.
    pub idle: Duration,
}

impl Session {
    pub(crate) fn report(&self) -> SessionReport {
        let state = self.state.lock();
        SessionReport {
            client: self.client.owner.to_vec(),
            connections: state.connections.all().map(|number| number.0).collect(),
            slots: state.slots.usage(),
            request_bytes_max: self.fore.request_bytes_max,
            response_bytes_max: self.fore.response_bytes_max,
            back_channel: state.connections.has_back(),
            idle: state.renewed.elapsed(),
        }
    }

    pub(crate) fn new(
        new: NewSession,
        client: &Arc<Client>,
        fore: ChannelAttributes,
        back: BackChannel,
        now: Instant,
    ) -> Self {
        Self {
            id: new.id,
            client: Arc::clone(client),
            fore,
            back,
            is_gone: AtomicBool::new(false),
            ended: Arc::new(Notify::new()),
            reserved: AtomicU64::new(0),
            state: Mutex::new(SessionState {
                slots: SlotTable::new(fore.requests_max),
                connections: Associations::default(),
                renewed: now,
            }),
        }
    }

    /// Reserves this many slots for the session from now on. Returns the bytes of replies that the session may keep in
    /// them.
    fn reserve(&self, slots: u32) -> u64 {
        let bytes = session::kept_bytes_max(&self.fore, slots);
        self.reserved.store(bytes, Ordering::Relaxed);
        bytes
    }

    /// Ends the session.
    fn shut(&self) {
        self.is_gone.store(true, Ordering::Release);
        self.ended.notify_waiters();
        self.back.shut(&self.client);
        let mut state = self.state.lock();
        state.slots = SlotTable::new(1); // kept replies are no longer asked for
        state.connections = Associations::default();
    }

    /// Whether the session has ended.
    pub(crate) fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Acquire)
    }

    /// The status flags that SEQUENCE reports to the client.
    pub(crate) fn status_flags(&self) -> StatusFlags {
        let client = &self.client;
        let mut flags = StatusFlags::from_bits_retain(client.flags.load(Ordering::Relaxed));
        if flags.contains(StatusFlags::LEASE_MOVED) && client.moved.is_over(Instant::now()) {
            client.tell(StatusFlags::LEASE_MOVED, false);
            // Another share may have gone since this was looked at, and its flag was cleared with the others.
            let has_more = !client.moved.is_over(Instant::now());
            if has_more {
                client.tell(StatusFlags::LEASE_MOVED, true);
            }
            flags.set(StatusFlags::LEASE_MOVED, has_more);
        }
        if client.had_back.load(Ordering::Relaxed) {
            flags.set(StatusFlags::CB_PATH_DOWN, !client.has_back());
            flags.set(StatusFlags::CB_PATH_DOWN_SESSION, self.back.is_needed_and_down());
            flags.set(StatusFlags::BACKCHANNEL_FAULT, self.back.is_faulty());
        }
        flags
    }

    /// Associates a connection with channels of this session.
    pub(crate) fn associate(
        &self,
        connection: &Link,
        channels: impl FnOnce(&mut Associations, ConnectionNumber) -> Result<Channels, Status>,
    ) -> Result<Channels, Status> {
        let mut state = self.state.lock();
        let before = state.connections.channels(connection.number);
        let after = channels(&mut state.connections, connection.number)?;
        drop(state);
        if after.back && !before.is_some_and(|before| before.back) {
            self.back.add(connection, &self.client);
        }
        Ok(after)
    }

    /// Handles the end of a connection.
    pub(crate) fn disassociate(&self, connection: ConnectionNumber) {
        self.state.lock().connections.ended(connection);
        self.back.remove(connection, &self.client);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_clients_choose_are_cut_for_the_log() {
        let shown = |owner: &[u8]| Client::new(ClientId(1), owner, Instant::now(), None).shown();
        assert_eq!(shown(b"Linux NFSv4.1 host"), "Linux NFSv4.1 host");
        assert_eq!(shown(&[b'a'; 63]), "a".repeat(63));
        assert_eq!(shown(&[0; 1024]), format!("{}...", "\\x00".repeat(64)));
    }
}
