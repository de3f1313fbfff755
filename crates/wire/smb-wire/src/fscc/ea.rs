//! Lists of extended attributes: FILE_FULL_EA_INFORMATION ([MS-FSCC] 2.4.16) and FILE_GET_EA_INFORMATION
//! (2.4.16.1).

use bitflags::bitflags;

use super::next_entry::{DoesNotFit, Entries, EntryWriter};
use crate::codec::{Put, Reader, WireError};

bitflags! {
    /// `Flags` of an extended attribute.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct EaFlags: u8 {
        /// FILE_NEED_EA: a program that does not understand the attribute must not use the file.
        const NEED_EA = 0x80;
        const _ = !0;
    }
}

/// An extended attribute.
#[doc(alias = "FILE_FULL_EA_INFORMATION")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FullEa<'a> {
    /// Whether the attribute must be understood.
    pub flags: EaFlags,
    /// The name: 8-bit characters without a zero byte.
    pub name: &'a [u8],
    /// The value. In a SET_INFO an empty value removes the attribute.
    pub value: &'a [u8],
}

/// Starts a list of extended attributes of at most `limit` bytes at the end of `out`. Entries are aligned to
/// 4 bytes.
pub const fn writer(out: &mut Vec<u8>, limit: usize) -> EntryWriter<'_> {
    EntryWriter::new(out, limit, 4)
}

impl<'a> FullEa<'a> {
    /// Appends the attribute to a list.
    ///
    /// # Errors
    /// [`DoesNotFit`], also when the name or value exceeds its length field.
    pub fn push(&self, list: &mut EntryWriter<'_>) -> Result<(), DoesNotFit> {
        let name_length = u8::try_from(self.name.len()).map_err(|_| DoesNotFit)?;
        let value_length = u16::try_from(self.value.len()).map_err(|_| DoesNotFit)?;
        list.push(|out| {
            out.put(&[self.flags.bits(), name_length]);
            out.put_u16(value_length);
            out.put(self.name);
            out.put_u8(0);
            out.put(self.value);
        })
    }

    /// The attributes of a list.
    pub fn list(list: &'a [u8]) -> impl Iterator<Item = Result<Self, WireError>> {
        Entries::new(list).map(|entry| {
            let mut r = Reader::new(entry?);
            r.skip(4)?;
            let flags = EaFlags::from_bits_retain(r.u8()?);
            let (name_length, value_length) = (r.u8()?.into(), r.len16()?);
            let name = zero_terminated(&mut r, name_length)?;
            Ok(Self { flags, name, value: r.bytes(value_length)? })
        })
    }
}

/// The names in a FILE_GET_EA_INFORMATION list: the attributes that a QUERY_INFO asks for.
pub fn names(list: &[u8]) -> impl Iterator<Item = Result<&[u8], WireError>> {
    Entries::new(list).map(|entry| {
        let mut r = Reader::new(entry?);
        r.skip(4)?;
        let length = r.u8()?.into();
        zero_terminated(&mut r, length)
    })
}

/// Appends a name to a FILE_GET_EA_INFORMATION list.
///
/// # Errors
/// [`DoesNotFit`], also for a name of more than 255 bytes.
pub fn push_name(list: &mut EntryWriter<'_>, name: &[u8]) -> Result<(), DoesNotFit> {
    let length = u8::try_from(name.len()).map_err(|_| DoesNotFit)?;
    list.push(|out| {
        out.put_u8(length);
        out.put(name);
        out.put_u8(0);
    })
}

fn zero_terminated<'a>(r: &mut Reader<'a>, length: usize) -> Result<&'a [u8], WireError> {
    let name = r.bytes(length)?;
    if r.u8()? != 0 { Err(WireError::Invalid("EaName")) } else { Ok(name) }
}
