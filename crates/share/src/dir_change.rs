//! A directory before and after a change of its names.

use std::sync::Arc;

use acl::SecurityDescriptor;
use file_state::Access;
use storage::{Attributes, FileKind, NodeRef, Wait, Want};

use crate::cache::Watch;
use crate::permission::Object;
use crate::{Caller, Result, permission};

/// A directory before and after a change.
#[derive(Debug, Clone, Copy)]
pub struct DirChange {
    /// Before.
    pub before: Attributes,
    /// After.
    pub after: Attributes,
    /// Certainly nothing but this change lies between the two (RFC 8881 3.3.8, `change_info4`). Of directories that the
    /// metadata cache does not follow this cannot be said.
    pub is_atomic: bool,
}

/// A directory that is about to change.
pub(crate) struct Before {
    /// Sees all that comes after it was made, so it comes first.
    watch: Watch,
    pub(crate) attributes: Attributes,
    pub(crate) security: Option<Arc<SecurityDescriptor>>,
}

impl Before {
    /// A directory as it is before a change.
    pub(crate) fn change(dir: &NodeRef) -> Result<Self> {
        let watch = Watch::begin(&**dir);
        let attributes = dir.attributes(Want::empty(), Wait::May)?;
        if attributes.kind != FileKind::Directory {
            return Err(storage::Error::NotDirectory.into());
        }
        let security = dir.security(&attributes, Wait::May)?;
        Ok(Self { watch, attributes, security })
    }

    /// A directory in which the caller may make an entry.
    pub(crate) fn adding(caller: &Caller, dir: &NodeRef, is_dir: bool) -> Result<Self> {
        let before = Self::change(dir)?;
        let right = if is_dir { Access::ADD_SUBDIRECTORY } else { Access::ADD_FILE };
        permission::check_add(&caller.identity, before.object(), right)?;
        Ok(before)
    }

    pub(crate) fn object(&self) -> Object<'_> {
        Object { attributes: &self.attributes, security: self.security.as_deref() }
    }

    /// The directory once it was changed, so many times; `own` more of these look on.
    pub(crate) fn after(&self, dir: &NodeRef, changes: u64, own: u64) -> Result<DirChange> {
        let after = dir.attributes(Want::empty(), Wait::May)?;
        Ok(DirChange { before: self.attributes, after, is_atomic: self.watch.saw_only(changes, own) })
    }
}
