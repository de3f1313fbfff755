//! FSCTL_SET_SPARSE, FSCTL_SET_ZERO_DATA, FSCTL_QUERY_ALLOCATED_RANGES. [MS-FSCC] 2.3, [MS-FSA] 2.1.5.10.

use std::sync::Arc;

use net::Buffer;
use share::File;
use smb_wire::NtStatus;
use smb_wire::fscc::fsctl::{AllocatedRange, ZeroData, decode_set_sparse};
use smb_wire::ioctl::Request;
use storage::{FileFlags, Want};

use super::{require_room, respond};
use crate::attributes;
use crate::context::OnShare;
use crate::state::open::Open;
use crate::status::Failure;

/// The open of a request about data.
pub(super) fn data_file(open: &Open) -> Result<&Arc<share::Open>, Failure> {
    if open.is_directory { Err(NtStatus::INVALID_PARAMETER.into()) } else { open.file() }
}

/// A count of bytes, which the protocol defines as signed.
pub(super) fn signed(value: u64) -> Result<u64, Failure> {
    if i64::try_from(value).is_ok() { Ok(value) } else { Err(NtStatus::INVALID_PARAMETER.into()) }
}

/// FSCTL_SET_SPARSE: marks a file as sparse, or removes the mark. Holes can be made either way.
pub(super) async fn set(ctx: &OnShare<'_>, open: &Open, request: &Request<'_>) -> Result<Buffer, Failure> {
    ctx.share.set_sparse(ctx.call, data_file(open)?, decode_set_sparse(request.input)).await?;
    respond(ctx, request, &[])
}

/// FSCTL_SET_ZERO_DATA: makes a part of a file zero.
pub(super) async fn zero(ctx: &OnShare<'_>, open: &Open, request: &Request<'_>) -> Result<Buffer, Failure> {
    let file = File::Open(Arc::clone(data_file(open)?));
    let part = ZeroData::decode(request.input)?;
    let (start, end) = (signed(part.file_offset)?, signed(part.beyond_final_zero)?);
    let length = end.checked_sub(start).ok_or(NtStatus::INVALID_PARAMETER)?;
    ctx.share.zero_range(ctx.call, &file, start, length).await?;
    respond(ctx, request, &[])
}

/// FSCTL_QUERY_ALLOCATED_RANGES: the ranges of a file that contain data. A file that is not marked as sparse is
/// reported as one range, as required by [MS-FSCC] 2.3.51.
pub(super) async fn ranges(ctx: &OnShare<'_>, open: &Open, request: &Request<'_>) -> Result<Buffer, Failure> {
    let file = File::Open(Arc::clone(data_file(open)?));
    let asked = AllocatedRange::decode(request.input)?;
    let (offset, length) = (signed(asked.file_offset)?, signed(asked.length)?);
    signed(offset.saturating_add(length))?;
    let room = usize::try_from(request.max_output_response).unwrap_or(usize::MAX) / AllocatedRange::LEN;
    let share = ctx.share;
    ctx.room_for(room.saturating_mul(AllocatedRange::LEN)).await;
    let (parts, more) = share.data_ranges(ctx.call, &file, offset, length, room).await?;
    let known = share.attributes(ctx.call, file.node(), Want::FLAGS).await?;
    let parts: Vec<AllocatedRange> = if attributes::flags(&known).contains(FileFlags::SPARSE) {
        parts
            .iter()
            .map(|part| AllocatedRange { file_offset: part.offset(), length: part.length() })
            .collect()
    } else {
        let length = offset.saturating_add(length).min(known.size).saturating_sub(offset);
        let whole = AllocatedRange { file_offset: offset, length };
        Some(whole).filter(|whole| whole.length > 0).into_iter().collect()
    };
    if more || parts.len() > room {
        // Without room for one range it is an error, with room for some a warning.
        require_room(request, AllocatedRange::LEN, NtStatus::BUFFER_TOO_SMALL)?;
        ctx.set_status(NtStatus::BUFFER_OVERFLOW);
    }
    let mut output = Vec::new();
    parts.iter().take(room).for_each(|part| part.encode_into(&mut output));
    respond(ctx, request, &output)
}
