//! ECHO. [MS-SMB2] 3.3.5.17.

use net::Buffer;
use smb_wire::echo::{Request, Response};

use crate::context::RequestContext;
use crate::status::Failure;

/// Answers the request.
pub(crate) async fn handle(ctx: &RequestContext, _request: Request) -> Result<Buffer, Failure> {
    let mut reply = ctx.reply(4);
    reply.append_with(|bytes, _| Response.encode(bytes));
    Ok(reply)
}
