//! MKNOD, RFC 1813 3.3.11: create a device, a socket or a named pipe.

use crate::v3::attr::SetAttributes;
use crate::v3::types::{CreatedOk, DirOpArgs, FileType, ResWithWcc, SpecData};
use crate::xdr::{Decode, Encode, Reader, Writer, XdrError, xdr_struct};

/// Arguments.
#[doc(alias = "MKNOD3args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args<'a> {
    /// Directory and name.
    pub place: DirOpArgs<'a>,
    /// What to create.
    pub what: What,
}

xdr_struct!(Args<'a> { place, what });

/// The object to create.
#[doc(alias = "mknoddata3")]
#[doc(alias = "devicedata3")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// A character device.
    CharacterDevice(SetAttributes, SpecData),
    /// A block device.
    BlockDevice(SetAttributes, SpecData),
    /// A socket.
    Socket(SetAttributes),
    /// A named pipe.
    Fifo(SetAttributes),
    /// A type that MKNOD does not create. A server answers with NFS3ERR_BADTYPE.
    Other(OtherType),
}

/// The types that MKNOD does not create.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtherType {
    /// Created by CREATE.
    Regular,
    /// Created by MKDIR.
    Directory,
    /// Created by SYMLINK.
    SymbolicLink,
}

impl What {
    fn file_type(&self) -> FileType {
        match self {
            Self::CharacterDevice(..) => FileType::CharacterDevice,
            Self::BlockDevice(..) => FileType::BlockDevice,
            Self::Socket(_) => FileType::Socket,
            Self::Fifo(_) => FileType::Fifo,
            Self::Other(OtherType::Regular) => FileType::Regular,
            Self::Other(OtherType::Directory) => FileType::Directory,
            Self::Other(OtherType::SymbolicLink) => FileType::SymbolicLink,
        }
    }
}

impl Encode for What {
    fn encode(&self, writer: &mut Writer<'_>) {
        self.file_type().encode(writer);
        match self {
            Self::CharacterDevice(attributes, device) | Self::BlockDevice(attributes, device) => {
                attributes.encode(writer);
                device.encode(writer);
            }
            Self::Socket(attributes) | Self::Fifo(attributes) => attributes.encode(writer),
            Self::Other(_) => {}
        }
    }
}

impl Decode<'_> for What {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, XdrError> {
        Ok(match FileType::decode(reader)? {
            FileType::CharacterDevice => {
                Self::CharacterDevice(SetAttributes::decode(reader)?, SpecData::decode(reader)?)
            }
            FileType::BlockDevice => {
                Self::BlockDevice(SetAttributes::decode(reader)?, SpecData::decode(reader)?)
            }
            FileType::Socket => Self::Socket(SetAttributes::decode(reader)?),
            FileType::Fifo => Self::Fifo(SetAttributes::decode(reader)?),
            FileType::Regular => Self::Other(OtherType::Regular),
            FileType::Directory => Self::Other(OtherType::Directory),
            FileType::SymbolicLink => Self::Other(OtherType::SymbolicLink),
        })
    }
}

/// Result; on failure with the directory before and after.
#[doc(alias = "MKNOD3res")]
pub type Res = ResWithWcc<CreatedOk>;
