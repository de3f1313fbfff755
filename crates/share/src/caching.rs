//! Caching grants: given with an open, taken back before an operation that goes against them.
//!
//! What a client may cache and what an operation takes from it are the rules of `file_state`; here they are
//! asked, whoever must be told is told, and who must wait waits, until the holder has answered or its time is
//! over. A grant lives as long as one of the opens that work under it: an NFSv4 delegation keeps an open of
//! its own.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use file_state::{AcknowledgeError, Break, Caching, Holder, OpenKey, Operation};
use storage::{FileId, FileKind, NodeRef};
use tokio::sync::futures::OwnedNotified;

use crate::files::Entry;
use crate::long_call::LongCall;
use crate::schedule::Work;
use crate::unwritten::Asked;
use crate::{Caller, Error, File, Open, Protocol, Result, Share};

/// A client that holds a caching grant, as the share reaches it. It is called from any thread and must not
/// wait.
pub trait GrantHolder: Send + Sync + std::fmt::Debug {
    /// The grant shrinks: the client is to be told. Where that says so, it answers with
    /// [`Share::acknowledge`].
    fn shrink(&self, told: &Break);

    /// The client did not answer in time: it has nothing left of what it had.
    fn revoked(&self, had: Caching);

    /// Whether the client has been silent for so long that what it holds, opens and locks too, is its own only as long as
    /// nobody else needs it (RFC 8881 8.4.3). Asked under a lock: it must not call back.
    fn is_late(&self) -> bool {
        false
    }

    /// Asks the client what it keeps of the file that it has written: others are to be told that. None from clients that
    /// cannot be asked, and need not be.
    fn ask(&self) -> Option<Asked> {
        None
    }

    /// Somebody needs what this client, which is late, holds: it is to lose all of it, at once.
    fn evict(&self) {}
}

/// Under which grant an open works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrantKey {
    /// One of its own (SMB oplock).
    Open,
    /// That of a lease key, with all other opens of the key.
    Lease {
        /// The client's GUID.
        client: [u8; 16],
        /// The key that the client chose.
        key: [u8; 16],
    },
    /// That of an NFSv4 delegation; the number is unique on this server.
    Delegation(u64),
}

impl GrantKey {
    pub(crate) fn holder(self, open: OpenKey) -> Holder {
        match self {
            Self::Open => Holder::Oplock(open),
            Self::Lease { client, key } => Holder::Lease { client, key },
            Self::Delegation(number) => Holder::Delegation(number),
        }
    }
}

/// What an opener wants to cache.
#[derive(Debug, Clone)]
pub struct GrantRequest {
    /// Under which grant.
    pub key: GrantKey,
    /// The most that is of use; less may be granted, and nothing.
    pub wanted: Caching,
    /// Whom to tell when it is taken back.
    pub client: Arc<dyn GrantHolder>,
}

/// What an open was granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Granted {
    /// What may be cached under the grant.
    pub state: Caching,
    /// Some of it is being taken back: the client has been told and has not answered yet.
    pub breaking: bool,
    /// This open has added to it.
    pub grown: bool,
}

/// Whether an operation was carried out.
#[derive(Debug)]
#[must_use = "an operation that must wait has not been carried out"]
pub enum Admission<T> {
    /// It was.
    Done(T),
    /// A client has yet to give back what it caches: wait, look the object up again, and try again.
    Wait(Answering),
}

/// Resolves when a client has answered, or its time is over. Dropping it changes nothing.
#[derive(Debug)]
pub struct Answering {
    freed: Pin<Box<OwnedNotified>>,
    deadline: Instant,
}

impl Answering {
    pub(crate) fn new(freed: OwnedNotified, deadline: Instant) -> Self {
        Self { freed: Box::pin(freed), deadline }
    }

    /// Waits.
    pub async fn over(self) {
        let _ = tokio::time::timeout_at(self.deadline.into(), self.freed).await;
    }
}

/// Those under whose grants a file is open, whether they were given anything or not. Which opens these are, the file's state
/// knows.
#[derive(Debug, Default)]
pub(crate) struct Held {
    clients: HashMap<Holder, Arc<dyn GrantHolder>>,
    /// Until when those must have answered that are told to give something up.
    deadlines: Vec<(Holder, Instant)>,
}

impl Held {
    fn len(&self) -> usize {
        self.clients.len()
    }

    fn client(&self, holder: Holder) -> Option<Arc<dyn GrantHolder>> {
        self.clients.get(&holder).cloned()
    }

    /// It must have answered by then.
    fn expect(&mut self, holder: Holder, deadline: Instant) {
        self.answered(holder);
        self.deadlines.push((holder, deadline));
    }

