//! The clients of a server: EXCHANGE_ID, confirmation by CREATE_SESSION, and the end of a client (RFC 8881 18.35,
//! 18.36, 18.50). NFSv4.0 has SETCLIENTID and SETCLIENTID_CONFIRM instead ([`set_client_id`]).
//!
//! A client identifies itself by an owner name. The server has at most two records of an owner: a confirmed one, and an
//! unconfirmed one of a new incarnation. The server stores what else a client has (opens, sessions, a back channel) as
//! a value `C` in each record. The value is returned when the record is removed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use limits::HeldCount;
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::{ClientId, SessionId, Verifier};

use self::protection::{Credential, StateProtection};
use self::set_client_id::Confirmation;
use super::lease::{LeaseTimes, Standing};

pub mod protection;
pub mod set_client_id;

/// Who sends a request, as far as clients are distinguished by it (RFC 8881 18.35.4, "principal").
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Principal {
    /// AUTH_NONE.
    Nobody,
    /// AUTH_SYS: the user and group that the client's machine states.
    User {
        /// The user.
        uid: u32,
        /// The group.
        gid: u32,
    },
    /// RPCSEC_GSS: the user or machine of this name, proved with a ticket.
    Ticket(Arc<str>),
}

/// What the table may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientLimits {
    /// The most client records, confirmed or not.
    pub clients_max: usize,
    /// The most sessions of one client.
    pub sessions_max: usize,
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self { clients_max: 16_384, sessions_max: 64 }
    }
}

/// The arguments of EXCHANGE_ID.
#[derive(Debug, Clone)]
pub struct ExchangeId<'a> {
    /// `co_ownerid`: the client's name for itself.
    pub owner: &'a [u8],
    /// `co_verifier`: different after each restart of the client.
    pub verifier: Verifier,
    /// Who sends the request.
    pub by: Credential,
    /// What the client gets, if its record is a new one.
    pub protection: StateProtection,
    /// The network or address that the request comes from. The last quarter of the records is for those that have few.
    pub origin: IpAddr,
    /// EXCHGID4_FLAG_UPD_CONFIRMED_REC_A.
    pub update: bool,
}

/// The result of EXCHANGE_ID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchanged {
    /// `eir_clientid`.
    pub client: ClientId,
    /// `eir_sequenceid`: the sequence ID of the next CREATE_SESSION.
    pub sequence: u32,
    /// EXCHGID4_FLAG_CONFIRMED_R.
    pub confirmed: bool,
    /// `eir_state_protect`: that of the record.
    pub protection: StateProtection,
}

/// The state of a client, as known to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holding {
    /// When the client last renewed its lease; initially, when it arrived.
    pub renewed: Instant,
    /// Whether the client has opens, locks, delegations or similar state.
    pub state: bool,
}

/// A session that CREATE_SESSION is to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewSession {
    /// The client of the session.
    pub client: ClientId,
    /// The identifier of the session.
    pub id: SessionId,
}

/// An incarnation of a client, as it introduces itself.
#[derive(Debug)]
struct Incarnation<'a> {
    owner: &'a [u8],
    verifier: Verifier,
    principal: Principal,
    protection: StateProtection,
    origin: IpAddr,
}

#[derive(Debug)]
struct Record<C, R> {
    owner: Arc<[u8]>,
    verifier: Verifier,
    principal: Principal,
    protection: StateProtection,
    origin: IpAddr,
    confirmed: bool,
    /// The slot of CREATE_SESSION (18.36.4): the last sequence ID and its reply; None if there was none. "If the
    /// session is not successfully created, then no changes are made to any client records": errors are not kept.
    sequence: u32,
    answered: Option<R>,
    sessions: Vec<SessionId>,
    /// How a client of NFSv4.0 confirms its ID; None for a client with sessions.
    confirmation: Option<Confirmation>,
    value: C,
}

/// Owners by their names. NFSv4.0 and the later minor versions are protocols of their own, which "can be used
/// simultaneously [...] between the same client and server" (RFC 5661, abstract), so a name in one is not that name in
/// the other.
#[derive(Debug, Default)]
struct Owners {
    with_sessions: HashMap<Arc<[u8]>, Owner>,
    without: HashMap<Arc<[u8]>, Owner>,
}

