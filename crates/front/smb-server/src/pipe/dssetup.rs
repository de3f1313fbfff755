//! The role of the server, which Windows asks for before it shows the rights of a file. [MS-DSSP] 3.2.5.1.

use smb_wire::dcerpc::fault;
use smb_wire::dssetup::{
    BASIC, OPNUM_GET_PRIMARY_DOMAIN_INFORMATION, PrimaryDomain, STANDALONE_SERVER, decode_level, encode,
};
use smb_wire::srvsvc::win32;

use super::{Fault, WORKGROUP};

/// Answers a call. The server accepts tickets of domains, but it is no member in the sense of this interface: it asks no
/// domain controller.
pub(super) fn call(opnum: u16, stub: &[u8]) -> Result<Vec<u8>, Fault> {
    if opnum != OPNUM_GET_PRIMARY_DOMAIN_INFORMATION {
        return Err(fault::OP_RANGE_ERROR);
    }
    let level = decode_level(stub).map_err(|_| fault::BAD_STUB_DATA)?;
    let domain =
        (level == BASIC).then(|| PrimaryDomain { role: STANDALONE_SERVER, name: WORKGROUP.to_owned() });
    let error = if domain.is_some() { win32::SUCCESS } else { win32::INVALID_PARAMETER };
    let mut results = Vec::new();
    encode(domain.as_ref(), error, &mut results).map_err(|_| fault::PROTOCOL_ERROR)?;
    Ok(results)
}