    /// Nothing is expected of it any more.
    fn answered(&mut self, holder: Holder) {
        self.deadlines.retain(|(other, _)| *other != holder);
    }

    /// Takes out those whose time is over.
    fn overdue(&mut self, now: Instant) -> Vec<Holder> {
        let over = self.deadlines.extract_if(.., |(_, deadline)| *deadline <= now);
        over.map(|(holder, _)| holder).collect()
    }

    /// It is one no more; whether it was.
    fn end(&mut self, holder: Holder) -> bool {
        self.answered(holder);
        self.clients.remove(&holder).is_some()
    }
}

/// Whom to tell, once no lock is held any more, and whether to wait.
#[derive(Debug, Default)]
#[must_use = "clients must be told"]
pub(crate) struct Taken {
    notices: Vec<(Arc<dyn GrantHolder>, Notice)>,
    wait: Option<Answering>,
}

#[derive(Debug)]
enum Notice {
    Shrinks(Break),
    Evicted,
    Revoked(Caching),
}

/// What became of the grants of a share.
#[derive(Debug, Default)]
pub struct GrantCounts {
    /// Grants given, or enlarged.
    pub granted: AtomicU64,
    /// Clients told that a grant shrinks.
    pub broken: AtomicU64,
    /// Grants revoked since the client did not answer in time.
    pub revoked: AtomicU64,
    /// Grants on directories at present: without any, nobody looks for them.
    pub(crate) on_directories: AtomicUsize,
    /// A client was granted that keeps written data and is asked for it ([`GrantHolder::ask`]): before, nobody looks for one.
    pub(crate) writers_are_asked: AtomicBool,
}

impl Taken {
    pub(crate) fn must_wait(&self) -> bool {
        self.wait.is_some()
    }

    /// Tells these clients too, without waiting for them.
    pub(crate) fn tell_only(&mut self, more: Self) {
        self.notices.extend(more.notices);
    }

    /// Tells these clients too, and waits for any of them.
    pub(crate) fn and(mut self, more: Self) -> Self {
        self.notices.extend(more.notices);
        self.wait = self.wait.or(more.wait);
        self
    }
}

impl Entry {
    /// Takes from the grants of others what the operation goes against. `own` is the grant that whoever does
    /// it works under.
    pub(crate) fn take_back(
        &mut self,
        own: Option<Holder>,
        operation: Operation,
        timeout: Duration,
    ) -> Taken {
        let mut taken = Taken::default();
        if !self.state.has_grants() {
            return taken;
        }
        let now = Instant::now();
        self.expire(now, &mut taken);
        let breaks = self.state.breaks(own, operation);
        for told in breaks.tell {
            self.tell(told, now + timeout, &mut taken);
        }
        if breaks.wait {
            let deadline = self.held.deadlines.iter().map(|(_, deadline)| *deadline).min();
            taken.wait = Some(self.answering(deadline.unwrap_or(now)));
        }
        taken
    }

    /// Resolves when something of this file is given back, at the latest at `deadline`.
    fn answering(&self, deadline: Instant) -> Answering {
        Answering::new(Arc::clone(&self.freed).notified_owned(), deadline)
    }

    /// Somebody is refused because of what a holder of this file has: if that client is late, it loses what it has, and who
    /// is refused tries again.
    pub(crate) fn evict_late(&self, in_the_way: Holder, timeout: Duration) -> Taken {
        let mut taken = Taken::default();
        if let Some(client) = self.held.client(in_the_way).filter(|client| client.is_late()) {
            taken.notices.push((client, Notice::Evicted));
            taken.wait = Some(self.answering(Instant::now() + timeout));
        }
        taken
    }

    fn tell(&mut self, told: Break, deadline: Instant, taken: &mut Taken) {
        let Some(client) = self.held.client(told.holder) else { return };
        if told.ack_required {
            self.held.expect(told.holder, deadline);
        }
        taken.notices.push((client, Notice::Shrinks(told)));
    }

    /// Revokes the grants of those who have not answered in time.
    fn expire(&mut self, now: Instant, taken: &mut Taken) {
        for holder in self.held.overdue(now) {
            let had = self.state.revoke(holder);
            taken.notices.extend(self.held.client(holder).map(|client| (client, Notice::Revoked(had))));
        }
        if !taken.notices.is_empty() {
            self.freed.notify_waiters();
        }
    }

    /// Lets an open work under a grant, and grants it what there is room for.
    fn grant(&mut self, open: OpenKey, request: &GrantRequest) -> Granted {
        let holder = request.key.holder(open);
        self.held.clients.entry(holder).or_insert_with(|| Arc::clone(&request.client));
        self.state.work_under(open, holder);
        let before = self.state.granted(holder);
        let state = self.state.grant(holder, request.wanted);
        let breaking = self.state.breaking_to(holder).is_some();
        Granted { state, breaking, grown: state != before }
    }

