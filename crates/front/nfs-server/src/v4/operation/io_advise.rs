//! IO_ADVISE, RFC 7862 15.5: the server ignores the hints, and says so in the reply.

use nfs_proto::v4::open_state::ShareAccess;
use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::io_advise::{Args, ResOk, hint};
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::Bitmap;

use super::data::check_regular;
use crate::operation::Operation;
use crate::v4::compound::Compound;

pub(super) const OPERATION: Operation<Number> = Operation::v4(Number::IoAdvise, "IoAdvise");

pub(super) fn handle(c: &Compound<'_>, args: Args) -> Result<ResOk, Status> {
    check_regular(&c.object()?.node)?;
    c.file(args.stateid, ShareAccess::empty())?;
    if args.offset.checked_add(args.count).is_none() {
        return Err(Status::Inval);
    }
    // 15.5.3: "the server MUST return success and an ior_hints value that indicates the hint it intends to implement.
    // This may mean simply returning IO_ADVISE4_NORMAL."
    Ok(ResOk { hints: Bitmap::EMPTY.with(hint::NORMAL) })
}
