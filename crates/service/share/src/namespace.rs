//! Finding names. The modules below it create, remove and rename.

mod make;
mod remove;
mod rename;

use std::sync::Arc;

use cache::Effort;
use file_state::Holder;
use storage::{Attributes, FileKind, MayWait, Name, Node, NodeRef, Protection, Wait, Want};

use crate::found::Found;
use crate::long_call::{Attempt, LongCall};
use crate::names::Changing;
use crate::schedule::Work;
use crate::security::Object;
use crate::security::permission;
use crate::watch::{ChangeAction, ChangeKinds, Event};
use crate::{Call, Caller, Error, Location, Result, Share};

pub use make::{Created, NewObject};
pub use rename::RenameHow;

/// Symbolic links followed while one path is walked (as Linux' MAXSYMLINKS).
const LINKS_MAX: usize = 40;
/// Components of one path, including those of link targets.
const COMPONENTS_MAX: usize = 1024;

/// How names are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    /// Byte by byte.
    Sensitive,
    /// Regardless of case; a name that matches exactly is preferred.
    Insensitive,
}

/// Where a path leads.
#[derive(Debug, Clone)]
#[expect(
    clippy::large_enum_variant,
    reason = "it lives for one request; in a box each lookup would allocate"
)]
pub enum Walk {
    /// To an object.
    Found(Found),
    /// To a name that the directory does not have and that can be created there.
    Missing {
        /// The directory.
        dir: NodeRef,
        /// The name.
        name: Vec<u8>,
    },
}

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
        let (caller, dir, name) = (call.caller.clone(), Arc::clone(dir), name.to_vec());
        let look: LongCall<_> = Arc::new(move |share, effort, may| {
            match share.step(&caller, &dir, &name, (case, effort), want, may)? {
                Walk::Found(found) => Ok(found.secured(may)?),
                Walk::Missing { .. } => Err(storage::Error::NotFound.into()),
            }
        });
        self.run_long(call, Work::Metadata, &look).await
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
        let caller = call.caller.clone();
        let walk: LongCall<_> = Arc::new(move |share, effort, may| {
            share.walk_now(&caller, path.clone(), (case, effort), want, may)
        });
        self.run_long(call, Work::Metadata, &walk).await
    }

    fn walk_now(
        &self,
        caller: &Caller,
        mut path: Vec<Vec<u8>>,
        how: (Case, Effort),
        want: Want,
        may: MayWait<'_>,
    ) -> Attempt<Walk> {
        path.reverse(); // the next component is the last
        let (mut links, mut steps) = (0, 0);
        let mut at = Arc::clone(self.root());
        while let Some(name) = path.pop() {
            steps += 1;
            if steps > COMPONENTS_MAX {
                return Err(storage::Error::NameTooLong.into());
            }
            let next = if path.is_empty() {
                match self.step(caller, &at, &name, how, want, may)? {
                    Walk::Found(last) if last.attributes.kind != FileKind::Symlink => {
                        return Ok(Walk::Found(last.secured(may)?));
                    }
                    Walk::Found(link) => link.node,
                    missing @ Walk::Missing { .. } => return Ok(missing),
                }
            } else {
                self.pass_through(caller, &at, &name, how, may)?
            };
            if next.kind() != FileKind::Symlink {
                at = next;
                continue;
            }
            links += 1;
            if links > LINKS_MAX {
                return Err(storage::Error::SymlinkLoop.into());
            }
            follow(&next, &mut path, may)?;
        }
        let attributes = at.attributes(want, Wait::May(may))?;
        Ok(Walk::Found(Found::alone(at, attributes).secured(may)?))
    }

    /// Checks that the caller may look names up in a directory.
    fn enter_directory(&self, caller: &Caller, dir: &NodeRef, may: MayWait<'_>) -> Result<Protection> {
        if dir.kind() != FileKind::Directory {
            return Err(storage::Error::NotDirectory.into());
        }
        let protection = dir.protection(Wait::May(may))?;
        permission::check_traverse(&caller.identity, Object::from(&protection))?;
        Ok(protection)
    }

    /// Finds a name on the way to another object.
    fn pass_through(
        &self,
        caller: &Caller,
        dir: &NodeRef,
        name: &[u8],
        how: (Case, Effort),
        may: MayWait<'_>,
    ) -> Attempt<NodeRef> {
        let protection = self.enter_directory(caller, dir, may)?;
        if let Some(special) = special(dir, name, may)? {
            return Ok(special);
        }
        let look = |name: Name<'_>| dir.lookup(name, Wait::May(may));
        let found = self.child(dir, protection.attributes.as_ref(), Name::new(name)?, how, look, may)?;
        found.map(|(node, _)| node).ok_or_else(|| storage::Error::NotFound.into())
    }

    fn step(
        &self,
        caller: &Caller,
        dir: &NodeRef,
        name: &[u8],
        how: (Case, Effort),
        want: Want,
        may: MayWait<'_>,
    ) -> Attempt<Walk> {
        let protection = self.enter_directory(caller, dir, may)?;
        if let Some(node) = special(dir, name, may)? {
            let attributes = node.attributes(want, Wait::May(may))?;
            let dir_protection = Some(protection);
            return Ok(Walk::Found(Found { dir_protection, ..Found::alone(node, attributes) }));
        }
        let epoch = self.agreement.now();
        let look = |name: Name<'_>| dir.lookup_attributes(name, want, Wait::May(may));
        let child = self.child(dir, protection.attributes.as_ref(), Name::new(name)?, how, look, may)?;
        let dir = Arc::clone(dir);
        let Some(((node, attributes), name)) = child else {
            return Ok(Walk::Missing { dir, name: name.to_vec() });
        };
        let (dir, dir_protection) = (Some(dir), Some(protection));
        Ok(Walk::Found(Found { dir, dir_protection, name, epoch, ..Found::alone(node, attributes) }))
    }

    /// What `look` finds by a name, and the name as the directory has it. `known` is what is known of the directory.
    fn child<T>(
        &self,
        dir: &NodeRef,
        known: Option<&Attributes>,
        name: Name<'_>,
        (case, effort): (Case, Effort),
        look: impl Fn(Name<'_>) -> storage::Result<T>,
        may: MayWait<'_>,
    ) -> Attempt<Option<(T, Vec<u8>)>> {
        match look(name) {
            Ok(child) => return Ok(Some((child, name.as_bytes().to_vec()))),
            Err(storage::Error::NotFound) if case == Case::Insensitive => {}
            Err(storage::Error::NotFound) => return Ok(None),
            Err(e) => return Err(e.into()),
        }
        let Some(other) = self.folded.find(&**dir, known, name.as_bytes(), effort, may)? else {
            return Ok(None);
        };
        match look(Name::new(&other)?) {
            Ok(child) => Ok(Some((child, other))),
            Err(storage::Error::NotFound) => Ok(None), // it has just gone
            Err(e) => Err(e.into()),
        }
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

    fn tell_renamed(
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

/// Finds `.` and `..`, which no directory stores.
fn special(dir: &NodeRef, name: &[u8], may: MayWait<'_>) -> Result<Option<NodeRef>> {
    Ok(match name {
        b"." => Some(Arc::clone(dir)),
        b".." => Some(dir.parent(may)?),
        _ => None,
    })
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

/// Puts the target of a link in front of the rest of a path. An absolute target would lead out of the share.
fn follow(link: &Arc<dyn Node>, path: &mut Vec<Vec<u8>>, may: MayWait<'_>) -> Result<()> {
    let text = link.read_link(may)?;
    if text.first() == Some(&b'/') {
        return Err(Error::AccessDenied);
    }
    let parts = text.split(|b| *b == b'/').filter(|part| !part.is_empty());
    let parts: Vec<_> = parts.map(<[u8]>::to_vec).collect();
    if path.len() + parts.len() > COMPONENTS_MAX {
        return Err(storage::Error::SymlinkLoop.into());
    }
    path.extend(parts.into_iter().rev());
    Ok(())
}
