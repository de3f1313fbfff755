//! The security descriptor of an object, as stores keep it in one extended attribute.
//!
//! The value begins with a version, and with the permission bits and owners that the object had when the descriptor was
//! stored. When these change otherwise (chmod, chown, another server), the descriptor is no longer in force.

use std::sync::Arc;

use acl::{Control, SecurityDescriptor};

use crate::{Attributes, Error, Result};

/// The first byte of the value. A value of another version is ignored.
const VERSION: u8 = 1;
/// Version, a reserved byte, permission bits (16 bits), owner and group (32 each), little-endian. The self-relative
/// form of [MS-DTYP] 2.4.6 follows.
const HEADER_LEN: usize = 12;
/// The longest value in bytes (xattr(7)).
pub const DESCRIPTOR_BYTES_MAX: usize = 65_536;

/// A descriptor, and the permission bits and owners for which it was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredDescriptor {
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

impl StoredDescriptor {
    /// A descriptor of an object that has these attributes.
    #[must_use]
    pub fn of(attributes: &Attributes, descriptor: SecurityDescriptor) -> Self {
        Self { stamp: Stamp::of(attributes), descriptor: Arc::new(descriptor) }
    }

    /// A descriptor of an object with these permission bits and owners.
    #[must_use]
    pub fn of_bits_and_owners(mode: u32, uid: u32, gid: u32, descriptor: Arc<SecurityDescriptor>) -> Self {
        Self { stamp: Stamp { permission_bits: bits_of(mode), uid, gid }, descriptor }
    }

    /// The descriptor, if it is in force for an object that has these attributes.
    #[must_use]
    pub fn in_force(&self, attributes: &Attributes) -> Option<Arc<SecurityDescriptor>> {
        (self.stamp == Stamp::of(attributes)).then(|| Arc::clone(&self.descriptor))
    }

    /// The value of the attribute.
    ///
    /// # Errors
    /// [`Error::AttributeTooLarge`]
    pub fn encode(&self) -> Result<Vec<u8>> {
        let mut bytes = vec![VERSION, 0];
        bytes.extend_from_slice(&self.stamp.permission_bits.to_le_bytes());
        bytes.extend_from_slice(&self.stamp.uid.to_le_bytes());
        bytes.extend_from_slice(&self.stamp.gid.to_le_bytes());
        self.descriptor.encode_into(&mut bytes).map_err(|_| Error::AttributeTooLarge)?;
        if bytes.len() > DESCRIPTOR_BYTES_MAX { Err(Error::AttributeTooLarge) } else { Ok(bytes) }
    }

    /// Decodes a value; None for another version or a damaged value.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_on_disk() {
        let descriptor =
            Arc::new(SecurityDescriptor { owner: Some(acl::Sid::EVERYONE), ..Default::default() });
        let stamp = Stamp { permission_bits: 0o640, uid: 1000, gid: 0x0102_0304 };
        let stored = StoredDescriptor { stamp, descriptor };
        let bytes = stored.encode().unwrap();
        let expected = b"\x01\0\xa0\x01\xe8\x03\0\0\x04\x03\x02\x01\
            \x01\0\0\x80\x14\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x01\0\0\0\0\0\x01\0\0\0\0";
        assert_eq!(bytes, expected);
        assert_eq!(StoredDescriptor::decode(&bytes).as_ref(), Some(&stored));
        assert_eq!(StoredDescriptor::decode(&bytes[..bytes.len() - 1]), None, "damaged");
        assert_eq!(StoredDescriptor::decode(&bytes[..11]), None, "too short");
        let mut other = bytes;
        other[0] = 2;
        assert_eq!(StoredDescriptor::decode(&other), None, "another version");
    }
}
