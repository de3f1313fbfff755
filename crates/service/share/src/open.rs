//! Opening files, closing them, and deletion on close.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use file_state::{Access, FileState, Holder, OpenKey, Operation, ReserveError, Sharing, is_quiet};
use storage::{Attributes, FileFlags, FileKind, MayWait, Name, NodeRef, Wait, Want};

use crate::agreement::caching::{Admission, Answering, GrantRequest, Granted, Taken};
use crate::agreement::files::{Doomed, Entry, Refused};
use crate::agreement::openers::Openers;
use crate::dir_change::Changing;
use crate::found::Found;
use crate::operation::DirectoryReport;
use crate::read_only::CHANGES;
use crate::schedule::Work;
use crate::watch::ChangeAction;
use crate::{Call, Caller, Error, Location, ReadOnly, Result, Share, permission};

/// How a file is to be opened.
#[derive(Debug, Clone)]
pub struct OpenRequest {
    /// What the opener will do.
    pub access: Access,
    /// What other opens may do meanwhile.
    pub sharing: Sharing,
    /// Delete the file when this open is closed.
    pub delete_on_close: bool,
    /// What the opener wants to cache.
    pub grant: Option<GrantRequest>,
    /// The caching grant on the file's directory that the opener works under, if any. Changes made through the open do not
    /// break that grant.
    pub directory: Option<Holder>,
    /// The part of the access that is reserved against other opens; by default all of it. An NFSv4 delegation reserves
    /// nothing: it is recalled if it conflicts with another open.
    pub reserved: Access,
    /// The opener had this open before the server was started. It is admitted while new opens are held back
    /// ([`Share::hold_back`]).
    pub is_reclaim: bool,
    /// The users and clients that the open is counted for.
    pub openers: Openers,
}

impl OpenRequest {
    /// An open that caches nothing.
    #[must_use]
    pub fn new(access: Access, sharing: Sharing) -> Self {
        Self {
            access,
            sharing,
            delete_on_close: false,
            grant: None,
            directory: None,
            reserved: access,
            is_reclaim: false,
            openers: Openers::default(),
        }
    }
}

/// An open that was admitted. It counts until [`Share::close`].
#[derive(Debug)]
pub struct Open {
    key: OpenKey,
    node: NodeRef,
    access: Access,
    /// For an open of a named stream: the open that holds the stream's file.
    file: Option<Arc<Self>>,
    holder: Holder,
    directory: Option<Holder>,
    granted: Granted,
    openers: Openers,
    closed: AtomicBool,
    /// Whether data was written through this open that holders of cached listings have not been told of yet.
    wrote: AtomicBool,
    /// Whether the first write must clear the privilege bits in the file's mode.
    is_privileged: AtomicBool,
}

impl Open {
    /// The number of the open, unique in its share.
    #[must_use]
    pub fn key(&self) -> OpenKey {
        self.key
    }

    /// The object that is open.
    #[must_use]
    pub fn node(&self) -> &NodeRef {
        &self.node
    }

    /// For an open of a named stream: the open that holds the stream's file. It gives no access to the file.
    #[must_use]
    pub fn file(&self) -> Option<&Arc<Self>> {
        self.file.as_ref()
    }

    /// The access that was granted.
    #[must_use]
    pub fn access(&self) -> Access {
        self.access
    }

    /// The caching grant that the open works under. An open that asked for no grant has a key of its own here.
    #[must_use]
    pub fn holder(&self) -> Holder {
        self.holder
    }

    /// The caching grant on the file's directory that the open works under.
    #[must_use]
    pub fn directory(&self) -> Option<Holder> {
        self.directory
    }

    /// The caching grant as it was when the file was opened.
    #[must_use]
    pub fn granted(&self) -> Granted {
        self.granted
    }

    /// Refuses an access that this open does not have.
    ///
    /// # Errors
    /// [`Error::NotOpenedForThis`] unless all of `access` was granted; [`Error::Closed`].
    pub fn require(&self, access: Access) -> Result<()> {
        self.require_open()?;
        if self.access.contains(access) { Ok(()) } else { Err(Error::NotOpenedForThis) }
    }

