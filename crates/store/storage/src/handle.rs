//! A name for an object that survives a restart of the server.

use crate::{Error, Result};

/// The longest handle of a store, in bytes: an NFSv3 filehandle (64 bytes, RFC 1813 2.4) less what the server adds to
/// it.
pub const HANDLE_BYTES_MAX: usize = 44;

/// Opaque bytes by which a store finds an object again after a restart: [`crate::Storage::by_handle`].
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Handle {
    length: u8,
    bytes: [u8; HANDLE_BYTES_MAX],
}

impl Handle {
    /// Takes the bytes of a handle.
    ///
    /// # Errors
    /// [`Error::BadHandle`] if there are no bytes, or more than [`HANDLE_BYTES_MAX`].
    pub fn new(from: &[u8]) -> Result<Self> {
        let mut bytes = [0; HANDLE_BYTES_MAX];
        let room = bytes.get_mut(..from.len()).ok_or(Error::BadHandle)?;
        room.copy_from_slice(from);
        match u8::try_from(from.len()) {
            Ok(length) if length > 0 => Ok(Self { length, bytes }),
            _ => Err(Error::BadHandle),
        }
    }

    /// The bytes of the handle.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Handle(")?;
        self.as_bytes().iter().try_for_each(|b| write!(f, "{b:02x}"))?;
        f.write_str(")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_at_the_edge() {
        assert!(Handle::new(&[]).is_err());
        assert!(Handle::new(&[1; HANDLE_BYTES_MAX + 1]).is_err());
        let full = Handle::new(&[7; HANDLE_BYTES_MAX]).unwrap();
        assert_eq!(full.as_bytes(), [7; HANDLE_BYTES_MAX]);
    }
}
