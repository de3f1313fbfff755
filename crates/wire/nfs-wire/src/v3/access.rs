//! ACCESS, RFC 1813 3.3.4: what the caller may do with an object.

use bitflags::bitflags;

use crate::v3::attr::Attributes;
use crate::v3::types::{FileHandle, ResWithAttributes};
use crate::xdr::{Decode, Encode, Reader, Writer, XdrError, xdr_struct};

bitflags! {
    /// Rights that are requested or granted. Undefined bits are kept.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct Access: u32 {
        /// Read data of a file or names of a directory.
        #[doc(alias = "ACCESS3_READ")]
        const READ = 0x0001;
        /// Look up a name in a directory.
        #[doc(alias = "ACCESS3_LOOKUP")]
        const LOOKUP = 0x0002;
        /// Rewrite existing data or directory entries.
        #[doc(alias = "ACCESS3_MODIFY")]
        const MODIFY = 0x0004;
        /// Write new data or add directory entries.
        #[doc(alias = "ACCESS3_EXTEND")]
        const EXTEND = 0x0008;
        /// Delete an existing directory entry.
        #[doc(alias = "ACCESS3_DELETE")]
        const DELETE = 0x0010;
        /// Execute a file.
        #[doc(alias = "ACCESS3_EXECUTE")]
        const EXECUTE = 0x0020;
        const _ = !0;
    }
}

impl Encode for Access {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.u32(self.bits());
    }
}

impl Decode<'_> for Access {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, XdrError> {
        reader.u32().map(Self::from_bits_retain)
    }
}

/// Arguments.
#[doc(alias = "ACCESS3args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args {
    /// The object.
    pub object: FileHandle,
    /// The rights in question.
    pub access: Access,
}

xdr_struct!(Args { object, access });

/// Success.
#[doc(alias = "ACCESS3resok")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResOk {
    /// The object's attributes.
    pub object_attributes: Option<Attributes>,
    /// The requested rights that the caller has.
    pub access: Access,
}

xdr_struct!(ResOk { object_attributes, access });

/// Result; on failure with the object's attributes.
#[doc(alias = "ACCESS3res")]
pub type Res = ResWithAttributes<ResOk>;
