//! Permission checks: permission bits and security descriptors in terms of access masks.
//!
//! This module alone decides, for both protocols, what a user may do. A security descriptor in force decides; without one,
//! the permission bits do.

use acl::SecurityDescriptor;
use file_state::Access;
use storage::{Attributes, FileKind, Protection};

use crate::{Error, Identity, Result};

const STICKY: u32 = 0o1000;
const SET_UID: u32 = 0o4000;
const SET_GID: u32 = 0o2000;

/// What any user who reaches an object may do: look at it.
const ALWAYS: Access = Access::READ_ATTRIBUTES.union(Access::READ_CONTROL).union(Access::SYNCHRONIZE);
/// What the read bit allows.
const READ: Access = Access::READ_DATA.union(Access::READ_EA);
/// What the write bit allows.
const WRITE: Access =
    Access::WRITE_DATA.union(Access::APPEND_DATA).union(Access::WRITE_EA).union(Access::WRITE_ATTRIBUTES);
/// What the owner may do whatever the bits say.
const OWNER: Access = Access::WRITE_ATTRIBUTES.union(Access::WRITE_EA).union(Access::WRITE_DAC);

/// The attributes and descriptor that decide who may do what with an object.
#[derive(Debug, Clone, Copy)]
pub struct Object<'a> {
    pub(crate) kind: FileKind,
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// The security descriptor in force; without one the permission bits decide.
    pub(crate) security: Option<&'a SecurityDescriptor>,
}

impl<'a> Object<'a> {
    /// An object with these attributes and the security descriptor in force.
    #[must_use]
    pub fn new(attributes: &Attributes, security: Option<&'a SecurityDescriptor>) -> Self {
        let &Attributes { kind, mode, uid, gid, .. } = attributes;
        Self { kind, mode, uid, gid, security }
    }

    fn is_dir(&self) -> bool {
        self.kind == FileKind::Directory
    }
}

impl<'a> From<&'a Protection> for Object<'a> {
    fn from(protection: &'a Protection) -> Self {
        let &Protection { kind, mode, uid, gid, ref security, .. } = protection;
        Self { kind, mode, uid, gid, security: security.as_deref() }
    }
}

/// What `who` may do with an object. Deletion also depends on the directory: [`may_delete`].
#[must_use]
pub fn permitted(who: &Identity, object: Object<'_>) -> Access {
    if who.is_exempt() {
        let all = Access::all();
        // Not even the superuser may execute a file that has no execute bit.
        let executable = object.is_dir() || object.mode & 0o111 != 0;
        return if executable { all } else { all.difference(Access::EXECUTE) };
    }
    match object.security {
        Some(descriptor) => Access::from_bits_truncate(descriptor.maximal_access(&who.token()).bits()),
        None => permitted_by_mode(who, object),
    }
}

fn permitted_by_mode(who: &Identity, object: Object<'_>) -> Access {
    let bits = class_bits(who, object);
    let mut access = ALWAYS;
    access.set(READ, bits & 0o4 != 0);
    access.set(WRITE, bits & 0o2 != 0);
    access.set(Access::DELETE_CHILD, object.is_dir() && bits & 0o3 == 0o3);
    access.set(Access::EXECUTE, bits & 0o1 != 0);
    if who.uid() == object.uid {
        access |= OWNER;
    }
    access
}

/// The three permission bits that apply to a user: exactly one class counts, as POSIX says.
fn class_bits(who: &Identity, object: Object<'_>) -> u32 {
    let shift = if who.uid() == object.uid {
        6
    } else if who.is_in_group(object.gid) {
        3
    } else {
        0
    };
    (object.mode >> shift) & 0o7
}

/// Whether `who` may remove or rename `object` in `dir`: if its own descriptor allows deletion, or by the permissions of the
/// directory (write and search) and, in a sticky directory, ownership of the object or the directory.
#[must_use]
pub fn may_delete(who: &Identity, dir: Object<'_>, object: Object<'_>) -> bool {
    may_delete_checked(who, dir, object).is_ok()
}

/// [`may_delete`] with the reason: no permission in the directory (EACCES), or a sticky directory (EPERM in POSIX).
pub(crate) fn may_delete_checked(who: &Identity, dir: Object<'_>, object: Object<'_>) -> Result<()> {
    // The right to delete the object, or the right to delete entries of its directory.
    if object.security.is_some() && permitted(who, object).contains(Access::DELETE) {
        return Ok(());
    }
    check(who, dir, Access::DELETE_CHILD)?;
    let owners = [dir.uid, object.uid];
    let owns = who.is_exempt() || owners.contains(&who.uid());
    if dir.mode & STICKY != 0 && !owns { Err(Error::NotOwner) } else { Ok(()) }
}

/// Requires `wanted` from the object's permissions.
///
/// # Errors
/// [`Error::AccessDenied`].
pub(crate) fn check(who: &Identity, object: Object<'_>, wanted: Access) -> Result<()> {
    if permitted(who, object).contains(wanted) { Ok(()) } else { Err(Error::AccessDenied) }
}

/// Requires the right to look names up in a directory. Where a descriptor is in force the owner always may, since it could
/// grant itself that right at any time: ACLs made on Windows rely on everybody's privilege to bypass traverse checks.
///
/// # Errors
/// [`Error::AccessDenied`].
pub(crate) fn check_traverse(who: &Identity, dir: Object<'_>) -> Result<()> {
    let owns = dir.security.is_some() && who.uid() == dir.uid;
    if owns { Ok(()) } else { check(who, dir, Access::TRAVERSE) }
}