    /// Refuses an access that this open does not have.
    ///
    /// # Errors
    /// [`Error::NotOpenedForThis`] unless some of `access` was granted; [`Error::Closed`].
    pub fn require_any(&self, access: Access) -> Result<()> {
        self.require_open()?;
        if self.access.intersects(access) { Ok(()) } else { Err(Error::NotOpenedForThis) }
    }

    pub(crate) fn require_open(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) { Err(Error::Closed) } else { Ok(()) }
    }

    pub(crate) fn note_written(&self) {
        let open = self.file.as_deref().unwrap_or(self); // a stream's data is its file's
        if !open.wrote.load(Ordering::Relaxed) {
            open.wrote.store(true, Ordering::Relaxed);
        }
    }

    /// Whether this is the first write through the open to a file that had privilege bits.
    pub(crate) fn begins_to_write_program(&self) -> bool {
        self.is_privileged.load(Ordering::Relaxed) && self.is_privileged.swap(false, Ordering::Relaxed)
    }
}

impl Share {
    /// The most that a caller may do with an object that was found. Permissions on the object and on its directory (for
    /// deletion) count, less what a read-only share, a snapshot or a read-only file forbids.
    #[must_use]
    pub fn maximal_access(&self, caller: &Caller, found: &Found) -> Access {
        let who = &caller.identity;
        let mut access = permission::permitted(who, found.object());
        let own_delete = found.security.is_some() && access.contains(Access::DELETE);
        let dir = found.dir_object();
        let deletable = dir.is_some_and(|dir| permission::may_delete(who, dir, found.object()));
        access.set(Access::DELETE, own_delete || deletable);
        // [MS-FSA] 2.1.5.1.2.1: a user who may list the directory may read the attributes of its entries.
        if dir.is_some_and(|dir| permission::permitted(who, dir).contains(Access::LIST_DIRECTORY)) {
            access |= Access::READ_ATTRIBUTES;
        }
        if self.read_only(found.node.id()).is_some() {
            access &= !CHANGES;
        } else if is_marked_read_only(&found.attributes) && found.attributes.kind != FileKind::Directory {
            access &= !(Access::WRITE_DATA | Access::APPEND_DATA);
        }
        access
    }

    /// Opens an object: checks the permissions, then whether the other opens allow it. Waits for clients that must give up
    /// what they cache.
    ///
    /// # Errors
    /// [`Error::AccessDenied`], [`Error::SharingViolation`], [`Error::DeletePending`],
    /// [`Error::CannotDelete`], [`Error::LimitReached`].
    pub async fn open(
        self: &Arc<Self>,
        call: &Call,
        found: &Found,
        request: &OpenRequest,
    ) -> Result<Arc<Open>> {
        if !self.maximal_access(&call.caller, found).contains(request.access) {
            return Err(self.why_refused(found, request.access));
        }
        self.open_settled(call, found, request).await
    }

    /// As [`Share::open_granted`], but waits as long as the call's front does.
    ///
    /// # Errors
    /// Those of [`Share::open_granted`]; [`Error::Delayed`].
    pub async fn open_settled(
        self: &Arc<Self>,
        call: &Call,
        found: &Found,
        request: &OpenRequest,
    ) -> Result<Arc<Open>> {
        let mut patience = None;
        loop {
            match self.open_granted(found, request)? {
                Admission::Done(open) => return Ok(open),
                Admission::Wait(answering) => self.bear(call, &mut patience, answering).await?,
            }
        }
    }

    /// Opens an object without checking permissions: the caller has checked them, or has just created the object. The
    /// creator of an object gets the access that it asked for, whatever the object's mode. Does not wait.
    ///
    /// # Errors
    /// As [`Share::open`], except those about permissions.
    pub fn open_granted(
        self: &Arc<Self>,
        found: &Found,
        request: &OpenRequest,
    ) -> Result<Admission<Arc<Open>>> {
        let operation = Operation::Open { access: request.reserved, sharing: request.sharing };
        self.admit(found, request, operation)
    }

