//! The ERROR response, [MS-SMB2] 2.2.2, which answers a failed request.

use bitflags::bitflags;

use crate::codec::{Put, Reader, Utf16, WireError, aligned, len_u16, len_u32, variable};

const FIXED_END: usize = 72;

/// An ERROR response. `data` is empty for most statuses. For the others it is the data that the status requires
/// ([`SymbolicLink`], [`buffer_too_small`]), in SMB 3.1.1 inside an error context ([`Response::context`]).
#[doc(alias = "SMB2_ERROR_RESPONSE")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Response<'a> {
    /// How many error contexts `data` contains (SMB 3.1.1); 0 when it does not consist of contexts.
    pub context_count: u8,
    /// `ErrorData`.
    pub data: &'a [u8],
}

/// An error context, [MS-SMB2] 2.2.2.1.
#[doc(alias = "SMB2_ERROR_CONTEXT")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorContext<'a> {
    /// The kind of `data`: [`ERROR_ID_DEFAULT`] or [`ERROR_ID_SHARE_REDIRECT`].
    pub id: u32,
    /// `ErrorContextData`.
    pub data: &'a [u8],
}

/// SMB2_ERROR_ID_DEFAULT: the data is the same as without contexts.
pub const ERROR_ID_DEFAULT: u32 = 0;

/// SMB2_ERROR_ID_SHARE_REDIRECT: the data is a [share redirect](crate::share_redirect), [MS-SMB2] 2.2.2.2.2.
pub const ERROR_ID_SHARE_REDIRECT: u32 = 0x7264_5253;

impl<'a> Response<'a> {
    /// Decodes the body of `message`.
    ///
    /// # Errors
    /// [`WireError::Truncated`], [`WireError::StructureSize`] or [`WireError::OutOfBounds`].
    pub fn decode(message: &'a [u8]) -> Result<Self, WireError> {
        let mut r = Reader::body::<8>(message, 9)?;
        let context_count = r.u8()?;
        r.skip(1)?;
        let data = variable(message, FIXED_END, FIXED_END, r.len32()?, "ErrorData")?;
        Ok(Self { context_count, data })
    }

    /// Appends the body.
    ///
    /// # Errors
    /// [`WireError::TooLong`].
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), WireError> {
        out.put_u16(9);
        out.put_u8(self.context_count);
        out.put_u8(0);
        out.put_u32(len_u32(self.data.len(), "ErrorData")?);
        // StructureSize counts one byte of data, and servers send it.
        out.put(if self.data.is_empty() { &[0] } else { self.data });
        Ok(())
    }

    /// The error contexts of `data`.
    ///
    /// # Errors
    /// [`WireError::Truncated`] when `data` ends before the last of `context_count`.
    pub fn contexts(&self) -> Result<Vec<ErrorContext<'a>>, WireError> {
        let mut rest = self.data;
        (0..self.context_count).map(|_| ErrorContext::read(&mut rest)).collect()
    }

    /// `ErrorData` of one context (SMB 3.1.1), to be sent with `context_count` 1.
    ///
    /// # Errors
    /// [`WireError::TooLong`].
    pub fn context(id: u32, data: &[u8]) -> Result<Vec<u8>, WireError> {
        let mut out = Vec::with_capacity(data.len().saturating_add(8));
        out.put_u32(len_u32(data.len(), "ErrorContextData")?);
        out.put_u32(id);
        out.put(data);
        Ok(out)
    }
}

impl<'a> ErrorContext<'a> {
    /// Reads a context and the padding to 8 bytes after it.
    fn read(rest: &mut &'a [u8]) -> Result<Self, WireError> {
        let mut r = Reader::new(rest);
        let length = r.len32()?;
        let id = r.u32()?;
        let data = r.bytes(length)?;
        let padding = aligned(length, 8).saturating_sub(length).min(r.rest().len());
        r.skip(padding)?;
        *rest = r.rest();
        Ok(Self { id, data })
    }
}