impl Owners {
    fn of(&mut self, has_sessions: bool) -> &mut HashMap<Arc<[u8]>, Owner> {
        if has_sessions { &mut self.with_sessions } else { &mut self.without }
    }
}

/// The records of an owner.
#[derive(Debug, Default)]
struct Owner {
    confirmed: Option<ClientId>,
    unconfirmed: Option<ClientId>,
}

/// The clients of one run of a server. `R` is the reply to CREATE_SESSION.
#[derive(Debug)]
pub struct Clients<C, R> {
    limits: ClientLimits,
    times: LeaseTimes,
    /// The upper half of client IDs: IDs from an earlier run of the server are stale.
    run: u32,
    next: u32,
    next_session: u64,
    next_confirmation: u32,
    by_id: BTreeMap<ClientId, Record<C, R>>,
    owners: Owners,
    /// How many records in `by_id` come from where.
    by_origin: HeldCount<IpAddr>,
    /// Until then no record gives way, as was found by a look at all of them: to an origin that has many, or (`None`) to those
    /// that have few.
    full_until: HashMap<Option<IpAddr>, Instant>,
    /// The IDs in `by_id` that are not confirmed; the lowest is the oldest.
    unconfirmed: BTreeSet<ClientId>,
}

impl<C, R: Clone> Clients<C, R> {
    /// An empty table. `run` distinguishes this run of the server from earlier ones.
    #[must_use]
    pub fn new(limits: ClientLimits, times: LeaseTimes, run: u32) -> Self {
        Self {
            limits,
            times,
            run,
            next: 1,
            next_session: 1,
            next_confirmation: 1,
            by_id: BTreeMap::new(),
            owners: Owners::default(),
            by_origin: HeldCount::default(),
            full_until: HashMap::new(),
            unconfirmed: BTreeSet::new(),
        }
    }

    /// EXCHANGE_ID, in the cases of RFC 8881 18.35.4. `make` makes the value for a new record; `look` tells what a
    /// client has. Values returned with the result belonged to records that were removed.
    ///
    /// # Errors
    /// [`Status::ClidInUse`], [`Status::NoEnt`], [`Status::NotSame`], [`Status::Perm`]; [`Status::Delay`] when the
    /// table is full of clients that are alive, or the origin has too many of its own.
    pub fn exchange_id(
        &mut self,
        request: ExchangeId<'_>,
        now: Instant,
        look: impl Fn(&C) -> Holding,
        make: impl FnOnce(ClientId) -> C,
    ) -> Result<(Exchanged, Vec<C>), Status> {
        let known = self.owners.with_sessions.get(request.owner).and_then(|owner| owner.confirmed);
        let confirmed = known.and_then(|id| self.by_id.get(&id).map(|record| (id, record)));
        if request.update {
            return Self::update(&request, confirmed).map(|exchanged| (exchanged, Vec::new()));
        }
        let mut gone = Vec::new();
        match confirmed {
            // Case 2, "Non-Update on Existing Client ID". An unconfirmed record of another incarnation is dropped.
            Some((id, record)) if record.is(&request) => {
                let exchanged = record.exchanged(id);
                self.forget_unconfirmed(request.owner, true, &mut gone);
                return Ok((exchanged, gone));
            }
            // Case 3, "Client Collision".
            Some((id, record)) if !record.is_of(&request.by) => {
                let Holding { renewed, state } = look(&record.value);
                let in_use = state || !record.sessions.is_empty();
                let standing = self.times.standing(renewed, now);
                if in_use && standing == Standing::Current {
                    return Err(Status::ClidInUse);
                }
                gone.extend(self.forget(id));
            }
            // Case 5, "Client Restart": the confirmed record stays until the new one is confirmed. Case 1, "New Owner
            // ID".
            Some(_) | None => {}
        }
        // Case 4, "Replacement of Unconfirmed Record".
        self.forget_unconfirmed(request.owner, true, &mut gone);
        self.make_room(request.origin, now, &look, &mut gone)?;
        let ExchangeId { owner, verifier, by: Credential { principal, .. }, protection, origin, .. } =
            request;
        let client = self.enter(Incarnation { owner, verifier, principal, protection, origin }, None, make);
        Ok((Exchanged { client, sequence: 1, confirmed: false, protection }, gone))
    }