    /// Enters an open if the other opens and the caches of other clients allow it. For an [`Operation::Overwrite`] they must
    /// also allow writing at this moment; the open does not keep that access. For a named stream, an open of the stream's
    /// file that caches nothing is entered first.
    pub(crate) fn admit(
        self: &Arc<Self>,
        found: &Found,
        request: &OpenRequest,
        operation: Operation,
    ) -> Result<Admission<Arc<Open>>> {
        if let Some(answering) = self.held_back().filter(|_| !request.is_reclaim && !is_quiet(request.access))
        {
            return Ok(Admission::Wait(answering));
        }
        let Some(stream) = &found.stream else { return self.enter(found, request, operation, None) };
        let held = Found { node: Arc::clone(&stream.file), stream: None, ..found.clone() };
        let of_file = OpenRequest { grant: None, ..request.clone() };
        let file = self.enter_with(&held, &of_file, None, None, |state, key| {
            state.reserve_stream(key, request.access, request.sharing)
        })?;
        let file = match file {
            Admission::Done(file) => file,
            wait @ Admission::Wait(_) => return Ok(wait),
        };
        let admitted = self.enter(found, request, operation, Some(Arc::clone(&file)));
        if !matches!(admitted, Ok(Admission::Done(_))) {
            self.let_go(&file);
        }
        admitted
    }

    /// Ends the hold of a stream's open on the stream's file. If the deletion of the file waited only for that, the file is
    /// deleted.
    fn let_go(self: &Arc<Self>, file: &Arc<Open>) {
        let Some(doomed) = self.release(file) else { return };
        let file = Arc::clone(file);
        self.afterwards(move |share, may| {
            if let Err(e) = share.end_deletion(&file, &doomed, may) {
                tracing::debug!("a file that was to be deleted stays: {e}");
            }
        });
    }

    fn enter(
        self: &Arc<Self>,
        found: &Found,
        request: &OpenRequest,
        operation: Operation,
        file: Option<Arc<Open>>,
    ) -> Result<Admission<Arc<Open>>> {
        let also = if operation == Operation::Overwrite { Access::WRITE_DATA } else { Access::empty() };
        self.enter_with(found, request, Some(operation), file, |state, key| {
            state.reserve(key, request.reserved | also, request.sharing)?;
            state.downgrade(key, request.reserved, request.sharing);
            if request.delete_on_close {
                state.set_delete_on_close(key, true);
            }
            Ok(())
        })
    }

    pub(crate) fn enter_with(
        self: &Arc<Self>,
        found: &Found,
        request: &OpenRequest,
        operation: Option<Operation>,
        file: Option<Arc<Open>>,
        reserve: impl FnOnce(&mut FileState, OpenKey) -> std::result::Result<(), ReserveError>,
    ) -> Result<Admission<Arc<Open>>> {
        if request.delete_on_close && is_marked_read_only(&found.attributes) {
            return Err(Error::CannotDelete);
        }
        if request.delete_on_close && self.read_only(found.node.id()) == Some(ReadOnly::Snapshot) {
            return Err(Error::ReadOnly(ReadOnly::Snapshot));
        }
        let Some(opens) = self.opens.enter(request.openers) else {
            return self.take_back_opens().map(Admission::Wait);
        };
        let key = OpenKey(self.next_open.fetch_add(1, Ordering::Relaxed));
        let holder = request.grant.as_ref().map_or(Holder::Oplock(key), |grant| grant.key.holder(key));
        let mut granted = Granted::default();
        let entered = self.files.admit(found, key, |entry| {
            if let Err(refused) = self.budget.check_opens(&found.node, entry.opens, opens) {
                return (Err(refused), None);
            }
            let (admitted, taken) = self.admit_entry(entry, key, holder, operation, reserve);
            if let (Ok(()), Some(grant)) = (admitted, &request.grant) {
                granted = self.grant(entry, &found.node, key, grant);
            }
            (admitted, Some(taken))
        });
        let (admitted, taken) = match entered {
            Ok(entered) => entered,
            Err(refused) => {
                self.opens.leave(request.openers);
                return match refused {
                    // No open is left. The opener need not know that the name is not free yet.
                    Refused::BeingRemoved(removed) => {
                        let deadline = Instant::now() + self.settings.break_timeout;
                        Ok(Admission::Wait(Answering::new(removed, deadline)))
                    }
                    Refused::Gone => Err(Error::Gone),
                };
            }
        };
        let answering = taken.and_then(|taken| self.deliver(taken));
        if let Err(refused) = admitted {
            self.opens.leave(request.openers);
            return answering.map_or(Err(refused), |answering| Ok(Admission::Wait(answering)));
        }
        Ok(Admission::Done(Arc::new(Open {
            key,
            node: Arc::clone(&found.node),
            access: request.access,
            file,
            holder,
            directory: request.directory,
            granted,
            openers: request.openers,
            closed: AtomicBool::new(false),
            wrote: AtomicBool::new(false),
            // Writing to a named stream changes no program.
            is_privileged: AtomicBool::new(found.stream.is_none() && found.attributes.mode & 0o6000 != 0),
        })))
    }

