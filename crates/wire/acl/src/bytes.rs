//! Bounds-checked reading, little-endian writing, and the one error of this crate.

/// Why bytes are not a valid security descriptor or part of one, or why a value cannot be encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// There are fewer bytes than the structure needs.
    #[error("truncated")]
    Truncated,
    /// An offset leads outside the bytes or into their fixed part.
    #[error("{0} lies outside the bytes or inside their fixed part")]
    OutOfBounds(&'static str),
    /// A field has an undefined value.
    #[error("{0} is invalid")]
    Invalid(&'static str),
    /// A value is longer than its length field can express.
    #[error("{0} is too long")]
    TooLong(&'static str),
}

/// Reads little-endian integers from the front of a slice.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(Malformed::Truncated)?;
        self.rest = rest;
        Ok(*taken)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        self.array().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }

    /// A length of two bytes.
    pub(crate) fn len16(&mut self) -> Result<usize, Malformed> {
        self.u16().map(usize::from)
    }

    /// An offset of four bytes.
    pub(crate) fn len32(&mut self) -> Result<usize, Malformed> {
        self.u32().map(|value| value as usize)
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(Malformed::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    pub(crate) fn skip(&mut self, count: usize) -> Result<(), Malformed> {
        self.bytes(count).map(|_| ())
    }
}

/// Appends little-endian integers.
pub(crate) trait Put {
    fn put(&mut self, bytes: &[u8]);
    fn put_u16(&mut self, value: u16) {
        self.put(&value.to_le_bytes());
    }
    fn put_u32(&mut self, value: u32) {
        self.put(&value.to_le_bytes());
    }
}

impl Put for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// Overwrites the four bytes at `at`.
pub(crate) fn patch_u32(out: &mut [u8], at: usize, value: u32) {
    if let Some(field) = out.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
        *field = value.to_le_bytes();
    }
}

/// A length as a field of one byte.
pub(crate) fn len_u8(length: usize, field: &'static str) -> Result<u8, Malformed> {
    u8::try_from(length).map_err(|_| Malformed::TooLong(field))
}

/// A length as a field of two bytes.
pub(crate) fn len_u16(length: usize, field: &'static str) -> Result<u16, Malformed> {
    u16::try_from(length).map_err(|_| Malformed::TooLong(field))
}

/// A length as a field of four bytes.
pub(crate) fn len_u32(length: usize, field: &'static str) -> Result<u32, Malformed> {
    u32::try_from(length).map_err(|_| Malformed::TooLong(field))
}
