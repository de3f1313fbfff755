//! CLOSE. [MS-SMB2] 3.3.5.10.

use net::Buffer;
use share::Turn;
use smb_wire::close::{Attributes, CloseFlags, Request, Response};
use smb_wire::{Command, NtStatus};
use storage::Want;

use crate::attributes;
use crate::context::OnShare;
use crate::front;
use crate::operation::{Effect, Needs, Operation};
use crate::state::open::Open;
use crate::status::Failure;

/// The properties of CLOSE.
pub(crate) const OPERATION: Operation = Operation {
    on_share: Some(front::operation(Command::Close, "Close").with(Turn::Charged)),
    needs: Needs::Open,
    serves_expired: true,
    effect: Effect::Finished,
    answer_bytes: 60,
    ..Operation::of(Command::Close)
};

/// Answers the request.
pub(crate) async fn handle(ctx: &OnShare<'_>, request: Request) -> Result<Buffer, Failure> {
    let open = ctx.open(request.file_id)?;
    let ctx = &ctx.of(&open);
    // Of two concurrent CLOSEs, only one closes.
    ctx.session.remove_open(open.id).ok_or(NtStatus::FILE_CLOSED)?;
    let wants_attributes = request.flags.contains(CloseFlags::POSTQUERY_ATTRIB);
    let attributes = if wants_attributes { attributes_of(ctx, &open).await } else { None };
    // [MS-FSA] 2.1.5.5: closing succeeds, even if a deletion that waited for it fails. A directory with entries simply
    // stays.
    if let Err(failure) = open.close(ctx.call).await {
        tracing::debug!("{} was closed but not deleted: {}", open.path, failure.status);
    }
    let mut reply = ctx.reply();
    reply.append_with(|out, _| Response { attributes }.encode(out));
    Ok(reply)
}

/// The attributes of the file at its closing. If they cannot be read, the reply says so.
async fn attributes_of(ctx: &OnShare<'_>, open: &Open) -> Option<Attributes> {
    let node = open.file().ok()?.node();
    let info = ctx.share.present_attributes(ctx.call, node, Want::FLAGS).await.ok()?;
    let info = attributes::network_open(&info);
    Some(Attributes {
        creation_time: info.creation_time,
        last_access_time: info.last_access_time,
        last_write_time: info.last_write_time,
        change_time: info.change_time,
        allocation_size: info.allocation_size,
        end_of_file: info.end_of_file,
        file_attributes: info.file_attributes,
    })
}
