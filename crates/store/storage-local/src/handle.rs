//! Converts between nodes and handles.
//!
//! Native: `N`, the inode number (64 bits), the keyed checksum (64), the file system's handle type (32) and
//! bytes. By index: `I`, the inode number, the generation (64). All numbers are little-endian.

use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::io::Errno;
use siphasher::sip::SipHasher24;
use storage::{Error, Handle, Name, ObjectId, Result, SnapshotId};

use crate::attributes::{device_of, stat};
use crate::errno::from_errno;
use crate::handle_records::HandleKey;
use crate::index::{Index, Key};
use crate::kernel_handle::{self, KernelHandle};
use crate::node::LocalNode;
use crate::store::{Reach, Shared};

const NATIVE: u8 = b'N';
const BY_INDEX: u8 = b'I';
/// Where a handle of Btrfs has the number of the subvolume (linux/fs/btrfs/export.h, `struct btrfs_fid`).
const BTRFS_SUBVOLUME: Range<usize> = 8..16;
/// How often a handle is tried before the server believes that memory is exhausted.
const TRIES: usize = 20;

/// How this store makes handles.
pub(crate) enum Handles {
    /// The file system's own handles, with a checksum that uses this key.
    Native(SipHasher24),
    /// From an index of names.
    Index(Index),
}

impl Handles {
    /// The key for handles of a snapshot of this store; None where handles come from an index. What is hashed is shorter than
    /// what a checksum covers.
    pub(crate) fn key_for(&self, id: SnapshotId) -> Option<HandleKey> {
        let Self::Native(key) = self else { return None };
        let half =
            |number: u8| u128::from(key.hash(&[&b"snapshot"[..], &id.0.to_le_bytes(), &[number]].concat()));
        Some((half(0) << 64 | half(1)).to_le_bytes())
    }

    /// The handle that an object of the store (None) or of a snapshot has in another one of them, which is this subvolume of Btrfs.
    pub(crate) fn translated(
        &self,
        handle: &Handle,
        from: Option<SnapshotId>,
        (to, subvolume): (Option<SnapshotId>, u64),
    ) -> Result<Handle> {
        let (from, to) = self.key_of(from).zip(self.key_of(to)).ok_or(Error::NotSupported)?;
        let (format, bytes) = handle.as_bytes().split_first().ok_or(Error::BadHandle)?;
        if *format != NATIVE {
            return Err(Error::BadHandle);
        }
        let (id, mut kernel) = decode_native(&from, bytes).ok_or(Error::BadHandle)?;
        kernel
            .bytes
            .get_mut(BTRFS_SUBVOLUME)
            .ok_or(Error::BadHandle)?
            .copy_from_slice(&subvolume.to_le_bytes());
        encode_native(&to, id, &kernel)
    }

    /// The key for the store's own handles, or those of a snapshot.
    fn key_of(&self, of: Option<SnapshotId>) -> Option<SipHasher24> {
        match (self, of) {
            (Self::Native(key), None) => Some(*key),
            (_, Some(id)) => self.key_for(id).map(|key| SipHasher24::new_with_key(&key)),
            (Self::Index(_), None) => None,
        }
    }

    /// Notes that an object has a new name.
    pub(crate) fn moved(&self, dir: &LocalNode, name: Name<'_>) {
        let Self::Index(index) = self else { return };
        let noted = dir.find(name, Reach::Device).and_then(|(node, _)| {
            // The object is entered again, together with directories above it for which nobody has asked for a handle.
            if index.has(node.id)? { node.enter_in(index) } else { Ok(()) }
        });
        if let Err(e) = noted {
            tracing::debug!("a renamed object is not in the index of handles: {e}");
        }
    }

    /// Notes that an object is gone.
    pub(crate) fn forget(&self, id: ObjectId) {
        let Self::Index(index) = self else { return };
        if let Err(e) = index.remove(id) {
            tracing::debug!("a removed object stays in the index of handles: {e}");
        }
    }

    /// Makes the index durable.
    pub(crate) fn flush(&self) {
        if let Self::Index(index) = self
            && let Err(e) = index.flush()
        {
            tracing::warn!("the index of handles could not be written: {e}");
        }
    }
}

/// The keyed checksum over everything else in the handle.
fn checksum(key: &SipHasher24, id: ObjectId, handle: &KernelHandle) -> u64 {
    key.hash(&[&id.number.to_le_bytes()[..], &handle.kind.to_le_bytes(), &handle.bytes].concat())
}

