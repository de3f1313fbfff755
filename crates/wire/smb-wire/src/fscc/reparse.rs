//! Reparse points, [MS-FSCC] 2.1.2: a tag and data. Symbolic links of each kind and mount points are decoded, others
//! are not.

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

/// NFS_SPECFILE_LNK: the object of a reparse point with [`tag::NFS`] is a symbolic link, [MS-FSCC] 2.1.2.6.
const NFS_SPECFILE_LNK: u64 = 0x0000_0000_014B_4E4C;

/// `Version` of the data of [`tag::LX_SYMLINK`], as Windows and Linux write it.
const LX_SYMLINK_VERSION: u32 = 2;

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
    /// A symbolic link of Windows' NFS server, [MS-FSCC] 2.1.2.6.
    NfsSymlink {
        /// The target, as in Unix.
        target: Utf16<'a>,
    },
    /// A symbolic link of the Windows Subsystem for Linux.
    LxSymlink {
        /// The target, as in Unix; UTF-8 by agreement.
        target: &'a [u8],
    },
    /// Any other reparse point, also one with [`tag::NFS`] that is no symbolic link.
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

    /// MAXIMUM_REPARSE_DATA_BUFFER_SIZE: the most bytes of a buffer ([MS-FSA] 2.1.5.10.37).
    pub const BYTES_MAX: usize = 16_384;

    /// Bytes of the fields before the data (sizeof(REPARSE_DATA_BUFFER) of [MS-FSA] 2.1.5.10.14).
    pub const HEADER_LEN: usize = 8;

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
            tag::NFS => decode_nfs(data),
            tag::LX_SYMLINK => match data.split_first_chunk() {
                Some((version, target)) if u32::from_le_bytes(*version) == LX_SYMLINK_VERSION => {
                    Ok(Self::LxSymlink { target })
                }
                Some(_) => Err(WireError::Invalid("version of the symbolic link")),
                None => Err(WireError::Truncated),
            },
            _ => Ok(Self::Other { tag, data }),
        }
    }

    /// The reparse tag.
    #[must_use]
    pub const fn tag(&self) -> u32 {
        match self {
            Self::Symlink { .. } => tag::SYMLINK,
            Self::MountPoint { .. } => tag::MOUNT_POINT,
            Self::NfsSymlink { .. } => tag::NFS,
            Self::LxSymlink { .. } => tag::LX_SYMLINK,
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
            Self::NfsSymlink { target } => {
                data.put_u64(NFS_SPECFILE_LNK);
                target.encode_into(&mut data);
            }
            Self::LxSymlink { target } => {
                data.put_u32(LX_SYMLINK_VERSION);
                data.put(target);
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

/// The data of a reparse point with [`tag::NFS`].
fn decode_nfs(data: &[u8]) -> Result<ReparsePoint<'_>, WireError> {
    let mut r = Reader::new(data);
    if r.u64()? != NFS_SPECFILE_LNK {
        return Ok(ReparsePoint::Other { tag: tag::NFS, data });
    }
    Ok(ReparsePoint::NfsSymlink { target: Utf16::from_wire(r.rest())? })
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
        let text = |(offset, length): (usize, usize), field| {
            // "Note that this offset is divided by 2 to get the array index."
            if !offset.is_multiple_of(2) {
                return Err(WireError::Misaligned(field));
            }
            Utf16::from_wire(variable(path_buffer, 0, offset, length, field)?)
        };
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

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(point: &ReparsePoint<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        point.encode_into(&mut out).unwrap();
        out
    }

    fn relative(target: &str) -> Vec<u8> {
        let name = Utf16::from(target);
        bytes(&ReparsePoint::Symlink {
            substitute_name: name,
            print_name: name,
            flags: SYMLINK_FLAG_RELATIVE,
        })
    }

    /// The layout of [MS-FSCC] 2.1.2.4, counted by hand.
    #[test]
    fn a_symbolic_link_has_the_layout_of_the_document() {
        let expected = [
            0x0C, 0, 0, 0xA0, // ReparseTag
            16, 0, 0, 0, // ReparseDataLength, Reserved
            0, 0, 2, 0, // SubstituteNameOffset, SubstituteNameLength
            2, 0, 2, 0, // PrintNameOffset, PrintNameLength
            1, 0, 0, 0, // Flags
            b'f', 0, b'f', 0, // PathBuffer
        ];
        assert_eq!(relative("f"), expected);
    }

    /// The layout of [MS-FSCC] 2.1.2.6: "NFS_SPECFILE_LNK 0x00000000014B4E4C".
    #[test]
    fn a_link_of_windows_nfs_server_has_the_layout_of_the_document() {
        let link = ReparsePoint::NfsSymlink { target: Utf16::from("/a") };
        let expected = [0x14, 0, 0, 0x80, 12, 0, 0, 0, 0x4C, 0x4E, 0x4B, 0x01, 0, 0, 0, 0, b'/', 0, b'a', 0];
        assert_eq!(bytes(&link), expected);
        assert_eq!(ReparsePoint::decode(&expected), Ok(link));
        let mut fifo = expected;
        fifo[8..16].copy_from_slice(&0x4F46_4946_u64.to_le_bytes());
        assert!(matches!(ReparsePoint::decode(&fifo), Ok(ReparsePoint::Other { tag: tag::NFS, .. })));
    }

    #[test]
    fn each_field_of_a_symbolic_link_is_checked() {
        let good = relative("ab");
        assert!(ReparsePoint::decode(&good).is_ok());
        for length in 0..good.len() {
            assert!(ReparsePoint::decode(&good[..length]).is_err(), "{length} bytes");
        }
        let longer = [&good[..], &[0]].concat();
        assert_eq!(ReparsePoint::decode(&longer), Err(WireError::Invalid("ReparseDataLength")));
        // Each offset and length, past the end and odd.
        for (at, field) in
            [(8, "SubstituteName"), (10, "SubstituteName"), (12, "PrintName"), (14, "PrintName")]
        {
            let with = |value: u16| {
                let mut buffer = good.clone();
                buffer[at..at + 2].copy_from_slice(&value.to_le_bytes());
                ReparsePoint::decode(&buffer).map(|_| ())
            };
            assert_eq!(with(10), Err(WireError::OutOfBounds(field)), "{at}");
            assert_eq!(with(0xFFFE), Err(WireError::OutOfBounds(field)), "{at}");
            let odd = if at % 4 == 0 { WireError::Misaligned(field) } else { WireError::Utf16 };
            assert_eq!(with(3), Err(odd), "{at}");
        }
    }

    #[test]
    fn other_kinds_of_links_are_checked() {
        let lx = bytes(&ReparsePoint::LxSymlink { target: b"/a/b" });
        assert_eq!(ReparsePoint::decode(&lx), Ok(ReparsePoint::LxSymlink { target: b"/a/b" }));
        let mut version = lx.clone();
        version[8] = 1;
        assert_eq!(ReparsePoint::decode(&version), Err(WireError::Invalid("version of the symbolic link")));
        let cut = |tag: u32, length: u16, data: &[u8]| {
            let mut buffer = tag.to_le_bytes().to_vec();
            buffer.extend_from_slice(&length.to_le_bytes());
            buffer.extend_from_slice(&[0, 0]);
            buffer.extend_from_slice(data);
            ReparsePoint::decode(&buffer).map(|_| ())
        };
        assert_eq!(cut(tag::LX_SYMLINK, 3, &[2, 0, 0]), Err(WireError::Truncated));
        assert_eq!(cut(tag::NFS, 7, &[0; 7]), Err(WireError::Truncated));
        let odd = [&NFS_SPECFILE_LNK.to_le_bytes()[..], b"a"].concat();
        assert_eq!(cut(tag::NFS, 9, &odd), Err(WireError::Utf16));
    }
}
