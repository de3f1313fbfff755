//! Open: a file or pipe that a client has open. [MS-SMB2] 3.3.1.10.

use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use share::{Caching, Call, Holder, Share};
use smb_proto::channel_sequence::{ChannelSequence, Late};
use smb_wire::create::CreateOptions;
use smb_wire::{AccessMask, FileId, FileTime};

use crate::name::Pattern;
use crate::pipe::Pipe;
use crate::signal::Signal;
use crate::state::durable::Durable;
use crate::state::lease::LeaseHold;
use crate::state::oplock::Oplock;
use crate::state::session::Session;
use crate::status::Failure;
use crate::tree::Tree;

/// The object that is open.
#[derive(Debug)]
pub(crate) enum OpenTarget {
    /// A file or directory of a share.
    File(Arc<share::Open>),
    /// A file or directory of a view of the share at a snapshot.
    OfSnapshot(Arc<Share>, Arc<share::Open>),
    /// A named pipe of IPC$.
    Pipe(Mutex<Pipe>),
    /// The file that stands for the quotas of a share; guards where a list of them goes on.
    Quotas(Mutex<QuotaCursor>),
}

/// Where a list of quotas goes on that one open is told in parts (Open.CurrentQuotaIndex).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct QuotaCursor {
    /// The last user who was told; None: nobody yet.
    pub(crate) last: Option<u32>,
}

/// The caching grant under which an open works.
#[derive(Debug)]
pub(crate) enum Grant {
    /// The open's own oplock, which may be none.
    Oplock(Arc<Oplock>),
    /// The grant of a lease key, shared with the other opens of the key.
    Lease(LeaseHold),
}

/// An open in its session's table.
#[derive(Debug)]
pub(crate) struct Open {
    /// Open.FileId, Open.DurableFileId
    pub(crate) id: FileId,
    /// Open.TreeConnect
    pub(crate) tree: Arc<Tree>,
    /// Open.LocalOpen, as the CREATE made it.
    target: OpenTarget,
    /// Open.LocalOpen after the client has turned the new object into a symbolic link.
    link: OnceLock<Arc<share::Open>>,
    /// Open.GrantedAccess
    pub(crate) granted_access: AccessMask,
    /// The path from the share's directory as the client named it, with backslashes.
    pub(crate) path: String,
    /// Open.CreateOptions
    pub(crate) create_options: CreateOptions,
    /// Whether the object is a directory.
    pub(crate) is_directory: bool,
    /// The state that changes while the object is open. The lock is not held across an await.
    pub(crate) state: Mutex<OpenState>,
    /// Open.ChannelSequence and the requests under way. Requests that are counted may keep it beyond the session.
    sequence: Arc<Mutex<ChannelSequence>>,
    /// Open.OplockLevel, Open.Lease; None for pipes, and after the open is closed.
    pub(crate) grant: Mutex<Option<Grant>>,
    /// How many replies have told the client, or are about to tell it, that the open exists. Changed under the lock of
    /// `grant`.
    answers: AtomicU64,
    /// Where QUERY_DIRECTORY continues. Requests wait for each other here, in order.
    pub(crate) enumeration: tokio::sync::Mutex<Option<Enumeration>>,
    /// The state that the open keeps when its session ends; only for opens that are visible to other sessions.
    pub(crate) durable: OnceLock<Arc<Durable>>,
    /// Set when the open is closed or its session ends: wakes requests that wait for it (CHANGE_NOTIFY, LOCK).
    pub(crate) closed: Signal,
}

/// A request under way, counted by its open until this is dropped.
#[derive(Debug)]
pub(crate) struct Outstanding {
    counted: Arc<Mutex<ChannelSequence>>,
    sequence: u16,
}

impl Drop for Outstanding {
    fn drop(&mut self) {
        self.counted.lock().answer(self.sequence);
    }
}

