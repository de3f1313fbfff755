//! Names as NFS clients send them. RFC 1813 3.2 leaves the treatment of invalid names to the server. These statuses are
//! the ones that clients know from POSIX.

use nfs_wire::v3::status::Status;
use nfs_wire::v3::types::Name;

/// A name to look up, which may be `.` or `..`.
///
/// # Errors
/// [`Status::Acces`] for an empty name or one with `/` or NUL (RFC 1813 3.2 asks for it when the name is empty),
/// [`Status::NameTooLong`].
pub(crate) fn to_find(name: Name<'_>) -> Result<&[u8], Status> {
    let name = name.within_limit()?;
    let malformed = name.is_empty() || name.iter().any(|byte| matches!(byte, b'/' | 0));
    if malformed { Err(Status::Acces) } else { Ok(name) }
}

/// A name to create. `.` and `..` already exist.
///
/// # Errors
/// Those of [`to_find`], and [`Status::Exist`].
pub(crate) fn to_make(name: Name<'_>) -> Result<&[u8], Status> {
    to_find(name).and_then(|name| if is_dots(name) { Err(Status::Exist) } else { Ok(name) })
}

/// A name to remove or rename, which cannot be `.` or `..` (RFC 1813 3.3.13, 3.3.14).
///
/// # Errors
/// Those of [`to_find`], and [`Status::Inval`].
pub(crate) fn to_take_away(name: Name<'_>) -> Result<&[u8], Status> {
    to_find(name).and_then(|name| if is_dots(name) { Err(Status::Inval) } else { Ok(name) })
}

fn is_dots(name: &[u8]) -> bool {
    matches!(name, b"." | b"..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_none() {
        for bad in [&b""[..], b"a/b", b"/", b"a\0"] {
            assert_eq!(to_find(Name(bad)), Err(Status::Acces), "{bad:?}");
            assert_eq!(to_make(Name(bad)), Err(Status::Acces), "{bad:?}");
            assert_eq!(to_take_away(Name(bad)), Err(Status::Acces), "{bad:?}");
        }
        for dots in [&b"."[..], b".."] {
            assert_eq!(to_find(Name(dots)), Ok(dots));
            assert_eq!(to_make(Name(dots)), Err(Status::Exist));
            assert_eq!(to_take_away(Name(dots)), Err(Status::Inval));
        }
        assert_eq!(to_make(Name(&[b'n'; 255])), Ok(&[b'n'; 255][..]));
        assert_eq!(to_make(Name(&[b'n'; 256])), Err(Status::NameTooLong));
        assert_eq!(to_make(Name(b"\xff...")), Ok(&b"\xff..."[..]));
    }
}
