//! WRITE. [MS-SMB2] 3.3.5.13.

use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use net::Buffer;
use share::{Direction, File, Turn};
use smb_wire::create::CreateOptions;
use smb_wire::write::{Request, Response, WriteFlags};
use smb_wire::{Command, NtStatus};
use storage::{SetAttributes, SetTime, Stability};

use super::read::{check_channel, check_extent};
use crate::attributes;
use crate::context::OnShare;
use crate::front;
use crate::operation::{Effect, Needs, Operation};
use crate::state::open::{FrozenTimes, Open};
use crate::status::Failure;

/// The payload begins no later than here, from the header ("If DataOffset is greater than 0x100 ...").
const DATA_OFFSET_MAX: usize = 0x100;
/// The properties of WRITE.
pub(crate) const OPERATION: Operation = Operation {
    on_share: Some(front::operation(Command::Write, "Write").with(Turn::ByData(Direction::Write))),
    needs: Needs::Open,
    effect: Effect::Guarded,
    answer_bytes: 16,
    ..Operation::of(Command::Write)
};

/// Answers the request.
pub(crate) async fn handle(ctx: &OnShare<'_>, request: Request<'_>) -> Result<Buffer, Failure> {
    let range = request.payload_range();
    let length = u32::try_from(range.len()).unwrap_or(u32::MAX);
    if length > ctx.io_bytes_max() || range.start > DATA_OFFSET_MAX {
        return Err(NtStatus::INVALID_PARAMETER.into());
    }
    check_channel(ctx, request.channel)?;
    let open = ctx.open(request.file_id)?;
    let ctx = &ctx.of(&open);
    if open.is_directory {
        return Err(NtStatus::INVALID_DEVICE_REQUEST.into());
    }
    check_extent(request.offset, u64::from(length))?;
    if length == 0 {
        // Nothing is written, but the reply says whether the client may write.
        let (share, file) = (ctx.share, open.file()?);
        let charging = pin!(async { Ok(share.write_nothing(ctx.call, file).await?) });
        if ctx.takes_turns { ctx.patiently(charging).await? } else { charging.await? }
    } else {
        write(ctx, &open, &request, ctx.message.slice(range)).await?;
    }
    ctx.moved(request.data.len());
    let mut reply = ctx.reply();
    reply.append_with(|out, _| Response { count: length }.encode(out));
    Ok(reply)
}

async fn write(ctx: &OnShare<'_>, open: &Open, request: &Request<'_>, data: Bytes) -> Result<(), Failure> {
    let end = request.offset.saturating_add(data.len() as u64);
    let file = File::Open(Arc::clone(open.file()?));
    let stability = stability(open, request.flags);
    let share = ctx.share;
    let writing = pin!(async { Ok(share.write(ctx.call, &file, request.offset, data, stability).await?) });
    if ctx.takes_turns {
        ctx.patiently(writing).await?;
    } else {
        writing.await?;
    }
    let frozen = {
        let mut state = open.state.lock();
        state.position = end;
        state.frozen
    };
    keep_frozen_times(ctx, &file, frozen).await
}

/// How safe the data must be before the reply is sent.
fn stability(open: &Open, flags: WriteFlags) -> Stability {
    let through = flags.contains(WriteFlags::WRITE_THROUGH)
        || open.create_options.contains(CreateOptions::WRITE_THROUGH);
    if through { Stability::Data } else { Stability::Unstable }
}

/// Restores the times that the client wants to keep ([MS-FSCC] 2.4.7).
async fn keep_frozen_times(ctx: &OnShare<'_>, file: &File, frozen: FrozenTimes) -> Result<(), Failure> {
    let time = |frozen: Option<smb_wire::FileTime>| frozen.map(|t| SetTime::To(attributes::timestamp(t)));
    let set = SetAttributes {
        atime: time(frozen.access),
        mtime: time(frozen.write),
        ctime: frozen.change.map(attributes::timestamp),
        ..SetAttributes::default()
    };
    if set != SetAttributes::default() {
        ctx.share.set_attributes(ctx.call, file, &set, None).await?;
    }
    Ok(())
}
