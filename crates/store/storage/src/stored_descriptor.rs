//! The security descriptor of an object, as stores keep it in one extended attribute.
//!
//! The value begins with a version, and with the permission bits and owners for which the descriptor is stored. When these
//! change otherwise (chmod, chown, another server), the descriptor is no longer in force.
//!
//! While a descriptor and the permission bits or owners change together, the value holds two descriptors: the one in force
//! until the change of bits and owners, and the one that is in force as soon as they have changed. So a server that is
//! killed in between leaves the object as it was or as it shall be.

use std::sync::Arc;

use acl::{Control, SecurityDescriptor};

use crate::{Attributes, Error, Result};

/// The first byte of a value with one descriptor. A value of an unknown version is ignored.
const VERSION: u8 = 1;
/// The first byte of a value that begins with a second descriptor, which shall be in force.
const VERSION_OF_TWO: u8 = 2;
/// Version, a reserved byte, permission bits (16 bits), owner and group (32 each), little-endian. The self-relative
/// form of [MS-DTYP] 2.4.6 follows. In a value of two, its length (32 bits) stands before the first one, and a value of
/// one follows.
const HEADER_LEN: usize = 12;
/// The longest value in bytes (xattr(7)).
pub const DESCRIPTOR_BYTES_MAX: usize = 65_536;

