//! FSINFO, RFC 1813 3.3.19: transfer sizes, limits and capabilities of the server.

use bitflags::bitflags;

use crate::v3::attr::Attributes;
use crate::v3::types::{FileHandle, ResWithAttributes, Time};
use crate::xdr::{Decode, Encode, Reader, Writer, XdrError, xdr_struct};

/// Arguments.
#[doc(alias = "FSINFO3args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args {
    /// An object of the file system.
    pub root: FileHandle,
}

xdr_struct!(Args { root });

bitflags! {
    /// The capabilities of the file system. Undefined bits are kept.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct Properties: u32 {
        /// Hard links.
        #[doc(alias = "FSF3_LINK")]
        const LINK = 0x0001;
        /// Symbolic links.
        #[doc(alias = "FSF3_SYMLINK")]
        const SYMLINK = 0x0002;
        /// PATHCONF returns the same for every object.
        #[doc(alias = "FSF3_HOMOGENEOUS")]
        const HOMOGENEOUS = 0x0008;
        /// SETATTR can set times.
        #[doc(alias = "FSF3_CANSETTIME")]
        const CAN_SET_TIME = 0x0010;
        const _ = !0;
    }
}

impl Encode for Properties {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.u32(self.bits());
    }
}

impl Decode<'_> for Properties {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, XdrError> {
        reader.u32().map(Self::from_bits_retain)
    }
}

/// Success.
#[doc(alias = "FSINFO3resok")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResOk {
    /// The object's attributes.
    pub object_attributes: Option<Attributes>,
    /// The most bytes of a READ.
    #[doc(alias = "rtmax")]
    pub read_bytes_max: u32,
    /// The preferred bytes of a READ.
    #[doc(alias = "rtpref")]
    pub read_bytes_preferred: u32,
    /// What the size of a READ should be a multiple of.
    #[doc(alias = "rtmult")]
    pub read_bytes_multiple: u32,
    /// The most bytes of a WRITE.
    #[doc(alias = "wtmax")]
    pub write_bytes_max: u32,
    /// The preferred bytes of a WRITE.
    #[doc(alias = "wtpref")]
    pub write_bytes_preferred: u32,
    /// What the size of a WRITE should be a multiple of.
    #[doc(alias = "wtmult")]
    pub write_bytes_multiple: u32,
    /// The preferred bytes of a READDIR.
    #[doc(alias = "dtpref")]
    pub readdir_bytes_preferred: u32,
    /// The largest file size in bytes.
    #[doc(alias = "maxfilesize")]
    pub file_bytes_max: u64,
    /// Granularity of times.
    pub time_delta: Time,
    /// The capabilities of the file system.
    pub properties: Properties,
}

xdr_struct!(ResOk {
    object_attributes,
    read_bytes_max,
    read_bytes_preferred,
    read_bytes_multiple,
    write_bytes_max,
    write_bytes_preferred,
    write_bytes_multiple,
    readdir_bytes_preferred,
    file_bytes_max,
    time_delta,
    properties
});

/// Result; on failure with the object's attributes.
#[doc(alias = "FSINFO3res")]
pub type Res = ResWithAttributes<ResOk>;
