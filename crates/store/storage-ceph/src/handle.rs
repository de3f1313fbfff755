//! Converts between objects and handles: `C`, the number (64 bits), the keyed checksum (64). In a snapshot: `S`, the number, that of
//! the directory in which the object was found or 0, the checksum. Numbers are little-endian.

use siphasher::sip::SipHasher24;
use storage::{Error, Handle, ObjectId, Result};

const LIVE: u8 = b'C';
const OF_SNAPSHOT: u8 = b'S';

fn signed(key: &SipHasher24, kind: u8, numbers: &[u8]) -> Result<Handle> {
    Handle::new(&[&[kind][..], numbers, &key.hash(numbers).to_le_bytes()].concat())
}

/// The handle of an object of the present state.
pub(crate) fn encode(key: &SipHasher24, id: ObjectId) -> Result<Handle> {
    signed(key, LIVE, &id.number.to_le_bytes())
}

/// The handle of an object of a snapshot.
pub(crate) fn encode_then(key: &SipHasher24, id: ObjectId, directory: Option<u64>) -> Result<Handle> {
    let numbers = [id.number, directory.unwrap_or(0)].map(u64::to_le_bytes).concat();
    signed(key, OF_SNAPSHOT, &numbers)
}

/// The object of a handle, and the directory that the handle names.
///
/// # Errors
/// [`Error::BadHandle`] if it was not made with this key.
pub(crate) fn decode(key: &SipHasher24, handle: &Handle) -> Result<(ObjectId, Option<u64>)> {
    let parts = |bytes: &[u8]| {
        let (&[kind], rest) = bytes.split_first_chunk()?;
        let (numbers, sum) = rest.split_last_chunk()?;
        if key.hash(numbers) != u64::from_le_bytes(*sum) {
            return None;
        }
        let (number, directory) = numbers.split_first_chunk()?;
        let directory = match (kind, directory) {
            (LIVE, []) => None,
            (OF_SNAPSHOT, directory) => Some(u64::from_le_bytes(directory.try_into().ok()?)),
            _ => return None,
        };
        Some((ObjectId::live(u64::from_le_bytes(*number)), directory.filter(|directory| *directory != 0)))
    };
    parts(handle.as_bytes()).ok_or(Error::BadHandle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_made_with_the_key_is_a_handle() {
        let (key, other) = (SipHasher24::new_with_key(&[1; 16]), SipHasher24::new_with_key(&[2; 16]));
        let id = ObjectId::live(0x0100_0000_0005);
        for (handle, bytes, directory) in [
            (encode(&key, id).unwrap(), 17, None),
            (encode_then(&key, id, Some(7)).unwrap(), 25, Some(7)),
            (encode_then(&key, id, None).unwrap(), 25, None),
        ] {
            assert_eq!(handle.as_bytes().len(), bytes);
            assert_eq!(decode(&key, &handle), Ok((id, directory)));
            assert_eq!(decode(&other, &handle), Err(Error::BadHandle));
            for cut in 1..bytes {
                let cut = Handle::new(&handle.as_bytes()[..cut]).unwrap();
                assert_eq!(decode(&key, &cut), Err(Error::BadHandle));
            }
            let long = Handle::new(&[handle.as_bytes(), &[0]].concat()).unwrap();
            assert_eq!(decode(&key, &long), Err(Error::BadHandle));
            let mut of_other_kind = handle.as_bytes().to_vec();
            of_other_kind[0] ^= LIVE ^ OF_SNAPSHOT;
            assert_eq!(decode(&key, &Handle::new(&of_other_kind).unwrap()), Err(Error::BadHandle));
        }
    }

    #[test]
    fn the_form_of_a_live_handle_stays() {
        let handle = encode(&SipHasher24::new_with_key(&[1; 16]), ObjectId::live(5)).unwrap();
        assert_eq!(handle.as_bytes()[..9], [b'C', 5, 0, 0, 0, 0, 0, 0, 0]);
    }
}
