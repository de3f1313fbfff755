//! Who may read and write the data of files: what is asked of a file, and what is remembered of the answers.
//!
//! This part knows no other part of a share. Locks, caching grants and the budget are asked by [`crate::Share`].

mod read_permits;

use std::sync::Arc;
use std::time::Duration;

use file_state::Access;
use identity::Identity;
use storage::{Attributes, FileKind, MayWait, NodeRef, ObjectId, SetAttributes, Timestamp, Wait, Want};

use self::read_permits::ReadPermits;
use crate::security::{Object, permission};
use crate::{Error, Result};

/// The rights that allow reading. A user who may execute a program may read it: the client pages it in. See
/// [`Data::check`] for callers without an open.
pub(crate) const MAY_READ: Access = Access::READ_DATA.union(Access::EXECUTE);

/// What is remembered of the data of files.
///
/// Locks: [`ReadPermits`] says what its locks guard. Each is taken alone.
#[derive(Default)]
pub(crate) struct Data {
    permits: ReadPermits,
}

impl Data {
    /// The attributes of a file, if a caller without an open may use it in any of these ways.
    ///
    /// # Errors
    /// [`Error::AccessDenied`], [`storage::Error::IsDirectory`], [`storage::Error::WrongKind`], the store's.
    pub(crate) fn check(
        who: &Identity,
        node: &NodeRef,
        rights: Access,
        may: MayWait<'_>,
    ) -> Result<Attributes> {
        let attributes = node.attributes(Want::empty(), Wait::May(may))?;
        check_rights(who, node, &attributes, rights, may)?;
        Ok(attributes)
    }

    /// As [`Data::check`], for reading. The permission is remembered.
    ///
    /// # Errors
    /// As [`Data::check`].
    pub(crate) fn permit_read(
        &self,
        who: &Arc<Identity>,
        node: &NodeRef,
        may: MayWait<'_>,
    ) -> Result<Attributes> {
        let asked = now();
        let attributes = Self::check(who, node, MAY_READ, may)?;
        self.permits.enter(who, &attributes, asked);
        Ok(attributes)
    }

    /// The change time of a file as of which this user may read it, if that is remembered.
    pub(crate) fn permitted_at(&self, id: ObjectId, who: &Arc<Identity>) -> Option<Timestamp> {
        self.permits.of(id, who)
    }
}

/// The time of the system's clock, by which change times are given.
fn now() -> Duration {
    std::time::UNIX_EPOCH.elapsed().unwrap_or_default()
}

/// Whether a caller without an open may read or write: by one of these rights or, where permission bits decide, as the
/// owner. Where an ACL decides, the right to execute does not allow reading: an ACL has a separate right for that, which may
/// be denied.
fn check_rights(
    who: &Identity,
    node: &NodeRef,
    attributes: &Attributes,
    rights: Access,
    may: MayWait<'_>,
) -> Result<()> {
    match attributes.kind {
        FileKind::Regular => {}
        FileKind::Directory => return Err(storage::Error::IsDirectory.into()),
        _ => return Err(storage::Error::WrongKind.into()),
    }
    let security = node.security(attributes, Wait::May(may))?;
    if security.is_none() && who.uid() == attributes.uid {
        return Ok(());
    }
    let rights = if security.is_some() { rights.difference(Access::EXECUTE) } else { rights };
    let object = Object::new(attributes, security.as_deref());
    let allowed = permission::permitted(who, object);
    if allowed.intersects(rights) { Ok(()) } else { Err(Error::AccessDenied) }
}

/// Clears the privilege bits of a program that has this mode.
pub(crate) fn take_privilege_bits(node: &NodeRef, mode: u32, may: MayWait<'_>) -> Result<()> {
    let left = permission::mode_without_privilege(mode);
    if left != mode {
        node.set_attributes(&SetAttributes { mode: Some(left), ..SetAttributes::default() }, may)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
