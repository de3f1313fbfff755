//! Bounds-checked reading, and writing.

/// Why bytes are no record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// There are fewer bytes than the record needs.
    #[error("truncated")]
    Truncated,
    /// There are more.
    #[error("bytes are left over")]
    LeftOver,
    /// A field has an undefined value.
    #[error("{0} is invalid")]
    Invalid(&'static str),
    /// A field is longer than it may be.
    #[error("{0} is too long")]
    TooLong(&'static str),
}

pub(crate) type Result<T> = std::result::Result<T, Malformed>;

/// Reads from the front of a slice.
#[derive(Debug)]
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(Malformed::Truncated)?;
        self.0 = rest;
        Ok(*taken)
    }

    pub(crate) fn u8(&mut self) -> Result<u8> {
        self.array().map(|[byte]| byte)
    }

    pub(crate) fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn i64(&mut self) -> Result<i64> {
        self.array().map(i64::from_le_bytes)
    }

    /// Bytes behind their length (32 bits).
    pub(crate) fn bytes(&mut self, most: usize, what: &'static str) -> Result<Vec<u8>> {
        let length = self.count(most, what)?;
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Malformed::Truncated)?;
        self.0 = rest;
        Ok(taken.to_vec())
    }

    /// A count (32 bits).
    pub(crate) fn count(&mut self, most: usize, what: &'static str) -> Result<usize> {
        usize::try_from(self.u32()?).ok().filter(|count| *count <= most).ok_or(Malformed::TooLong(what))
    }

    /// A value, or none.
    pub(crate) fn option<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<Option<T>> {
        match self.u8()? {
            0 => Ok(None),
            1 => read(self).map(Some),
            _ => Err(Malformed::Invalid("a presence")),
        }
    }

    pub(crate) fn end(self) -> Result<()> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed::LeftOver) }
    }
}

/// Writes bytes behind their length (32 bits). What is longer than 4 GiB cannot be read again.
pub(crate) fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    put_count(bytes.len(), out);
    out.extend_from_slice(bytes);
}

pub(crate) fn put_count(count: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes());
}

pub(crate) fn put_option<T>(value: Option<T>, out: &mut Vec<u8>, write: impl FnOnce(T, &mut Vec<u8>)) {
    out.push(u8::from(value.is_some()));
    if let Some(value) = value {
        write(value, out);
    }
}
