//! One checked component of a path.

use crate::{Error, Result};

/// The longest name of one object in its directory, in bytes.
pub const NAME_BYTES_MAX: usize = 255;

/// The name of one object in its directory: 1 to 255 bytes, no `/`, no NUL, neither `.` nor `..`.
/// The bytes need not be UTF-8: NFS clients may use any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name<'a>(&'a [u8]);

impl<'a> Name<'a> {
    /// Checks `bytes` and takes them as a name.
    ///
    /// # Errors
    /// [`Error::InvalidName`] and [`Error::NameTooLong`].
    pub fn new(bytes: &'a [u8]) -> Result<Self> {
        if bytes.len() > NAME_BYTES_MAX {
            return Err(Error::NameTooLong);
        }
        let reserved = bytes.is_empty() || bytes == b"." || bytes == b"..";
        if reserved || bytes.iter().any(|b| matches!(b, b'/' | 0)) {
            return Err(Error::InvalidName);
        }
        Ok(Self(bytes))
    }

    /// The bytes of the name.
    #[must_use]
    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }
}

/// The longest name of a stream, in bytes: [MS-FSCC] 2.1.5.3 allows 255 UTF-16 units, each of which takes at most three
/// bytes.
pub const STREAM_NAME_BYTES_MAX: usize = 765;

/// The name of a named stream: 1 to 765 bytes, no `/`, `\\`, `:` or NUL ([MS-FSCC] 2.1.5.3). Stores compare it byte by
/// byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamName<'a>(&'a [u8]);

impl<'a> StreamName<'a> {
    /// Checks `bytes` and takes them as a name.
    ///
    /// # Errors
    /// [`Error::InvalidName`] and [`Error::NameTooLong`].
    pub fn new(bytes: &'a [u8]) -> Result<Self> {
        if bytes.len() > STREAM_NAME_BYTES_MAX {
            return Err(Error::NameTooLong);
        }
        if bytes.is_empty() || bytes.iter().any(|b| matches!(b, b'/' | b'\\' | b':' | 0)) {
            return Err(Error::InvalidName);
        }
        Ok(Self(bytes))
    }

    /// The bytes of the name.
    #[must_use]
    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }
}

/// The longest name of an extended attribute, in bytes, without the `user.` (Linux allows 255 with it).
pub const XATTR_NAME_BYTES_MAX: usize = 250;

/// Names of extended attributes with this prefix belong to the server.
const XATTR_OWN: &[u8] = b"anabranch.";

/// Checks the name that a client gives to an extended attribute.
///
/// # Errors
/// [`Error::InvalidName`], [`Error::NameTooLong`]; [`Error::NotPermitted`] for the server's own names.
pub fn check_xattr_name(name: &[u8]) -> Result<()> {
    if name.is_empty() || name.contains(&0) {
        return Err(Error::InvalidName);
    }
    if name.len() > XATTR_NAME_BYTES_MAX {
        return Err(Error::NameTooLong);
    }
    if name.starts_with(XATTR_OWN) { Err(Error::NotPermitted) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_at_the_edge() {
        assert!(Name::new(&[b'a'; 255]).is_ok());
        assert_eq!(Name::new(&[b'a'; 256]), Err(Error::NameTooLong));
        for bad in [&b""[..], b".", b"..", b"a/b", b"a\0b", b"/"] {
            assert_eq!(Name::new(bad), Err(Error::InvalidName), "{bad:?}");
        }
        for good in [&b"..."[..], b".a", b"a.", b"\xff\xfe", b"a\\b"] {
            assert_eq!(Name::new(good).unwrap().as_bytes(), good);
        }
    }

    #[test]
    fn stream_names_at_the_edge() {
        assert!(StreamName::new(&[b'a'; 765]).is_ok());
        assert_eq!(StreamName::new(&[b'a'; 766]), Err(Error::NameTooLong));
        for bad in [&b""[..], b"a/b", b"a\\b", b"a:b", b"a\0b"] {
            assert_eq!(StreamName::new(bad), Err(Error::InvalidName), "{bad:?}");
        }
        for good in [&b"."[..], b"..", b"?*<>|\"", b"\x05a\n", b"\xff"] {
            assert_eq!(StreamName::new(good).unwrap().as_bytes(), good);
        }
    }
}
