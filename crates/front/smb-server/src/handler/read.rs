//! READ. [MS-SMB2] 3.3.5.12.

use std::pin::pin;
use std::sync::Arc;

use net::Buffer;
use share::{Direction, File, Turn};
use smb_proto::dialect::Dialect;
use smb_wire::read::{Channel, PAYLOAD_OFFSET, Request, ResponseHead};
use smb_wire::{Command, NtStatus, header};

use crate::context::OnShare;
use crate::front;
use crate::operation::{Needs, Operation};
use crate::status::Failure;

/// The most that the replies of one compound may have besides the data of one READ.
const COMPOUND_BYTES: usize = 64 * 1024;

/// The properties of READ.
pub(crate) const OPERATION: Operation = Operation {
    on_share: Some(front::operation(Command::Read, "Read").with(Turn::ByData(Direction::Read))),
    needs: Needs::Open,
    answer_bytes: ResponseHead::LEN,
    ..Operation::of(Command::Read)
};

/// Answers the request. The file is read directly into the reply, after its header and fixed part.
pub(crate) async fn handle(ctx: &OnShare<'_>, request: Request<'_>) -> Result<Buffer, Failure> {
    if request.length > ctx.io_bytes_max() {
        return Err(NtStatus::INVALID_PARAMETER.into());
    }
    check_channel(ctx, request.channel)?;
    let open = ctx.open(request.file_id)?;
    let ctx = &ctx.of(&open);
    if open.is_directory {
        return Err(NtStatus::INVALID_DEVICE_REQUEST.into());
    }
    check_extent(request.offset, u64::from(request.length))?;
    let file = File::Open(Arc::clone(open.file()?));
    let length = usize::try_from(request.length).unwrap_or(usize::MAX);
    let io_bytes_max = usize::try_from(ctx.io_bytes_max()).unwrap_or(usize::MAX);
    // A compound of READs is answered in one frame, which is complete in memory before any of it is sent.
    let answered = ctx.compound.borrow().answered_bytes();
    if answered.saturating_add(length) > io_bytes_max.saturating_add(COMPOUND_BYTES) {
        return Err(NtStatus::INSUFFICIENT_RESOURCES.into());
    }
    ctx.room_for(length).await;
    let mut into = ctx.reply_with(length);
    into.append(&[0; ResponseHead::LEN]);
    into.mark();
    into.grow(length);
    let share = ctx.share;
    let (mut reply, count) = match share.read_at_hand(ctx.call, &file, request.offset, into, 0) {
        Ok((reply, count, _)) => (reply, count),
        // Boxed, so that other requests need no room for it.
        Err(into) => Box::pin(wait_for_data(ctx, &file, request.offset, into)).await?,
    };
    reply.truncate(PAYLOAD_OFFSET.saturating_add(count));
    open.state.lock().position = request.offset.saturating_add(count as u64);
    finish(ctx, reply, &request)
}

async fn wait_for_data(
    ctx: &OnShare<'_>,
    file: &File,
    offset: u64,
    into: Buffer,
) -> Result<(Buffer, usize), Failure> {
    let reading = pin!(async { Ok(ctx.share.read(ctx.call, file, offset, into).await?) });
    if ctx.takes_turns { ctx.until_cancelled(reading).await } else { reading.await }
}

/// Checks the result of the read, and puts the fixed part of the reply in front of it.
fn finish(ctx: &OnShare<'_>, mut reply: Buffer, request: &Request<'_>) -> Result<Buffer, Failure> {
    let count = u32::try_from(reply.marked().len()).unwrap_or(u32::MAX);
    let nothing = count == 0 && request.length > 0;
    if nothing || count < request.minimum_count {
        return Err(NtStatus::END_OF_FILE.into());
    }
    ctx.moved(reply.marked().len());
    if let Some(head) = reply.get_mut(header::LEN..PAYLOAD_OFFSET) {
        head.copy_from_slice(&ResponseHead::new(count).encode());
    }
    if count == 0 {
        // [MS-SMB2] 2.2.20: the buffer has at least one byte.
        reply.append(&[0]);
    }
    Ok(reply)
}

/// Checks that the payload is sent in the message, since RDMA is not supported. Before SMB 3 the field has no meaning.
pub(super) fn check_channel(ctx: &OnShare<'_>, channel: Channel) -> Result<(), NtStatus> {
    let counts = ctx.connection.dialect().is_some_and(Dialect::is_smb3);
    if counts && channel != Channel::None { Err(NtStatus::INVALID_PARAMETER) } else { Ok(()) }
}

/// Checks that a read or write lies below 2^63, the limit of file sizes.
pub(super) fn check_extent(offset: u64, length: u64) -> Result<(), NtStatus> {
    let end = offset.checked_add(length).filter(|end| i64::try_from(*end).is_ok());
    end.map(|_| ()).ok_or(NtStatus::INVALID_PARAMETER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_end_at_two_to_the_63() {
        const MAX: u64 = i64::MAX.cast_unsigned();
        for (offset, length) in [(0, 0), (MAX, 0), (MAX - 1, 1), (0, MAX)] {
            assert_eq!(check_extent(offset, length), Ok(()), "{offset} {length}");
        }
        for (offset, length) in [(MAX, 1), (MAX + 1, 0), (u64::MAX, 0), (u64::MAX, 1), (1, MAX)] {
            assert_eq!(check_extent(offset, length), Err(NtStatus::INVALID_PARAMETER), "{offset} {length}");
        }
    }
}