    /// Cases 6 to 9.
    fn update(
        request: &ExchangeId<'_>,
        confirmed: Option<(ClientId, &Record<C, R>)>,
    ) -> Result<Exchanged, Status> {
        let (client, record) = confirmed.ok_or(Status::NoEnt)?;
        if record.verifier != request.verifier {
            return Err(Status::NotSame);
        }
        if !record.is_of(&request.by) {
            return Err(Status::Perm);
        }
        Ok(record.exchanged(client))
    }

    /// Enters an unconfirmed record.
    fn enter(
        &mut self,
        incarnation: Incarnation<'_>,
        confirmation: Option<Confirmation>,
        make: impl FnOnce(ClientId) -> C,
    ) -> ClientId {
        let id = self.free_id();
        let owner: Arc<[u8]> = incarnation.owner.into();
        let record = Record {
            owner: Arc::clone(&owner),
            verifier: incarnation.verifier,
            principal: incarnation.principal,
            protection: incarnation.protection,
            origin: incarnation.origin,
            confirmed: false,
            sequence: 0,
            answered: None,
            sessions: Vec::new(),
            confirmation,
            value: make(id),
        };
        self.by_origin.enter(record.origin);
        // An unconfirmed record gives way.
        self.full_until.remove(&Some(record.origin));
        self.full_until.remove(&None);
        self.by_id.insert(id, record);
        self.unconfirmed.insert(id);
        self.owners.of(confirmation.is_none()).entry(owner).or_default().unconfirmed = Some(id);
        id
    }

    fn free_id(&mut self) -> ClientId {
        loop {
            let id = ClientId(u64::from(self.run) << 32 | u64::from(self.next));
            self.next = self.next.wrapping_add(1);
            if !self.by_id.contains_key(&id) {
                return id;
            }
        }
    }

    /// Makes room for one more record from `origin`. Unconfirmed records are removed first, then clients whose lease has
    /// expired, those that have been silent for longest first. An origin that has a quarter of the records gets none of the
    /// last quarter: it makes room among its own.
    fn make_room(
        &mut self,
        origin: IpAddr,
        now: Instant,
        look: impl Fn(&C) -> Holding,
        gone: &mut Vec<C>,
    ) -> Result<(), Status> {
        let most = self.limits.clients_max;
        if self.by_origin.may_take(&origin, most) {
            return Ok(());
        }
        let has_few = self.by_origin.held(&origin) < most / 4 || most < 4;
        let asking = (!has_few).then_some(origin);
        if self.full_until.get(&asking).is_some_and(|until| now < *until) {
            return Err(Status::Delay);
        }
        let gives_way = |record: &Record<C, R>| has_few || record.origin == origin;
        let unconfirmed = self.unconfirmed.iter().filter_map(|id| Some((*id, self.by_id.get(id)?)));
        let oldest = unconfirmed.filter(|(_, record)| gives_way(record)).map(|(id, _)| id).next();
        if let Some(oldest) = oldest {
            gone.extend(self.forget(oldest));
            return Ok(());
        }
        let theirs = self.by_id.iter().filter(|(_, record)| gives_way(record));
        let first = theirs.map(|(id, record)| (look(&record.value).renewed, *id)).min();
        let (renewed, first) = first.ok_or(Status::Delay)?;
        if self.times.standing(renewed, now) == Standing::Current {
            // Leases are only ever renewed, so nobody is silent before this one could be. Without this a client that is
            // refused could have all records looked at again and again.
            self.full_until.retain(|_, until| now < *until);
            self.full_until.extend(renewed.checked_add(self.times.lease).map(|until| (asking, until)));
            return Err(Status::Delay);
        }
        gone.extend(self.forget(first));
        Ok(())
    }

