//! The names in the directories of a share: how they are found, and what a change of them tells.
//!
//! This part knows no other part of a share. It asks the permissions of the directories that it looks names up in.

mod change;

use std::sync::Arc;

use cache::{Effort, FoldedNames};
use identity::Identity;
use storage::{Attributes, FileKind, MayWait, Name, Node, NodeRef, Protection, Wait, Want};

use crate::attempt::Attempt;
use crate::found::{Epoch, Found};
use crate::security::{Object, permission};
use crate::{Error, Location, Result};

pub(crate) use self::change::Changing;
pub use self::change::DirChange;

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

/// Where a path leads whose symbolic links are not followed.
#[derive(Debug, Clone)]
#[expect(
    clippy::large_enum_variant,
    reason = "it lives for one request; in a box each lookup would allocate"
)]
pub enum Reached {
    /// To its end, which may be a symbolic link.
    End(Walk),
    /// To a symbolic link on the way.
    Link {
        /// The link.
        link: NodeRef,
        /// How many names of the path come after the link: at least one.
        behind: usize,
    },
}

/// A lookup: for whom, how, and what of the object is wanted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lookup<'a> {
    pub(crate) who: &'a Identity,
    pub(crate) case: Case,
    pub(crate) effort: Effort,
    pub(crate) want: Want,
    /// When the lookup began, counted in removals.
    pub(crate) epoch: Epoch,
}

/// The names of a share. The lock of [`FoldedNames`] is its own; this part has none.
pub(crate) struct Namespace {
    root: NodeRef,
    folded: Arc<FoldedNames>,
}

impl Namespace {
    /// The names below `root`, with the index by which names are found regardless of case.
    pub(crate) fn new(root: NodeRef, folded: Arc<FoldedNames>) -> Self {
        Self { root, folded }
    }

    /// Walks a path from the root, and follows symbolic links that stay inside the share.
    ///
    /// # Errors
    /// [`storage::Error::NotFound`] or [`storage::Error::NotDirectory`] when a directory on the way is missing or is not a
    /// directory, [`storage::Error::SymlinkLoop`], [`Error::AccessDenied`] (also for a link that leads out).
    pub(crate) fn walk(&self, path: Vec<Vec<u8>>, lookup: &Lookup<'_>, may: MayWait<'_>) -> Attempt<Walk> {
        let all = path.len();
        match self.reach(path, all, lookup, may)? {
            Reached::End(walk) => Ok(walk),
            // Not met: all links are followed.
            Reached::Link { .. } => Err(storage::Error::SymlinkLoop.into()),
        }
    }

    /// Walks a path from the root, up to its end or to a symbolic link on the way. Only links among the first `trusted`
    /// names are followed, which the server has chosen itself.
    ///
    /// # Errors
    /// Those of [`Self::walk`].
    pub(crate) fn reach(
        &self,
        mut path: Vec<Vec<u8>>,
        trusted: usize,
        lookup: &Lookup<'_>,
        may: MayWait<'_>,
    ) -> Attempt<Reached> {
        let untrusted = path.len().saturating_sub(trusted);
        path.reverse(); // the next component is the last
        let (mut links, mut steps) = (0, 0);
        let mut at = Arc::clone(&self.root);
        while let Some(name) = path.pop() {
            steps += 1;
            if steps > COMPONENTS_MAX {
                return Err(storage::Error::NameTooLong.into());
            }
            let follows = path.len() >= untrusted;
            let next = if path.is_empty() {
                match self.find(&at, &name, lookup, may)? {
                    Walk::Found(last) if !follows || last.attributes.kind != FileKind::Symlink => {
                        return Ok(Reached::End(Walk::Found(last.secured(may)?)));
                    }
                    Walk::Found(link) => link.node,
                    missing @ Walk::Missing { .. } => return Ok(Reached::End(missing)),
                }
            } else {
                self.pass_through(&at, &name, lookup, may)?
            };
            if next.kind() != FileKind::Symlink {
                at = next;
                continue;
            }
            if !follows {
                return Ok(Reached::Link { link: next, behind: path.len() });
            }
            links += 1;
            if links > LINKS_MAX {
                return Err(storage::Error::SymlinkLoop.into());
            }
            follow(&next, &mut path, may)?;
        }
        let attributes = at.attributes(lookup.want, Wait::May(may))?;
        Ok(Reached::End(Walk::Found(Found::alone(at, attributes).secured(may)?)))
    }

