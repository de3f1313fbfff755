//! ALLOCATE, RFC 7862 15.1.

use nfs_proto::v4::open_state::ShareAccess;
use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::allocate::Args;
use nfs_wire::v4::status::Status;
use storage::FileKind;

use crate::attributes::FILE_BYTES_MAX;
use crate::operation::Operation;
use crate::status;
use crate::v4::compound::Compound;

pub(super) const OPERATION: Operation<Number> =
    Operation { changes: true, ..Operation::v4(Number::Allocate, "Allocate") };

pub(super) async fn handle(c: &Compound<'_>, args: Args) -> Result<(), Status> {
    let object = c.object_to_change()?;
    if object.node.kind() != FileKind::Regular {
        return Err(Status::WrongType);
    }
    let file = c.file(args.stateid, ShareAccess::WRITE)?;
    if args.length == 0 {
        return Err(Status::Inval);
    }
    if args.offset.checked_add(args.length).is_none_or(|end| end > FILE_BYTES_MAX) {
        return Err(Status::FBig);
    }
    let (share, call) = (&object.share, &object.call);
    share.reserve_range(call, &file, args.offset, args.length).await.map_err(status::v4)
}
