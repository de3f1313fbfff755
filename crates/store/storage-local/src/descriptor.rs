//! The security descriptor of an object, in one extended attribute.
//!
//! The value begins with a version, and with the permission bits and owners that the object had when the descriptor was
//! stored. When a local program (chmod, chown, or another server) changes these, the descriptor is no longer in force.

use std::sync::Arc;
use std::time::{Duration, Instant};

use acl::{Control, SecurityDescriptor};
use rustix::fs::XattrFlags;
use rustix::io::Errno;
use storage::{Attributes, Error, Result, Timestamp, from_errno};

use crate::attributes::{ctime_of, is_settled, stat};
use crate::node::LocalNode;
use crate::store::Reach;

/// Used where the server is privileged: then nobody else can change it (xattr(7), "Trusted extended attributes").
pub(crate) const TRUSTED_XATTR: &str = "trusted.anabranch.acl";
/// Used elsewhere: there all files belong to the server's own account.
pub(crate) const USER_XATTR: &str = "user.anabranch.acl";
/// The first byte of the value. A value of another version is ignored.
const VERSION: u8 = 1;
/// Version, a reserved byte, permission bits (16 bits), owner and group (32 each), little-endian. The self-relative
/// form of [MS-DTYP] 2.4.6 follows.
const HEADER_LEN: usize = 12;
/// The longest value in bytes (xattr(7)).
const BYTES_MAX: usize = 65_536;
/// Most descriptors are shorter than this.
const BYTES_USUAL: usize = 1024;

/// A descriptor, and the permission bits and owners for which it was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stored {
    stamp: Stamp,
    descriptor: Arc<SecurityDescriptor>,
}

/// Permission bits and owners of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    permission_bits: u16,
    uid: u32,
    gid: u32,
}

impl Stamp {
    fn of(attributes: &Attributes) -> Self {
        Self { permission_bits: bits_of(attributes.mode), uid: attributes.uid, gid: attributes.gid }
    }
}

fn bits_of(mode: u32) -> u16 {
    u16::try_from(mode & 0o777).unwrap_or(0)
}

/// How long a descriptor that was read is trusted although the object has changed since: nearly all changes are of
/// other things. A descriptor stored behind this store's back (by another store on the same directory) is noticed that
/// much later.
const BELIEVED_FOR: Duration = Duration::from_millis(100);

/// The stored descriptor as last read. It is valid until the object's change time moves, and for a moment in any case.
#[derive(Debug, Clone)]
pub(crate) struct KnownDescriptor {
    stored: Option<Stored>,
    /// None: read within a tick of the last change, so another change may have the same time.
    as_of: Option<Timestamp>,
    read: Instant,
}

impl KnownDescriptor {
    /// For a new object, which has no descriptor, if it was not changed since then.
    pub(crate) fn none(ctime: Option<Timestamp>) -> Self {
        Self { stored: None, as_of: ctime, read: Instant::now() }
    }

    /// Whether this is still what is stored with the object, which was last changed at `ctime`.
    fn holds(&self, ctime: Timestamp) -> bool {
        self.as_of == Some(ctime) || self.read.elapsed() < BELIEVED_FOR
    }
}

impl Stored {
    /// A descriptor of an object with these permission bits and owners.
    pub(crate) fn of_bits_and_owners(
        mode: u32,
        uid: u32,
        gid: u32,
        descriptor: Arc<SecurityDescriptor>,
    ) -> Self {
        Self { stamp: Stamp { permission_bits: bits_of(mode), uid, gid }, descriptor }
    }

    pub(crate) fn encode(&self) -> Result<Vec<u8>> {
        let mut bytes = vec![VERSION, 0];
        bytes.extend_from_slice(&self.stamp.permission_bits.to_le_bytes());
        bytes.extend_from_slice(&self.stamp.uid.to_le_bytes());
        bytes.extend_from_slice(&self.stamp.gid.to_le_bytes());
        self.descriptor.encode_into(&mut bytes).map_err(|_| Error::AttributeTooLarge)?;
        if bytes.len() > BYTES_MAX { Err(Error::AttributeTooLarge) } else { Ok(bytes) }
    }

    /// Decodes a value; None for another version or a damaged value.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (header, descriptor) = bytes.split_first_chunk::<HEADER_LEN>()?;
        let [VERSION, _, a, b, c, d, e, f, g, h, i, j] = *header else { return None };
        let stamp = Stamp {
            permission_bits: u16::from_le_bytes([a, b]),
            uid: u32::from_le_bytes([c, d, e, f]),
            gid: u32::from_le_bytes([g, h, i, j]),
        };
        let mut descriptor = SecurityDescriptor::decode(descriptor).ok()?;
        descriptor.control.remove(Control::SELF_RELATIVE); // true of the bytes, not of the value
        Some(Self { stamp, descriptor: Arc::new(descriptor) })
    }
}