    /// The client that keeps written data of this file and can be asked, unless it is the one that asks.
    pub(crate) fn writer(&self, own: Option<Holder>) -> Option<Arc<dyn GrantHolder>> {
        let is_writer =
            |(holder, caching): &(Holder, Caching)| Some(*holder) != own && caching.contains(Caching::WRITE);
        let (holder, _) = self.state.grants().find(is_writer)?;
        self.held.client(holder).filter(|_| matches!(holder, Holder::Delegation(_)))
    }

    /// Grants what a holder had before the server was started, as far as there is room for it.
    pub(crate) fn grant_again(&mut self, holder: Holder, wanted: Caching) {
        if self.held.clients.contains_key(&holder) {
            self.state.grant(holder, wanted);
        }
    }

    /// An open that worked under this grant is closed: a grant ends with its last open.
    pub(crate) fn end_grant(&mut self, holder: Holder) {
        if !self.state.has_opens_under(holder) && self.held.end(holder) {
            self.state.revoke(holder);
        }
    }
}

impl Share {
    /// Tells whoever must be told. What the caller has to wait for, if anything.
    pub(crate) fn deliver(&self, taken: Taken) -> Option<Answering> {
        for (client, notice) in taken.notices {
            match notice {
                Notice::Shrinks(told) => {
                    self.grants.broken.fetch_add(1, Ordering::Relaxed);
                    client.shrink(&told);
                }
                Notice::Evicted => client.evict(),
                Notice::Revoked(had) => {
                    self.grants.revoked.fetch_add(1, Ordering::Relaxed);
                    tracing::warn!(share = self.name(), ?client, "revoked {had:?}: no answer in time");
                    client.revoked(had);
                }
            }
        }
        taken.wait
    }

    /// Takes back what an operation on a file goes against; what it has to wait for, if anything.
    pub(crate) fn take_back(
        &self,
        id: FileId,
        own: Option<Holder>,
        operation: Operation,
    ) -> Option<Answering> {
        let timeout = self.settings.break_timeout;
        let taken = self.files.with(id, |entry| entry.take_back(own, operation, timeout))?;
        self.deliver(taken)
    }

    /// Asks whether an operation may go on, until it need not wait for anybody.
    ///
    /// # Errors
    /// Those of `ask`; [`Error::Delayed`] when it takes longer than a caller of this protocol waits.
    pub(crate) async fn settled<T>(
        &self,
        protocol: Protocol,
        mut ask: impl FnMut() -> Result<(T, Option<Answering>)>,
    ) -> Result<T> {
        let mut patience = None;
        loop {
            let (answer, answering) = ask()?;
            let Some(answering) = answering else { return Ok(answer) };
            self.bear(protocol, &mut patience, answering).await?;
        }
    }

