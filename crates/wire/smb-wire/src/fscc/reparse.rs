//! Reparse points, [MS-FSCC] 2.1.2: a tag and data. Symbolic links and mount points are decoded, others are
//! not.

use crate::codec::{Put, Reader, Utf16, WireError, len_u16, variable};

/// Reparse tags, [MS-FSCC] 2.1.2.1.
pub mod tag {
    /// IO_REPARSE_TAG_SYMLINK
    pub const SYMLINK: u32 = 0xA000_000C;
    /// IO_REPARSE_TAG_MOUNT_POINT
    pub const MOUNT_POINT: u32 = 0xA000_0003;
    /// IO_REPARSE_TAG_NFS: a Unix object for which SMB has no type.
    pub const NFS: u32 = 0x8000_0014;
    /// IO_REPARSE_TAG_LX_SYMLINK
    pub const LX_SYMLINK: u32 = 0xA000_001D;
    /// IO_REPARSE_TAG_AF_UNIX
    pub const AF_UNIX: u32 = 0x8000_0023;
    /// IO_REPARSE_TAG_LX_FIFO
    pub const LX_FIFO: u32 = 0x8000_0024;
    /// IO_REPARSE_TAG_LX_CHR
    pub const LX_CHR: u32 = 0x8000_0025;
    /// IO_REPARSE_TAG_LX_BLK
    pub const LX_BLK: u32 = 0x8000_0026;
}

/// SYMLINK_FLAG_RELATIVE: the substitute name is relative to the directory of the link.
pub const SYMLINK_FLAG_RELATIVE: u32 = 0x0000_0001;

/// The contents of a reparse point.
#[doc(alias = "REPARSE_DATA_BUFFER")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReparsePoint<'a> {
    /// A symbolic link, [MS-FSCC] 2.1.2.4.
    Symlink {
        /// The target.
        substitute_name: Utf16<'a>,
        /// The target as shown to people.
        print_name: Utf16<'a>,
        /// [`SYMLINK_FLAG_RELATIVE`] or 0.
        flags: u32,
    },
    /// A mount point, [MS-FSCC] 2.1.2.5.
    MountPoint {
        /// The target.
        substitute_name: Utf16<'a>,
        /// The target as shown to people.
        print_name: Utf16<'a>,
    },
    /// Any other reparse point.
    Other {
        /// The tag. For a tag without [`ReparsePoint::TAG_MICROSOFT`], `data` begins with a GUID of 16 bytes.
        tag: u32,
        /// The data.
        data: &'a [u8],
    },
}

const GUID_LEN: usize = 16;

impl<'a> ReparsePoint<'a> {
    /// The bit that tags assigned by Microsoft have. For other tags the data is preceded by a GUID.
    pub const TAG_MICROSOFT: u32 = 0x8000_0000;

    /// Decodes the buffer of FSCTL_SET_REPARSE_POINT or FSCTL_GET_REPARSE_POINT.
    ///
    /// # Errors
    /// [`WireError`] for a malformed buffer, also when bytes follow the data (STATUS_IO_REPARSE_DATA_INVALID).
    pub fn decode(buffer: &'a [u8]) -> Result<Self, WireError> {
        let mut r = Reader::new(buffer);
        let tag = r.u32()?;
        let length = r.len16()?;
        r.skip(2)?;
        let length = if tag & Self::TAG_MICROSOFT == 0 { length.saturating_add(GUID_LEN) } else { length };
        let data = r.bytes(length)?;
        if !r.is_empty() {
            return Err(WireError::Invalid("ReparseDataLength"));
        }
        match tag {
            tag::SYMLINK => {
                let (names, mut r) = Names::read(data)?;
                let flags = r.u32()?;
                let (substitute_name, print_name) = names.texts(r.rest())?;
                Ok(Self::Symlink { substitute_name, print_name, flags })
            }
            tag::MOUNT_POINT => {
                let (names, r) = Names::read(data)?;
                let (substitute_name, print_name) = names.texts(r.rest())?;
                Ok(Self::MountPoint { substitute_name, print_name })
            }
            _ => Ok(Self::Other { tag, data }),
        }
    }

    /// The reparse tag.
    #[must_use]
    pub const fn tag(&self) -> u32 {
        match self {
            Self::Symlink { .. } => tag::SYMLINK,
            Self::MountPoint { .. } => tag::MOUNT_POINT,
            Self::Other { tag, .. } => *tag,
        }
    }

    /// Appends the buffer. The names of a mount point end with a zero, as on Windows.
    ///
    /// # Errors
    /// [`WireError::TooLong`]; [`WireError::Truncated`] when a tag that is not Microsoft's has no GUID.
    pub fn encode_into(&self, out: &mut Vec<u8>) -> Result<(), WireError> {
        let mut data = Vec::new();
        match self {
            Self::Symlink { substitute_name, print_name, flags } => {
                put_names(&mut data, *substitute_name, *print_name, Some(*flags))?;
            }
            Self::MountPoint { substitute_name, print_name } => {
                put_names(&mut data, *substitute_name, *print_name, None)?;
            }
            Self::Other { data: bytes, .. } => data.put(bytes),
        }
        let guid = if self.tag() & Self::TAG_MICROSOFT == 0 { GUID_LEN } else { 0 };
        let length = data.len().checked_sub(guid).ok_or(WireError::Truncated)?;
        out.put_u32(self.tag());
        out.put_u16(len_u16(length, "ReparseData")?);
        out.put_u16(0);
        out.put(&data);
        Ok(())
    }
}

/// Offsets and lengths of the two names.
struct Names {
    substitute: (usize, usize),
    print: (usize, usize),
}

impl Names {
    fn read(data: &[u8]) -> Result<(Self, Reader<'_>), WireError> {
        let mut r = Reader::new(data);
        let substitute = (r.len16()?, r.len16()?);
        let print = (r.len16()?, r.len16()?);
        Ok((Self { substitute, print }, r))
    }

    fn texts<'a>(&self, path_buffer: &'a [u8]) -> Result<(Utf16<'a>, Utf16<'a>), WireError> {
        let text =
            |(offset, length), field| Utf16::from_wire(variable(path_buffer, 0, offset, length, field)?);
        Ok((text(self.substitute, "SubstituteName")?, text(self.print, "PrintName")?))
    }
}

fn put_names(
    out: &mut Vec<u8>,
    substitute: Utf16<'_>,
    print: Utf16<'_>,
    flags: Option<u32>,
) -> Result<(), WireError> {
    let terminator = if flags.is_none() { 2 } else { 0 };
    let print_offset = substitute.byte_len().saturating_add(terminator);
    out.put_u16(0);
    out.put_u16(len_u16(substitute.byte_len(), "SubstituteName")?);
    out.put_u16(len_u16(print_offset, "SubstituteName")?);
    out.put_u16(len_u16(print.byte_len(), "PrintName")?);
    if let Some(flags) = flags {
        out.put_u32(flags);
    }
    for name in [substitute, print] {
        name.encode_into(out);
        crate::codec::put_zeros(out, terminator);
    }
    Ok(())
}
