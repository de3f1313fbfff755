//! SEEK, RFC 7862 15.11.

use nfs_proto::v4::open_state::ShareAccess;
use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::seek::{Args, ResOk, content};
use nfs_wire::v4::status::Status;
use storage::{SeekTo, Want};

use super::data::check_regular;
use crate::operation::Operation;
use crate::status;
use crate::v4::compound::Compound;

pub(super) const OPERATION: Operation<Number> = Operation::v4(Number::Seek, "Seek");

pub(super) async fn handle(c: &Compound<'_>, args: Args) -> Result<ResOk, Status> {
    let object = c.object()?;
    check_regular(&object.node)?;
    let to = match args.what {
        content::DATA => SeekTo::Data,
        content::HOLE => SeekTo::Hole,
        _ => return Err(Status::UnionNotSupp),
    };
    let file = c.file(args.stateid, ShareAccess::READ)?;
    let found = object.share.seek(&object.call, &file, args.offset, to).await.map_err(status::v4)?;
    if let Some(offset) = found {
        return Ok(ResOk { eof: false, offset });
    }
    let size =
        object.share.attributes(&object.call, &object.node, Want::empty()).await.map_err(status::v4)?.size;
    // "If the sa_offset is beyond the end of the file, then SEEK MUST return NFS4ERR_NXIO."
    if args.offset >= size { Err(Status::NxIo) } else { Ok(ResOk { eof: true, offset: size }) }
}