/// An open that a request uses. The request counts as under way until this is dropped.
#[derive(Debug)]
pub(crate) struct InUse {
    open: Arc<Open>,
    _outstanding: Option<Outstanding>,
}

impl InUse {
    /// An open for a request. `outstanding` counts the request, if it is counted.
    pub(crate) fn new(open: Arc<Open>, outstanding: Option<Outstanding>) -> Self {
        Self { open, _outstanding: outstanding }
    }
}

impl Deref for InUse {
    type Target = Arc<Open>;

    fn deref(&self) -> &Arc<Open> {
        &self.open
    }
}

/// The state that changes while a file is open; guarded by [`Open::state`].
#[derive(Debug, Default, Clone)]
pub(crate) struct OpenState {
    /// The changes for CHANGE_NOTIFY, collected from the first request on.
    pub(crate) watch: Option<Arc<DirectoryWatch>>,
    /// FilePositionInformation
    pub(crate) position: u64,
    /// FileModeInformation, where SET_INFO has changed it.
    pub(crate) mode: Option<u32>,
    /// Times that operations on this open no longer change.
    pub(crate) frozen: FrozenTimes,
    /// Open.LockSequenceArray: the last sequence number of each bucket.
    pub(crate) lock_sequence: Vec<Option<u8>>,
    /// Whether the CREATE has made the object, which may still become a symbolic link.
    pub(crate) is_new: bool,
}

impl OpenState {
    /// Whether the object may still become a symbolic link. After that it may not.
    pub(crate) fn take_new(&mut self) -> bool {
        std::mem::take(&mut self.is_new)
    }
}

/// An enumeration of a directory.
#[derive(Debug)]
pub(crate) struct Enumeration {
    /// Open.EnumerationSearchPattern
    pub(crate) pattern: Pattern,
    /// Open.EnumerationLocation
    pub(crate) at: Location,
}

/// Where an enumeration continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Location {
    /// At the beginning, with `.`.
    Start,
    /// With `..`.
    Parent,
    /// After this entry of the share's listing; 0: with the first entry.
    Behind(u64),
    /// At the end.
    End,
}

/// The watch of a client on an open directory.
#[derive(Debug)]
pub(crate) struct DirectoryWatch {
    /// Collects the changes.
    pub(crate) changes: share::Watch,
    /// Requests wait here for earlier ones, in order.
    pub(crate) turn: tokio::sync::Semaphore,
    /// The most bytes of a reply: the buffer size of the first request.
    pub(crate) answer_bytes_max: u32,
}

/// Times that SET_INFO has frozen on an open ([MS-FSCC] 2.4.7: -1), with the values to keep.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct FrozenTimes {
    /// LastAccessTime
    pub(crate) access: Option<FileTime>,
    /// LastWriteTime
    pub(crate) write: Option<FileTime>,
    /// ChangeTime
    pub(crate) change: Option<FileTime>,
}

impl Open {
    /// An open that has just been made.
    pub(crate) fn new(
        id: FileId,
        tree: Arc<Tree>,
        target: OpenTarget,
        granted_access: AccessMask,
        path: String,
        create_options: CreateOptions,
        is_directory: bool,
    ) -> Arc<Self> {
        Arc::new(Self {
            id,
            tree,
            target,
            link: OnceLock::new(),
            granted_access,
            path,
            create_options,
            is_directory,
            state: Mutex::default(),
            sequence: Arc::default(),
            grant: Mutex::default(),
            answers: AtomicU64::new(0),
            enumeration: tokio::sync::Mutex::default(),
            durable: OnceLock::new(),
            closed: Signal::default(),
        })
    }

