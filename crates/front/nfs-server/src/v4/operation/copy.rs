//! COPY, RFC 7862 15.2. A large copy continues after the reply, if the client lets the server choose. Otherwise it is
//! done when the reply is sent, up to a number of bytes that the reply states.

use std::rc::Rc;

use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::copy::{Args, Requirements, Res, ResOk};
use nfs_wire::v4::status::Status;

use super::between::{Between, PIECE_BYTES, Part, copy_piece};
use super::offload::{self, written};
use crate::operation::Operation;
use crate::v4::compound::Compound;

/// The most bytes of a COPY that is done when the reply is sent. A client that wants more asks again, as after any
/// short copy.
const SYNCHRONOUS_BYTES_MAX: u64 = 64 << 20;
/// The least bytes of a COPY that continues after its reply. A smaller copy takes no longer than telling the client of
/// its end.
const ASYNCHRONOUS_BYTES_MIN: u64 = 8 << 20;
pub(super) const OPERATION: Operation<Number> =
    Operation { changes: true, result_bytes: 48, ..Operation::v4(Number::Copy, "Copy") };

pub(super) async fn handle(c: &mut Compound<'_>, args: Args<'_>) -> Res {
    if !args.source_servers.is_empty() {
        return Err(Status::NotSupp.into()); // a copy from another server
    }
    let files = Between::of(c, args.source_stateid, args.destination_stateid)?;
    // 15.2.3: "If SAVED_FH and CURRENT_FH refer to the same file, the operation MUST fail with NFS4ERR_INVAL."
    if files.is_one_file() {
        return Err(Status::Inval.into());
    }
    let part = Part { offset: args.source_offset, to_offset: args.destination_offset, count: args.count };
    let call = Rc::clone(&c.object()?.call);
    let length = files.length(&call, part).await?;
    let mut done = 0;
    if !args.synchronous && length >= ASYNCHRONOUS_BYTES_MIN {
        // This finds faults of the copy as a whole before the reply.
        copy_piece(&call, &files, part, 0, PIECE_BYTES).await?;
        done = PIECE_BYTES;
        if let Some(stateid) = offload::begin(c, &files, part, (done, length))? {
            c.moved(done);
            return Ok(ResOk {
                response: written(c.server(), Some(stateid), 0),
                requirements: Requirements { consecutive: true, synchronous: false },
            });
        }
    }
    let count = copy(c, &files, part, (done, length.min(SYNCHRONOUS_BYTES_MAX))).await?;
    c.moved(count);
    Ok(ResOk {
        response: written(c.server(), None, count),
        // The copy is both, whatever the client asked for.
        requirements: Requirements { consecutive: true, synchronous: true },
    })
}

/// Copies the rest piece by piece, in order, and returns the number of bytes copied. A failure after the first piece
/// only makes this number smaller.
async fn copy(
    c: &Compound<'_>,
    files: &Between,
    part: Part,
    (mut done, length): (u64, u64),
) -> Result<u64, Status> {
    let call = &c.object()?.call;
    while done < length {
        let piece = PIECE_BYTES.min(length - done);
        match copy_piece(call, files, part, done, piece).await {
            Ok(()) => done += piece,
            Err(status) if done == 0 => return Err(status),
            Err(_) => break,
        }
        if c.session().is_ok_and(|session| session.is_gone()) {
            break;
        }
    }
    Ok(done)
}
