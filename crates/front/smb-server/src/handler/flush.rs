//! FLUSH. [MS-SMB2] 3.3.5.11.

use std::sync::Arc;

use net::Buffer;
use share::{Access, File};
use smb_wire::flush::{Request, Response};
use smb_wire::{Command, NtStatus};

use crate::context::OnShare;
use crate::front;
use crate::operation::{Needs, Operation};
use crate::status::Failure;

/// The properties of FLUSH.
pub(crate) const OPERATION: Operation = Operation {
    on_share: Some(front::operation(Command::Flush, "Flush")),
    needs: Needs::Open,
    answer_bytes: 4,
    ..Operation::of(Command::Flush)
};

/// Answers the request.
pub(crate) async fn handle(ctx: &OnShare<'_>, request: Request) -> Result<Buffer, Failure> {
    let open = ctx.open(request.file_id)?;
    let ctx = &ctx.of(&open);
    let file = open.file()?;
    // For a directory these are the rights to add files and directories.
    if !file.access().intersects(Access::WRITE_DATA | Access::APPEND_DATA) {
        return Err(NtStatus::ACCESS_DENIED.into());
    }
    ctx.share.commit(ctx.call, &File::Open(Arc::clone(file))).await?;
    let mut reply = ctx.reply();
    reply.append_with(|out, _| Response.encode(out));
    Ok(reply)
}
