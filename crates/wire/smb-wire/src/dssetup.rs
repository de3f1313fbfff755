//! The role of a server in a domain, [MS-DSSP], which clients ask for on the pipe of [`crate::lsarpc`]. Stubs in NDR.

use crate::codec::WireError;
use crate::dcerpc::SyntaxId;
use crate::dtyp::Guid;
use crate::ndr::{NdrReader, NdrWriter};

/// The interface, 3919286a-b10c-11d0-9ba8-00c04fd92ef5 version 0.0.
pub const INTERFACE: SyntaxId = SyntaxId {
    uuid: Guid([
        0x6a, 0x28, 0x19, 0x39, 0x0c, 0xb1, 0xd0, 0x11, 0x9b, 0xa8, 0x00, 0xc0, 0x4f, 0xd9, 0x2e, 0xf5,
    ]),
    version: 0,
};

/// The procedure DsRolerGetPrimaryDomainInformation.
pub const OPNUM_GET_PRIMARY_DOMAIN_INFORMATION: u16 = 0;
/// DsRolePrimaryDomainInfoBasic, the level that has [`PrimaryDomain`].
pub const BASIC: u16 = 1;
/// DsRole_RoleStandaloneServer ([MS-DSSP] 2.2.1)
pub const STANDALONE_SERVER: u16 = 2;

/// The level that a client asks for.
///
/// # Errors
/// [`WireError`] for a malformed stub.
pub fn decode_level(stub: &[u8]) -> Result<u16, WireError> {
    NdrReader::new(stub).u16()
}

/// The role of the server, and its domain. Without a domain in DNS.
#[doc(alias = "DSROLER_PRIMARY_DOMAIN_INFO_BASIC")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrimaryDomain {
    /// DSROLE_MACHINE_ROLE
    pub role: u16,
    /// The NetBIOS name of the domain or workgroup.
    pub name: String,
}

/// Appends the results of the procedure: the domain, or none after an error, and the Win32 error.
///
/// # Errors
/// [`WireError::TooLong`].
pub fn encode(domain: Option<&PrimaryDomain>, error: u32, out: &mut Vec<u8>) -> Result<(), WireError> {
    let mut w = NdrWriter::new(out);
    w.pointer(domain.is_some());
    if let Some(domain) = domain {
        w.u16(BASIC);
        w.align(4);
        w.u16(domain.role);
        w.u32(0);
        w.pointer(true);
        w.pointer(false);
        w.pointer(false);
        w.bytes(&[0; 16]);
        w.string(&domain.name)?;
    }
    w.u32(error);
    Ok(())
}
