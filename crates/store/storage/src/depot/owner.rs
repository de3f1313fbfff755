//! The object to which a directory of the depot belongs.

/// The first byte of the attribute's value. A value of another version is ignored.
const VERSION: u8 = 1;

/// The identity of an object, as the store that has written it knows it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StreamsOwner {
    /// Tells the root of the store from all others, also from a copy of it: an owner below another root says nothing
    /// about the objects below this one.
    pub root: u64,
    /// Tells the object from all others below the root that exist or have existed. Its form is the store's own.
    pub object: Vec<u8>,
}

impl StreamsOwner {
    /// The attribute of the directory that holds it. Only the store can look into the depot, so it needs no protection.
    pub const XATTR: &str = "user.anabranch.owner";
    /// The longest value that is read, in bytes.
    pub const XATTR_BYTES_MAX: usize = 256;

    /// The attribute's value: a version, the root (64 bits, little-endian), and the object.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        [&[VERSION][..], &self.root.to_le_bytes(), &self.object].concat()
    }

    /// The owner in an attribute's value; None for another version or a damaged value.
    #[must_use]
    pub fn decode(value: &[u8]) -> Option<Self> {
        let (&[VERSION], rest) = value.split_first_chunk()? else { return None };
        let (root, object) = rest.split_first_chunk()?;
        Some(Self { root: u64::from_le_bytes(*root), object: object.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_on_disk() {
        let owner = StreamsOwner { root: 0x0102_0304_0506_0708, object: vec![0xff, 0] };
        let value = owner.encode();
        assert_eq!(value, b"\x01\x08\x07\x06\x05\x04\x03\x02\x01\xff\0");
        assert_eq!(StreamsOwner::decode(&value).as_ref(), Some(&owner));
        assert_eq!(StreamsOwner::decode(&value[..8]), None, "too short");
        assert_eq!(StreamsOwner::decode(b""), None);
        let mut other = value;
        other[0] = 0;
        assert_eq!(StreamsOwner::decode(&other), None, "another version");
    }
}
