//! SECINFO, RFC 8881 18.29: the security flavors with which a name of the current directory may be used.

use crate::rpc::flavor;
use crate::v4::status::Status;
use crate::v4::types::Name;
use crate::xdr::{Decode, Encode, Reader, Writer, XdrError, xdr_struct};

/// Arguments.
#[doc(alias = "SECINFO4args")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Args<'a> {
    /// The name.
    pub name: Name<'a>,
}

xdr_struct!(Args<'a> { name });

/// Success: the flavors, in the server's order of preference.
#[doc(alias = "SECINFO4resok")]
pub type ResOk<'a> = Vec<SecInfo<'a>>;

/// Result.
#[doc(alias = "SECINFO4res")]
pub type Res<'a> = Result<ResOk<'a>, Status>;

/// A security flavor.
#[doc(alias = "secinfo4")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecInfo<'a> {
    /// A flavor without parameters: its number.
    Flavor(u32),
    /// RPCSEC_GSS.
    Gss {
        /// Object identifier of the mechanism.
        oid: &'a [u8],
        /// Quality of protection.
        qop: u32,
        /// `rpc_gss_svc_t`: none, integrity, privacy.
        service: u32,
    },
}

impl Encode for SecInfo<'_> {
    fn encode(&self, writer: &mut Writer<'_>) {
        match *self {
            Self::Flavor(number) => writer.u32(number),
            Self::Gss { oid, qop, service } => {
                writer.u32(flavor::RPCSEC_GSS);
                writer.opaque(oid);
                writer.u32(qop);
                writer.u32(service);
            }
        }
    }
}

impl<'a> Decode<'a> for SecInfo<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, XdrError> {
        match reader.u32()? {
            flavor::RPCSEC_GSS => {
                Ok(Self::Gss { oid: Decode::decode(reader)?, qop: reader.u32()?, service: reader.u32()? })
            }
            number => Ok(Self::Flavor(number)),
        }
    }
}
