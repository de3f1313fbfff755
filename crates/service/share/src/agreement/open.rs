//! Opens: how they are asked for, entered and ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use file_state::{Access, FileState, Holder, OpenKey, Operation, ReserveError, Sharing, is_quiet};
use storage::{NodeRef, ObjectId};

use super::Agreement;
use super::caching::{Admission, Answering, GrantRequest, Granted, Taken};
use super::files::{Doomed, OpenFile, Refused};
use super::openers::Openers;
use crate::found::{Found, Stream};
use crate::{Error, Result};

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
    /// The part of the access that is reserved against other opens; by default all of it. An open that only keeps a
    /// caching grant reserves nothing: the grant is broken if it conflicts with another open.
    pub reserved: Access,
    /// The opener had this open before the server was started. It is admitted while new opens are held back
    /// ([`Share::hold_back`](crate::Share::hold_back)).
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

/// An open that was admitted. It counts until [`Share::close`](crate::Share::close).
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
    /// Whether what was written first through this open was looked at.
    is_examined: AtomicBool,
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

    /// The users and clients that the open is counted for.
    pub(crate) fn openers(&self) -> Openers {
        self.openers
    }

    /// Whether nothing was written through this open before that was looked at.
    pub(crate) fn begins_to_be_examined(&self) -> bool {
        !self.is_examined.load(Ordering::Relaxed) && !self.is_examined.swap(true, Ordering::Relaxed)
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

/// How an open has ended.
pub(crate) enum Ended {
    /// Before this.
    Before,
    /// Now, and its file stays.
    Now,
    /// Now, and it was the last one of a file to be deleted: this name goes. The file cannot be opened until its state is
    /// forgotten ([`Agreement::forget_unused`]).
    Deleting(Doomed),
}

impl Agreement {
    /// What a new open has to wait for while clients reclaim, if anything.
    pub(crate) fn held_back(&self, request: &OpenRequest) -> Option<Answering> {
        self.reclaims.held_back().filter(|_| !request.is_reclaim && !is_quiet(request.access))
    }

    /// Enters an open if the other opens and the caches of other clients allow it. For an [`Operation::Overwrite`] they must
    /// also allow writing at this moment; the open does not keep that access. An open of a named stream comes with that of
    /// the stream's `file`. `may_open` says whether an object that is open so often, in a share with so many opens, may be
    /// opened once more.
    ///
    /// # Errors
    /// [`Error::SharingViolation`], [`Error::DeletePending`], [`Error::LimitReached`], [`Error::Gone`], those of `may_open`.
    pub(crate) fn enter(
        &self,
        found: &Found,
        request: &OpenRequest,
        operation: Operation,
        file: Option<Arc<Open>>,
        may_open: impl FnOnce(usize, usize) -> Result<()>,
    ) -> Result<Admission<Arc<Open>>> {
        let also = if operation == Operation::Overwrite { Access::WRITE_DATA } else { Access::empty() };
        self.enter_with(found, request, Some(operation), file, may_open, |state, key| {
            state.reserve(key, request.reserved | also, request.sharing)?;
            state.downgrade(key, request.reserved, request.sharing);
            if request.delete_on_close {
                state.set_delete_on_close(key, true);
            }
            Ok(())
        })
    }

    /// Enters an open that holds the file of the named stream that was found, for an open of that stream. It caches nothing.
    ///
    /// # Errors
    /// Those of [`Agreement::enter`].
    pub(crate) fn enter_stream_file(
        &self,
        found: &Found,
        stream: &Stream,
        request: &OpenRequest,
        may_open: impl FnOnce(usize, usize) -> Result<()>,
    ) -> Result<Admission<Arc<Open>>> {
        let held = Found { node: Arc::clone(&stream.file), stream: None, ..found.clone() };
        let of_file = OpenRequest { grant: None, ..request.clone() };
        self.enter_with(&held, &of_file, None, None, may_open, |state, key| {
            state.reserve_stream(key, request.access, request.sharing)
        })
    }

    pub(super) fn enter_with(
        &self,
        found: &Found,
        request: &OpenRequest,
        operation: Option<Operation>,
        file: Option<Arc<Open>>,
        may_open: impl FnOnce(usize, usize) -> Result<()>,
        reserve: impl FnOnce(&mut FileState, OpenKey) -> std::result::Result<(), ReserveError>,
    ) -> Result<Admission<Arc<Open>>> {
        let Some(opens) = self.opens.enter(request.openers) else {
            return self.take_back_opens().map(Admission::Wait);
        };
        let key = OpenKey(self.next_open.fetch_add(1, Ordering::Relaxed));
        let holder = request.grant.as_ref().map_or(Holder::Oplock(key), |grant| grant.key.holder(key));
        let mut granted = Granted::default();
        let entered = self.files.admit(found, key, |entry| {
            if let Err(refused) = may_open(entry.opens, opens) {
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
                        let deadline = Instant::now() + self.break_timeout;
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
            is_examined: AtomicBool::new(false),
            is_privileged: AtomicBool::new(found.stream.is_none() && found.attributes.mode & 0o6000 != 0),
        })))
    }

    /// Checks the other opens first. A client that keeps a conflicting open only for later use
    /// closes it. The caches are checked next. If the new open has to wait for either, the refusal says what to wait for.
    fn admit_entry(
        &self,
        entry: &mut OpenFile,
        key: OpenKey,
        holder: Holder,
        operation: Option<Operation>,
        reserve: impl FnOnce(&mut FileState, OpenKey) -> std::result::Result<(), ReserveError>,
    ) -> (Result<()>, Taken) {
        let timeout = self.break_timeout;
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
    /// Whether the opens of a directory let other callers change its entries without allowing deletion of the directory. A
    /// rename through an open opens the directory of the new name in this way. Returns what to wait for, if anything:
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

    /// What an open lets others do, and whether it deletes its file on close; None if the file has other opens.
    pub(crate) fn only_open(&self, open: &Open) -> Option<(Sharing, bool)> {
        let held = |entry: &mut OpenFile| {
            let own = entry.state.reservation(open.key).filter(|_| entry.opens == 1)?;
            Some((own.sharing, own.delete_on_close))
        };
        self.files.with(open.node.id(), held).flatten()
    }

    /// Ends an open, with its locks and its part in a caching grant.
    pub(crate) fn release(&self, open: &Open) -> Ended {
        if open.closed.swap(true, Ordering::AcqRel) {
            return Ended::Before;
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
            debug_assert!(entry.opens > 0, "an open of the file is counted");
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
        let Some(doomed) = doomed else {
            self.files.forget_unused(id);
            return Ended::Now;
        };
        Ended::Deleting(doomed)
    }

    /// Whether the file of an open is to be deleted because of this very open.
    pub(crate) fn is_delete_on_close(&self, open: &Open) -> bool {
        let marked = |entry: &mut OpenFile| {
            entry.state.reservation(open.key).is_some_and(|reservation| reservation.delete_on_close)
        };
        self.files.with(open.node.id(), marked).unwrap_or(false)
    }

    /// The end of this open deletes nothing.
    pub(crate) fn keep_on_close(&self, open: &Open) {
        self.files.with(open.node.id(), |entry| entry.state.set_delete_on_close(open.key, false));
    }

    /// Marks the file of an open for deletion when its last open is closed, or clears the mark.
    pub(crate) fn set_delete_pending(&self, open: &Open, pending: bool) {
        self.files.with(open.node.id(), |entry| {
            entry.state.set_delete_pending(pending);
            entry.doom(open.key, open.directory);
        });
    }

    /// Whether an object is to be deleted when its last open is closed.
    pub(crate) fn is_delete_pending(&self, id: ObjectId) -> bool {
        self.files.with(id, |entry| entry.deleting || entry.state.is_delete_pending()).unwrap_or(false)
    }
}
