//! COPY, RFC 7862 15.2: always done when the reply comes, up to so many bytes, which the reply tells.

use nfs_wire::v4::copy::{Args, Requirements, Res, ResOk, WriteResponse};
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::{StableHow, Verifier};

use super::between::{Between, Part};
use super::compound::Compound;
use crate::status;

/// Most bytes of one COPY: a client that wants more asks again, as after any short copy.
const COPY_BYTES_MAX: u64 = 64 << 20;
/// Bytes that are copied at once. In between others have their turn.
const PIECE_BYTES: u64 = 1 << 20;

pub(super) async fn handle(c: &mut Compound<'_>, args: Args<'_>) -> Res {
    if !args.source_servers.is_empty() {
        return Err(Status::NotSupp.into()); // from another server
    }
    let files = Between::of(c, args.source_stateid, args.destination_stateid)?;
    // 15.2.3: "If SAVED_FH and CURRENT_FH refer to the same file, the operation MUST fail with NFS4ERR_INVAL."
    if files.is_one_file() {
        return Err(Status::Inval.into());
    }
    let part = Part { offset: args.source_offset, to_offset: args.destination_offset, count: args.count };
    let length = files.length(part).await?.min(COPY_BYTES_MAX);
    let count = copy(c, &files, part, length).await?;
    c.moved(count);
    Ok(ResOk {
        response: WriteResponse {
            callback_id: None,
            count,
            committed: StableHow::Unstable,
            verifier: Verifier(c.server().write_verifier),
        },
        // Whatever was asked for: it is both.
        requirements: Requirements { consecutive: true, synchronous: true },
    })
}

/// Copies piece by piece, in their order; how many bytes it came to. What fails behind the first piece only makes it fewer.
async fn copy(c: &Compound<'_>, files: &Between, part: Part, length: u64) -> Result<u64, Status> {
    let mut done = 0;
    while done < length {
        let piece = PIECE_BYTES.min(length - done);
        let from = (&files.source, part.offset.saturating_add(done));
        let to = (&files.target, part.to_offset.saturating_add(done));
        match files.share.copy_range(&files.caller, from, to, piece).await {
            Ok(()) => done += piece,
            Err(error) if done == 0 => return Err(status::v4(error)),
            Err(_) => break,
        }
        if c.session().is_gone() {
            break;
        }
    }
    Ok(done)
}
