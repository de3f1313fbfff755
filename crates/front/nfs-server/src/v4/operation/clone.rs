//! CLONE, RFC 7862 15.13: the store makes both files share their blocks, or refuses.

use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::clone::Args;
use nfs_wire::v4::status::Status;
use share::CloneRule;

use super::between::{Between, Part};
use crate::operation::Operation;
use crate::status;
use crate::v4::compound::Compound;

pub(super) const OPERATION: Operation<Number> =
    Operation { changes: true, ..Operation::v4(Number::Clone, "Clone") };

pub(super) async fn handle(c: &Compound<'_>, args: Args) -> Result<(), Status> {
    let call = &c.object()?.call;
    let files = Between::of(c, args.source_stateid, args.destination_stateid)?;
    let part = Part { offset: args.source_offset, to_offset: args.destination_offset, count: args.count };
    let length = files.length(call, part).await?;
    let (from, to) = ((&files.source, part.offset), (&files.target, part.to_offset));
    // RFC 7862 15.13.3: the target grows to hold the range. The share refuses ranges that overlap within one file with
    // NFS4ERR_INVAL.
    files.share.clone_range(call, from, to, length, CloneRule::Grows).await.map_err(status::v4)
}
