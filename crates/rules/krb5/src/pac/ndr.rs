//! The little NDR that logon information needs: little-endian values at multiples of their size. [C706] 14, [MS-RPCE]
//! 2.2.6.

use acl::Sid;

use super::{PacError, text};

/// The common and the private header of a type serialisation of version 1. [MS-RPCE] 2.2.6.1, 2.2.6.2.
const HEADERS_LEN: usize = 16;
/// Version 1, little-endian, 8 bytes.
const COMMON_HEADER: [u8; 4] = [1, 0x10, 8, 0];
/// The most UTF-16 units of a text that is passed over or read.
const TEXT_UNITS_MAX: u32 = 32_768;

/// Reads values one after another.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// A pointer: whether something follows for it later.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Pointer(bool);

impl Pointer {
    pub(super) const NULL: Self = Self(false);

    pub(super) fn is_null(self) -> bool {
        !self.0
    }
}

impl<'a> Reader<'a> {
    /// What is behind the headers of a serialised type.
    pub(super) fn of_serialised(bytes: &'a [u8]) -> Result<Self, PacError> {
        let (headers, bytes) = bytes.split_at_checked(HEADERS_LEN).ok_or(PacError::LogonInfo)?;
        if headers.starts_with(&COMMON_HEADER) { Ok(Self { bytes, at: 0 }) } else { Err(PacError::LogonInfo) }
    }

    /// `length` bytes from the next multiple of `alignment`.
    pub(super) fn take(&mut self, length: usize, alignment: usize) -> Result<&'a [u8], PacError> {
        let start = self.at.checked_next_multiple_of(alignment).ok_or(PacError::LogonInfo)?;
        let end = start.checked_add(length).ok_or(PacError::LogonInfo)?;
        self.at = end;
        self.bytes.get(start..end).ok_or(PacError::LogonInfo)
    }

    pub(super) fn u32(&mut self) -> Result<u32, PacError> {
        let bytes = self.take(4, 4)?.first_chunk().ok_or(PacError::LogonInfo)?;
        Ok(u32::from_le_bytes(*bytes))
    }

    pub(super) fn pointer(&mut self) -> Result<Pointer, PacError> {
        Ok(Pointer(self.u32()? != 0))
    }

    /// RPC_UNICODE_STRING: two lengths and a pointer. The text follows later and has its own length.
    pub(super) fn text_pointer(&mut self) -> Result<Pointer, PacError> {
        self.take(4, 4)?;
        self.pointer()
    }

    /// The text for a pointer: a conformant and varying array of UTF-16 units.
    pub(super) fn text(&mut self, pointer: Pointer) -> Result<String, PacError> {
        text(self.text_units(pointer)?)
    }

    /// The bytes of a text.
    pub(super) fn text_units(&mut self, pointer: Pointer) -> Result<&'a [u8], PacError> {
        if pointer.is_null() {
            return Ok(&[]);
        }
        let (most, offset, actual) = (self.u32()?, self.u32()?, self.u32()?);
        if offset != 0 || actual > most {
            return Err(PacError::LogonInfo);
        }
        if actual > TEXT_UNITS_MAX {
            return Err(PacError::Text);
        }
        let length = usize::try_from(actual).map_err(|_| PacError::Text)?.saturating_mul(2);
        self.take(length, 2)
    }

    /// The head of a conformant array, which must have `count` elements.
    pub(super) fn array(&mut self, count: u32) -> Result<(), PacError> {
        if self.u32()? == count { Ok(()) } else { Err(PacError::LogonInfo) }
    }

    /// RPC_SID: the number of its sub-authorities, and the SID. [MS-DTYP] 2.4.2.3.
    pub(super) fn sid(&mut self) -> Result<Sid, PacError> {
        let count = usize::try_from(self.u32()?).map_err(|_| PacError::Sid)?;
        if count > acl::SUB_AUTHORITIES_MAX {
            return Err(PacError::Sid);
        }
        let sid = Sid::decode(self.take(count.saturating_mul(4).saturating_add(8), 1)?)
            .map_err(|_| PacError::Sid)?;
        if sid.sub_authorities().len() == count { Ok(sid) } else { Err(PacError::Sid) }
    }
}