impl LocalNode {
    /// The descriptor that is stored with an object with these attributes, if it is still in force.
    pub(crate) fn descriptor(
        &self,
        attributes: &Attributes,
        reach: Reach,
    ) -> Result<Option<Arc<SecurityDescriptor>>> {
        if !self.carries_dos() {
            return Ok(None);
        }
        let stamp = Stamp::of(attributes);
        let in_force = |stored: &Option<Stored>| {
            stored.as_ref().filter(|s| s.stamp == stamp).map(|s| Arc::clone(&s.descriptor))
        };
        // The lock is held while the value is read, so that a descriptor that is stored meanwhile is not overwritten
        // here.
        let mut known = self.security.lock();
        match &*known {
            Some(known) if known.holds(attributes.ctime) => return Ok(in_force(&known.stored)),
            // The value lies beside the inode, which has just been changed, so it is in memory.
            Some(_) => {}
            None if reach == Reach::Device || self.store.is_in_memory => {}
            None => return Err(Error::WouldBlock),
        }
        let stored = self.read_descriptor()?;
        let found = in_force(&stored);
        let as_of = is_settled(attributes.ctime).then_some(attributes.ctime);
        *known = Some(KnownDescriptor { stored, as_of, read: Instant::now() });
        Ok(found)
    }

    fn read_descriptor(&self) -> Result<Option<Stored>> {
        let name = self.store.descriptor_xattr;
        let mut bytes = [0; BYTES_USUAL];
        match self.fetch_xattr(name, &mut bytes) {
            Ok(count) => Ok(bytes.get(..count).and_then(Stored::decode)),
            Err(Errno::RANGE) => {
                let mut bytes = vec![0; BYTES_MAX];
                let count = self.fetch_xattr(name, &mut bytes).map_err(from_errno)?;
                Ok(bytes.get(..count).and_then(Stored::decode))
            }
            // ACCESS: a server without privileges, and a file that it may not read.
            Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::ACCESS) => Ok(None),
            Err(errno) => Err(from_errno(errno)),
        }
    }

    /// Stores a descriptor for the object's present permission bits and owners; None: removes it.
    pub(crate) fn store_descriptor(&self, descriptor: Option<SecurityDescriptor>) -> Result<Attributes> {
        self.check_carries_xattrs()?;
        // The lock is held throughout: of two concurrent changes, one takes effect.
        let mut known = self.security.lock();
        let attributes = self.attributes_now(storage::Want::empty(), Reach::Device)?;
        let name = self.store.descriptor_xattr;
        let stored = descriptor.map(|d| Stored { stamp: Stamp::of(&attributes), descriptor: Arc::new(d) });
        match &stored {
            Some(stored) => {
                self.put_xattr(name, &stored.encode()?, XattrFlags::empty()).map_err(from_errno)?;
            }
            None => match self.drop_xattr(name) {
                Ok(()) | Err(Errno::NODATA) => {}
                Err(errno) => return Err(from_errno(errno)),
            },
        }
        let as_of = Some(ctime_of(&stat(&self.fd)?));
        *known = Some(KnownDescriptor { stored, as_of, read: Instant::now() });
        self.attributes_now(storage::Want::all(), Reach::Device)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_on_disk() {
        let descriptor =
            Arc::new(SecurityDescriptor { owner: Some(acl::Sid::EVERYONE), ..Default::default() });
        let stamp = Stamp { permission_bits: 0o640, uid: 1000, gid: 0x0102_0304 };
        let stored = Stored { stamp, descriptor };
        let bytes = stored.encode().unwrap();
        let expected = b"\x01\0\xa0\x01\xe8\x03\0\0\x04\x03\x02\x01\
            \x01\0\0\x80\x14\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x01\0\0\0\0\0\x01\0\0\0\0";
        assert_eq!(bytes, expected);
        assert_eq!(Stored::decode(&bytes).as_ref(), Some(&stored));
        assert_eq!(Stored::decode(&bytes[..bytes.len() - 1]), None, "damaged");
        assert_eq!(Stored::decode(&bytes[..11]), None, "too short");
        let mut other = bytes;
        other[0] = 2;
        assert_eq!(Stored::decode(&other), None, "another version");
    }
}
