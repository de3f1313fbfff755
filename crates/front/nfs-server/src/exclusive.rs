//! The verifier of an exclusive creation (RFC 1813 3.3.8, RFC 8881 18.16.3).

use storage::{Attributes, FileKind, Timestamp};

/// How the verifier of an exclusive creation is stored with the file, so that it survives a restart: in the seconds of
/// two times, which the client sets after it has received the reply (RFC 1813 3.3.8). Each time holds 31 bits of the
/// verifier, which every storage can store.
pub(crate) struct Mark {
    pub(crate) atime: Timestamp,
    pub(crate) mtime: Timestamp,
}

impl Mark {
    pub(crate) fn of(verifier: [u8; 8]) -> Self {
        let bits = u64::from_be_bytes(verifier);
        let seconds = |word: u64| Timestamp { secs: (word & 0x7fff_ffff).cast_signed(), nanos: 0 };
        Self { atime: seconds(bits >> 32), mtime: seconds(bits) }
    }

    pub(crate) fn is_on(&self, attributes: &Attributes) -> bool {
        attributes.kind == FileKind::Regular
            && attributes.size == 0
            && (attributes.atime, attributes.mtime) == (self.atime, self.mtime)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_halves_of_a_verifier_are_kept() {
        let mark = Mark::of([0, 0, 0, 1, 0, 0, 0, 2]);
        assert_eq!((mark.atime.secs, mark.mtime.secs), (1, 2));
        let mark = Mark::of([0xff; 8]);
        assert_eq!((mark.atime.secs, mark.mtime.secs), (0x7fff_ffff, 0x7fff_ffff));
    }
}
