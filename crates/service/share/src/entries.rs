//! What clients do with the entries of directories: find, create, remove and rename.

mod link;
mod make;
mod remove;
mod rename;

use std::sync::Arc;

use file_state::{Access, Holder};
use storage::{Attributes, MayWait, NodeRef, Wait, Want};

use crate::call::Author;
use crate::found::Found;
use crate::logged::{path_in, path_of};
use crate::long_call::LongCall;
use crate::namespace::{Case, Changing, Lookup, Reached, Walk};
use crate::schedule::Work;
use crate::security::{Object, permission};
use crate::watch::{ChangeAction, ChangeKinds, Event};
use crate::{Call, Caller, Error, Location, Result, Share};

pub use link::LINK_TARGET_BYTES_MAX;
pub use make::Created;
pub use rename::RenameHow;

impl Share {
    /// Finds a name in a directory, also `.` and `..`; `..` of the root is the root. Symbolic links are not followed.
    ///
    /// # Errors
    /// [`Error::AccessDenied`] without search permission, [`storage::Error::NotFound`], the store's.
    pub async fn lookup(
        self: &Arc<Self>,
        call: &Call,
        dir: &NodeRef,
        name: &[u8],
        case: Case,
        want: Want,
    ) -> Result<Found> {
        self.note_path(call, || path_in(dir, name));
        let (caller, parent, wanted) = (call.caller.clone(), Arc::clone(dir), name.to_vec());
        let look: LongCall<_> = Arc::new(move |share, effort, may| {
            let epoch = share.agreement.now();
            let lookup = Lookup { who: &caller.identity, case, effort, want, epoch };
            match share.namespace.find(&parent, &wanted, &lookup, may)? {
                Walk::Found(found) => Ok(found.secured(may)?),
                Walk::Missing { .. } => Err(storage::Error::NotFound.into()),
            }
        });
        let found = self.run_long(call, Work::Metadata, &look).await?;
        self.note_found(call, || path_in(dir, name));
        Ok(found)
    }

    /// Walks a path from the root, and follows symbolic links that stay inside the share.
    ///
    /// # Errors
    /// [`storage::Error::NotFound`] or [`storage::Error::NotDirectory`] when a directory on the way is missing or is not a
    /// directory, [`storage::Error::SymlinkLoop`], [`Error::AccessDenied`] (also for a link that leads out).
    pub async fn walk(
        self: &Arc<Self>,
        call: &Call,
        path: Vec<Vec<u8>>,
        case: Case,
        want: Want,
    ) -> Result<Walk> {
        self.note_path(call, || path.join(&b'/'));
        let caller = call.caller.clone();
        let walk: LongCall<_> = Arc::new(move |share, effort, may| {
            let epoch = share.agreement.now();
            let lookup = Lookup { who: &caller.identity, case, effort, want, epoch };
            share.namespace.walk(path.clone(), &lookup, may)
        });
        let walked = self.run_long(call, Work::Metadata, &walk).await?;
        // The path may have led over symbolic links, and its names may have differed in case.
        self.note_path(call, || match &walked {
            Walk::Found(found) => path_of(&found.node),
            Walk::Missing { dir, name } => path_in(dir, name),
        });
        Ok(walked)
    }

    /// Walks a path from the root, up to its end or to a symbolic link on the way: the client follows links. The server
    /// follows only those among the first `trusted` names of the path, which it has chosen itself.
    ///
    /// # Errors
    /// Those of [`Self::walk`].
    pub async fn reach(
        self: &Arc<Self>,
        call: &Call,
        path: Vec<Vec<u8>>,
        trusted: usize,
        case: Case,
        want: Want,
    ) -> Result<Reached> {
        self.note_path(call, || path.join(&b'/'));
        let caller = call.caller.clone();
        let walk: LongCall<_> = Arc::new(move |share, effort, may| {
            let epoch = share.agreement.now();
            let lookup = Lookup { who: &caller.identity, case, effort, want, epoch };
            share.namespace.reach(path.clone(), trusted, &lookup, may)
        });
        let reached = self.run_long(call, Work::Metadata, &walk).await?;
        // Names of the path may have differed in case.
        self.note_path(call, || match &reached {
            Reached::End(Walk::Found(Found { node, dir: None, .. })) | Reached::Link { link: node, .. } => {
                path_of(node)
            }
            Reached::End(Walk::Found(Found { dir: Some(dir), name, .. }) | Walk::Missing { dir, name }) => {
                path_in(dir, name)
            }
        });
        Ok(reached)
    }

    /// Begins a change of a directory in which the caller may create an entry.
    fn begin_adding<'a>(
        &self,
        author: &Author,
        dir: &'a NodeRef,
        is_dir: bool,
        may: MayWait<'a>,
    ) -> Result<Changing<'a>> {
        let changing = Changing::begin(author.report, dir, may)?;
        let right = if is_dir { Access::ADD_SUBDIRECTORY } else { Access::ADD_FILE };
        self.security.check_add(&author.caller.identity, changing.object(), right)?;
        Ok(changing)
    }

    /// Refuses new entries in a directory that is about to be deleted.
    fn check_dir_admits(&self, dir: &NodeRef) -> Result<()> {
        if self.is_delete_pending(dir) { Err(Error::DeletePending) } else { Ok(()) }
    }

    /// Tells watchers and holders of cached listings that a name was created or removed. `by` is the caching grant on the
    /// directory of the caller that did it.
    pub(crate) fn tell_name(
        &self,
        dir: &NodeRef,
        name: &[u8],
        action: ChangeAction,
        is_dir: bool,
        by: Option<Holder>,
        may: MayWait<'_>,
    ) {
        let kinds = if is_dir { ChangeKinds::DIR_NAME } else { ChangeKinds::FILE_NAME };
        self.changes.publish(&Event { dir, name, action, kinds, unless: ChangeKinds::empty() }, may);
        self.agreement.entries_changed(dir.id(), by);
    }

    pub(crate) fn tell_renamed(
        &self,
        from: &Location,
        to: &Location,
        is_dir: bool,
        by: Option<Holder>,
        may: MayWait<'_>,
    ) {
        let same = from.parent.id() == to.parent.id();
        let (gone, come) = if same {
            (ChangeAction::RenamedFrom, ChangeAction::RenamedTo)
        } else {
            (ChangeAction::Removed, ChangeAction::Added)
        };
        self.tell_name(&from.parent, &from.name, gone, is_dir, by, may);
        self.tell_name(&to.parent, &to.name, come, is_dir, by, may);
        if !is_dir {
            // As on Windows, watchers that do not watch for names are told that the file of the new name has changed
            // attributes.
            self.changes.publish(
                &Event {
                    dir: &to.parent,
                    name: &to.name,
                    action: ChangeAction::Modified,
                    kinds: ChangeKinds::ATTRIBUTES | ChangeKinds::CREATION,
                    unless: ChangeKinds::FILE_NAME,
                },
                may,
            );
        }
    }
}

/// Refuses to remove or rename an object that the caller may not delete.
fn check_deletion(
    caller: &Caller,
    dir: &Changing<'_>,
    node: &NodeRef,
    attributes: &Attributes,
) -> Result<()> {
    let security = node.security(attributes, Wait::May(dir.may))?;
    let object = Object::new(attributes, security.as_deref());
    permission::may_delete_checked(&caller.identity, dir.object(), object)
}
