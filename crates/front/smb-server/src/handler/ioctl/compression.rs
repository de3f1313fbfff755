//! FSCTL_GET_COMPRESSION and FSCTL_SET_COMPRESSION: nothing is compressed. [MS-FSCC] 2.3.

use net::Buffer;
use smb_wire::NtStatus;
use smb_wire::ioctl::Request;

use super::{require_room, respond};
use crate::context::RequestContext;
use crate::status::Failure;

/// COMPRESSION_FORMAT_NONE
const NONE: [u8; 2] = [0, 0];

/// FSCTL_GET_COMPRESSION
pub(super) fn get(ctx: &RequestContext, request: &Request<'_>) -> Result<Buffer, Failure> {
    require_room(request, NONE.len(), NtStatus::BUFFER_TOO_SMALL)?;
    respond(ctx, request, &NONE)
}

/// FSCTL_SET_COMPRESSION: only the state of every file, no compression, can be set.
pub(super) fn set(ctx: &RequestContext, request: &Request<'_>) -> Result<Buffer, Failure> {
    match request.input.first_chunk() {
        Some(&NONE) => respond(ctx, request, &[]),
        Some(_) => Err(NtStatus::NOT_SUPPORTED.into()),
        None => Err(NtStatus::INVALID_PARAMETER.into()),
    }
}
