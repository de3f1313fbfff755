//! OFFLOAD_STATUS, RFC 7862 15.9.

use nfs_proto::v4::offload::Progress;
use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::offload_status::{Args, ResOk};
use nfs_wire::v4::status::Status;

use crate::operation::Operation;
use crate::v4::compound::Compound;
use crate::v4::files::file_of;

pub(super) const OPERATION: Operation<Number> = Operation::v4(Number::OffloadStatus, "OffloadStatus");

pub(super) fn handle(c: &Compound<'_>, args: Args) -> Result<ResOk, Status> {
    Ok(match c.client()?.files.offload(args.stateid, file_of(c.object()?))? {
        Progress::Running(running) => ResOk { copied_bytes: running.copied(), complete: None },
        Progress::Ended { copied, outcome } => ResOk { copied_bytes: copied, complete: Some(outcome) },
    })
}