    /// Removes a record from the tables of IDs and origins.
    fn remove(&mut self, client: ClientId) -> Option<Record<C, R>> {
        let record = self.by_id.remove(&client)?;
        self.unconfirmed.remove(&client);
        self.by_origin.leave(&record.origin);
        debug_assert_eq!(self.by_origin.all(), self.by_id.len(), "each record has an origin");
        Some(record)
    }

    /// CREATE_SESSION, in the phases of RFC 8881 18.36.4. `create` is the fourth phase, which creates the session. With
    /// the reply comes the value of an earlier incarnation of the client.
    ///
    /// # Errors
    /// [`Status::StaleClientId`], [`Status::ClidInUse`], [`Status::WrongCred`], [`Status::SeqMisordered`]; [`Status::NoSpc`] when
    /// the client has as many sessions as it may have; the errors of `create`.
    pub fn create_session(
        &mut self,
        client: ClientId,
        sequence: u32,
        by: &Credential,
        create: impl FnOnce(&C, NewSession) -> Result<R, Status>,
    ) -> (Result<R, Status>, Vec<C>) {
        let Some(record) = self.by_id.get_mut(&client).filter(|record| record.has_sessions()) else {
            return (Err(Status::StaleClientId), Vec::new());
        };
        // Phase 3, "Unsuccessful Confirmation", comes first: "No changes are made to any client records", so that no
        // other principal can use up the client's sequence ID. It applies only to the first session: "Otherwise, the
        // client ID confirmation phase is skipped", and any principal may create one, unless the client's state is protected.
        if !record.confirmed && record.principal != by.principal {
            return (Err(Status::ClidInUse), Vec::new());
        }
        if let Err(refused) = record.check_manager(by) {
            return (Err(refused), Vec::new());
        }
        if sequence == record.sequence {
            return (record.answered.clone().ok_or(Status::SeqMisordered), Vec::new());
        }
        if sequence != record.next_sequence() {
            return (Err(Status::SeqMisordered), Vec::new());
        }
        let id = session_id(client, self.next_session);
        self.next_session = self.next_session.wrapping_add(1);
        let room = record.sessions.len() < self.limits.sessions_max;
        let answer = if room { create(&record.value, NewSession { client, id }) } else { Err(Status::NoSpc) };
        let Ok(created) = &answer else { return (answer, Vec::new()) };
        record.sequence = sequence;
        record.answered = Some(created.clone());
        record.sessions.push(id);
        let gone = if std::mem::replace(&mut record.confirmed, true) { None } else { self.confirm(client) };
        (answer, gone.into_iter().collect())
    }

    /// The unconfirmed record of an owner replaces the confirmed one.
    fn confirm(&mut self, client: ClientId) -> Option<C> {
        self.unconfirmed.remove(&client);
        let record = self.by_id.get(&client)?;
        let (owner, has_sessions) = (Arc::clone(&record.owner), record.has_sessions());
        let owner = self.owners.of(has_sessions).entry(owner).or_default();
        owner.unconfirmed = None;
        let before = owner.confirmed.replace(client)?;
        self.remove(before).map(|record| record.value)
    }

    /// Checks whether a request may manage a client and its sessions.
    ///
    /// # Errors
    /// [`Status::WrongCred`].
    pub fn check_manager(&self, client: ClientId, by: &Credential) -> Result<(), Status> {
        self.by_id.get(&client).map_or(Ok(()), |record| record.check_manager(by))
    }

    /// A session has ended.
    pub fn end_session(&mut self, client: ClientId, session: SessionId) {
        if let Some(record) = self.by_id.get_mut(&client) {
            record.sessions.retain(|id| *id != session);
        }
    }

    /// DESTROY_CLIENTID (RFC 8881 18.50.3).
    ///
    /// # Errors
    /// [`Status::StaleClientId`]; [`Status::WrongCred`]; [`Status::ClientIdBusy`] while the client has sessions, or state under a
    /// lease that has not expired.
    pub fn destroy(
        &mut self,
        client: ClientId,
        by: &Credential,
        now: Instant,
        look: impl Fn(&C) -> Holding,
    ) -> Result<C, Status> {
        let record = self.by_id.get(&client).filter(|record| record.has_sessions());
        let record = record.ok_or(Status::StaleClientId)?;
        record.check_manager(by)?;
        let Holding { renewed, state } = look(&record.value);
        let standing = self.times.standing(renewed, now);
        if !record.sessions.is_empty() || (state && standing == Standing::Current) {
            return Err(Status::ClientIdBusy);
        }
        self.forget(client).ok_or(Status::StaleClientId)
    }