    /// The same open for another session and its tree connect, after it had no session. `id` has the same persistent
    /// half and a new volatile half.
    pub(crate) fn resume(before: &Self, id: FileId, tree: Arc<Tree>) -> Result<Arc<Self>, Failure> {
        Ok(Arc::new(Self {
            id,
            tree,
            target: OpenTarget::File(Arc::clone(before.file()?)),
            link: OnceLock::new(),
            granted_access: before.granted_access,
            path: before.path.clone(),
            create_options: before.create_options,
            is_directory: before.is_directory,
            state: Mutex::new(before.state.lock().clone()),
            sequence: Arc::clone(&before.sequence),
            grant: Mutex::default(),
            answers: AtomicU64::new(0),
            enumeration: tokio::sync::Mutex::default(),
            durable: before.durable.clone(),
            closed: Signal::default(),
        }))
    }

    /// Notes that a CREATE with this ChannelSequence has made the open.
    pub(crate) fn begin_sequence(&self, sequence: u16) {
        *self.sequence.lock() = ChannelSequence::new(sequence);
    }

    /// 3.3.5.2.10: a request arrives. It is under way until the returned value is dropped.
    ///
    /// # Errors
    /// [`Late`]: a newer request may have overtaken it.
    pub(crate) fn arrive(&self, sequence: u16, replay: bool) -> Result<Outstanding, Late> {
        self.sequence.lock().arrive(sequence, replay)?;
        Ok(Outstanding { counted: Arc::clone(&self.sequence), sequence })
    }

    /// The share's open for this file.
    ///
    /// # Errors
    /// STATUS_INVALID_DEVICE_REQUEST for a pipe, and for the quotas of a share.
    pub(crate) fn file(&self) -> Result<&Arc<share::Open>, Failure> {
        self.local_open().ok_or_else(|| smb_wire::NtStatus::INVALID_DEVICE_REQUEST.into())
    }

    /// The share's open for this file; None for a pipe, and for the quotas of a share.
    pub(crate) fn local_open(&self) -> Option<&Arc<share::Open>> {
        match &self.target {
            OpenTarget::File(open) => Some(self.link.get().unwrap_or(open)),
            OpenTarget::OfSnapshot(_, open) => Some(open),
            OpenTarget::Pipe(_) | OpenTarget::Quotas(_) => None,
        }
    }

    /// Follows the new object becoming a symbolic link, which `link` has open. What the client was granted to cache has
    /// ended with the object, and so has the record of a persistent open.
    pub(crate) async fn become_link(&self, link: Arc<share::Open>) {
        let became = self.link.set(link);
        debug_assert!(became.is_ok(), "an object becomes a link once");
        *self.grant.lock() = None;
        self.forget().await;
    }

    /// The pipe that is open.
    ///
    /// # Errors
    /// STATUS_INVALID_DEVICE_REQUEST for a file.
    pub(crate) fn pipe(&self) -> Result<&Mutex<Pipe>, Failure> {
        match &self.target {
            OpenTarget::Pipe(pipe) => Ok(pipe),
            OpenTarget::File(_) | OpenTarget::OfSnapshot(..) | OpenTarget::Quotas(_) => {
                Err(smb_wire::NtStatus::INVALID_DEVICE_REQUEST.into())
            }
        }
    }

    /// Where the list of quotas goes on that this open is told.
    ///
    /// # Errors
    /// STATUS_NOT_SUPPORTED for anything but the quotas of a share.
    pub(crate) fn quotas(&self) -> Result<&Mutex<QuotaCursor>, Failure> {
        match &self.target {
            OpenTarget::Quotas(cursor) => Ok(cursor),
            OpenTarget::File(_) | OpenTarget::OfSnapshot(..) | OpenTarget::Pipe(_) => {
                Err(smb_wire::NtStatus::NOT_SUPPORTED.into())
            }
        }
    }

    /// Whether the client may keep the open after the application has closed it, and no break of that is under way: the
    /// open has a batch oplock or a lease with handle caching.
    pub(crate) fn keeps_handle(&self) -> bool {
        let Some((share, open)) = self.on_share() else { return false };
        let granted = share.granted(open);
        granted.state.contains(Caching::HANDLE) && !granted.breaking
    }

