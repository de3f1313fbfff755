//! NDR transfer syntax, version 2 (C706 chapter 14), as far as the interfaces of this crate need it: integers, unique
//! pointers, zero-terminated strings of 16-bit characters, counted strings (RPC_UNICODE_STRING, [MS-DTYP] 2.3.10), and
//! SIDs (RPC_SID, [MS-DTYP] 2.4.2.3).

use acl::Sid;

use crate::codec::{Put, Reader, Utf16, WireError, aligned, len_u16, len_u32, pad_from};

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

    /// Skips what is before the next multiple of `alignment` bytes from the start of the stub.
    fn align(&mut self, alignment: usize) -> Result<(), WireError> {
        let position = self.length.saturating_sub(self.reader.rest().len());
        self.reader.skip(aligned(position, alignment).saturating_sub(position))
    }

    /// An integer, aligned to its size.
    pub(crate) fn u16(&mut self) -> Result<u16, WireError> {
        self.align(2)?;
        self.reader.u16()
    }

    /// An integer, aligned to its size.
    pub(crate) fn u32(&mut self) -> Result<u32, WireError> {
        self.align(4)?;
        self.reader.u32()
    }

    /// Bytes without alignment.
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        self.reader.array()
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

    /// The fixed part of a counted string: whether its characters follow later ([`Self::characters`]).
    pub(crate) fn counted(&mut self) -> Result<bool, WireError> {
        let _ = (self.u16()?, self.u16()?);
        self.pointer()
    }

    /// The characters of a counted string, which has no zero at its end.
    pub(crate) fn characters(&mut self) -> Result<String, WireError> {
        Utf16::from_wire(self.units()?)?.decode()
    }

    /// A SID, after the number of its sub-authorities.
    pub(crate) fn sid(&mut self) -> Result<Sid, WireError> {
        let count = self.u32()?;
        let sid = Sid::decode(self.reader.rest())?;
        if usize::try_from(count).is_ok_and(|count| count == sid.sub_authorities().len()) {
            self.reader.skip(sid.byte_len())?;
            Ok(sid)
        } else {
            Err(WireError::Invalid("number of sub-authorities of a SID"))
        }
    }

    /// A conformant and varying string.
    pub(crate) fn string(&mut self) -> Result<String, WireError> {
        let text = self.units()?.strip_suffix(&[0, 0]).ok_or(WireError::Invalid("NDR string"))?;
        Utf16::from_wire(text)?.decode()
    }

    /// The contents of a conformant and varying array of 16-bit characters.
    fn units(&mut self) -> Result<&'a [u8], WireError> {
        let maximum = self.u32()?;
        let (offset, actual) = (self.u32()?, self.u32()?);
        if offset != 0 || actual > maximum {
            return Err(WireError::Invalid("NDR string"));
        }
        self.reader.bytes((actual as usize).saturating_mul(2))
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

    /// Appends zeros up to the next multiple of `alignment` bytes from the start of the stub.
    pub(crate) fn align(&mut self, alignment: usize) {
        pad_from(self.out, self.start, alignment);
    }

    pub(crate) fn u16(&mut self, value: u16) {
        self.align(2);
        self.out.put_u16(value);
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.out.put(bytes);
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.align(4);
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

    /// The fixed part of a counted string. Its characters ([`Self::characters`]) must be written later.
    pub(crate) fn counted(&mut self, text: &str) -> Result<(), WireError> {
        let length = len_u16(Utf16::from(text).byte_len(), "counted string")?;
        self.u16(length);
        self.u16(length);
        self.pointer(true);
        Ok(())
    }

    /// The characters of a counted string.
    pub(crate) fn characters(&mut self, text: &str) -> Result<(), WireError> {
        let count = text.encode_utf16().count();
        self.count(count)?;
        self.u32(0);
        self.count(count)?;
        Utf16::from(text).encode_into(self.out);
        Ok(())
    }

    /// A SID, after the number of its sub-authorities.
    pub(crate) fn sid(&mut self, sid: &Sid) -> Result<(), WireError> {
        self.count(sid.sub_authorities().len())?;
        sid.encode_into(self.out);
        Ok(())
    }
}
