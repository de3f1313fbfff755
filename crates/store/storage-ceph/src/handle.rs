//! Converts between objects and handles: `C`, the number (64 bits), the keyed checksum (64). Numbers are little-endian.

use siphasher::sip::SipHasher24;
use storage::{Error, Handle, ObjectId, Result};

const KIND: u8 = b'C';

/// The handle of an object.
pub(crate) fn encode(key: &SipHasher24, id: ObjectId) -> Result<Handle> {
    let number = id.number.to_le_bytes();
    let sum = key.hash(&number).to_le_bytes();
    Handle::new(&[&[KIND][..], &number, &sum].concat())
}

/// The object of a handle.
///
/// # Errors
/// [`Error::BadHandle`] if it was not made with this key.
pub(crate) fn decode(key: &SipHasher24, handle: &Handle) -> Result<ObjectId> {
    let parts = |bytes: &[u8]| {
        let (&[kind], rest) = bytes.split_first_chunk()?;
        let (number, rest) = rest.split_first_chunk()?;
        let sum: [u8; 8] = rest.try_into().ok()?;
        (kind == KIND && key.hash(number) == u64::from_le_bytes(sum)).then_some(u64::from_le_bytes(*number))
    };
    parts(handle.as_bytes()).map(ObjectId::live).ok_or(Error::BadHandle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_made_with_the_key_is_a_handle() {
        let (key, other) = (SipHasher24::new_with_key(&[1; 16]), SipHasher24::new_with_key(&[2; 16]));
        let id = ObjectId::live(0x0100_0000_0005);
        let handle = encode(&key, id).unwrap();
        assert_eq!(handle.as_bytes().len(), 17);
        assert_eq!(decode(&key, &handle), Ok(id));
        assert_eq!(decode(&other, &handle), Err(Error::BadHandle));
        for cut in 1..17 {
            let cut = Handle::new(&handle.as_bytes()[..cut]).unwrap();
            assert_eq!(decode(&key, &cut), Err(Error::BadHandle));
        }
        let long = Handle::new(&[handle.as_bytes(), &[0]].concat()).unwrap();
        assert_eq!(decode(&key, &long), Err(Error::BadHandle));
    }
}