/// A descriptor, and the permission bits and owners for which it is stored; and the one that shall follow it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredDescriptor {
    stamp: Stamp,
    descriptor: Arc<SecurityDescriptor>,
    next: Option<Box<Self>>,
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
        Self { stamp: Stamp::of(attributes), descriptor: Arc::new(descriptor), next: None }
    }

    /// A descriptor of an object with these permission bits and owners.
    #[must_use]
    pub fn of_bits_and_owners(mode: u32, uid: u32, gid: u32, descriptor: Arc<SecurityDescriptor>) -> Self {
        Self { stamp: Stamp { permission_bits: bits_of(mode), uid, gid }, descriptor, next: None }
    }

    /// A descriptor that shall be in force for an object with these permission bits and owners. `present`: what is stored
    /// with the object, which has these `attributes`. It stays in force until the bits or the owners change.
    #[must_use]
    pub fn prepared(
        (mode, (uid, gid)): (u32, (u32, u32)),
        descriptor: SecurityDescriptor,
        present: Option<&Self>,
        attributes: &Attributes,
    ) -> Self {
        let next = Self::of_bits_and_owners(mode, uid, gid, Arc::new(descriptor));
        match present.and_then(|present| present.in_force(attributes)) {
            Some(descriptor) if next.stamp != Stamp::of(attributes) => {
                Self { stamp: Stamp::of(attributes), descriptor, next: Some(Box::new(next)) }
            }
            _ => next,
        }
    }

    /// The descriptor that is in force for an object with these attributes.
    #[must_use]
    pub fn in_force(&self, attributes: &Attributes) -> Option<Arc<SecurityDescriptor>> {
        let now = Stamp::of(attributes);
        if self.stamp == now {
            return Some(Arc::clone(&self.descriptor));
        }
        let next = self.next.as_ref()?;
        // Owners are changed before permission bits: in between, the next descriptor is in force already.
        let between = Stamp { permission_bits: self.stamp.permission_bits, ..next.stamp };
        (now == next.stamp || now == between).then(|| Arc::clone(&next.descriptor))
    }

    /// The value of the attribute.
    ///
    /// # Errors
    /// [`Error::AttributeTooLarge`]
    pub fn encode(&self) -> Result<Vec<u8>> {
        let too_large = |_| Error::AttributeTooLarge;
        let mut bytes = self.header(if self.next.is_some() { VERSION_OF_TWO } else { VERSION });
        match &self.next {
            Some(next) => {
                let mut first = Vec::new();
                self.descriptor.encode_into(&mut first).map_err(too_large)?;
                let length = u32::try_from(first.len()).map_err(|_| Error::AttributeTooLarge)?;
                bytes.extend_from_slice(&length.to_le_bytes());
                bytes.append(&mut first);
                bytes.append(&mut next.encode()?);
            }
            None => self.descriptor.encode_into(&mut bytes).map_err(|_| Error::AttributeTooLarge)?,
        }
        if bytes.len() > DESCRIPTOR_BYTES_MAX { Err(Error::AttributeTooLarge) } else { Ok(bytes) }
    }

    fn header(&self, version: u8) -> Vec<u8> {
        let mut bytes = vec![version, 0];
        bytes.extend_from_slice(&self.stamp.permission_bits.to_le_bytes());
        bytes.extend_from_slice(&self.stamp.uid.to_le_bytes());
        bytes.extend_from_slice(&self.stamp.gid.to_le_bytes());
        bytes
    }

    /// Decodes a value; None for another version or a damaged value.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        match *bytes.first()? {
            VERSION => Self::decode_one(bytes),
            VERSION_OF_TWO => {
                let (header, rest) = bytes.split_first_chunk::<HEADER_LEN>()?;
                let (length, rest) = rest.split_first_chunk::<4>()?;
                let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
                let (first, next) = rest.split_at_checked(length)?;
                let next = Some(Box::new(Self::decode_one(next)?));
                Some(Self { next, ..Self::decode_one(&[&[VERSION], &header[1..], first].concat())? })
            }
            _ => None,
        }
    }

    /// Decodes a value of one descriptor.
    fn decode_one(bytes: &[u8]) -> Option<Self> {
        let (header, descriptor) = bytes.split_first_chunk::<HEADER_LEN>()?;
        let [VERSION, _, a, b, c, d, e, f, g, h, i, j] = *header else { return None };
        let stamp = Stamp {
            permission_bits: u16::from_le_bytes([a, b]),
            uid: u32::from_le_bytes([c, d, e, f]),
            gid: u32::from_le_bytes([g, h, i, j]),
        };
        let mut descriptor = SecurityDescriptor::decode(descriptor).ok()?;
        descriptor.control.remove(Control::SELF_RELATIVE); // true of the bytes, not of the value
        Some(Self { stamp, descriptor: Arc::new(descriptor), next: None })
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
        let stored = StoredDescriptor { stamp, descriptor, next: None };
        let bytes = stored.encode().unwrap();
        let expected = b"\x01\0\xa0\x01\xe8\x03\0\0\x04\x03\x02\x01\
            \x01\0\0\x80\x14\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x01\0\0\0\0\0\x01\0\0\0\0";
        assert_eq!(bytes, expected);
        assert_eq!(StoredDescriptor::decode(&bytes).as_ref(), Some(&stored));
        assert_eq!(StoredDescriptor::decode(&bytes[..bytes.len() - 1]), None, "damaged");
        assert_eq!(StoredDescriptor::decode(&bytes[..11]), None, "too short");
        let mut other = bytes;
        other[0] = 3;
        assert_eq!(StoredDescriptor::decode(&other), None, "another version");
    }

    #[test]
    fn the_value_of_two() {
        let everyone = SecurityDescriptor { owner: Some(acl::Sid::EVERYONE), ..Default::default() };
        let stamp = Stamp { permission_bits: 0o640, uid: 1000, gid: 100 };
        let next = StoredDescriptor::of_bits_and_owners(0o600, 1001, 100, Arc::new(everyone));
        let descriptor = Arc::new(SecurityDescriptor::default());
        let stored = StoredDescriptor { stamp, descriptor, next: Some(Box::new(next.clone())) };
        let bytes = stored.encode().unwrap();
        let first = b"\x02\0\xa0\x01\xe8\x03\0\0\x64\0\0\0\x14\0\0\0\
            \x01\0\0\x80\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
        assert_eq!(bytes, [&first[..], &next.encode().unwrap()].concat());
        assert_eq!(StoredDescriptor::decode(&bytes).as_ref(), Some(&stored));
        for length in 0..bytes.len() {
            assert_eq!(StoredDescriptor::decode(&bytes[..length]), None, "{length} bytes of it");
        }
        let mut long = bytes.clone();
        long[12..16].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(StoredDescriptor::decode(&long), None, "longer than the value");
        let mut three = bytes;
        three[first.len()] = VERSION_OF_TWO;
        assert_eq!(StoredDescriptor::decode(&three), None, "a second that is two");
    }
}