    /// [MS-FSA] 2.1.5.1.2: the other opens are checked first. A client that keeps a conflicting open only for later use
    /// closes it. The caches are checked next. If the new open has to wait for either, the refusal says what to wait for.
    fn admit_entry(
        &self,
        entry: &mut Entry,
        key: OpenKey,
        holder: Holder,
        operation: Option<Operation>,
        reserve: impl FnOnce(&mut FileState, OpenKey) -> std::result::Result<(), ReserveError>,
    ) -> (Result<()>, Taken) {
        let timeout = self.settings.break_timeout;
        match reserve(&mut entry.state, key) {
            Ok(()) => {}
            Err(refused @ ReserveError::Sharing { holder: other }) => {
                let taken = entry.take_back(Some(holder), Operation::SharingViolation, timeout);
                let late = entry.evict_late(entry.state.holder_of(other), timeout);
                return (Err(refused.into()), taken.and(late));
            }
            Err(refused) => return (Err(refused.into()), Taken::default()),
        }
        let Some(operation) = operation else { return (Ok(()), Taken::default()) };
        let mut taken = entry.take_back(Some(holder), operation, timeout);
        if taken.must_wait() {
            entry.state.set_delete_on_close(key, false);
            entry.state.release(key);
            return (Err(Error::Delayed), taken);
        }
        if entry.state.reservation(key).is_some_and(|reservation| reservation.delete_on_close) {
            // The file is to be deleted: clients that keep it open only for later use close it. Nothing waits for that until
            // this open is closed.
            taken.tell_only(entry.take_back(Some(holder), Operation::Delete, timeout));
        }
        (Ok(()), taken)
    }

    /// Closes an open and releases its locks. If the file is to be deleted and this was its last open, deletes the file. A
    /// directory with entries stays. Closing twice does nothing.
    ///
    /// # Errors
    /// Those of the deletion; the open is closed all the same.
    pub async fn close(self: &Arc<Self>, call: &Call, open: &Arc<Open>) -> Result<()> {
        match self.released(open) {
            Some(end) => self.run(call, Work::Metadata, end).await,
            None => Ok(()),
        }
    }

    /// As [`Share::close`], for a client that has gone or has lost the open.
    ///
    /// # Errors
    /// Those of the deletion; the open is closed all the same.
    pub async fn close_unasked(self: &Arc<Self>, open: &Arc<Open>) -> Result<()> {
        match self.released(open) {
            Some(end) => self.run_unasked(Work::Metadata, end).await,
            None => Ok(()),
        }
    }

    /// Releases an open. Returns what remains to be done in the store.
    fn released(
        self: &Arc<Self>,
        open: &Arc<Open>,
    ) -> Option<impl FnOnce(&Arc<Self>, MayWait<'_>) -> Result<()> + Send + 'static + use<>> {
        let is_directory = open.node.kind() == FileKind::Directory && self.is_delete_on_close(open);
        let (doomed, file) = if is_directory {
            (None, None)
        } else {
            let doomed = self.release(open);
            let file = if doomed.is_none() { self.release_file(open) } else { None };
            if doomed.is_none() && file.is_none() {
                return None;
            }
            (doomed, file)
        };
        let open = Arc::clone(open);
        Some(move |share: &Arc<Self>, may: MayWait<'_>| {
            if is_directory {
                return share.close_directory(&open, may);
            }
            let ended = doomed.map_or(Ok(()), |doomed| share.end_deletion(&open, &doomed, may));
            // The file of a stream is held until the stream is deleted.
            let file = file.or_else(|| share.release_file(&open));
            file.map_or(Ok(()), |(file, doomed)| share.end_deletion(&file, &doomed, may)).and(ended)
        })
    }