    /// Whether the open works under this grant.
    pub(crate) fn works_under(&self, share: &Arc<Share>, holder: Holder) -> bool {
        self.tree.leads_to(share) && self.local_open().is_some_and(|open| open.holder() == holder)
    }

    /// Takes over the grant of the same open in an earlier session. From now on this session receives breaks.
    pub(crate) fn take_grant(&self, before: &Self, session: &Arc<Session>) {
        let mut grant = before.grant.lock().take();
        match &mut grant {
            Some(Grant::Oplock(oplock)) => oplock.move_to(self.id, session),
            Some(Grant::Lease(hold)) => hold.move_to(session),
            None => {}
        }
        *self.grant.lock() = grant;
    }

    /// Notes that this reply ([`Self::note_heard`]), which tells the client of the open, will never be sent. If the
    /// client has got another reply since, over another channel, it may know of the open.
    pub(crate) fn note_unheard(&self, answer: u64) {
        let Some(open) = self.local_open() else { return };
        let grant = self.grant.lock();
        if self.answers.load(Ordering::Relaxed) != answer {
            return;
        }
        match &*grant {
            Some(Grant::Oplock(oplock)) => oplock.note_unheard(open.holder()),
            Some(Grant::Lease(hold)) => hold.note_unheard(),
            None => {}
        }
    }

    /// Notes that the client gets a reply about the open (again). Returns the number of the reply.
    pub(crate) fn note_heard(&self) -> u64 {
        let grant = self.grant.lock();
        match &*grant {
            Some(Grant::Oplock(oplock)) => oplock.note_heard(),
            Some(Grant::Lease(hold)) => hold.lease().note_heard(),
            None => {}
        }
        self.answers.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }

    /// Wakes requests that wait for the open, because the session has ended.
    pub(crate) fn detach(&self) {
        self.closed.set();
        self.state.lock().watch = None;
    }

    /// Closes the open: wakes requests that wait for it, and closes the share's open, which may delete the file. An
    /// open that its client has reclaimed meanwhile stays open.
    ///
    /// # Errors
    /// Those of the deletion; the open is closed all the same.
    pub(crate) async fn close(&self, call: &Call) -> Result<(), Failure> {
        if !self.leave() {
            return Ok(());
        }
        let closed = match self.on_share() {
            Some((share, open)) => share.close(call, open).await,
            None => Ok(()),
        };
        self.end().await;
        Ok(closed?)
    }

    /// Like [`Open::close`], for a pipe, or a client that has gone or has lost the open.
    ///
    /// # Errors
    /// Those of the deletion; the open is closed all the same.
    pub(crate) async fn close_unasked(&self) -> Result<(), Failure> {
        if !self.leave() {
            return Ok(());
        }
        let closed = match self.on_share() {
            Some((share, open)) => share.close_unasked(open).await,
            None => Ok(()),
        };
        self.end().await;
        Ok(closed?)
    }

    /// Begins to close the open. Returns false if its client has reclaimed it.
    fn leave(&self) -> bool {
        self.detach();
        self.leave_durable()
    }

    /// The open in its share, or in its view of the share; None for a pipe.
    pub(crate) fn on_share(&self) -> Option<(&Arc<Share>, &Arc<share::Open>)> {
        match (self.local_open(), self.view(), &self.tree.target) {
            (Some(open), Some(view), _) => Some((view, open)),
            (Some(open), None, crate::tree::TreeTarget::Disk(share)) => Some((share, open)),
            _ => None,
        }
    }

    /// The view of the share at a snapshot that the file is of.
    pub(crate) fn view(&self) -> Option<&Arc<Share>> {
        match &self.target {
            OpenTarget::OfSnapshot(view, _) => Some(view),
            OpenTarget::File(_) | OpenTarget::Pipe(_) | OpenTarget::Quotas(_) => None,
        }
    }

    async fn end(&self) {
        *self.grant.lock() = None;
        self.forget().await;
    }
}
