//! Caching grants: given with an open, and broken before a conflicting operation.
//!
//! The rules on what a client may cache, and what an operation takes from it, are in `file_state`. This module applies them:
//! it tells the holders, and makes operations wait until a holder has answered or its time is over. A grant lives as long as
//! one of the opens that work under it. A grant that should outlive the opens of its client keeps an open of its own.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use file_state::{AcknowledgeError, Break, Caching, Holder, OpenKey, Operation, SmallMap};
use planted::Fault;
use storage::{Attributes, FileKind, NodeRef, ObjectId};
use tokio::sync::futures::OwnedNotified;

use super::Agreement;
use super::file::File;
use super::files::OpenFile;
use super::open::Open;
use crate::operation::Patience;
use crate::{Call, Caller, Error, Result};

/// What a client that writes to a file holds of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unwritten {
    /// The file's size in bytes, as the client has it.
    pub size: u64,
    /// Whether the client holds data that it has not written to the server.
    pub is_modified: bool,
}

/// A client's answer on what it holds; None if the client does not say.
pub type Asked = Pin<Box<dyn Future<Output = Option<Unwritten>> + Send>>;

/// A client that holds a caching grant, as the share reaches it. Methods are called from any thread and must not wait.
pub trait GrantHolder: Send + Sync + std::fmt::Debug {
    /// Tells the client that the grant shrinks. If `told` says so, the client answers with [`Share::acknowledge`](crate::Share::acknowledge).
    fn shrink(&self, told: &Break);

    /// The client did not answer in time: its whole grant is revoked.
    fn revoked(&self, had: Caching);

    /// Whether the client has been silent for so long that it keeps what it holds, opens and locks too, only until another
    /// client needs it. Called under a lock: the method must not call the share.
    fn is_late(&self) -> bool {
        false
    }

    /// Asks the client what it has written to the file and not sent yet, so that others can be told. None for clients that
    /// cannot be asked, and need not be.
    fn ask(&self) -> Option<Asked> {
        None
    }

    /// Another client needs what this late client holds: the client loses all of it at once.
    fn evict(&self) {}
}

/// The grant that an open works under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrantKey {
    /// A grant of its own, which ends with the open.
    Open,
    /// The grant of a key that the client chose, shared with all other opens of the key.
    Lease {
        /// The identifier that the client chose for itself.
        client: [u8; 16],
        /// The key that the client chose.
        key: [u8; 16],
    },
    /// A grant that belongs to the client, not to one of its opens; the number is unique on this server.
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
    /// The key of the grant.
    pub key: GrantKey,
    /// The most that is of use. Less may be granted, or nothing.
    pub wanted: Caching,
    /// Whom to tell when the grant is broken.
    pub client: Arc<dyn GrantHolder>,
}

/// What an open was granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Granted {
    /// What may be cached under the grant.
    pub state: Caching,
    /// Part of the grant is being broken: the client has been told and has not answered yet.
    pub breaking: bool,
    /// This open has enlarged the grant.
    pub grown: bool,
}

/// Whether an operation was carried out.
#[derive(Debug)]
#[must_use = "an operation that must wait has not been carried out"]
pub enum Admission<T> {
    /// It was.
    Done(T),
    /// A client has yet to give up what it caches: wait, look the object up again, and try again.
    Wait(Answering),
}

/// Resolves when a client has answered, or its time is over. Dropping it changes nothing.
#[derive(Debug)]
pub struct Answering {
    freed: Pin<Box<OwnedNotified>>,
    deadline: Instant,
}

impl Answering {
    pub(super) fn new(freed: OwnedNotified, deadline: Instant) -> Self {
        Self { freed: Box::pin(freed), deadline }
    }

    /// Waits.
    pub async fn over(self) {
        let _ = tokio::time::timeout_at(self.deadline.into(), self.freed).await;
    }
}

/// The keys under which a file is open, whether or not anything was granted. The file's state knows which opens these are.
#[derive(Debug, Default)]
pub(super) struct Held {
    clients: SmallMap<Holder, Arc<dyn GrantHolder>>,
    /// The deadlines of the holders that were told to give something up.
    deadlines: Vec<(Holder, Instant)>,
}

