//! NFS filehandles: the storage's own handles, signed so that a client cannot forge one.
//!
//! ```text
//! version 1 | flags 1 | share 4, big-endian | snapshot 4, big-endian, by the flags | storage handle 1..=44 |
//! SipHash-2-4 of all before it, 8, big-endian
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
/// The number of a snapshot follows.
const OF_SNAPSHOT: u8 = 1;
/// The folder of the snapshots of the directory.
const FOLDER: u8 = 2;
const HEAD_BYTES: usize = 6;
const SNAPSHOT_BYTES: usize = 4;
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
    /// Where in the share the object is.
    pub within: Within,
    /// The storage's own handle.
    pub storage_handle: &'a [u8],
}

/// Where in a share an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Within {
    /// In its present state.
    #[default]
    Live,
    /// In the snapshot with this number.
    Snapshot(u32),
    /// In its present state, and what is meant is not the directory itself, but the folder of its snapshots.
    Folder,
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
        let (flags, snapshot) = match target.within {
            Within::Live => (0, None),
            Within::Snapshot(snapshot) => (OF_SNAPSHOT, Some(snapshot.to_be_bytes())),
            Within::Folder => (FOLDER, None),
        };
        let mut bytes =
            Vec::with_capacity(HEAD_BYTES + SNAPSHOT_BYTES + STORAGE_HANDLE_BYTES_MAX + MAC_BYTES);
        bytes.extend([VERSION, flags]);
        bytes.extend(target.share.to_be_bytes());
        bytes.extend(snapshot.iter().flatten());
        bytes.extend(target.storage_handle);
        let mac = self.hasher.hash(&bytes).to_be_bytes();
        bytes.extend(mac);
        FileHandle::new(&bytes)
    }

    /// Decodes a filehandle.
    ///
    /// # Errors
    /// [`BadHandle`] if the filehandle was not made with this key.
    pub fn decode<'a>(&self, handle: &'a FileHandle) -> Result<FileHandleTarget<'a>, BadHandle> {
        let (signed, mac) = handle.as_bytes().split_last_chunk::<MAC_BYTES>().ok_or(BadHandle::Format)?;
        let ([version, flags, share @ ..], rest) =
            signed.split_first_chunk::<HEAD_BYTES>().ok_or(BadHandle::Format)?;
        let (within, storage_handle) = match *flags {
            0 => (Within::Live, rest),
            OF_SNAPSHOT => {
                let (snapshot, rest) = rest.split_first_chunk::<SNAPSHOT_BYTES>().ok_or(BadHandle::Format)?;
                (Within::Snapshot(u32::from_be_bytes(*snapshot)), rest)
            }
            FOLDER => (Within::Folder, rest),
            // A handle with other flags comes from a newer server.
            _ => return Err(BadHandle::Format),
        };
        if *version != VERSION || storage_handle.is_empty() || storage_handle.len() > STORAGE_HANDLE_BYTES_MAX
        {
            return Err(BadHandle::Format);
        }
        // A single comparison of two words: its time reveals nothing about the key.
        if self.hasher.hash(signed) != u64::from_be_bytes(*mac) {
            return Err(BadHandle::Signature);
        }
        Ok(FileHandleTarget { share: u32::from_be_bytes(*share), within, storage_handle })
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
        for within in [Within::Live, Within::Snapshot(u32::MAX), Within::Folder] {
            let target = FileHandleTarget { share: 9, within, storage_handle: &storage_handle };
            let handle = codec().encode(target).unwrap();
            assert!(handle.as_bytes().len() <= FILE_HANDLE_BYTES_MAX);
            assert_eq!(codec().decode(&handle), Ok(target));
        }
    }

    fn live(share: u32, storage_handle: &[u8]) -> FileHandleTarget<'_> {
        FileHandleTarget { share, within: Within::Live, storage_handle }
    }

    #[test]
    fn a_handle_of_the_present_state_is_as_it_always_was() {
        let handle = codec().encode(live(0x0102_0304, b"xy")).unwrap();
        assert_eq!(handle.as_bytes()[..8], [1, 0, 1, 2, 3, 4, b'x', b'y']);
        assert_eq!(handle.as_bytes().len(), 16);
    }

    #[test]
    fn empty_and_too_long_storage_handles_are_refused() {
        assert_eq!(codec().encode(live(1, &[])), None);
        assert_eq!(codec().encode(live(1, &[1; 45])), None);
    }

    #[test]
    fn another_key_refuses_the_handle() {
        let handle = codec().encode(live(1, b"x")).unwrap();
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
        fn handles_round_trip(
            share: u32,
            snapshot: Option<u32>,
            storage_handle in proptest::collection::vec(any::<u8>(), 1..=44),
        ) {
            let within = snapshot.map_or(Within::Folder, Within::Snapshot);
            let target = FileHandleTarget { share, within, storage_handle: &storage_handle };
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
            let handle = codec().encode(live(share, &storage_handle)).unwrap();
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
