//! FSCTL_CREATE_OR_GET_OBJECT_ID and FSCTL_GET_OBJECT_ID. [MS-FSCC] 2.3.

use net::Buffer;
use smb_wire::fscc::fsctl::ObjectId;
use smb_wire::ioctl::Request;
use smb_wire::{Guid, NtStatus};

use super::{require_room, respond};
use crate::context::OnShare;
use crate::state::open::Open;
use crate::status::Failure;

/// Answers with an identifier derived from the server, the share and the file. It is the same at each call and need not
/// be stored.
pub(super) fn handle(ctx: &OnShare<'_>, open: &Open, request: &Request<'_>) -> Result<Buffer, Failure> {
    let share = ctx.share;
    let file = open.file()?.node().id().number;
    require_room(request, ObjectId::LEN, NtStatus::BUFFER_TOO_SMALL)?;
    let mut volume = ctx.server.guid().0;
    for (byte, id) in volume.iter_mut().zip(share.id().0.to_le_bytes()) {
        *byte ^= id;
    }
    let mut object = volume;
    for (byte, id) in object.iter_mut().rev().zip(file.to_le_bytes()) {
        *byte ^= id;
    }
    let object_id = ObjectId {
        object_id: Guid(object),
        birth_volume_id: Guid(volume),
        birth_object_id: Guid(object),
        domain_id: Guid::ZERO,
    };
    let mut output = Vec::with_capacity(ObjectId::LEN);
    object_id.encode_into(&mut output);
    respond(ctx, request, &output)
}
