//! The common part of the operations on names.

use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::{ChangeInfo, NAME_BYTES_MAX, Name};
use share::DirChange;
use storage::{Attributes, FileKind};

use crate::object::Object;
use crate::status;

/// Refuses an object that is not a directory.
///
/// # Errors
/// [`Status::SymLink`], [`Status::NotDir`] (RFC 8881 18.13.3, 15.1.2.8).
pub(super) fn check(dir: &Object) -> Result<(), Status> {
    match dir.node.kind() {
        FileKind::Directory => Ok(()),
        FileKind::Symlink => Err(Status::SymLink),
        _ => Err(Status::NotDir),
    }
}

/// A name that exists, or may exist. Names created by NFSv3 clients or by programs on the server need not be UTF-8, and
/// can still be reached.
///
/// # Errors
/// Those of [`Name::checked`], except for names that are not UTF-8, for which see [`not_found`].
pub(super) fn existing(name: Name<'_>) -> Result<&[u8], Status> {
    match name.checked() {
        Err(Status::Inval) if !name.0.is_empty() => {
            if name.0.len() > NAME_BYTES_MAX {
                return Err(Status::NameTooLong);
            }
            if name.0.iter().any(|byte| matches!(byte, b'/' | 0)) { Err(Status::BadChar) } else { Ok(name.0) }
        }
        checked => checked,
    }
}

/// The status of a call for a name that must exist. RFC 8881 14.5 requires [`Status::Inval`] for a name that is not
/// UTF-8.
pub(super) fn not_found(error: share::Error, name: &[u8]) -> Status {
    match refused(error) {
        Status::NoEnt if std::str::from_utf8(name).is_err() => Status::Inval,
        status => status,
    }
}

/// The status of a call that changes names. A client that has the object open without sharing may close it soon. NFSv4
/// has NFS4ERR_FILE_OPEN for that case, but clients give up on it.
pub(super) fn refused(error: share::Error) -> Status {
    match status::v4(error) {
        Status::ShareDenied | Status::FileOpen => Status::Delay,
        status => status,
    }
}

/// The change information about a directory that the client changed (RFC 8881 3.3.8, `change_info4`). If the state before the change is not known,
/// others have changed the directory. Then the client gets a value that it cannot have cached.
pub(super) fn change(change: &DirChange) -> ChangeInfo {
    let after = change.after.map_or(0, |after| after.change());
    let before = change.before.map_or(after, |before| before.change());
    ChangeInfo { atomic: change.is_atomic, before, after }
}

/// The change information about an object that the client changed. Others may have changed the object in between.
pub(super) fn between(before: &Attributes, after: &Attributes) -> ChangeInfo {
    ChangeInfo { atomic: false, before: before.change(), after: after.change() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_there_may_be_any_bytes() {
        for (name, expected) in [
            (&b""[..], Err(Status::Inval)),
            (b".", Err(Status::BadName)),
            (b"..", Err(Status::BadName)),
            (b"a/b", Err(Status::BadChar)),
            (b"a\0", Err(Status::BadChar)),
            (b"\xff/", Err(Status::BadChar)),
            (&[b'n'; 256], Err(Status::NameTooLong)),
            (&[0xff; 256], Err(Status::NameTooLong)),
            (b"...", Ok(&b"..."[..])),
            (b"caf\xe9", Ok(b"caf\xe9")),
            (&[0xff; 255], Ok(&[0xff; 255])),
        ] {
            assert_eq!(existing(Name(name)), expected, "{name:?}");
        }
    }

    #[test]
    fn names_that_are_not_there_are_utf8() {
        let missing = share::Error::Storage(storage::Error::NotFound);
        assert_eq!(not_found(missing, b"name"), Status::NoEnt);
        assert_eq!(not_found(missing, b"caf\xe9"), Status::Inval);
        assert_eq!(not_found(share::Error::AccessDenied, b"caf\xe9"), Status::Access);
    }

    #[test]
    fn what_somebody_has_open_may_be_closed_soon() {
        assert_eq!(refused(share::Error::SharingViolation), Status::Delay);
        assert_eq!(refused(share::Error::Delayed), Status::Delay);
    }
}