impl Held {
    fn len(&self) -> usize {
        self.clients.len()
    }

    fn client(&self, holder: Holder) -> Option<Arc<dyn GrantHolder>> {
        self.clients.get(&holder).cloned()
    }

    /// Expects an answer of the holder by the deadline.
    fn expect(&mut self, holder: Holder, deadline: Instant) {
        self.answered(holder);
        self.deadlines.push((holder, deadline));
    }

    /// Expects no further answer of the holder.
    fn answered(&mut self, holder: Holder) {
        self.deadlines.retain(|(other, _)| *other != holder);
    }

    /// Removes and returns the holders whose time is over.
    fn overdue(&mut self, now: Instant) -> Vec<Holder> {
        let over = self.deadlines.extract_if(.., |(_, deadline)| *deadline <= now);
        over.map(|(holder, _)| holder).collect()
    }

    /// Removes a holder. Returns whether it was one.
    fn end(&mut self, holder: Holder) -> bool {
        self.answered(holder);
        self.clients.remove(&holder).is_some()
    }
}

/// Whom to tell, once no lock is held, and whether to wait.
#[derive(Debug, Default)]
#[must_use = "clients must be told"]
pub(super) struct Taken {
    notices: Vec<(Arc<dyn GrantHolder>, Notice)>,
    wait: Option<Answering>,
}

#[derive(Debug)]
enum Notice {
    Shrinks(Break),
    Evicted,
    Revoked(Caching),
}

/// Counts of the grants of a share.
#[derive(Debug, Default)]
pub struct GrantCounts {
    /// Grants given, or enlarged.
    pub granted: AtomicU64,
    /// Clients told that a grant shrinks.
    pub broken: AtomicU64,
    /// Grants revoked because the client did not answer in time.
    pub revoked: AtomicU64,
    /// Grants on directories at present. While there are none, nothing searches for them.
    on_directories: AtomicUsize,
    /// Whether a grant was ever given to a client that can be asked for unwritten data ([`GrantHolder::ask`]). Before that,
    /// nothing searches for one.
    writers_are_asked: AtomicBool,
}

impl Taken {
    pub(super) fn must_wait(&self) -> bool {
        self.wait.is_some()
    }

    /// Adds clients to tell, without waiting for them.
    pub(super) fn tell_only(&mut self, more: Self) {
        self.notices.extend(more.notices);
    }

    /// Adds clients to tell, and waits for them too.
    pub(super) fn and(mut self, more: Self) -> Self {
        self.notices.extend(more.notices);
        self.wait = self.wait.or(more.wait);
        self
    }
}

