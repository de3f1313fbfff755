//! Attributes that a server returns, and attributes to set, RFC 1813 2.6.

use crate::v3::types::{FileType, SpecData, Time};
use crate::xdr::{Decode, Encode, Reader, Writer, XdrError, xdr_struct};

/// The attributes of an object.
#[doc(alias = "fattr3")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    /// Type.
    pub file_type: FileType,
    /// Permission bits, and set-uid, set-gid and sticky; not the type.
    pub mode: u32,
    /// Number of hard links.
    pub links: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Size in bytes.
    pub size: u64,
    /// Bytes of storage in use.
    pub used: u64,
    /// Device number, if the object is a device.
    pub rdev: SpecData,
    /// The file system.
    pub fsid: u64,
    /// The object's number in that file system.
    pub fileid: u64,
    /// Last access.
    pub atime: Time,
    /// Last change of the data.
    pub mtime: Time,
    /// Last change of the attributes.
    pub ctime: Time,
}

xdr_struct!(Attributes {
    file_type,
    mode,
    links,
    uid,
    gid,
    size,
    used,
    rdev,
    fsid,
    fileid,
    atime,
    mtime,
    ctime
});

/// Bytes of [`Attributes`] on the wire.
pub const ATTRIBUTES_BYTES: usize = 84;

/// The attributes by which a client sees whether somebody else has changed an object.
#[doc(alias = "wcc_attr")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WccAttributes {
    /// Size in bytes.
    pub size: u64,
    /// Last change of the data.
    pub mtime: Time,
    /// Last change of the attributes.
    pub ctime: Time,
}

xdr_struct!(WccAttributes { size, mtime, ctime });

impl From<&Attributes> for WccAttributes {
    fn from(attributes: &Attributes) -> Self {
        Self { size: attributes.size, mtime: attributes.mtime, ctime: attributes.ctime }
    }
}

/// Weak cache consistency: the attributes of an object before and after an operation. The server may omit either.
#[doc(alias = "wcc_data")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WccData {
    /// Before the operation.
    pub before: Option<WccAttributes>,
    /// After the operation.
    pub after: Option<Attributes>,
}

xdr_struct!(WccData { before, after });

/// Attributes to set; `None` leaves an attribute as it is.
#[doc(alias = "sattr3")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SetAttributes {
    /// Permission bits.
    pub mode: Option<u32>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Size in bytes.
    pub size: Option<u64>,
    /// Last access.
    pub atime: SetTime,
    /// Last change of the data.
    pub mtime: SetTime,
}

xdr_struct!(SetAttributes { mode, uid, gid, size, atime, mtime });

/// How to set a time.
#[doc(alias = "time_how")]
#[doc(alias = "set_atime")]
#[doc(alias = "set_mtime")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SetTime {
    /// Leave it unchanged.
    #[default]
    DontChange,
    /// Set it to the server's time.
    ServerTime,
    /// Set it to this time.
    ClientTime(Time),
}

impl Encode for SetTime {
    fn encode(&self, writer: &mut Writer<'_>) {
        match self {
            Self::DontChange => writer.u32(0),
            Self::ServerTime => writer.u32(1),
            Self::ClientTime(time) => {
                writer.u32(2);
                time.encode(writer);
            }
        }
    }
}

impl Decode<'_> for SetTime {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, XdrError> {
        match reader.u32()? {
            0 => Ok(Self::DontChange),
            1 => Ok(Self::ServerTime),
            2 => Time::decode(reader).map(Self::ClientTime),
            value => Err(XdrError::UndefinedValue { kind: "time_how", value }),
        }
    }
}
