//! FSCTLs of named pipes. [MS-SMB2] 3.3.5.15.

use net::Buffer;
use smb_wire::NtStatus;
use smb_wire::ioctl::Request;

use super::respond;
use crate::context::Admitted;
use crate::pipe::{self, Message};
use crate::status::Failure;

/// FSCTL_PIPE_TRANSCEIVE: writes a message and reads the answer.
pub(super) async fn transceive(ctx: &Admitted<'_>, request: &Request<'_>) -> Result<Buffer, Failure> {
    let open = ctx.open(request.file_id)?;
    let room = usize::try_from(request.max_output_response).unwrap_or(usize::MAX);
    let pipe = open.pipe()?;
    pipe::write(pipe, &ctx.server.host(ctx.login), request.input).await?;
    let answer = pipe.lock().read(room);
    let Message { bytes, more } = answer.unwrap_or(Message { bytes: Vec::new(), more: false });
    if more {
        ctx.set_status(NtStatus::BUFFER_OVERFLOW);
    }
    respond(ctx, request, &bytes)
}

/// FSCTL_PIPE_PEEK is not used by RPC.
pub(super) fn peek(ctx: &Admitted<'_>, request: &Request<'_>) -> Result<Buffer, Failure> {
    let _ = ctx.open(request.file_id)?;
    Err(NtStatus::INVALID_DEVICE_REQUEST.into())
}

/// FSCTL_PIPE_WAIT: an existing pipe always has a free instance, so no client has to wait.
pub(super) fn wait(request: &Request<'_>) -> Result<Buffer, Failure> {
    super::require_no_file(request)?;
    Err(NtStatus::NOT_SUPPORTED.into())
}
