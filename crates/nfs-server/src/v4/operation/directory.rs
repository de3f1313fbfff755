//! What the operations on names have in common.

use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::{ChangeInfo, NAME_BYTES_MAX, Name};
use share::DirChange;
use storage::{Attributes, FileKind};

use crate::object::Object;
use crate::status;

/// Refuses what is no directory.
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

/// A name that is there, or may be: what NFSv3 clients and programs on the server have made need not be UTF-8, and can
/// still be reached.
///
/// # Errors
/// Those of [`Name::checked`], except that [`not_found`] says when a name is no UTF-8.
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

/// The status of a call that takes a name which must be there. RFC 8881 14.5 has [`Status::Inval`] for one that is not
/// UTF-8.
pub(super) fn not_found(error: share::Error, name: &[u8]) -> Status {
    match refused(error) {
        Status::NoEnt if std::str::from_utf8(name).is_err() => Status::Inval,
        status => status,
    }
}

/// The status of a call that changes names. Who has the object open and shares it not may close it soon: NFSv4 has
/// NFS4ERR_FILE_OPEN for that, with which clients give up.
pub(super) fn refused(error: share::Error) -> Status {
    match status::v4(error) {
        Status::ShareDenied | Status::FileOpen => Status::Delay,
        status => status,
    }
}

/// What a client learns of a directory that it changed. Where it is not known what the directory was before, that is nothing
/// that the client can have: others have changed it.
pub(super) fn change(change: &DirChange) -> ChangeInfo {
    let after = change.after.map_or(0, |after| after.change());
    let before = change.before.map_or(after, |before| before.change());
    ChangeInfo { atomic: change.is_atomic, before, after }
}

/// What a client learns of an object that it changed. Others may have changed it in between.
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
