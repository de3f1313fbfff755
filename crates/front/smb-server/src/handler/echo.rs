//! ECHO. [MS-SMB2] 3.3.5.17.

use net::Buffer;
use smb_wire::Command;
use smb_wire::echo::{Request, Response};

use crate::context::RequestContext;
use crate::operation::Operation;
use crate::status::Failure;

/// The properties of ECHO.
pub(crate) const OPERATION: Operation = Operation { answer_bytes: 4, ..Operation::of(Command::Echo) };

/// Answers the request.
pub(crate) async fn handle(ctx: &RequestContext, _request: Request) -> Result<Buffer, Failure> {
    let mut reply = ctx.reply();
    reply.append_with(|bytes, _| Response.encode(bytes));
    Ok(reply)
}
