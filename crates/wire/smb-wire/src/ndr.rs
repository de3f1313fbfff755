//! NDR transfer syntax, version 2 (C706 chapter 14), as far as [`crate::srvsvc`] and [`crate::wkssvc`] need it: 32-bit
//! integers, unique pointers, and zero-terminated strings of 16-bit characters.

use crate::codec::{Put, Reader, Utf16, WireError, aligned, len_u32, pad_from};

/// Reads values from a stub.
#[derive(Debug, Clone)]
pub(crate) struct NdrReader<'a> {
    reader: Reader<'a>,
    length: usize,
}

impl<'a> NdrReader<'a> {
    pub(crate) const fn new(stub: &'a [u8]) -> Self {
        Self { reader: Reader::new(stub), length: stub.len() }
    }

    /// An integer, aligned to its size from the start of the stub.
    pub(crate) fn u32(&mut self) -> Result<u32, WireError> {
        let position = self.length.saturating_sub(self.reader.rest().len());
        self.reader.skip(aligned(position, 4).saturating_sub(position))?;
        self.reader.u32()
    }

    /// Whether a unique pointer is not null. The value that it points to follows later.
    pub(crate) fn pointer(&mut self) -> Result<bool, WireError> {
        Ok(self.u32()? != 0)
    }

    /// A unique pointer to an integer, which follows directly.
    pub(crate) fn unique_u32(&mut self) -> Result<Option<u32>, WireError> {
        if self.pointer()? { self.u32().map(Some) } else { Ok(None) }
    }

    /// A unique pointer to a string, which follows directly.
    pub(crate) fn unique_string(&mut self) -> Result<Option<String>, WireError> {
        if self.pointer()? { self.string().map(Some) } else { Ok(None) }
    }

    /// A conformant and varying string.
    pub(crate) fn string(&mut self) -> Result<String, WireError> {
        let maximum = self.u32()?;
        let (offset, actual) = (self.u32()?, self.u32()?);
        if offset != 0 || actual > maximum {
            return Err(WireError::Invalid("NDR string"));
        }
        let units = self.reader.bytes((actual as usize).saturating_mul(2))?;
        let text = units.strip_suffix(&[0, 0]).ok_or(WireError::Invalid("NDR string"))?;
        Utf16::from_wire(text)?.decode()
    }
}

/// Appends values to a stub.
#[derive(Debug)]
pub(crate) struct NdrWriter<'o> {
    out: &'o mut Vec<u8>,
    start: usize,
    next_referent: u32,
}

impl<'o> NdrWriter<'o> {
    /// Starts a stub at the end of `out`.
    pub(crate) const fn new(out: &'o mut Vec<u8>) -> Self {
        let start = out.len();
        Self { out, start, next_referent: 0x0002_0000 }
    }

    pub(crate) fn u32(&mut self, value: u32) {
        pad_from(self.out, self.start, 4);
        self.out.put_u32(value);
    }

    /// A count of entries.
    pub(crate) fn count(&mut self, count: usize) -> Result<(), WireError> {
        self.u32(len_u32(count, "NDR array")?);
        Ok(())
    }

    /// A unique pointer. The value that it points to must be written later.
    pub(crate) fn pointer(&mut self, present: bool) {
        if present {
            self.u32(self.next_referent);
            self.next_referent = self.next_referent.wrapping_add(4);
        } else {
            self.u32(0);
        }
    }

    /// A unique pointer to an integer, which follows directly.
    pub(crate) fn unique_u32(&mut self, value: Option<u32>) {
        self.pointer(value.is_some());
        if let Some(value) = value {
            self.u32(value);
        }
    }

    /// A unique pointer to a string, which follows directly.
    pub(crate) fn unique_string(&mut self, text: Option<&str>) -> Result<(), WireError> {
        self.pointer(text.is_some());
        text.map_or(Ok(()), |text| self.string(text))
    }

    /// A conformant and varying string.
    pub(crate) fn string(&mut self, text: &str) -> Result<(), WireError> {
        let count = text.encode_utf16().count().saturating_add(1);
        self.count(count)?;
        self.u32(0);
        self.count(count)?;
        Utf16::from(text).encode_into(self.out);
        self.out.put_u16(0);
        Ok(())
    }
}