    /// Runs `call` ([`Share::run`]) until it need not wait for anybody.
    ///
    /// # Errors
    /// Those of `call`; [`Error::Delayed`] when it takes longer than a caller of this protocol waits.
    pub(crate) async fn run_settled<T: Send + 'static>(
        self: &Arc<Self>,
        protocol: Protocol,
        work: Work,
        call: impl Fn(&Arc<Self>) -> Result<Admission<T>> + Send + Sync + 'static,
    ) -> Result<T> {
        let call: LongCall<Admission<T>> = Arc::new(call);
        let mut patience = None;
        loop {
            match self.run_long(work, &call).await? {
                Admission::Done(done) => return Ok(done),
                Admission::Wait(answering) => self.bear(protocol, &mut patience, answering).await?,
            }
        }
    }

    /// Waits, unless a caller of this protocol has waited long enough; `patience` is until when it does.
    pub(crate) async fn bear(
        &self,
        protocol: Protocol,
        patience: &mut Option<Instant>,
        answering: Answering,
    ) -> Result<()> {
        match protocol {
            // As long as the holder may take.
            Protocol::Smb => answering.over().await,
            Protocol::Nfs3 | Protocol::Nfs4 => {
                let end = *patience.get_or_insert_with(|| Instant::now() + self.settings.nfs_patience);
                let waited = tokio::time::timeout_at(end.into(), answering.over()).await;
                waited.map_err(|_| Error::Delayed)?;
            }
        }
        Ok(())
    }

    /// Grants a new open what it asks for and there is room for.
    pub(crate) fn grant(
        &self,
        entry: &mut Entry,
        node: &NodeRef,
        open: OpenKey,
        request: &GrantRequest,
    ) -> Granted {
        let before = entry.held.len();
        let granted = entry.grant(open, request);
        if node.kind() == FileKind::Directory {
            self.grants.on_directories.fetch_add(entry.held.len() - before, Ordering::Relaxed);
        }
        if matches!(request.key, GrantKey::Delegation(_)) && granted.state.contains(Caching::WRITE) {
            self.grants.writers_are_asked.store(true, Ordering::Release);
        }
        if granted.grown {
            self.grants.granted.fetch_add(1, Ordering::Release);
        }
        granted
    }

    /// An open that worked under this grant is closed.
    pub(crate) fn end_grant(&self, entry: &mut Entry, holder: Holder) {
        let before = entry.held.len();
        entry.end_grant(holder);
        if entry.node.kind() == FileKind::Directory {
            self.grants.on_directories.fetch_sub(before - entry.held.len(), Ordering::Relaxed);
        }
    }

    /// How many grants were given so far: for [`Share::written_since`].
    pub(crate) fn grants_given(&self) -> u64 {
        self.grants.granted.load(Ordering::Acquire)
    }

    /// Data was changed. A grant that was given after the change was checked may stand for what was there before: it is
    /// taken back now. `given` is [`Share::grants_given`] from before the check.
    pub(crate) fn written_since(&self, given: u64, file: &File) {
        if self.grants_given() != given {
            // There is nothing to wait for: who holds it has not been told yet that it may rely on it.
            self.take_back(file.node().id(), file.holder(), Operation::Write);
        }
    }

    /// What the grant that an open works under allows at present; while some of it is being taken back, what
    /// the client may still be caching.
    #[must_use]
    pub fn granted(&self, open: &Open) -> Granted {
        let look = |entry: &mut Entry| Granted {
            state: entry.state.granted(open.holder()),
            breaking: entry.state.breaking_to(open.holder()).is_some(),
            grown: false,
        };
        self.files.with(open.node().id(), look).unwrap_or_default()
    }

    /// The holder of a grant on a file has given up what it was told to, and keeps `keeps`. It may be told of
    /// a further break before this returns.
    ///
    /// # Errors
    /// [`AcknowledgeError`]: nothing was changed.
    pub fn acknowledge(
        &self,
        id: FileId,
        holder: Holder,
        keeps: Caching,
    ) -> std::result::Result<(), AcknowledgeError> {
        let timeout = self.settings.break_timeout;
        let answer = self.files.with(id, |entry| {
            let mut taken = Taken::default();
            let now = Instant::now();
            entry.expire(now, &mut taken);
            let outcome = entry.state.acknowledge(holder, keeps);
            if let Ok(next) = outcome {
                entry.held.answered(holder);
                next.into_iter().for_each(|told| entry.tell(told, now + timeout, &mut taken));
                entry.freed.notify_waiters();
            }
            (outcome.map(|_| ()), taken)
        });
        let (outcome, taken) = answer.ok_or(AcknowledgeError::NotBreaking)?;
        self.deliver(taken);
        outcome
    }

    /// The holder of a grant on a file has nothing left of it: it gave all back, or cannot be reached.
    pub fn give_up(&self, id: FileId, holder: Holder) {
        self.files.with(id, |entry| {
            entry.state.revoke(holder);
            entry.held.answered(holder);
            entry.freed.notify_waiters();
        });
    }

    /// What became of its caching grants.
    #[must_use]
    pub fn grant_counts(&self) -> &GrantCounts {
        &self.grants
    }

    /// The entries of a directory have changed, or what a listing tells of them: those who cache a listing are
    /// told, except who has made the change under their own grant. Nobody waits for them.
    pub(crate) fn entries_changed(&self, dir: FileId, by: Option<Holder>) {
        if self.caches_listings() {
            self.take_back(dir, by, Operation::ChangeEntries);
        }
    }

    /// Whether anybody may be caching a listing.
    pub(crate) fn caches_listings(&self) -> bool {
        self.grants.on_directories.load(Ordering::Relaxed) > 0
    }
}

impl Caller {
    /// The same caller, whose client caches under this grant wherever it does: what the caller does without an open does
    /// not break it (RFC 8881 8.2.5: the server "SHOULD note the presence of a delegation even when a special stateid is
    /// sent").
    #[must_use]
    pub fn of_client(&self, client: Holder) -> Self {
        Self { client: Some(client), ..self.clone() }
    }

    /// The same caller, working under this grant on a directory: changes to its entries do not break it.
    #[must_use]
    pub fn under(&self, directory: Option<Holder>) -> Self {
        Self { directory, ..self.clone() }
    }
}
