//! The Server Service, which lists the shares. [MS-SRVS] 3.1.4.

use share::{Protocols, Share as ServedShare, Terms};
use smb_wire::dcerpc::fault;
use smb_wire::srvsvc::{PLATFORM_ID_NT, Request, Response, Server as ServerInfo, Share, share_type, win32};

use super::{Fault, Host};
use crate::tree::IPC;

/// The version that the server claims: that of Windows 10 and Server 2016 to 2022.
pub(super) const VERSION: (u32, u32) = (10, 0);
/// SV_TYPE_WORKSTATION, SV_TYPE_SERVER and SV_TYPE_SERVER_NT, [MS-SRVS] 2.2.2.7.
const SERVER_TYPE: u32 = 0x0000_9003;

/// Answers a call.
pub(super) fn call(host: &Host<'_>, opnum: u16, stub: &[u8]) -> Result<Vec<u8>, Fault> {
    let request = Request::decode(opnum, stub).map_err(|_| fault::BAD_STUB_DATA)?;
    let (response, error) = answer(host, &request.ok_or(fault::OP_RANGE_ERROR)?);
    let mut results = Vec::new();
    response.encode_into(error, &mut results).map_err(|_| fault::PROTOCOL_ERROR)?;
    Ok(results)
}

fn answer(host: &Host<'_>, request: &Request) -> (Response, u32) {
    match request {
        Request::ShareEnum { level, resume_handle, .. } => share_enum(host, *level, *resume_handle),
        Request::ShareGetInfo { net_name, level, .. } => {
            let known = matches!(level, 0 | 1 | 2 | 502 | 1005);
            match named(host, net_name) {
                _ if !known => (Response::ShareGetInfo { level: *level, share: None }, win32::INVALID_LEVEL),
                None => (Response::ShareGetInfo { level: *level, share: None }, win32::NET_NAME_NOT_FOUND),
                share => (Response::ShareGetInfo { level: *level, share }, win32::SUCCESS),
            }
        }
        Request::ServerGetInfo { level, .. } => match level {
            100 | 101 => {
                let info = Some(server_info(host));
                (Response::ServerGetInfo { level: *level, server: info }, win32::SUCCESS)
            }
            _ => (Response::ServerGetInfo { level: *level, server: None }, win32::INVALID_LEVEL),
        },
    }
}

/// NetrShareEnum, for every user who was admitted. All shares fit into one reply.
fn share_enum(host: &Host<'_>, level: u32, resume_handle: Option<u32>) -> (Response, u32) {
    let resume_handle = resume_handle.map(|_| 0);
    if !matches!(level, 0 | 1 | 2 | 502) {
        let none = Response::ShareEnum { level, shares: Vec::new(), total_entries: 0, resume_handle };
        return (none, win32::INVALID_LEVEL);
    }
    let present = host.shares.present().in_order();
    let listed = present.iter().filter(|share| is_listed(share));
    let mut shares: Vec<Share> = listed.map(|share| disk(share)).collect();
    shares.push(ipc());
    let total_entries = u32::try_from(shares.len()).unwrap_or(u32::MAX);
    (Response::ShareEnum { level, shares, total_entries, resume_handle }, win32::SUCCESS)
}

/// Whether clients that did not ask for a share by its name may see it.
fn is_listed(share: &ServedShare) -> bool {
    share.rules().protocols.contains(Protocols::SMB) && !share.terms().contains(Terms::HIDDEN)
}

fn named(host: &Host<'_>, name: &str) -> Option<Share> {
    if name.eq_ignore_ascii_case(IPC) {
        Some(ipc())
    } else {
        host.shares.present().by_name(name).map(|share| disk(share))
    }
}

fn disk(share: &ServedShare) -> Share {
    Share {
        name: share.name().to_owned(),
        share_type: share_type::DISK,
        remark: share.comment(),
        max_uses: u32::MAX,
        // The path on the server is not revealed. Clients only want the form.
        path: format!(r"C:\{}", share.name()),
        ..Share::default()
    }
}

fn ipc() -> Share {
    Share {
        name: IPC.to_owned(),
        share_type: share_type::IPC | share_type::SPECIAL,
        remark: "Named pipes".to_owned(),
        max_uses: u32::MAX,
        ..Share::default()
    }
}

fn server_info(host: &Host<'_>) -> ServerInfo {
    ServerInfo {
        platform_id: PLATFORM_ID_NT,
        name: host.name.to_owned(),
        version_major: VERSION.0,
        version_minor: VERSION.1,
        server_type: SERVER_TYPE,
        comment: "Anabranch".to_owned(),
    }
}
