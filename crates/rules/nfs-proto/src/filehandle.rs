//! NFS filehandles: the storage's own handles, signed so that a client cannot forge one.
//!
//! ```text
//! version 1 | flags 1 | share 4, big-endian | storage handle 1..=44 | SipHash-2-4 of all before it, 8, big-endian
//! ```
//!
//! A handle is valid as long as the key. If the key is kept across restarts, handles survive them.

use std::hash::Hasher;

use nfs_wire::v3::types::FileHandle;
use siphasher::sip::SipHasher24;
use thiserror::Error;

/// The longest handle of a storage, in bytes.
pub const STORAGE_HANDLE_BYTES_MAX: usize = 44;

const VERSION: u8 = 1;
/// No flag is defined yet. A handle with flags comes from a newer server and is refused.
const FLAGS: u8 = 0;
const HEAD_BYTES: usize = 6;
const MAC_BYTES: usize = 8;

/// Makes and checks the filehandles of one server.
#[derive(Clone)]
pub struct FileHandleCodec {
    hasher: SipHasher24,
}

impl std::fmt::Debug for FileHandleCodec {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("FileHandleCodec { key: secret }")
    }
}

/// The object that a filehandle names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileHandleTarget<'a> {
    /// The number of the share.
    pub share: u32,
    /// The storage's own handle.
    pub storage_handle: &'a [u8],
}

/// Why a filehandle is refused, in every case with NFS3ERR_BADHANDLE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BadHandle {
    /// The handle is too short or too long, or has another version.
    #[error("not a filehandle of this server's format")]
    Format,
    /// The signature does not match: the handle is forged, damaged, or made with another key.
    #[error("the filehandle's signature does not fit")]
    Signature,
}

impl FileHandleCodec {
    /// A codec with this secret key.
    #[must_use]
    pub fn new(key: &[u8; 16]) -> Self {
        Self { hasher: SipHasher24::new_with_key(key) }
    }

    /// A number that depends on the key and these bytes, and that no filehandle contains. For values that must be the
    /// same after a restart and different on another server.
    #[must_use]
    pub fn number(&self, of: &[u8]) -> u64 {
        let mut hasher = self.hasher;
        hasher.write_u8(!VERSION); // nothing that is signed begins with this byte
        hasher.write(of);
        hasher.finish()
    }

    /// The filehandle of an object; `None` if the storage's handle is empty or longer than
    /// [`STORAGE_HANDLE_BYTES_MAX`].
    #[must_use]
    pub fn encode(&self, target: FileHandleTarget<'_>) -> Option<FileHandle> {
        let length = target.storage_handle.len();
        if length == 0 || length > STORAGE_HANDLE_BYTES_MAX {
            return None;
        }
        let mut bytes = [0; HEAD_BYTES + STORAGE_HANDLE_BYTES_MAX + MAC_BYTES];
        let (head, rest) = bytes.split_at_mut(HEAD_BYTES);
        let [version, flags, share @ ..] = head else { return None };
        (*version, *flags) = (VERSION, FLAGS);
        share.copy_from_slice(&target.share.to_be_bytes());
        rest.get_mut(..length)?.copy_from_slice(target.storage_handle);
        let signed = length.checked_add(HEAD_BYTES)?;
        let mac = self.hasher.hash(bytes.get(..signed)?).to_be_bytes();
        let end = signed.checked_add(MAC_BYTES)?;
        bytes.get_mut(signed..end)?.copy_from_slice(&mac);
        FileHandle::new(bytes.get(..end)?)
    }

    /// Decodes a filehandle.
    ///
    /// # Errors
    /// [`BadHandle`] if the filehandle was not made with this key.
    pub fn decode<'a>(&self, handle: &'a FileHandle) -> Result<FileHandleTarget<'a>, BadHandle> {
        let (signed, mac) = handle.as_bytes().split_last_chunk::<MAC_BYTES>().ok_or(BadHandle::Format)?;
        let ([version, flags, share @ ..], storage_handle) =
            signed.split_first_chunk::<HEAD_BYTES>().ok_or(BadHandle::Format)?;
        if *version != VERSION
            || *flags != FLAGS
            || storage_handle.is_empty()
            || storage_handle.len() > STORAGE_HANDLE_BYTES_MAX
        {
            return Err(BadHandle::Format);
        }
        // A single comparison of two words: its time reveals nothing about the key.
        if self.hasher.hash(signed) != u64::from_be_bytes(*mac) {
            return Err(BadHandle::Signature);
        }
        Ok(FileHandleTarget { share: u32::from_be_bytes(*share), storage_handle })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nfs_wire::v3::types::FILE_HANDLE_BYTES_MAX;
    use proptest::prelude::*;

    fn codec() -> FileHandleCodec {
        FileHandleCodec::new(b"0123456789abcdef")
    }

    #[test]
    fn the_longest_storage_handle_fits_into_a_filehandle() {
        let storage_handle = [7; STORAGE_HANDLE_BYTES_MAX];
        let handle = codec().encode(FileHandleTarget { share: 9, storage_handle: &storage_handle }).unwrap();
        assert!(handle.as_bytes().len() <= FILE_HANDLE_BYTES_MAX);
        assert_eq!(
            codec().decode(&handle),
            Ok(FileHandleTarget { share: 9, storage_handle: &storage_handle })
        );
    }

    #[test]
    fn empty_and_too_long_storage_handles_are_refused() {
        assert_eq!(codec().encode(FileHandleTarget { share: 1, storage_handle: &[] }), None);
        assert_eq!(codec().encode(FileHandleTarget { share: 1, storage_handle: &[1; 45] }), None);
    }

    #[test]
    fn another_key_refuses_the_handle() {
        let handle = codec().encode(FileHandleTarget { share: 1, storage_handle: b"x" }).unwrap();
        let other = FileHandleCodec::new(b"0123456789abcdeF");
        assert_eq!(other.decode(&handle), Err(BadHandle::Signature));
    }

    #[test]
    fn the_signature_is_siphash_2_4() {
        // The reference vector of the SipHash paper: key 00..0f, message 00..0e, a129ca6149be45e5.
        let key: [u8; 16] = std::array::from_fn(|i| u8::try_from(i).unwrap());
        let message: Vec<u8> = (0..15).collect();
        assert_eq!(FileHandleCodec::new(&key).hasher.hash(&message), 0xa129_ca61_49be_45e5);
    }

    proptest! {
        #[test]
        fn handles_round_trip(share: u32, storage_handle in proptest::collection::vec(any::<u8>(), 1..=44)) {
            let target = FileHandleTarget { share, storage_handle: &storage_handle };
            let handle = codec().encode(target).unwrap();
            prop_assert_eq!(codec().decode(&handle), Ok(target));
        }

        #[test]
        fn a_changed_bit_is_noticed(
            share: u32,
            storage_handle in proptest::collection::vec(any::<u8>(), 1..=44),
            at: proptest::sample::Index,
            bit in 0..8_u8,
        ) {
            let handle = codec().encode(FileHandleTarget { share, storage_handle: &storage_handle }).unwrap();
            let mut bytes = handle.as_bytes().to_vec();
            let at = at.index(bytes.len());
            bytes[at] ^= 1_u8 << bit;
            prop_assert!(codec().decode(&FileHandle::new(&bytes).unwrap()).is_err());
        }

        #[test]
        fn arbitrary_bytes_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..=64)) {
            prop_assert!(codec().decode(&FileHandle::new(&bytes).unwrap()).is_err());
        }
    }
}
