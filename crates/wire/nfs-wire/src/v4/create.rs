//! CREATE, RFC 8881 18.4: create an object that is not a regular file, and make it the current one.

use crate::v4::attr::{AttributeSet, Attributes};
use crate::v4::status::Status;
use crate::v4::types::{ChangeInfo, FileType, Name, SpecData, Text};
use crate::xdr::{Decode, Encode, Reader, Writer, XdrError, xdr_struct};

/// Arguments.
#[doc(alias = "CREATE4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args<'a> {
    /// What to create.
    pub what: What<'a>,
    /// The name in the current directory.
    pub name: Name<'a>,
    /// The attributes of the object.
    pub attributes: Attributes<'a>,
}

xdr_struct!(Args<'a> { what, name, attributes });

/// Success.
#[doc(alias = "CREATE4resok")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResOk {
    /// The directory.
    pub change: ChangeInfo,
    /// The attributes that were set.
    pub attributes_set: AttributeSet,
}

xdr_struct!(ResOk { change, attributes_set });

/// Result.
#[doc(alias = "CREATE4res")]
pub type Res = Result<ResOk, Status>;

/// The type of an object, with the data that belongs to the type.
#[doc(alias = "createtype4")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What<'a> {
    /// Symbolic link with this text.
    SymbolicLink(Text<'a>),
    /// Block device.
    BlockDevice(SpecData),
    /// Character device.
    CharacterDevice(SpecData),
    /// Socket.
    Socket,
    /// Named pipe.
    Fifo,
    /// Directory.
    Directory,
    /// A type that CREATE does not create, or an undefined one: NFS4ERR_BADTYPE.
    Other(u32),
}

impl Encode for What<'_> {
    fn encode(&self, writer: &mut Writer<'_>) {
        match self {
            Self::SymbolicLink(text) => {
                FileType::SymbolicLink.encode(writer);
                text.encode(writer);
            }
            Self::BlockDevice(device) => {
                FileType::BlockDevice.encode(writer);
                device.encode(writer);
            }
            Self::CharacterDevice(device) => {
                FileType::CharacterDevice.encode(writer);
                device.encode(writer);
            }
            Self::Socket => FileType::Socket.encode(writer),
            Self::Fifo => FileType::Fifo.encode(writer),
            Self::Directory => FileType::Directory.encode(writer),
            Self::Other(number) => writer.u32(*number),
        }
    }
}

impl<'a> Decode<'a> for What<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, XdrError> {
        let number = reader.u32()?;
        Ok(match FileType::try_from(number) {
            Ok(FileType::SymbolicLink) => Self::SymbolicLink(Decode::decode(reader)?),
            Ok(FileType::BlockDevice) => Self::BlockDevice(Decode::decode(reader)?),
            Ok(FileType::CharacterDevice) => Self::CharacterDevice(Decode::decode(reader)?),
            Ok(FileType::Socket) => Self::Socket,
            Ok(FileType::Fifo) => Self::Fifo,
            Ok(FileType::Directory) => Self::Directory,
            // RFC 8881 18.4.1: "default: void; /* server should return NFS4ERR_BADTYPE */"
            Ok(FileType::Regular | FileType::AttributeDirectory | FileType::NamedAttribute) | Err(_) => {
                Self::Other(number)
            }
        })
    }
}
