//! The common part of READ, WRITE, the opens and the locks: which objects have data, how much, and who may use it.

use nfs_proto::v4::open_state::ShareAccess;
use nfs_wire::v4::status::Status;
use share::{Access, Found};
use storage::{FileKind, NodeRef};

use crate::attributes::FILE_BYTES_MAX;
use crate::config::TRANSFER_BYTES_MAX;
use crate::object::Object;

/// Refuses an object that is not a regular file (RFC 8881 18.10.3, 18.22.3, 18.32.3).
///
/// # Errors
/// [`Status::IsDir`], [`Status::SymLink`], [`Status::WrongType`].
pub(super) fn check_regular(node: &NodeRef) -> Result<(), Status> {
    match node.kind() {
        FileKind::Regular => Ok(()),
        FileKind::Directory => Err(Status::IsDir),
        FileKind::Symlink => Err(Status::SymLink),
        _ => Err(Status::WrongType),
    }
}

/// The rights that reading or writing data needs.
pub(super) fn rights(access: ShareAccess) -> Access {
    let mut rights = Access::empty();
    rights.set(Access::READ_DATA, access.contains(ShareAccess::READ));
    rights.set(Access::WRITE_DATA | Access::APPEND_DATA, access.contains(ShareAccess::WRITE));
    rights
}

/// The rights by which the caller may read or write the data of a file.
///
/// # Errors
/// [`Status::Access`]; [`Status::RoFs`] when the export is read-only.
pub(super) fn permitted(object: &Object, found: &Found, access: ShareAccess) -> Result<Access, Status> {
    if access.contains(ShareAccess::WRITE) && object.is_read_only() {
        return Err(Status::RoFs);
    }
    let mut rights = rights(access);
    let maximal = object.share.maximal_access(&object.call.caller, found);
    let reads = rights.contains(Access::READ_DATA) && !maximal.contains(Access::READ_DATA);
    if reads && found.security.is_none() {
        // RFC 1813 4.4: a user who may execute a program may read it, because the client pages it in. Access control lists
        // tell the two apart.
        rights = rights.difference(Access::READ_DATA) | Access::EXECUTE;
    }
    if maximal.contains(rights) { Ok(rights) } else { Err(Status::Access) }
}

/// The part of a read that can return data: as much as fits into the reply, and nothing beyond the largest file.
pub(super) fn within_largest_file(offset: u64, count: u32, room: usize) -> (u64, usize) {
    /// The size of READ's result without its data.
    const HEAD_BYTES: usize = 4 + 4 + 4 + 4 + 3;
    let offset = offset.min(FILE_BYTES_MAX);
    let count = u64::from(count.min(TRANSFER_BYTES_MAX)).min(FILE_BYTES_MAX - offset);
    (offset, usize::try_from(count).unwrap_or(0).min(room.saturating_sub(HEAD_BYTES)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_are_cut_to_what_can_have_data_and_fits() {
        let most = TRANSFER_BYTES_MAX as usize;
        let room = 2 * most;
        assert_eq!(within_largest_file(5, 7, room), (5, 7));
        assert_eq!(within_largest_file(5, u32::MAX, room), (5, most));
        assert_eq!(within_largest_file(u64::MAX, 7, room), (FILE_BYTES_MAX, 0));
        assert_eq!(within_largest_file(FILE_BYTES_MAX - 3, 7, room), (FILE_BYTES_MAX - 3, 3));
        assert_eq!(within_largest_file(0, 100, 69), (0, 50));
        assert_eq!(within_largest_file(0, 100, 5), (0, 0));
    }
}
