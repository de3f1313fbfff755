//! The Workstation Service, which reports the server's name. [MS-WKST] 3.2.4.

use smb_wire::dcerpc::fault;
use smb_wire::srvsvc::{PLATFORM_ID_NT, win32};
use smb_wire::wkssvc::{OPNUM_WKSTA_GET_INFO, Wksta, WkstaGetInfoRequest, WkstaGetInfoResponse};

use super::{Fault, Host, WORKGROUP, srvsvc};

/// Answers a call.
pub(super) fn call(host: &Host<'_>, opnum: u16, stub: &[u8]) -> Result<Vec<u8>, Fault> {
    if opnum != OPNUM_WKSTA_GET_INFO {
        return Err(fault::OP_RANGE_ERROR);
    }
    let request = WkstaGetInfoRequest::decode(stub).map_err(|_| fault::BAD_STUB_DATA)?;
    let wksta = (request.level == 100).then(|| Wksta {
        platform_id: PLATFORM_ID_NT,
        computer_name: host.name.to_owned(),
        domain: WORKGROUP.to_owned(),
        version_major: srvsvc::VERSION.0,
        version_minor: srvsvc::VERSION.1,
    });
    let error = if wksta.is_some() { win32::SUCCESS } else { win32::INVALID_LEVEL };
    let mut results = Vec::new();
    let response = WkstaGetInfoResponse { level: request.level, wksta };
    response.encode_into(error, &mut results).map_err(|_| fault::PROTOCOL_ERROR)?;
    Ok(results)
}
