//! CREATE, RFC 1813 3.3.8: create a regular file.

use crate::v3::attr::SetAttributes;
use crate::v3::types::{CreateVerifier, CreatedOk, DirOpArgs, ResWithWcc};
use crate::xdr::{Decode, Encode, Reader, Writer, XdrError, xdr_struct};

/// Arguments.
#[doc(alias = "CREATE3args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args<'a> {
    /// Directory and name.
    pub place: DirOpArgs<'a>,
    /// What to do if the name exists, and the attributes of the new file.
    pub how: How,
}

xdr_struct!(Args<'a> { place, how });

/// What to do if the name exists.
#[doc(alias = "createhow3")]
#[doc(alias = "createmode3")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// Use the existing file, and set these attributes.
    #[doc(alias = "UNCHECKED")]
    Unchecked(SetAttributes),
    /// Fail if the name exists.
    #[doc(alias = "GUARDED")]
    Guarded(SetAttributes),
    /// Fail if the name exists, unless an earlier transmission of the same call created the file, as the verifier shows.
    #[doc(alias = "EXCLUSIVE")]
    Exclusive(CreateVerifier),
}

impl Encode for How {
    fn encode(&self, writer: &mut Writer<'_>) {
        match self {
            Self::Unchecked(attributes) => {
                writer.u32(0);
                attributes.encode(writer);
            }
            Self::Guarded(attributes) => {
                writer.u32(1);
                attributes.encode(writer);
            }
            Self::Exclusive(verifier) => {
                writer.u32(2);
                verifier.encode(writer);
            }
        }
    }
}

impl Decode<'_> for How {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, XdrError> {
        match reader.u32()? {
            0 => SetAttributes::decode(reader).map(Self::Unchecked),
            1 => SetAttributes::decode(reader).map(Self::Guarded),
            2 => reader.opaque_fixed().map(Self::Exclusive),
            value => Err(XdrError::UndefinedValue { kind: "createmode3", value }),
        }
    }
}

/// Result; on failure with the directory before and after.
#[doc(alias = "CREATE3res")]
pub type Res = ResWithWcc<CreatedOk>;