fn encode_native(key: &SipHasher24, id: ObjectId, handle: &KernelHandle) -> Result<Handle> {
    let sum = checksum(key, id, handle).to_le_bytes();
    let parts = [&[NATIVE][..], &id.number.to_le_bytes(), &sum, &handle.kind.to_le_bytes(), &handle.bytes];
    // Too long. No known local file system does this, see `probe`.
    Handle::new(&parts.concat()).map_err(|_| Error::NotSupported)
}

fn decode_native(key: &SipHasher24, bytes: &[u8]) -> Option<(ObjectId, KernelHandle)> {
    let (id, rest) = bytes.split_first_chunk()?;
    let (sum, rest) = rest.split_first_chunk()?;
    let (kind, bytes) = rest.split_first_chunk()?;
    let id = ObjectId::live(u64::from_le_bytes(*id));
    let handle = KernelHandle { kind: i32::from_le_bytes(*kind), bytes: bytes.to_vec() };
    (checksum(key, id, &handle) == u64::from_le_bytes(*sum)).then_some((id, handle))
}

fn encode_key(key: Key) -> Result<Handle> {
    Handle::new(&[&[BY_INDEX][..], &key.id.number.to_le_bytes(), &key.generation.to_le_bytes()].concat())
}

fn decode_key(bytes: &[u8]) -> Option<Key> {
    let (id, generation) = bytes.split_first_chunk()?;
    let generation = u64::from_le_bytes(generation.try_into().ok()?);
    Some(Key { id: ObjectId::live(u64::from_le_bytes(*id)), generation })
}

impl LocalNode {
    /// The key of this object in the index. The file system's own handle, which any user may ask for, distinguishes the
    /// object from others with the same number. Where there is no such handle the birth time does, as far as clocks
    /// allow.
    pub(crate) fn key(&self) -> Result<Key> {
        if let Some(generation) = self.generation.get() {
            return Ok(Key { id: self.id, generation: *generation });
        }
        let bytes = match kernel_handle::name_to_handle(self.fd.as_fd()) {
            Ok(handle) => [&handle.kind.to_le_bytes()[..], &handle.bytes].concat(),
            Err(_) => {
                let btime = self.btime.ok_or(Error::NotSupported)?;
                [&btime.secs.to_le_bytes()[..], &btime.nanos.to_le_bytes()].concat()
            }
        };
        let generation = SipHasher24::new().hash(&bytes);
        Ok(Key { id: self.id, generation: *self.generation.get_or_init(|| generation) })
    }

    pub(crate) fn handle_now(&self) -> Result<Handle> {
        if let Some(handle) = self.handle.get() {
            return Ok(*handle);
        }
        let handle = match &self.store.handles {
            Handles::Native(key) => encode_native(
                key,
                self.id,
                &kernel_handle::name_to_handle(self.fd.as_fd()).map_err(from_errno)?,
            )?,
            Handles::Index(index) => {
                self.enter_in(index)?;
                encode_key(self.key()?)?
            }
        };
        Ok(*self.handle.get_or_init(|| handle))
    }

    /// Enters this object and the directories above it in the index.
    fn enter_in(&self, index: &Index) -> Result<()> {
        let path = self.path_below_root()?;
        let mut dir = self.store.root_node()?;
        let mut entries = Vec::new();
        for name in path.split(|b| *b == b'/').filter(|name| !name.is_empty()) {
            let (node, _) = dir.find(Name::new(name)?, Reach::Device)?;
            entries.push((node.key()?, dir.key()?, name));
            dir = node;
        }
        if dir.id == self.id { index.insert(&entries) } else { Err(Error::Stale) }
    }
}

impl Shared {
    pub(crate) fn find_by_handle(self: &Arc<Self>, handle: &Handle, reach: Reach) -> Result<Arc<LocalNode>> {
        let (format, bytes) = handle.as_bytes().split_first().ok_or(Error::BadHandle)?;
        match (*format, &self.handles) {
            (NATIVE, Handles::Native(key)) => {
                if let Some(node) = self.known_by(handle, bytes) {
                    return node.check_place().map(|()| node);
                }
                let (id, kernel) = decode_native(key, bytes).ok_or(Error::BadHandle)?;
                let at_hand = self.cache.get(id);
                if let Some(node) = at_hand.filter(|node| node.handle_now().is_ok_and(|h| h == *handle)) {
                    return node.check_place().map(|()| node);
                }
                self.check_waits(reach)?;
                self.open_native(&kernel)
            }
            (BY_INDEX, Handles::Index(index)) => {
                let key = decode_key(bytes).ok_or(Error::BadHandle)?;
                let at_hand = self.cache.get(key.id);
                if let Some(node) = at_hand.filter(|node| node.key() == Ok(key)) {
                    return node.check_place().map(|()| node);
                }
                self.check_waits(reach)?;
                self.walk_to(index, key)
            }
            _ => Err(Error::BadHandle),
        }
    }

