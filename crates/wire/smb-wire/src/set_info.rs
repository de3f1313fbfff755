//! SET_INFO, [MS-SMB2] 2.2.39 and 2.2.40.

use crate::codec::{Put, Reader, WireError, len_u16, len_u32, variable};
use crate::dtyp::FileId;
use crate::query_info::InfoType;

const REQUEST_FIXED_END: usize = 64 + 32;

/// A SET_INFO request.
#[doc(alias = "SMB2_SET_INFO_REQUEST")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'a> {
    /// The kind of object.
    pub info_type: InfoType,
    /// The information class; its meaning depends on `info_type`.
    pub info_class: u8,
    /// Further parameters; [`crate::query_info::SecurityInformation`] with [`InfoType::Security`].
    pub additional_information: u32,
    /// The open.
    pub file_id: FileId,
    /// The new value.
    pub buffer: &'a [u8],
}

impl<'a> Request<'a> {
    /// Decodes the body of `message`.
    ///
    /// # Errors
    /// [`WireError::Truncated`], [`WireError::StructureSize`] or [`WireError::OutOfBounds`].
    pub fn decode(message: &'a [u8]) -> Result<Self, WireError> {
        let mut r = Reader::body::<32>(message, 33)?;
        let info_type = InfoType::from(r.u8()?);
        let info_class = r.u8()?;
        let length = r.len32()?;
        let offset = r.len16()?;
        r.skip(2)?;
        Ok(Self {
            info_type,
            info_class,
            additional_information: r.u32()?,
            file_id: FileId::read(&mut r)?,
            buffer: variable(message, REQUEST_FIXED_END, offset, length, "Buffer")?,
        })
    }

    /// Appends the body.
    ///
    /// # Errors
    /// [`WireError::TooLong`].
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), WireError> {
        out.put_u16(33);
        out.put_u8(self.info_type.into());
        out.put_u8(self.info_class);
        out.put_u32(len_u32(self.buffer.len(), "Buffer")?);
        out.put_u16(len_u16(REQUEST_FIXED_END, "BufferOffset")?);
        out.put_u16(0);
        out.put_u32(self.additional_information);
        self.file_id.put(out);
        out.put(self.buffer);
        if self.buffer.is_empty() {
            out.put_u8(0);
        }
        Ok(())
    }
}

/// A SET_INFO response. Its body is the `StructureSize` alone.
#[doc(alias = "SMB2_SET_INFO_RESPONSE")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Response;

impl Response {
    /// Decodes the body of `message`.
    ///
    /// # Errors
    /// [`WireError::Truncated`] or [`WireError::StructureSize`].
    pub fn decode(message: &[u8]) -> Result<Self, WireError> {
        Reader::body::<2>(message, 2).map(|_| Self)
    }

    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u16(2);
    }
}
