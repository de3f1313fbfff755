//! TREE_DISCONNECT. [MS-SMB2] 3.3.5.8.

use net::Buffer;
use smb_wire::NtStatus;
use smb_wire::tree_disconnect::{Request, Response};

use crate::context::RequestContext;
use crate::status::Failure;

/// Ends the tree connect, with everything that is open through it.
pub(crate) async fn handle(ctx: &RequestContext, _request: Request) -> Result<Buffer, Failure> {
    if !ctx.session()?.disconnect_tree(ctx.tree()?).await {
        return Err(NtStatus::NETWORK_NAME_DELETED.into());
    }
    let mut reply = ctx.reply(4);
    reply.append_with(|bytes, _| Response.encode(bytes));
    Ok(reply)
}
