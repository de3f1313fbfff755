//! OFFLOAD_CANCEL, RFC 7862 15.8: after the reply, nothing more is written.

use nfs_proto::v4::offload::Progress;
use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::offload_cancel::Args;
use nfs_wire::v4::status::Status;
use share::Turn;

use crate::operation::Operation;
use crate::v4::compound::Compound;
use crate::v4::files::file_of;

pub(super) const OPERATION: Operation<Number> =
    Operation::v4(Number::OffloadCancel, "OffloadCancel").with(Turn::Charged);

pub(super) async fn handle(c: &Compound<'_>, args: Args) -> Result<(), Status> {
    if let Progress::Running(running) =
        c.client()?.files.cancel_offload(args.stateid, file_of(c.object()?))?
    {
        running.stopped().await;
    }
    Ok(())
}
