//! READ, RFC 8881 18.22: the data is read straight into the reply.

use std::rc::Rc;

use nfs_proto::v4::open_state::ShareAccess;
use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::read::Args;
use nfs_wire::v4::status::Status;
use share::{Direction, Turn};

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
    let share = object.share.clone();
    let call = Rc::clone(&object.call);
    c.take_room(count).await;
    // Reading one byte more than the client has asked for shows whether the file ends here.
    let buffer = c.data_buffer(count.saturating_add(1));
    let (buffer, count, is_end) = match share.read_at_hand(&call, &file, offset, buffer, 1) {
        Ok((buffer, count, Some(is_end))) => (buffer, count, is_end),
        // Boxed, so that the futures of other operations need no room for it.
        Ok((buffer, ..)) | Err(buffer) => {
            Box::pin(share.read_with_end(&call, &file, offset, buffer)).await.map_err(status::v4)?
        }
    };
    Ok(c.put_data(buffer, count, is_end))
}
