//! QUERY_DIRECTORY, [MS-SMB2] 2.2.33 and 2.2.34.

use bitflags::bitflags;

use crate::codec::{Put, Reader, Utf16, WireError, len_u16, variable};
use crate::dtyp::FileId;
use crate::fscc::FileInfoClass;

bitflags! {
    /// `Flags` of the request.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct QueryDirectoryFlags: u8 {
        /// SMB2_RESTART_SCANS: from the beginning, with the previous pattern.
        const RESTART_SCANS = 0x01;
        /// SMB2_RETURN_SINGLE_ENTRY
        const RETURN_SINGLE_ENTRY = 0x02;
        /// SMB2_INDEX_SPECIFIED: from `file_index`.
        const INDEX_SPECIFIED = 0x04;
        /// SMB2_REOPEN: from the beginning, with a new pattern.
        const REOPEN = 0x10;
        const _ = !0;
    }
}

const REQUEST_FIXED_END: usize = 64 + 32;

/// A QUERY_DIRECTORY request.
#[doc(alias = "SMB2_QUERY_DIRECTORY_REQUEST")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'a> {
    /// The format of the entries.
    pub file_information_class: FileInfoClass,
    /// Where to continue.
    pub flags: QueryDirectoryFlags,
    /// A position in the enumeration, with [`QueryDirectoryFlags::INDEX_SPECIFIED`].
    pub file_index: u32,
    /// The open directory.
    pub file_id: FileId,
    /// The pattern.
    pub file_name: Utf16<'a>,
    /// The largest output buffer in bytes.
    pub output_buffer_length: u32,
}

impl<'a> Request<'a> {
    /// Decodes the body of `message`.
    ///
    /// # Errors
    /// [`WireError::Truncated`], [`WireError::StructureSize`], [`WireError::OutOfBounds`] or
    /// [`WireError::Utf16`].
    pub fn decode(message: &'a [u8]) -> Result<Self, WireError> {
        let mut r = Reader::body::<32>(message, 33)?;
        let file_information_class = FileInfoClass::from(r.u8()?);
        let flags = QueryDirectoryFlags::from_bits_retain(r.u8()?);
        let file_index = r.u32()?;
        let file_id = FileId::read(&mut r)?;
        let (offset, length) = (r.len16()?, r.len16()?);
        let output_buffer_length = r.u32()?;
        let file_name = Utf16::from_wire(variable(message, REQUEST_FIXED_END, offset, length, "FileName")?)?;
        Ok(Self { file_information_class, flags, file_index, file_id, file_name, output_buffer_length })
    }

    /// Appends the body.
    ///
    /// # Errors
    /// [`WireError::TooLong`].
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), WireError> {
        out.put_u16(33);
        out.put_u8(self.file_information_class.into());
        out.put_u8(self.flags.bits());
        out.put_u32(self.file_index);
        self.file_id.put(out);
        out.put_u16(len_u16(REQUEST_FIXED_END, "FileNameOffset")?);
        out.put_u16(len_u16(self.file_name.byte_len(), "FileName")?);
        out.put_u32(self.output_buffer_length);
        self.file_name.encode_into(out);
        if self.file_name.is_empty() {
            out.put_u8(0);
        }
        Ok(())
    }
}

output_buffer_response! {
    /// A QUERY_DIRECTORY response: a chain of entries ([`crate::fscc::directory_info`]).
    #[doc(alias = "SMB2_QUERY_DIRECTORY_RESPONSE")]
    Response
}