    /// Ends the hold of a stream's open on the stream's file. Returns the file's open and the name to delete if the deletion
    /// waited only for that.
    fn release_file(&self, open: &Open) -> Option<(Arc<Open>, Doomed)> {
        let file = open.file.as_ref()?;
        Some((Arc::clone(file), self.release(file)?))
    }

    fn is_delete_on_close(&self, open: &Open) -> bool {
        let marked = |entry: &mut Entry| {
            entry.state.reservation(open.key).is_some_and(|reservation| reservation.delete_on_close)
        };
        self.files.with(open.node.id(), marked).unwrap_or(false)
    }

    /// [MS-FSA] 2.1.5.5, phase 1: the close of a delete-on-close open marks a directory only if it is empty.
    fn close_directory(self: &Arc<Self>, open: &Arc<Open>, may: MayWait<'_>) -> Result<()> {
        if is_empty(&open.node, may).is_ok_and(|empty| !empty) {
            self.files.with(open.node.id(), |entry| entry.state.set_delete_on_close(open.key, false));
        }
        self.release(open).map_or(Ok(()), |doomed| self.end_deletion(open, &doomed, may))
    }

    /// Deletes a file that has no open left, and then drops its state. This is done here, so that it happens even if no
    /// caller waits for the answer.
    fn end_deletion(&self, open: &Open, doomed: &Doomed, may: MayWait<'_>) -> Result<()> {
        let result = match open.file {
            Some(_) => self.delete_stream(open, &doomed.location, may),
            // As on Windows, the grant of the client that closes last survives only if that client also asked for the
            // deletion.
            None => {
                let by = open.directory.filter(|own| doomed.under == Some(*own));
                self.delete_closed(&open.node, &doomed.location, by, may)
            }
        };
        self.files.forget_unused(open.node.id());
        result
    }

    /// Ends an open that was refused after it had been entered: nothing is deleted.
    pub(crate) fn withdraw(self: &Arc<Self>, open: &Arc<Open>) {
        self.files.with(open.node.id(), |entry| entry.state.set_delete_on_close(open.key, false));
        if self.release(open).is_some() {
            self.files.forget_unused(open.node.id());
        }
        if let Some(file) = &open.file {
            self.let_go(file);
        }
    }

    /// Ends an open. If this was the last open of a file to be deleted, returns the name to delete; the file cannot be
    /// opened until its state is forgotten.
    fn release(&self, open: &Arc<Open>) -> Option<Doomed> {
        if open.closed.swap(true, Ordering::AcqRel) {
            return None;
        }
        self.opens.leave(open.openers);
        let id = open.node.id();
        let ended = self.files.with(id, |entry| {
            let location = entry.location(open.key).cloned();
            if entry.state.reservation(open.key).is_some_and(|reservation| reservation.delete_on_close) {
                entry.doom(open.key, open.directory);
            }
            let released = entry.state.release(open.key);
            self.end_grant(entry, open.holder);
            entry.opens = entry.opens.saturating_sub(1);
            entry.locations.remove(&open.key);
            // Also wake calls that wait through this very open: their wait is over.
            entry.freed.notify_waiters();
            let doomed = if released.delete { entry.doomed.take() } else { None };
            entry.deleting = doomed.is_some();
            (doomed, location)
        });
        let (doomed, location) = ended.unwrap_or_default();
        if let Some(location) = location.filter(|_| open.wrote.load(Ordering::Relaxed)) {
            self.entries_changed(location.parent.id(), open.directory);
        }
        if doomed.is_none() {
            self.files.forget_unused(id);
            if self.changes.is_watched() && self.is_delete_pending(&open.node) {
                self.changes.publish_gone(id);
            }
        }
        doomed
    }

    /// Removes the name of a file whose last open is closed, if the name still refers to that file.
    fn delete_closed(
        &self,
        node: &NodeRef,
        location: &Location,
        by: Option<Holder>,
        may: MayWait<'_>,
    ) -> Result<()> {
        let name = Name::new(&location.name)?;
        let dir = &location.parent;
        let (named, gone) = dir.lookup_attributes(name, Want::empty(), Wait::May(may))?;
        if named.id() != node.id() {
            return Ok(());
        }
        let changing = Changing::begin(DirectoryReport::Nothing, dir, may)?;
        let is_dir = node.kind() == FileKind::Directory;
        if is_dir {
            dir.remove_dir(name, may)?;
            self.changes.publish_gone(node.id());
        } else {
            dir.remove_file(name, may)?;
            self.budget.capacity().removed(&gone);
        }
        self.changed_names(&changing, Some(name), None, 0)?;
        self.tell_name(dir, &location.name, ChangeAction::Removed, is_dir, by, may);
        Ok(())
    }