/// `ErrorData` of STATUS_BUFFER_TOO_SMALL: how many bytes the output buffer needs ([MS-SMB2] 2.2.2.2).
#[must_use]
pub const fn buffer_too_small(bytes_needed: u32) -> [u8; 4] {
    bytes_needed.to_le_bytes()
}

bitflags! {
    /// `Flags` of a symbolic link.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct SymlinkFlags: u32 {
        /// The substitute name is relative to the directory of the link.
        const RELATIVE = 0x0000_0001;
        const _ = !0;
    }
}

/// `ErrorData` of STATUS_STOPPED_ON_SYMLINK, [MS-SMB2] 2.2.2.2.1.
#[doc(alias = "SMB2_SYMLINK_ERROR_RESPONSE")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SymbolicLink<'a> {
    /// Bytes of the path, in UTF-16, after the link.
    pub unparsed_path_bytes: u16,
    /// The target of the link.
    pub substitute_name: Utf16<'a>,
    /// The target as shown to people.
    pub print_name: Utf16<'a>,
    /// Whether the target is relative.
    pub flags: SymlinkFlags,
}

const SYMLINK_ERROR_TAG: u32 = 0x4C4D_5953;
const IO_REPARSE_TAG_SYMLINK: u32 = 0xA000_000C;

impl<'a> SymbolicLink<'a> {
    /// Decodes `ErrorData`.
    ///
    /// # Errors
    /// [`WireError`] for anything but a well-formed symbolic link.
    pub fn decode(data: &'a [u8]) -> Result<Self, WireError> {
        let mut r = Reader::new(data);
        let link_length = r.len32()?;
        let mut r = Reader::new(r.bytes(link_length)?);
        if (r.u32()?, r.u32()?) != (SYMLINK_ERROR_TAG, IO_REPARSE_TAG_SYMLINK) {
            return Err(WireError::Invalid("tag of the symbolic link"));
        }
        let _reparse_data_length = r.u16()?;
        let unparsed_path_bytes = r.u16()?;
        let (substitute_offset, substitute_length) = (r.len16()?, r.len16()?);
        let (print_offset, print_length) = (r.len16()?, r.len16()?);
        let flags = SymlinkFlags::from_bits_retain(r.u32()?);
        let path_buffer = r.rest();
        let name = |offset, length, field| Utf16::from_wire(variable(path_buffer, 0, offset, length, field)?);
        Ok(Self {
            unparsed_path_bytes,
            substitute_name: name(substitute_offset, substitute_length, "SubstituteName")?,
            print_name: name(print_offset, print_length, "PrintName")?,
            flags,
        })
    }

    /// The bytes of `ErrorData`.
    ///
    /// # Errors
    /// [`WireError::TooLong`].
    pub fn encode(&self) -> Result<Vec<u8>, WireError> {
        let (substitute, print) = (self.substitute_name.byte_len(), self.print_name.byte_len());
        let names = substitute.saturating_add(print);
        let reparse_data_length = len_u16(names.saturating_add(12), "symbolic link")?;
        let mut out = Vec::with_capacity(names.saturating_add(28));
        out.put_u32(u32::from(reparse_data_length).saturating_add(12));
        out.put_u32(SYMLINK_ERROR_TAG);
        out.put_u32(IO_REPARSE_TAG_SYMLINK);
        out.put_u16(reparse_data_length);
        out.put_u16(self.unparsed_path_bytes);
        out.put_u16(0);
        out.put_u16(len_u16(substitute, "SubstituteName")?);
        out.put_u16(len_u16(substitute, "SubstituteName")?);
        out.put_u16(len_u16(print, "PrintName")?);
        out.put_u32(self.flags.bits());
        self.substitute_name.encode_into(&mut out);
        self.print_name.encode_into(&mut out);
        Ok(out)
    }
}
