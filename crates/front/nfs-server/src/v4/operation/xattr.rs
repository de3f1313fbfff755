//! The common part of the operations on extended attributes (RFC 8276).

use nfs_wire::v4::setxattr::SetOption;
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::{ChangeInfo, Name};
use storage::{FileKind, XATTR_NAME_BYTES_MAX, XattrMode};

use super::directory;
use crate::object::Object;
use crate::status;
use crate::v4::compound::Compound;

/// Refuses an object that has no extended attributes.
///
/// # Errors
/// [`Status::WrongType`].
pub(super) fn check(object: &Object) -> Result<(), Status> {
    match object.node.kind() {
        FileKind::Regular | FileKind::Directory => Ok(()),
        _ => Err(Status::WrongType),
    }
}

/// The name of an extended attribute.
///
/// # Errors
/// [`Status::Inval`] for an empty name or one that is not UTF-8, [`Status::BadChar`] for a NUL,
/// [`Status::NameTooLong`].
pub(super) fn checked(name: Name<'_>) -> Result<&[u8], Status> {
    let name = name.0;
    if name.is_empty() || std::str::from_utf8(name).is_err() {
        return Err(Status::Inval);
    }
    if name.contains(&0) {
        return Err(Status::BadChar);
    }
    if name.len() > XATTR_NAME_BYTES_MAX { Err(Status::NameTooLong) } else { Ok(name) }
}

/// Sets an extended attribute of the current object, or removes it.
pub(super) async fn set(
    c: &Compound<'_>,
    name: Name<'_>,
    value: Option<&[u8]>,
    option: SetOption,
) -> Result<ChangeInfo, Status> {
    let object = c.object_to_change()?;
    check(object)?;
    let mode = match option {
        SetOption::Either => XattrMode::Set,
        SetOption::Create => XattrMode::Create,
        SetOption::Replace => XattrMode::Replace,
    };
    let set = object.share.set_xattr(&object.call, &object.file(), checked(name)?, value, mode).await;
    let changed = set.map_err(status::v4)?;
    Ok(directory::between(&changed.before, &changed.after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_at_the_edge() {
        assert_eq!(checked(Name(&[b'n'; 250])), Ok(&[b'n'; 250][..]));
        assert_eq!(checked(Name(&[b'n'; 251])), Err(Status::NameTooLong));
        assert_eq!(checked(Name(b"a/b.c")), Ok(&b"a/b.c"[..]));
        assert_eq!(checked(Name(b"")), Err(Status::Inval));
        assert_eq!(checked(Name(b"\xff")), Err(Status::Inval));
        assert_eq!(checked(Name(b"a\0")), Err(Status::BadChar));
    }
}
