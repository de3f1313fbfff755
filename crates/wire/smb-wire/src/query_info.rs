//! QUERY_INFO, [MS-SMB2] 2.2.37 and 2.2.38.

use bitflags::bitflags;

use crate::codec::{Put, Reader, WireError, len_u16, len_u32, variable};
use crate::dtyp::FileId;

wire_enum! {
    /// The kind of object to which a QUERY_INFO or SET_INFO refers.
    pub enum InfoType: u8 {
        /// The file. `info_class` is a [`crate::fscc::FileInfoClass`].
        File = 0x01,
        /// The file system. `info_class` is a [`crate::fscc::FsInfoClass`].
        FileSystem = 0x02,
        /// The security descriptor. `additional_information` is a [`SecurityInformation`].
        Security = 0x03,
        /// Quotas.
        Quota = 0x04,
    }
}

bitflags! {
    /// The parts of a security descriptor: `AdditionalInformation` with [`InfoType::Security`].
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct SecurityInformation: u32 {
        /// OWNER_SECURITY_INFORMATION
        const OWNER = 0x0000_0001;
        /// GROUP_SECURITY_INFORMATION
        const GROUP = 0x0000_0002;
        /// DACL_SECURITY_INFORMATION
        const DACL = 0x0000_0004;
        /// SACL_SECURITY_INFORMATION
        const SACL = 0x0000_0008;
        /// LABEL_SECURITY_INFORMATION
        const LABEL = 0x0000_0010;
        /// ATTRIBUTE_SECURITY_INFORMATION
        const ATTRIBUTE = 0x0000_0020;
        /// SCOPE_SECURITY_INFORMATION
        const SCOPE = 0x0000_0040;
        /// BACKUP_SECURITY_INFORMATION
        const BACKUP = 0x0001_0000;
        const _ = !0;
    }
}

bitflags! {
    /// `Flags` of the request: how to enumerate extended attributes (FileFullEaInformation).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct QueryInfoFlags: u32 {
        /// SL_RESTART_SCAN
        const RESTART_SCAN = 0x0000_0001;
        /// SL_RETURN_SINGLE_ENTRY
        const RETURN_SINGLE_ENTRY = 0x0000_0002;
        /// SL_INDEX_SPECIFIED: `additional_information` is the index of the first attribute.
        const INDEX_SPECIFIED = 0x0000_0004;
        const _ = !0;
    }
}

const REQUEST_FIXED_END: usize = 64 + 40;

/// A QUERY_INFO request.
#[doc(alias = "SMB2_QUERY_INFO_REQUEST")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'a> {
    /// The kind of object.
    pub info_type: InfoType,
    /// The information class; its meaning depends on `info_type`.
    pub info_class: u8,
    /// The largest output buffer in bytes.
    pub output_buffer_length: u32,
    /// Further parameters, depending on `info_type`.
    pub additional_information: u32,
    /// How to enumerate extended attributes.
    pub flags: QueryInfoFlags,
    /// The open.
    pub file_id: FileId,
    /// Names of extended attributes or quota SIDs.
    pub input_buffer: &'a [u8],
}

impl<'a> Request<'a> {
    /// Decodes the body of `message`.
    ///
    /// # Errors
    /// [`WireError::Truncated`], [`WireError::StructureSize`] or [`WireError::OutOfBounds`].
    pub fn decode(message: &'a [u8]) -> Result<Self, WireError> {
        let mut r = Reader::body::<40>(message, 41)?;
        let info_type = InfoType::from(r.u8()?);
        let info_class = r.u8()?;
        let output_buffer_length = r.u32()?;
        let offset = r.len16()?;
        r.skip(2)?;
        let length = r.len32()?;
        Ok(Self {
            info_type,
            info_class,
            output_buffer_length,
            additional_information: r.u32()?,
            flags: QueryInfoFlags::from_bits_retain(r.u32()?),
            file_id: FileId::read(&mut r)?,
            input_buffer: variable(message, REQUEST_FIXED_END, offset, length, "InputBuffer")?,
        })
    }

    /// Appends the body.
    ///
    /// # Errors
    /// [`WireError::TooLong`].
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), WireError> {
        let offset = if self.input_buffer.is_empty() { 0 } else { REQUEST_FIXED_END };
        out.put_u16(41);
        out.put_u8(self.info_type.into());
        out.put_u8(self.info_class);
        out.put_u32(self.output_buffer_length);
        out.put_u16(len_u16(offset, "InputBufferOffset")?);
        out.put_u16(0);
        out.put_u32(len_u32(self.input_buffer.len(), "InputBuffer")?);
        out.put_u32(self.additional_information);
        out.put_u32(self.flags.bits());
        self.file_id.put(out);
        out.put(if self.input_buffer.is_empty() { &[0] } else { self.input_buffer });
        Ok(())
    }
}

output_buffer_response! {
    /// A QUERY_INFO response: the requested information ([`crate::fscc`], [`crate::security_descriptor`]).
    #[doc(alias = "SMB2_QUERY_INFO_RESPONSE")]
    Response
}
