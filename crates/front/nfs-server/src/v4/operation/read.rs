//! READ, RFC 8881 18.22: the data is read straight into the reply.

use std::rc::Rc;

use nfs_proto::v4::open_state::ShareAccess;
use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::read::Args;
use nfs_wire::v4::status::Status;
use share::{Direction, Turn};
use storage::{Wait, Want};

use super::data::{check_regular, within_largest_file};
use crate::operation::Operation;
use crate::status;
use crate::v4::compound::{Compound, DataWritten};

pub(super) const OPERATION: Operation<Number> =
    Operation::v4(Number::Read, "Read").with(Turn::ByData(Direction::Read));

pub(super) async fn handle(c: &mut Compound<'_>, args: Args) -> Result<DataWritten, Status> {
    let object = c.object()?;
    check_regular(&object.node)?;
    let file = c.file(args.stateid, ShareAccess::READ)?;
    let (offset, count) = within_largest_file(args.offset, args.count, c.room());
    let (share, node) = (object.share.clone(), object.node.clone());
    let call = Rc::clone(&object.call);
    c.take_room(count).await;
    let buffer = c.data_buffer(count);
    let (buffer, count) = share.read(&call, &file, offset, buffer).await.map_err(status::v4)?;
    let end = args.offset.saturating_add(count as u64);
    let size = match node.attributes(Want::empty(), Wait::Never) {
        Ok(attributes) => attributes.size,
        Err(_) => share.attributes(&call, &node, Want::empty()).await.map_err(status::v4)?.size,
    };
    Ok(c.put_data(buffer, count, end >= size))
}