    /// Removes a client, whatever it has.
    pub fn forget(&mut self, client: ClientId) -> Option<C> {
        let record = self.remove(client)?;
        let owners = self.owners.of(record.has_sessions());
        if let Some(owner) = owners.get_mut(&record.owner) {
            owner.confirmed = owner.confirmed.filter(|id| *id != client);
            owner.unconfirmed = owner.unconfirmed.filter(|id| *id != client);
            if owner.confirmed.is_none() && owner.unconfirmed.is_none() {
                owners.remove(&record.owner);
            }
        }
        Some(record.value)
    }

    fn forget_unconfirmed(&mut self, owner: &[u8], has_sessions: bool, gone: &mut Vec<C>) {
        let unconfirmed = self.owners.of(has_sessions).get(owner).and_then(|owner| owner.unconfirmed);
        gone.extend(unconfirmed.and_then(|id| self.forget(id)));
    }

    /// Removes clients that have been away for too long, and clients that were not confirmed within a lease period (RFC
    /// 8881 18.35.4: "SHOULD be removed").
    pub fn expire(&mut self, now: Instant, look: impl Fn(&C) -> Holding) -> Vec<C> {
        let times = self.times;
        let over = |record: &Record<C, R>| {
            let Holding { renewed, state } = look(&record.value);
            match times.standing(renewed, now) {
                Standing::Current => false,
                // A client without state loses nothing.
                Standing::Courtesy => !record.confirmed || !state,
                Standing::Expired => true,
            }
        };
        let over: Vec<_> = self.by_id.iter().filter(|(_, record)| over(record)).map(|(id, _)| *id).collect();
        over.into_iter().filter_map(|id| self.forget(id)).collect()
    }

    /// The value of a confirmed client.
    #[must_use]
    pub fn confirmed(&self, client: ClientId) -> Option<&C> {
        self.by_id.get(&client).filter(|record| record.confirmed).map(|record| &record.value)
    }

    /// The values of all confirmed clients.
    pub fn all_confirmed(&self) -> impl Iterator<Item = &C> {
        self.by_id.values().filter(|record| record.confirmed).map(|record| &record.value)
    }

    /// The number of records, confirmed or not.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Whether there are no records.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }
}

impl<C, R> Record<C, R> {
    /// Whether the client has sessions, as since NFSv4.1.
    fn has_sessions(&self) -> bool {
        self.confirmation.is_none()
    }

    fn next_sequence(&self) -> u32 {
        self.sequence.wrapping_add(1)
    }

    /// Whether the record belongs to the incarnation that sends the request.
    fn is(&self, request: &ExchangeId<'_>) -> bool {
        self.is_of(&request.by) && self.verifier == request.verifier
    }

    /// Whether a request comes from the principal that has introduced the client.
    fn is_of(&self, by: &Credential) -> bool {
        self.protection.is_of(&self.principal, by)
    }

    /// Whether a request may manage the client (RFC 8881 15.1, NFS4ERR_WRONG_CRED).
    fn check_manager(&self, by: &Credential) -> Result<(), Status> {
        if self.protection.admits(&self.principal, by) { Ok(()) } else { Err(Status::WrongCred) }
    }

    /// The answer to EXCHANGE_ID of a confirmed client.
    fn exchanged(&self, client: ClientId) -> Exchanged {
        let (sequence, protection) = (self.next_sequence(), self.protection);
        Exchanged { client, sequence, confirmed: true, protection }
    }
}

/// A session identifier: the client ID, and a number that no other session of this run has.
fn session_id(ClientId(client): ClientId, number: u64) -> SessionId {
    SessionId((u128::from(client) << 64 | u128::from(number)).to_be_bytes())
}

#[cfg(test)]
mod tests;