/// Requires the right to create an entry in a directory; `right` says of which kind (ADD_FILE, ADD_SUBDIRECTORY).
///
/// # Errors
/// [`Error::AccessDenied`].
pub(crate) fn check_add(who: &Identity, dir: Object<'_>, right: Access) -> Result<()> {
    check(who, dir, right)?;
    check_traverse(who, dir)
}

/// Whether a directory with permission-based listings shows `object` to `who`: only to users who may read all of it.
#[must_use]
pub(crate) fn is_listed(who: &Identity, object: Object<'_>) -> bool {
    permitted(who, object).contains(ALWAYS | READ)
}

/// The mode after a user without privilege has written data or changed the owner: the set-user-id bit is cleared, and the
/// set-group-id bit only where the group may execute, as it marks mandatory locking otherwise.
pub(crate) fn mode_without_privilege(mode: u32) -> u32 {
    let group = if mode & 0o010 != 0 { SET_GID } else { 0 };
    mode & !(SET_UID | group)
}

/// The mode of a new object. In a set-group-id directory, a new directory inherits the bit, and a new file loses it when its
/// creator does not belong to the group.
pub(crate) fn mode_of_new(who: &Identity, dir: Object<'_>, mode: u32, is_dir: bool) -> u32 {
    let inherits = dir.mode & SET_GID != 0;
    let group = group_of_new(who, dir);
    let mut mode = mode & 0o7777;
    if is_dir && inherits {
        mode |= SET_GID;
    } else if mode & SET_GID != 0 && !who.is_superuser() && !who.is_in_group(group) {
        mode &= !SET_GID;
    }
    mode
}

/// The group of a new object in `dir`.
pub(crate) fn group_of_new(who: &Identity, dir: Object<'_>) -> u32 {
    if dir.mode & SET_GID != 0 { dir.gid } else { who.gid() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use storage::{Device, ObjectId, Timestamp};

    fn object(kind: FileKind, mode: u32, uid: u32, gid: u32) -> Attributes {
        Attributes {
            id: ObjectId::live(1),
            kind,
            mode,
            links: 1,
            uid,
            gid,
            device: Device::default(),
            size: 0,
            allocated: 0,
            atime: Timestamp::default(),
            mtime: Timestamp::default(),
            ctime: Timestamp::default(),
            btime: None,
            flags: None,
            ctime_set: None,
            changes_within_ctime: 0,
        }
    }

    fn by_mode(attributes: &Attributes) -> Object<'_> {
        Object::new(attributes, None)
    }

    fn user(uid: u32, gid: u32, groups: &[u32]) -> Identity {
        Identity::unix(uid, gid, groups.to_vec())
    }

    #[test]
    fn exactly_one_class_counts() {
        let file = object(FileKind::Regular, 0o074, 10, 20);
        assert!(
            !permitted(&user(10, 20, &[]), by_mode(&file)).contains(Access::READ_DATA),
            "owner bits are empty"
        );
        assert!(permitted(&user(11, 1, &[20]), by_mode(&file)).contains(READ | WRITE | Access::EXECUTE));
        let other = permitted(&user(11, 1, &[]), by_mode(&file));
        assert!(other.contains(READ) && !other.intersects(Access::WRITE_DATA | Access::EXECUTE));
    }

    #[test]
    fn the_owner_keeps_the_attributes() {
        let file = object(FileKind::Regular, 0, 10, 20);
        let owner = permitted(&user(10, 20, &[]), by_mode(&file));
        assert!(owner.contains(OWNER) && !owner.contains(Access::WRITE_DATA));
        assert!(!permitted(&user(11, 20, &[]), by_mode(&file)).contains(Access::WRITE_ATTRIBUTES));
    }

    #[test]
    fn the_superuser_executes_only_programs() {
        let root = user(0, 0, &[]);
        assert!(
            !permitted(&root, by_mode(&object(FileKind::Regular, 0o644, 1, 1))).contains(Access::EXECUTE)
        );
        assert!(permitted(&root, by_mode(&object(FileKind::Regular, 0o001, 1, 1))).contains(Access::EXECUTE));
        assert!(permitted(&root, by_mode(&object(FileKind::Directory, 0, 1, 1))).contains(Access::EXECUTE));
    }

    #[test]
    fn sticky_directories_protect_the_files_of_others() {
        let dir = object(FileKind::Directory, 0o1777, 1, 1);
        let file = object(FileKind::Regular, 0o666, 10, 10);
        assert!(may_delete(&user(10, 10, &[]), by_mode(&dir), by_mode(&file)));
        assert!(may_delete(&user(1, 1, &[]), by_mode(&dir), by_mode(&file)));
        assert_eq!(
            may_delete_checked(&user(11, 11, &[]), by_mode(&dir), by_mode(&file)),
            Err(Error::NotOwner)
        );
        let closed = object(FileKind::Directory, 0o755, 1, 1);
        assert_eq!(
            may_delete_checked(&user(10, 10, &[]), by_mode(&closed), by_mode(&file)),
            Err(Error::AccessDenied)
        );
    }

    #[test]
    fn privilege_bits() {
        assert_eq!(mode_without_privilege(0o6755), 0o0755);
        assert_eq!(mode_without_privilege(0o6745), 0o2745);
        let dir = object(FileKind::Directory, 0o2775, 1, 50);
        assert_eq!(mode_of_new(&user(10, 10, &[]), by_mode(&dir), 0o2755, false), 0o0755);
        assert_eq!(mode_of_new(&user(10, 10, &[50]), by_mode(&dir), 0o2755, false), 0o2755);
        assert_eq!(mode_of_new(&user(10, 10, &[]), by_mode(&dir), 0o755, true), 0o2755);
        assert_eq!(group_of_new(&user(10, 10, &[]), by_mode(&dir)), 50);
    }
}