    /// The cached node that is known to have this native handle. What was made or checked before is not checked again.
    fn known_by(&self, handle: &Handle, bytes: &[u8]) -> Option<Arc<LocalNode>> {
        let node = self.cache.get(ObjectId::live(u64::from_le_bytes(*bytes.first_chunk()?)))?;
        (node.handle.get() == Some(handle)).then_some(node)
    }

    fn check_waits(&self, reach: Reach) -> Result<()> {
        if reach == Reach::Memory && !self.is_in_memory { Err(Error::WouldBlock) } else { Ok(()) }
    }

    fn open_native(self: &Arc<Self>, kernel: &KernelHandle) -> Result<Arc<LocalNode>> {
        let fd = self.with_descriptor(|| self.open_handle(kernel))?;
        let stat = stat(&fd)?;
        // The object was removed, and another process on this machine holds it.
        let is_gone = stat.stx_nlink == 0;
        if is_gone || device_of(&stat) != self.device {
            return Err(Error::Stale);
        }
        let node = self.adopt(fd, false)?;
        node.check_place().inspect_err(|_| self.cache.release(node.id))?;
        Ok(node)
    }

    /// While the number of a removed object is being given to a new one, ext4 reports that there is no memory. A moment
    /// later it reports that the handle is stale.
    pub(crate) fn open_handle(&self, kernel: &KernelHandle) -> std::result::Result<OwnedFd, Errno> {
        for _ in 0..TRIES {
            match kernel_handle::open_by_handle(self.root.as_fd(), kernel) {
                Err(Errno::NOMEM) => std::thread::yield_now(),
                other => return other,
            }
        }
        Err(Errno::NOMEM)
    }

    /// Follows the index up to the root, and the names down again.
    fn walk_to(self: &Arc<Self>, index: &Index, key: Key) -> Result<Arc<LocalNode>> {
        let mut node = self.root_node()?;
        for name in index.path(key, node.key()?)?.iter().rev() {
            (node, _) = node.find(Name::new(name)?, Reach::Device).map_err(|e| match e {
                Error::NotFound | Error::NotDirectory => Error::Stale,
                other => other,
            })?;
        }
        if node.key()? == key { Ok(node) } else { Err(Error::Stale) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forged_handle_is_refused() {
        let key = SipHasher24::new_with_key(&[7; 16]);
        let kernel = KernelHandle { kind: 1, bytes: vec![1, 2, 3, 4, 5, 6, 7, 8] };
        let handle = encode_native(&key, ObjectId::live(0x1234), &kernel).unwrap();
        let bytes = handle.as_bytes();
        assert_eq!(decode_native(&key, &bytes[1..]), Some((ObjectId::live(0x1234), kernel)));
        for bit in 8..bytes.len() * 8 {
            let mut forged = bytes.to_vec();
            forged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode_native(&key, &forged[1..]), None, "bit {bit}");
        }
        for length in 1..bytes.len() {
            assert_eq!(decode_native(&key, &bytes[1..length]), None, "{length} bytes");
        }
        let other = SipHasher24::new_with_key(&[8; 16]);
        assert_eq!(decode_native(&other, &bytes[1..]), None);
    }

    #[test]
    fn snapshots_have_keys_of_their_own() {
        let native = |key| Handles::Native(SipHasher24::new_with_key(&[key; 16]));
        let key = native(7).key_for(SnapshotId(257)).unwrap();
        assert_eq!(native(7).key_for(SnapshotId(257)), Some(key));
        assert_ne!(native(7).key_for(SnapshotId(258)), Some(key));
        assert_ne!(native(8).key_for(SnapshotId(257)), Some(key));
        assert_ne!(key[..8], key[8..]);
    }

    #[test]
    fn keys_go_through_handles() {
        let key = Key { id: ObjectId::live(u64::MAX), generation: 0x0123_4567_89ab_cdef };
        let handle = encode_key(key).unwrap();
        assert_eq!(decode_key(&handle.as_bytes()[1..]), Some(key));
        assert_eq!(decode_key(&handle.as_bytes()[1..16]), None);
    }
}
