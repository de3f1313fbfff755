//! DEALLOCATE, RFC 7862 15.4.

use nfs_proto::v4::open_state::ShareAccess;
use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::deallocate::Args;
use nfs_wire::v4::status::Status;
use storage::FileKind;

use crate::operation::Operation;
use crate::status;
use crate::v4::compound::Compound;

pub(super) const OPERATION: Operation<Number> =
    Operation { changes: true, ..Operation::v4(Number::Deallocate, "Deallocate") };

pub(super) async fn handle(c: &Compound<'_>, args: Args) -> Result<(), Status> {
    let object = c.object_to_change()?;
    if object.node.kind() != FileKind::Regular {
        return Err(Status::WrongType);
    }
    let file = c.file(args.stateid, ShareAccess::WRITE)?;
    let (share, call) = (&object.share, &object.call);
    share.zero_range(call, &file, args.offset, args.length).await.map_err(status::v4)
}
