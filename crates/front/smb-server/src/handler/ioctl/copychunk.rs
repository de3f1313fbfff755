//! Copies on the server: FSCTL_SRV_REQUEST_RESUME_KEY names a source, FSCTL_SRV_COPYCHUNK copies from it.
//! [MS-SMB2] 3.3.5.15.5, 3.3.5.15.6.

use std::sync::Arc;

use net::Buffer;
use share::{File, Share};
use smb_wire::fscc::fsctl::{Chunk, Copychunk, CopychunkResponse, Fsctl, ResumeKey};
use smb_wire::ioctl::Request;
use smb_wire::{AccessMask, FileId, NtStatus};
use storage::Stability;

use super::{require_room, respond};
use crate::context::{Admitted, OnShare, RequestContext};
use crate::state::open::Open;
use crate::status::Failure;
use crate::tree::TreeTarget;

/// ServerSideCopyMaxNumberofChunks, ServerSideCopyMaxChunkSize, ServerSideCopyMaxDataSize: the values of Windows.
const CHUNKS_MAX: usize = 256;
const CHUNK_BYTES_MAX: u32 = 1 << 20;
const TOTAL_BYTES_MAX: u32 = 16 << 20;

/// FSCTL_SRV_REQUEST_RESUME_KEY: a name for an open that is used as the source of copies. It can be used only in its
/// own session, so it need not be secret.
pub(super) fn resume_key(
    ctx: &RequestContext,
    open: &Open,
    request: &Request<'_>,
) -> Result<Buffer, Failure> {
    require_room(request, ResumeKey::LEN, NtStatus::INVALID_PARAMETER)?;
    let mut key = [0; 24];
    let id = open.id.persistent.to_le_bytes().into_iter().chain(open.id.volatile.to_le_bytes());
    for (byte, value) in key.iter_mut().zip(id) {
        *byte = value;
    }
    let mut output = Vec::with_capacity(ResumeKey::LEN);
    ResumeKey { resume_key: key }.encode_into(&mut output);
    respond(ctx, request, &output)
}

/// The open that a key names, if it is of this session and share or of a snapshot of that share, and the request as one about
/// that share.
fn source<'c, 'r>(
    ctx: &Admitted<'_>,
    on_share: Option<&'c OnShare<'r>>,
    key: &[u8; 24],
) -> Result<(&'c OnShare<'r>, Arc<Open>), Failure> {
    let number =
        |at: usize| key.get(at..).and_then(<[u8]>::first_chunk).map(|bytes| u64::from_le_bytes(*bytes));
    let id = FileId { persistent: number(0).unwrap_or(0), volatile: number(8).unwrap_or(0) };
    let open = ctx.session.open(id).ok_or(NtStatus::OBJECT_NAME_NOT_FOUND)?;
    let TreeTarget::Disk(share) = &open.tree.target else {
        return Err(NtStatus::OBJECT_NAME_NOT_FOUND.into());
    };
    let ctx = on_share.ok_or(NtStatus::INVALID_DEVICE_REQUEST)?;
    if share.id() == ctx.share.id() { Ok((ctx, open)) } else { Err(NtStatus::OBJECT_NAME_NOT_FOUND.into()) }
}

/// FSCTL_SRV_COPYCHUNK, and FSCTL_SRV_COPYCHUNK_WRITE for a target that cannot be read.
pub(super) async fn copy(
    ctx: &Admitted<'_>,
    on_share: Option<&OnShare<'_>>,
    request: &Request<'_>,
) -> Result<Buffer, Failure> {
    let target = ctx.open(request.file_id)?;
    let on_share = on_share.map(|ctx| ctx.of(&target));
    require_room(request, CopychunkResponse::LEN, NtStatus::INVALID_PARAMETER)?;
    let asked = Copychunk::decode(request.input)?;
    if !is_within_limits(&asked.chunks) {
        // "the server MUST return ... STATUS_INVALID_PARAMETER", with the limits of this server.
        ctx.set_status(NtStatus::INVALID_PARAMETER);
        let chunks = u32::try_from(CHUNKS_MAX).unwrap_or(u32::MAX);
        return answer(ctx, request, chunks, CHUNK_BYTES_MAX, TOTAL_BYTES_MAX);
    }
    let (ctx, source) = source(ctx, on_share.as_ref(), &asked.source_key)?;
    let mut needed = AccessMask::WRITE_DATA;
    needed.set(AccessMask::READ_DATA, request.ctl_code == Fsctl::SrvCopychunk);
    let readable = source.granted_access.intersects(AccessMask::READ_DATA | AccessMask::EXECUTE);
    if !readable || !target.granted_access.contains(needed) {
        return Err(NtStatus::ACCESS_DENIED.into());
    }
    if source.is_directory || target.is_directory {
        return Err(NtStatus::INVALID_DEVICE_REQUEST.into());
    }
    let (mut done, mut total) = (0, 0_u32);
    for chunk in &asked.chunks {
        match copy_chunk(ctx, &source, &target, chunk).await {
            Ok(()) => (done, total) = (done + 1, total.saturating_add(chunk.length)),
            Err(failure) => {
                ctx.set_status(failure.status);
                break;
            }
        }
    }
    ctx.moved(usize::try_from(total).unwrap_or(usize::MAX));
    answer(ctx, request, done, 0, total)
}

fn is_within_limits(chunks: &[Chunk]) -> bool {
    let total = chunks.iter().fold(0_u64, |total, chunk| total.saturating_add(chunk.length.into()));
    let each = chunks.iter().all(|chunk| (1..=CHUNK_BYTES_MAX).contains(&chunk.length));
    chunks.len() <= CHUNKS_MAX && each && total <= TOTAL_BYTES_MAX.into()
}

async fn copy_chunk(ctx: &OnShare<'_>, source: &Open, target: &Open, chunk: &Chunk) -> Result<(), Failure> {
    let (from, to) = (File::Open(Arc::clone(source.file()?)), File::Open(Arc::clone(target.file()?)));
    let (from, to) = ((&from, chunk.source_offset), (&to, chunk.target_offset));
    let length = u64::from(chunk.length);
    if let Some(view) = source.view() {
        return carry_over(ctx, view, from, to, chunk.length).await;
    }
    match ctx.share.copy_range(ctx.call, from, to, length).await {
        // The source ends before the chunk does.
        Err(share::Error::Storage(storage::Error::InvalidArgument)) => {
            Err(NtStatus::INVALID_VIEW_SIZE.into())
        }
        done => Ok(done?),
    }
}

/// Copies data out of a view of the share at a snapshot.
async fn carry_over(
    ctx: &OnShare<'_>,
    view: &Arc<Share>,
    (from, offset): (&File, u64),
    (to, at): (&File, u64),
    length: u32,
) -> Result<(), Failure> {
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    let (data, count) = view.read(ctx.call, from, offset, vec![0; length]).await?;
    if count < length {
        return Err(NtStatus::INVALID_VIEW_SIZE.into());
    }
    ctx.share.write(ctx.call, to, at, data, Stability::Unstable).await?;
    Ok(())
}

fn answer(
    ctx: &RequestContext,
    request: &Request<'_>,
    chunks_written: u32,
    chunk_bytes_written: u32,
    total_bytes_written: u32,
) -> Result<Buffer, Failure> {
    let response = CopychunkResponse { chunks_written, chunk_bytes_written, total_bytes_written };
    let mut output = Vec::with_capacity(CopychunkResponse::LEN);
    response.encode_into(&mut output);
    respond(ctx, request, &output)
}
