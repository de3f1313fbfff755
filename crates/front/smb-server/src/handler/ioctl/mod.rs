//! IOCTL: selects the handler of each control code. [MS-SMB2] 3.3.5.15.

mod compression;
mod copychunk;
mod duplicate_extents;
mod network_interfaces;
mod object_id;
mod pipe;
mod reparse;
mod resiliency;
mod snapshots;
mod sparse;
mod trim;
mod validate_negotiate;

use net::Buffer;
use smb_wire::fscc::fsctl::Fsctl;
use smb_wire::ioctl::{IoctlFlags, Request, Response};
use smb_wire::{Command, FileId, NtStatus};

use crate::context::{Admitted, OnShare, RequestContext};
use crate::front;
use crate::operation::{Effect, Needs, Operation};
use crate::status::Failure;

/// The properties of IOCTL.
pub(crate) const OPERATION: Operation = Operation {
    on_share: Some(front::operation(Command::Ioctl, "Ioctl")),
    needs: Needs::Tree,
    effect: Effect::Guarded,
    answer_bytes: 64,
    ..Operation::of(Command::Ioctl)
};

/// Answers the request. `on_share`: the request as one about a share, unless it is on IPC$.
pub(crate) async fn handle(
    ctx: &Admitted<'_>,
    on_share: Option<&OnShare<'_>>,
    request: Request<'_>,
) -> Result<Buffer, Failure> {
    // "If the Flags field of the request is not SMB2_0_IOCTL_IS_FSCTL, the server MUST fail the request with
    // STATUS_NOT_SUPPORTED."
    if request.flags != IoctlFlags::IS_FSCTL {
        return Err(NtStatus::NOT_SUPPORTED.into());
    }
    let max = ctx.io_bytes_max();
    let input = u32::try_from(request.input.len()).unwrap_or(u32::MAX);
    let sizes = [input, request.output_count, request.max_input_response, request.max_output_response];
    if sizes.into_iter().any(|size| size > max) {
        return Err(NtStatus::INVALID_PARAMETER.into());
    }
    match request.ctl_code {
        // 3.3.5.15.2: this server has no DFS.
        Fsctl::DfsGetReferrals | Fsctl::DfsGetReferralsEx => {
            require_no_file(&request)?;
            Err(NtStatus::FS_DRIVER_REQUIRED.into())
        }
        Fsctl::ValidateNegotiateInfo => validate_negotiate::handle(ctx, &request),
        Fsctl::QueryNetworkInterfaceInfo => network_interfaces::handle(ctx, &request).await,
        Fsctl::LmrRequestResiliency => resiliency::handle(ctx, &request),
        Fsctl::PipeTransceive => pipe::transceive(ctx, &request).await,
        Fsctl::PipePeek => pipe::peek(ctx, &request),
        Fsctl::PipeWait => pipe::wait(&request),
        Fsctl::SrvCopychunk | Fsctl::SrvCopychunkWrite => copychunk::copy(ctx, on_share, &request).await,
        _ => handle_of_file(ctx, on_share, &request).await,
    }
}

/// Handles the codes about an open file.
async fn handle_of_file(
    ctx: &Admitted<'_>,
    on_share: Option<&OnShare<'_>>,
    request: &Request<'_>,
) -> Result<Buffer, Failure> {
    let open = ctx.open(request.file_id)?;
    let ctx = &on_share.ok_or(NtStatus::INVALID_DEVICE_REQUEST)?.of(&open);
    match request.ctl_code {
        Fsctl::CreateOrGetObjectId | Fsctl::GetObjectId => object_id::handle(ctx, &open, request),
        Fsctl::GetCompression => compression::get(ctx, request),
        Fsctl::SetCompression => compression::set(ctx, request),
        Fsctl::SetSparse => sparse::set(ctx, &open, request).await,
        Fsctl::SetZeroData => sparse::zero(ctx, &open, request).await,
        Fsctl::QueryAllocatedRanges => sparse::ranges(ctx, &open, request).await,
        Fsctl::FileLevelTrim => trim::handle(ctx, &open, request).await,
        Fsctl::SrvRequestResumeKey => copychunk::resume_key(ctx, &open, request),
        Fsctl::DuplicateExtentsToFile => duplicate_extents::handle(ctx, &open, request).await,
        Fsctl::GetReparsePoint => reparse::get(ctx, &open, request).await,
        Fsctl::SrvEnumerateSnapshots => snapshots::enumerate(ctx, &open, request).await,
        Fsctl::SetReparsePoint => reparse::set(ctx, &open, request).await,
        Fsctl::DeleteReparsePoint => reparse::delete(&open),
        _ => Err(NtStatus::INVALID_DEVICE_REQUEST.into()),
    }
}

/// "If the FileId is not { 0xFFFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF } the server MUST fail the request with
/// STATUS_INVALID_PARAMETER."
fn require_no_file(request: &Request<'_>) -> Result<(), Failure> {
    if request.file_id == FileId::ANY { Ok(()) } else { Err(NtStatus::INVALID_PARAMETER.into()) }
}

/// The response with this output.
fn respond(ctx: &RequestContext, request: &Request<'_>, output: &[u8]) -> Result<Buffer, Failure> {
    let response = Response { ctl_code: request.ctl_code, file_id: request.file_id, input: &[], output };
    let mut reply = ctx.reply_with(output.len());
    reply.append_with(|bytes, _| response.encode(bytes))?;
    Ok(reply)
}

/// Whether an output of `bytes` fits what the client allows.
fn require_room(request: &Request<'_>, bytes: usize, status: NtStatus) -> Result<(), Failure> {
    let room = usize::try_from(request.max_output_response).unwrap_or(usize::MAX);
    if bytes <= room { Ok(()) } else { Err(status.into()) }
}