    /// Finds a name on the way to another object.
    fn pass_through(
        &self,
        dir: &NodeRef,
        name: &[u8],
        lookup: &Lookup<'_>,
        may: MayWait<'_>,
    ) -> Attempt<NodeRef> {
        let protection = enter_directory(lookup.who, dir, may)?;
        if let Some(special) = special(dir, name, may)? {
            return Ok(special);
        }
        let look = |name: Name<'_>| dir.lookup(name, Wait::May(may));
        let how = (lookup.case, lookup.effort);
        let found = self.child(dir, protection.attributes.as_ref(), Name::new(name)?, how, look, may)?;
        found.map(|(node, _)| node).ok_or_else(|| storage::Error::NotFound.into())
    }

    /// Finds a name in a directory, also `.` and `..`. Symbolic links are not followed, and the security descriptor of the
    /// object is not read.
    ///
    /// # Errors
    /// [`Error::AccessDenied`] without search permission, [`storage::Error::NotDirectory`], the store's.
    pub(crate) fn find(
        &self,
        dir: &NodeRef,
        name: &[u8],
        lookup: &Lookup<'_>,
        may: MayWait<'_>,
    ) -> Attempt<Walk> {
        let protection = enter_directory(lookup.who, dir, may)?;
        if let Some(node) = special(dir, name, may)? {
            let attributes = node.attributes(lookup.want, Wait::May(may))?;
            let dir_protection = Some(protection);
            return Ok(Walk::Found(Found { dir_protection, ..Found::alone(node, attributes) }));
        }
        let look = |name: Name<'_>| dir.lookup_attributes(name, lookup.want, Wait::May(may));
        let how = (lookup.case, lookup.effort);
        let child = self.child(dir, protection.attributes.as_ref(), Name::new(name)?, how, look, may)?;
        let dir = Arc::clone(dir);
        let Some(((node, attributes), name)) = child else {
            return Ok(Walk::Missing { dir, name: name.to_vec() });
        };
        let (dir, dir_protection, epoch) = (Some(dir), Some(protection), lookup.epoch);
        Ok(Walk::Found(Found { dir, dir_protection, name, epoch, ..Found::alone(node, attributes) }))
    }

    /// What `look` finds by a name, and the name as the directory has it. `known` is what is known of the directory.
    pub(crate) fn child<T>(
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

    /// Refuses a name that differs only in case from a name of the directory.
    ///
    /// # Errors
    /// [`storage::Error::Exists`].
    pub(crate) fn check_free(
        &self,
        changing: &Changing<'_>,
        name: Name<'_>,
        case: Case,
        effort: Effort,
    ) -> Attempt<()> {
        if case == Case::Sensitive {
            return Ok(());
        }
        let Changing { dir, protection, may, .. } = changing;
        match self.folded.find(&***dir, protection.attributes.as_ref(), name.as_bytes(), effort, *may)? {
            Some(_) => Err(storage::Error::Exists.into()),
            None => Ok(()),
        }
    }

    /// The directory and name of an object, if the store knows them.
    pub(crate) fn locate(&self, node: &NodeRef, may: MayWait<'_>) -> Option<Location> {
        let path = node.path().ok()?;
        let mut parent = Arc::clone(&self.root);
        let mut parts = path.split(|b| *b == b'/').peekable();
        while let Some(part) = parts.next() {
            let name = Name::new(part).ok()?;
            if parts.peek().is_none() {
                return Some(Location { parent, name: part.to_vec() });
            }
            parent = parent.lookup(name, Wait::May(may)).ok()?;
        }
        None
    }
}

/// Checks that a user may look names up in a directory.
fn enter_directory(who: &Identity, dir: &NodeRef, may: MayWait<'_>) -> Result<Protection> {
    if dir.kind() != FileKind::Directory {
        return Err(storage::Error::NotDirectory.into());
    }
    let protection = dir.protection(Wait::May(may))?;
    permission::check_traverse(who, Object::from(&protection))?;
    Ok(protection)
}

/// Finds `.` and `..`, which no directory stores.
fn special(dir: &NodeRef, name: &[u8], may: MayWait<'_>) -> Result<Option<NodeRef>> {
    Ok(match name {
        b"." => Some(Arc::clone(dir)),
        b".." => Some(dir.parent(may)?),
        _ => None,
    })
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

#[cfg(test)]
mod tests;
