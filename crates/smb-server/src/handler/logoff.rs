//! LOGOFF. [MS-SMB2] 3.3.5.6.

use net::Buffer;
use smb_wire::logoff::{Request, Response};

use crate::context::RequestContext;
use crate::status::Failure;

/// Ends the session, with everything that it has open.
pub(crate) async fn handle(ctx: &RequestContext, _request: Request) -> Result<Buffer, Failure> {
    let session = ctx.session()?;
    ctx.server.remove_session(session.id);
    ctx.connection.remove_session(session.id);
    session.end(&ctx.server.durable).await;
    let mut reply = ctx.reply(4);
    reply.append_with(|bytes, _| Response.encode(bytes));
    Ok(reply)
}
