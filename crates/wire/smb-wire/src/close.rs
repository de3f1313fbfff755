//! CLOSE, [MS-SMB2] 2.2.15 and 2.2.16.

use bitflags::bitflags;

use crate::codec::{Put, Reader, WireError, put_zeros};
use crate::dtyp::{FileId, FileTime};
use crate::fscc::FileAttributes;

bitflags! {
    /// `Flags` of request and response.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct CloseFlags: u16 {
        /// SMB2_CLOSE_FLAG_POSTQUERY_ATTRIB: return the attributes in the response.
        const POSTQUERY_ATTRIB = 0x0001;
        const _ = !0;
    }
}

/// A CLOSE request.
#[doc(alias = "SMB2_CLOSE_REQUEST")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Whether the client wants the attributes.
    pub flags: CloseFlags,
    /// The open.
    pub file_id: FileId,
}

impl Request {
    /// Decodes the body of `message`.
    ///
    /// # Errors
    /// [`WireError::Truncated`] or [`WireError::StructureSize`].
    #[inline]
    pub fn decode(message: &[u8]) -> Result<Self, WireError> {
        let mut r = Reader::body::<24>(message, 24)?;
        let flags = CloseFlags::from_bits_retain(r.u16()?);
        r.skip(4)?;
        Ok(Self { flags, file_id: FileId::read(&mut r)? })
    }

    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u16(24);
        out.put_u16(self.flags.bits());
        out.put_u32(0);
        self.file_id.put(out);
    }
}

/// A CLOSE response.
#[doc(alias = "SMB2_CLOSE_RESPONSE")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Response {
    /// The attributes of the file, if they were requested.
    pub attributes: Option<Attributes>,
}

/// The attributes of a file when it was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    /// When the file was created.
    pub creation_time: FileTime,
    /// When the data was last read.
    pub last_access_time: FileTime,
    /// When the data was last written.
    pub last_write_time: FileTime,
    /// When data or attributes were last changed.
    pub change_time: FileTime,
    /// Bytes allocated on disk.
    pub allocation_size: u64,
    /// Size of the file in bytes.
    pub end_of_file: u64,
    /// The file's attributes.
    pub file_attributes: FileAttributes,
}

impl Response {
    /// Decodes the body of `message`.
    ///
    /// # Errors
    /// [`WireError::Truncated`] or [`WireError::StructureSize`].
    pub fn decode(message: &[u8]) -> Result<Self, WireError> {
        let mut r = Reader::body::<60>(message, 60)?;
        let flags = CloseFlags::from_bits_retain(r.u16()?);
        r.skip(4)?;
        let attributes = Attributes {
            creation_time: FileTime::read(&mut r)?,
            last_access_time: FileTime::read(&mut r)?,
            last_write_time: FileTime::read(&mut r)?,
            change_time: FileTime::read(&mut r)?,
            allocation_size: r.u64()?,
            end_of_file: r.u64()?,
            file_attributes: FileAttributes::from_bits_retain(r.u32()?),
        };
        Ok(Self { attributes: flags.contains(CloseFlags::POSTQUERY_ATTRIB).then_some(attributes) })
    }

    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u16(60);
        let Some(attributes) = self.attributes else {
            return put_zeros(out, 58);
        };
        out.put_u16(CloseFlags::POSTQUERY_ATTRIB.bits());
        out.put_u32(0);
        attributes.creation_time.put(out);
        attributes.last_access_time.put(out);
        attributes.last_write_time.put(out);
        attributes.change_time.put(out);
        out.put_u64(attributes.allocation_size);
        out.put_u64(attributes.end_of_file);
        out.put_u32(attributes.file_attributes.bits());
    }
}