impl OpenFile {
    /// Takes from the grants of others what conflicts with the operation. `own` is the grant that the caller works under.
    pub(super) fn take_back(
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

    /// Resolves when a grant on this file is answered or ends, at the latest at `deadline`.
    fn answering(&self, deadline: Instant) -> Answering {
        Answering::new(Arc::clone(&self.freed).notified_owned(), deadline)
    }

    /// A holder of this file is the reason for a refusal: if that client is late, it loses what it holds, and the refused
    /// caller tries again.
    pub(super) fn evict_late(&self, in_the_way: Holder, timeout: Duration) -> Taken {
        let mut taken = Taken::default();
        if let Some(client) = self.held.client(in_the_way).filter(|client| client.is_late()) {
            taken.notices.push((client, Notice::Evicted));
            taken.wait = Some(self.answering(Instant::now() + timeout));
        }
        taken
    }

    fn tell(&mut self, told: Break, deadline: Instant, taken: &mut Taken) {
        if planted::strikes(Fault::BreakNotSent) {
            return;
        }
        let Some(client) = self.held.client(told.holder) else { return };
        if told.ack_required {
            self.held.expect(told.holder, deadline);
        }
        taken.notices.push((client, Notice::Shrinks(told)));
    }

    /// Revokes the grants of holders that have not answered in time.
    fn expire(&mut self, now: Instant, taken: &mut Taken) {
        for holder in self.held.overdue(now) {
            let had = self.state.revoke(holder);
            taken.notices.extend(self.held.client(holder).map(|client| (client, Notice::Revoked(had))));
        }
        if !taken.notices.is_empty() {
            self.freed.notify_waiters();
        }
    }

    /// Lets an open work under a grant, and grants it what the other opens allow.
    fn grant(&mut self, open: OpenKey, request: &GrantRequest, wanted: Caching) -> Granted {
        let holder = request.key.holder(open);
        if self.held.clients.get(&holder).is_none() {
            self.held.clients.insert(holder, Arc::clone(&request.client));
        }
        self.state.work_under(open, holder);
        let before = self.state.granted(holder);
        let state = self.state.grant(holder, wanted);
        let breaking = self.state.breaking_to(holder).is_some();
        Granted { state, breaking, grown: state != before }
    }

    /// The client that holds unwritten data of this file and can be asked, unless it is the caller itself.
    pub(super) fn writer(&self, own: Option<Holder>) -> Option<Arc<dyn GrantHolder>> {
        let is_writer =
            |(holder, caching): &(Holder, Caching)| Some(*holder) != own && caching.contains(Caching::WRITE);
        let (holder, _) = self.state.grants().find(is_writer)?;
        self.held.client(holder).filter(|_| matches!(holder, Holder::Delegation(_)))
    }

    /// Grants again what a holder had before the server was started, as far as the other opens allow.
    pub(super) fn grant_again(&mut self, holder: Holder, wanted: Caching) {
        if self.held.client(holder).is_some() {
            self.state.grant(holder, wanted);
        }
    }

    /// Follows the close of an open that worked under this grant: a grant ends with its last open.
    pub(super) fn end_grant(&mut self, holder: Holder) {
        if !self.state.has_opens_under(holder) && self.held.end(holder) {
            self.state.revoke(holder);
        }
    }
}

impl Agreement {
    /// Tells the holders. Returns what the caller has to wait for, if anything.
    pub(super) fn deliver(&self, taken: Taken) -> Option<Answering> {
        for (client, notice) in taken.notices {
            match notice {
                Notice::Shrinks(told) => {
                    self.grants.broken.fetch_add(1, Ordering::Relaxed);
                    client.shrink(&told);
                }
                Notice::Evicted => client.evict(),
                Notice::Revoked(had) => {
                    self.grants.revoked.fetch_add(1, Ordering::Relaxed);
                    tracing::warn!(share = self.name, ?client, "revoked {had:?}: no answer in time");
                    client.revoked(had);
                }
            }
        }
        taken.wait
    }

    /// Breaks the grants that conflict with an operation on a file. Returns what to wait for, if anything.
    pub(crate) fn take_back(
        &self,
        id: ObjectId,
        own: Option<Holder>,
        operation: Operation,
    ) -> Option<Answering> {
        let timeout = self.break_timeout;
        let taken = self.files.with(id, |entry| entry.take_back(own, operation, timeout))?;
        self.deliver(taken)
    }

    /// Calls `ask` until the operation need not wait for any client.
    ///
    /// # Errors
    /// Those of `ask`; [`Error::Delayed`] when it takes longer than the call's front waits.
    pub(crate) async fn settled<T>(
        &self,
        call: &Call,
        mut ask: impl FnMut() -> Result<(T, Option<Answering>)>,
    ) -> Result<T> {
        let mut patience = None;
        loop {
            let (answer, answering) = ask()?;
            let Some(answering) = answering else { return Ok(answer) };
            self.bear(call, &mut patience, answering).await?;
        }
    }

    /// Waits, unless the call has waited long enough for its front; `patience` is the end of that time.
    pub(crate) async fn bear(
        &self,
        call: &Call,
        patience: &mut Option<Instant>,
        answering: Answering,
    ) -> Result<()> {
        match call.patience() {
            Patience::AsLongAsHolders => answering.over().await,
            Patience::UntilRetry => {
                let end = *patience.get_or_insert_with(|| Instant::now() + self.retry_after);
                let waited = tokio::time::timeout_at(end.into(), answering.over()).await;
                waited.map_err(|_| Error::Delayed)?;
            }
        }
        Ok(())
    }

