//! FSCTL_QUERY_NETWORK_INTERFACE_INFO: other addresses of the server. [MS-SMB2] 3.3.5.15.11.

use std::net::SocketAddr;
use std::sync::Arc;

use net::Buffer;
use smb_proto::dialect::Dialect;
use smb_wire::NtStatus;
use smb_wire::fscc::fsctl::{InterfaceCapabilities, NetworkInterface};
use smb_wire::ioctl::Request;

use super::{require_no_file, require_room, respond};
use crate::config::Interface;
use crate::context::Admitted;
use crate::status::Failure;

/// Answers the request. "If Connection.Dialect does not belong to the SMB 3.x dialect family or
/// Connection.ServerCapabilities does not include SMB2_GLOBAL_CAP_MULTI_CHANNEL, the server MAY fail the request with
/// STATUS_NOT_SUPPORTED": this server does if it does not offer channels, whatever the client has announced.
pub(super) async fn handle(ctx: &Admitted<'_>, request: &Request<'_>) -> Result<Buffer, Failure> {
    require_no_file(request)?;
    let is_smb3 = ctx.connection.dialect().is_some_and(Dialect::is_smb3);
    if !is_smb3 || !ctx.server.config.offers_multichannel() {
        return Err(NtStatus::NOT_SUPPORTED.into());
    }
    let told = interfaces(ctx).await?;
    if told.is_empty() {
        return Err(NtStatus::NOT_SUPPORTED.into());
    }
    let mut output = Vec::new();
    NetworkInterface::encode_list(&told.iter().map(entry).collect::<Vec<_>>(), &mut output);
    require_room(request, output.len(), NtStatus::BUFFER_TOO_SMALL)?;
    ctx.session.interfaces_told(&told);
    respond(ctx, request, &output)
}

/// The current addresses, read on the pool, because reading may wait.
async fn interfaces(ctx: &Admitted<'_>) -> Result<Arc<[Interface]>, Failure> {
    if let Some(fresh) = ctx.server.interfaces.fresh() {
        return Ok(fresh);
    }
    let server = Arc::clone(&ctx.server);
    let read = tokio::task::spawn_blocking(move || server.interfaces.current()).await;
    read.map_err(|_| NtStatus::INTERNAL_ERROR.into())
}

fn entry(interface: &Interface) -> NetworkInterface {
    let mut capabilities = InterfaceCapabilities::empty();
    capabilities.set(InterfaceCapabilities::RSS_CAPABLE, interface.rss);
    NetworkInterface {
        if_index: interface.index,
        capabilities,
        link_speed: interface.link_speed,
        address: SocketAddr::new(interface.address, 0),
    }
}
