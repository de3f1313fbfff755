//! Opening files, closing them, and deletion on close.

use std::sync::Arc;

use access::Role;
use access_log::Kind;
use file_state::{Access, Holder, Operation};
use storage::{FileKind, MayWait, Name, NodeRef, Wait, Want};

use crate::agreement::{Admission, Doomed, Ended};
use crate::found::{Found, is_marked_read_only};
use crate::logged::{path_in, path_of};
use crate::namespace::Changing;
use crate::operation::DirectoryReport;
use crate::recycle::Going;
use crate::schedule::Work;
use crate::security::permission;
use crate::security::{CHANGES, PERMISSION_CHANGES};
use crate::{Call, Caller, Error, Location, Open, OpenRequest, ReadOnly, Result, Share};

impl Share {
    /// The most that a caller may do with an object that was found. Permissions on the object and on its directory (for
    /// deletion) count, less what the caller's role, a read-only share, a snapshot or a read-only file forbids.
    #[must_use]
    pub fn maximal_access(&self, caller: &Caller, found: &Found) -> Access {
        let who = &caller.identity;
        let mut access = permission::permitted(who, found.object());
        let own_delete = found.security.is_some() && access.contains(Access::DELETE);
        let dir = found.dir_object();
        let deletable = dir.is_some_and(|dir| permission::may_delete(who, dir, found.object()));
        access.set(Access::DELETE, own_delete || deletable);
        // A user who may list the directory may read the attributes of its entries.
        if dir.is_some_and(|dir| permission::permitted(who, dir).contains(Access::LIST_DIRECTORY)) {
            access |= Access::READ_ATTRIBUTES;
        }
        if !caller.role.changes_permissions() {
            access &= !PERMISSION_CHANGES;
        }
        if self.read_only(found.node.id()).is_some() || caller.role < Role::Contributor {
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
        // It may have been found by its filehandle.
        self.note_path(call, || path_of(&found.node));
        let mut patience = None;
        loop {
            match self.open_granted(found, request)? {
                Admission::Done(open) => return Ok(open),
                Admission::Wait(answering) => self.agreement.bear(call, &mut patience, answering).await?,
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
        if let Some(answering) = self.agreement.held_back(request) {
            return Ok(Admission::Wait(answering));
        }
        self.check_delete_on_close(found, request.delete_on_close)?;
        let may_open = |of_object, of_share| self.budget.check_opens(&found.node, of_object, of_share);
        let Some(stream) = &found.stream else {
            return self.agreement.enter(found, request, operation, None, may_open);
        };
        let of_file = |of_object, of_share| self.budget.check_opens(&stream.file, of_object, of_share);
        let file = self.agreement.enter_stream_file(found, stream, request, of_file)?;
        let file = match file {
            Admission::Done(file) => file,
            wait @ Admission::Wait(_) => return Ok(wait),
        };
        let admitted = self.agreement.enter(found, request, operation, Some(Arc::clone(&file)), may_open);
        if !matches!(admitted, Ok(Admission::Done(_))) {
            self.let_go(&file);
        }
        admitted
    }

    /// Refuses an open that would delete what nobody may delete.
    pub(crate) fn check_delete_on_close(&self, found: &Found, is_asked: bool) -> Result<()> {
        if is_asked && is_marked_read_only(&found.attributes) {
            return Err(Error::CannotDelete);
        }
        let file = found.stream.as_ref().map_or(&found.node, |stream| &stream.file);
        if is_asked && self.read_only(file.id()) == Some(ReadOnly::Snapshot) {
            return Err(Error::ReadOnly(ReadOnly::Snapshot));
        }
        Ok(())
    }

    /// Ends the hold of a stream's open on the stream's file. If the deletion of the file waited only for that, the file is
    /// deleted.
    fn let_go(self: &Arc<Self>, file: &Arc<Open>) {
        let Some(doomed) = self.release(file) else { return };
        let file = Arc::clone(file);
        self.afterwards(move |share, may| match share.end_deletion(&file, &doomed, may) {
            Ok(removed) => removed.iter().for_each(|removed| share.log_removed_unasked(removed)),
            Err(e) => tracing::debug!("a file that was to be deleted stays: {e}"),
        });
    }

    /// Closes an open and releases its locks. If the file is to be deleted and this was its last open, deletes the file. A
    /// directory with entries stays. Closing twice does nothing.
    ///
    /// # Errors
    /// Those of the deletion; the open is closed all the same.
    pub async fn close(self: &Arc<Self>, call: &Call, open: &Arc<Open>) -> Result<()> {
        match self.released(open) {
            Some(end) => {
                for removed in self.run(call, Work::Metadata, end).await? {
                    self.note(call, Kind::Delete, || (path_in(&removed.parent, &removed.name), None));
                }
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// As [`Share::close`], for a client that has gone or has lost the open.
    ///
    /// # Errors
    /// Those of the deletion; the open is closed all the same.
    pub async fn close_unasked(self: &Arc<Self>, open: &Arc<Open>) -> Result<()> {
        match self.released(open) {
            Some(end) => {
                let removed = self.run_unasked(Work::Metadata, end).await?;
                removed.iter().for_each(|removed| self.log_removed_unasked(removed));
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Releases an open. Returns what remains to be done in the store, which returns the names that it has removed.
    fn released(
        self: &Arc<Self>,
        open: &Arc<Open>,
    ) -> Option<impl FnOnce(&Arc<Self>, MayWait<'_>) -> Result<Vec<Location>> + Send + 'static + use<>> {
        let is_directory =
            open.node().kind() == FileKind::Directory && self.agreement.is_delete_on_close(open);
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
                return Ok(share.close_directory(&open, may)?.into_iter().collect());
            }
            let ended = doomed.map_or(Ok(None), |doomed| share.end_deletion(&open, &doomed, may));
            // The file of a stream is held until the stream is deleted.
            let file = file.or_else(|| share.release_file(&open));
            let of_file = file.map_or(Ok(None), |(file, doomed)| share.end_deletion(&file, &doomed, may));
            Ok(ended?.into_iter().chain(of_file?).collect())
        })
    }

    /// Ends the hold of a stream's open on the stream's file. Returns the file's open and the name to delete if the deletion
    /// waited only for that.
    fn release_file(&self, open: &Open) -> Option<(Arc<Open>, Doomed)> {
        let file = open.file()?;
        Some((Arc::clone(file), self.release(file)?))
    }

    /// The close of a delete-on-close open marks a directory only if it is empty.
    fn close_directory(self: &Arc<Self>, open: &Arc<Open>, may: MayWait<'_>) -> Result<Option<Location>> {
        if is_empty(open.node(), may).is_ok_and(|empty| !empty) {
            self.agreement.keep_on_close(open);
        }
        self.release(open).map_or(Ok(None), |doomed| self.end_deletion(open, &doomed, may))
    }

    /// Deletes a file that has no open left, and then drops its state. This is done here, so that it happens even if no
    /// caller waits for the answer. Returns the name of the file if it was removed.
    fn end_deletion(
        self: &Arc<Self>,
        open: &Open,
        doomed: &Doomed,
        may: MayWait<'_>,
    ) -> Result<Option<Location>> {
        let result = match open.file() {
            Some(_) => self.delete_stream(open, &doomed.location, may).map(|()| None),
            // As on Windows, the grant of the client that closes last survives only if that client also asked for the
            // deletion.
            None => {
                let by = open.directory().filter(|own| doomed.under == Some(*own));
                let removed = self.delete_closed(open, &doomed.location, by, may);
                removed.map(|removed| removed.then(|| doomed.location.clone()))
            }
        };
        self.agreement.forget_unused(open.node().id());
        result
    }

    /// Ends an open that was refused after it had been entered: nothing is deleted.
    pub(crate) fn withdraw(self: &Arc<Self>, open: &Arc<Open>) {
        self.agreement.keep_on_close(open);
        if self.release(open).is_some() {
            self.agreement.forget_unused(open.node().id());
        }
        if let Some(file) = open.file() {
            self.let_go(file);
        }
    }

    /// Ends an open. If this was the last open of a file to be deleted, returns the name to delete; the file cannot be
    /// opened until its state is forgotten.
    fn release(&self, open: &Open) -> Option<Doomed> {
        match self.agreement.release(open) {
            Ended::Deleting(doomed) => Some(doomed),
            Ended::Now => {
                if self.changes.is_watched() && self.is_delete_pending(open.node()) {
                    self.changes.publish_gone(open.node().id());
                }
                None
            }
            Ended::Before => None,
        }
    }

    /// Removes the name of a file whose last open is closed, if the name still refers to that file. Returns whether it does.
    fn delete_closed(
        self: &Arc<Self>,
        open: &Open,
        location: &Location,
        by: Option<Holder>,
        may: MayWait<'_>,
    ) -> Result<bool> {
        let (name, node) = (Name::new(&location.name)?, open.node());
        let dir = &location.parent;
        let (named, gone) = dir.lookup_attributes(name, Want::empty(), Wait::May(may))?;
        if named.id() != node.id() {
            return Ok(false);
        }
        let changing = Changing::begin(DirectoryReport::Nothing, dir, may)?;
        let suspicious = self.looks_at_going(open.openers()[0], dir, (node, &gone), Wait::May(may));
        self.take_away(&changing, Going { name, node, attributes: &gone }, by)?;
        self.notes_gone(suspicious);
        Ok(true)
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
            self.check_writable(open.node().id())?;
            let node = Arc::clone(open.node());
            self.run(call, Work::Metadata, move |share, may| share.check_deletable(&node, may)).await?;
            let take_back =
                || self.agreement.take_back(open.node().id(), Some(open.holder()), Operation::Delete);
            self.agreement.settled(call, || Ok(((), take_back()))).await?;
        }
        self.agreement.set_delete_pending(open, pending);
        if pending {
            self.changes.publish_gone(open.node().id());
        }
        Ok(())
    }

    fn check_deletable(&self, node: &NodeRef, may: MayWait<'_>) -> Result<()> {
        if node.id() == self.root().id() {
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
}

fn is_empty(dir: &NodeRef, may: MayWait<'_>) -> Result<bool> {
    let mut empty = true;
    dir.survey(may, &mut |_| {
        empty = false;
        std::ops::ControlFlow::Break(())
    })?;
    Ok(empty)
}