    /// Marks a file for deletion when its last open is closed, or clears the mark.
    ///
    /// # Errors
    /// [`Error::NotOpenedForThis`] without DELETE, [`Error::CannotDelete`] for a file marked read-only,
    /// [`storage::Error::NotEmpty`] for a directory with entries.
    pub async fn set_delete_pending(
        self: &Arc<Self>,
        call: &Call,
        open: &Arc<Open>,
        pending: bool,
    ) -> Result<()> {
        open.require(Access::DELETE)?;
        if pending {
            self.check_writable(open.node.id())?;
            let node = Arc::clone(&open.node);
            self.run(call, Work::Metadata, move |share, may| share.check_deletable(&node, may)).await?;
            let take_back = || self.take_back(open.node.id(), Some(open.holder), Operation::Delete);
            self.settled(call, || Ok(((), take_back()))).await?;
        }
        self.files.with(open.node.id(), |entry| {
            entry.state.set_delete_pending(pending);
            entry.doom(open.key, open.directory);
        });
        if pending {
            self.changes.publish_gone(open.node.id());
        }
        Ok(())
    }

    fn check_deletable(&self, node: &NodeRef, may: MayWait<'_>) -> Result<()> {
        if node.id() == self.root.id() {
            return Err(Error::CannotDelete);
        }
        let attributes = node.attributes(Want::FLAGS, Wait::May(may))?;
        if is_marked_read_only(&attributes) {
            return Err(Error::CannotDelete);
        }
        if attributes.kind == FileKind::Directory && !is_empty(node, may)? {
            return Err(storage::Error::NotEmpty.into());
        }
        Ok(())
    }

    /// Whether a file is to be deleted when its last open is closed.
    #[must_use]
    pub fn is_delete_pending(&self, node: &NodeRef) -> bool {
        self.files.with(node.id(), |entry| entry.deleting || entry.state.is_delete_pending()).unwrap_or(false)
    }

    /// Whether the opens of a directory let other callers change its entries without allowing deletion of the directory. A
    /// rename by an SMB client opens the directory of the new name in this way. Returns what to wait for, if anything:
    /// clients that keep the directory open only for later use close it.
    pub(crate) fn check_dir_shared(&self, dir: &NodeRef) -> Result<Option<Answering>> {
        let key = OpenKey(self.next_open.fetch_add(1, Ordering::Relaxed));
        let shared = self.files.with(dir.id(), |entry| {
            entry.state.reserve(key, Access::WRITE_DATA, Sharing::READ | Sharing::WRITE)?;
            entry.state.release(key);
            Ok(())
        });
        match shared.unwrap_or(Ok(())) {
            Err(refused @ ReserveError::Sharing { .. }) => {
                let answering = self.take_back(dir.id(), None, Operation::SharingViolation);
                answering.map_or(Err(refused.into()), |answering| Ok(Some(answering)))
            }
            outcome => Ok(outcome.map(|()| None)?),
        }
    }

    /// Whether a named stream of the object is open. SMB clients cannot rename such an object.
    #[must_use]
    pub fn has_open_streams(&self, node: &NodeRef) -> bool {
        self.files.with(node.id(), |entry| entry.state.has_stream_opens()).unwrap_or(false)
    }

    /// The present name of an open's file; for a stream, of the stream's file. None for a closed open and for the root.
    #[must_use]
    pub fn location(&self, open: &Open) -> Option<Location> {
        let open = open.file.as_deref().unwrap_or(open);
        self.files.with(open.node.id(), |entry| entry.location(open.key).cloned()).flatten()
    }
}

fn is_empty(dir: &NodeRef, may: MayWait<'_>) -> Result<bool> {
    let mut empty = true;
    dir.survey(may, &mut |_| {
        empty = false;
        std::ops::ControlFlow::Break(())
    })?;
    Ok(empty)
}

fn is_marked_read_only(attributes: &Attributes) -> bool {
    attributes.flags.is_some_and(|flags| flags.contains(FileFlags::READONLY))
}
