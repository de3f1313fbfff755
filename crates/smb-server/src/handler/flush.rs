//! FLUSH. [MS-SMB2] 3.3.5.11.

use std::sync::Arc;

use net::Buffer;
use share::{Access, File};
use smb_wire::NtStatus;
use smb_wire::flush::{Request, Response};

use crate::context::RequestContext;
use crate::status::Failure;

/// Answers the request.
pub(crate) async fn handle(ctx: &RequestContext, request: Request) -> Result<Buffer, Failure> {
    let open = ctx.open(request.file_id)?;
    let file = open.file()?;
    // For a directory these are the rights to add files and directories.
    if !file.access().intersects(Access::WRITE_DATA | Access::APPEND_DATA) {
        return Err(NtStatus::ACCESS_DENIED.into());
    }
    ctx.share()?.commit(&File::Open(Arc::clone(file))).await?;
    let mut reply = ctx.reply(4);
    reply.append_with(|out, _| Response.encode(out));
    Ok(reply)
}
