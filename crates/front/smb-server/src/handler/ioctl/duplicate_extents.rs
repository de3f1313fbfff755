//! FSCTL_DUPLICATE_EXTENTS_TO_FILE: a copy that shares its blocks with the source. [MS-FSCC] 2.3.7, [MS-FSA] 2.1.5.10.4:
//! neither file's length changes, and sparse data is not cloned into a file that is not sparse.

use std::sync::Arc;

use net::Buffer;
use share::{CloneRule, File};
use smb_wire::NtStatus;
use smb_wire::fscc::fsctl::DuplicateExtents;
use smb_wire::ioctl::Request;
use storage::Capabilities;

use super::respond;
use super::sparse::signed;
use crate::context::OnShare;
use crate::state::open::Open;
use crate::status::Failure;

/// Answers the request, which names the target.
pub(super) async fn handle(
    ctx: &OnShare<'_>,
    target: &Open,
    request: &Request<'_>,
) -> Result<Buffer, Failure> {
    let to = File::Open(Arc::clone(target.file()?));
    if !ctx.share.capabilities().contains(Capabilities::CLONE) {
        return Err(NtStatus::INVALID_DEVICE_REQUEST.into());
    }
    if request.input.len() < DuplicateExtents::LEN {
        return Err(NtStatus::BUFFER_TOO_SMALL.into());
    }
    let wanted = DuplicateExtents::decode(request.input)?;
    let source = source(ctx, &wanted)?;
    if source.is_directory || target.is_directory {
        return Err(NtStatus::NOT_SUPPORTED.into());
    }
    let length = signed(wanted.byte_count)?;
    let (offset, to_offset) = (signed(wanted.source_file_offset)?, signed(wanted.target_file_offset)?);
    let from = File::Open(Arc::clone(source.file()?));
    let (from, to) = ((&from, offset), (&to, to_offset));
    ctx.share.clone_range(ctx.call, from, to, length, CloneRule::Within).await?;
    respond(ctx, request, &[])
}

/// The open that the input names, if it is of this session and share.
fn source(ctx: &OnShare<'_>, wanted: &DuplicateExtents) -> Result<Arc<Open>, Failure> {
    let open = ctx.session.open(wanted.source_file_id).ok_or(NtStatus::INVALID_HANDLE)?;
    let is_of_it = open.on_share().is_some_and(|(share, _)| Arc::ptr_eq(share, ctx.share));
    if is_of_it { Ok(open) } else { Err(NtStatus::INVALID_PARAMETER.into()) }
}