    /// Grants a new open what it asks for, as far as the other opens allow.
    pub(super) fn grant(
        &self,
        entry: &mut OpenFile,
        node: &NodeRef,
        open: OpenKey,
        request: &GrantRequest,
    ) -> Granted {
        let before = entry.held.len();
        let wanted = if self.caching { request.wanted } else { Caching::empty() };
        let granted = entry.grant(open, request, wanted);
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

    /// Follows the close of an open that worked under this grant.
    pub(super) fn end_grant(&self, entry: &mut OpenFile, holder: Holder) {
        let before = entry.held.len();
        entry.end_grant(holder);
        if entry.node.kind() == FileKind::Directory {
            self.grants.on_directories.fetch_sub(before - entry.held.len(), Ordering::Relaxed);
        }
    }

    /// How many grants have been given so far: for [`Agreement::written_since`].
    pub(crate) fn grants_given(&self) -> u64 {
        self.grants.granted.load(Ordering::Acquire)
    }

    /// Follows a change of data. A grant given after the check may cover the data from before the change, so it is broken
    /// now. `given` is [`Agreement::grants_given`] from before the check.
    pub(crate) fn written_since(&self, given: u64, file: &File) {
        if self.grants_given() != given {
            // There is nothing to wait for: the holder has not been told yet that it may rely on the grant.
            self.take_back(file.node().id(), file.holder(), Operation::Write);
        }
    }

    /// What the grant of an open allows at present. While part of it is being broken: what the client may still be caching.
    pub(crate) fn granted(&self, open: &Open) -> Granted {
        let look = |entry: &mut OpenFile| Granted {
            state: entry.state.granted(open.holder()),
            breaking: entry.state.breaking_to(open.holder()).is_some(),
            grown: false,
        };
        self.files.with(open.node().id(), look).unwrap_or_default()
    }

    /// The holder of a grant on a file has given up what it was told to, and keeps `keeps`. It may be told of a further
    /// break before this returns.
    ///
    /// # Errors
    /// [`AcknowledgeError`]: nothing was changed.
    pub(crate) fn acknowledge(
        &self,
        id: ObjectId,
        holder: Holder,
        keeps: Caching,
    ) -> std::result::Result<(), AcknowledgeError> {
        let timeout = self.break_timeout;
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

    /// Ends a grant on a file: the holder has returned all of it, or cannot be reached.
    pub(crate) fn give_up(&self, id: ObjectId, holder: Holder) {
        self.files.with(id, |entry| {
            entry.state.revoke(holder);
            entry.held.answered(holder);
            entry.freed.notify_waiters();
        });
    }

    /// Counts of the caching grants.
    pub(crate) fn grant_counts(&self) -> &GrantCounts {
        &self.grants
    }

    /// Whether another client may hold changes of any file that the store does not have.
    pub(crate) fn has_writers(&self) -> bool {
        self.grants.writers_are_asked.load(Ordering::Acquire)
    }

    /// Whether another client may hold changes of the object with these attributes that the store does not have.
    pub(crate) fn asks_writers(&self, attributes: &Attributes) -> bool {
        attributes.kind == FileKind::Regular && self.has_writers()
    }

    /// The client that holds unwritten data of an object and can be asked, unless it is the caller itself.
    pub(crate) fn writer(&self, id: ObjectId, own: Option<Holder>) -> Option<Arc<dyn GrantHolder>> {
        self.files.with(id, |entry| entry.writer(own)).flatten()
    }

    /// How long a client may take to say what it holds, before the caller is told to retry.
    pub(crate) fn retry_after(&self) -> Duration {
        self.retry_after
    }

    /// The entries of a directory, or what a listing shows of them, have changed. Holders of cached listings are told,
    /// except the grant that the change was made under. Nothing waits for them.
    pub(crate) fn entries_changed(&self, dir: ObjectId, by: Option<Holder>) {
        if self.caches_listings() {
            self.take_back(dir, by, Operation::ChangeEntries);
        }
    }

    /// Whether any client may be caching a listing.
    pub(crate) fn caches_listings(&self) -> bool {
        self.grants.on_directories.load(Ordering::Relaxed) > 0
    }
}

impl Caller {
    /// The same caller, whose client caches under this grant wherever it does. Operations of the caller without an open do
    /// not break that grant.
    #[must_use]
    pub fn of_client(&self, client: Holder) -> Self {
        Self { client: Some(client), ..self.clone() }
    }
}
