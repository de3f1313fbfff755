//! READ, RFC 1813 3.3.6: the data is read straight into the reply.

use net::Buffer;
use nfs_wire::rpc::{AcceptStatus, Reply, ReplyBody};
use nfs_wire::v3::Procedure;
use nfs_wire::v3::attr::Attributes;
use nfs_wire::v3::read::{Args, Head};
use nfs_wire::v3::status::Status;
use nfs_wire::v3::types::FileHandle;
use nfs_wire::xdr::{Encode, Failure, Writer, padding};
use share::{Direction, ReadWithAttributes, Turn};

use super::for_object::ForObject;
use crate::attributes::FILE_BYTES_MAX;
use crate::call::Request;
use crate::config::TRANSFER_BYTES_MAX;
use crate::object::CalledObject;
use crate::operation::Operation;
use crate::reply::{REPLY_HEADER_BYTES, mark};
use crate::status;

/// Bytes in front of the data: a head with attributes always has this length.
const FRONT_BYTES: usize = REPLY_HEADER_BYTES + Head::BYTES_MAX;

pub(super) type Failed = Failure<Status, Option<Attributes>>;

/// Data, with room for the head in front.
pub(super) struct Data {
    pub(super) head: Head,
    reply: Buffer,
}

pub(super) const OPERATION: Operation<Procedure> =
    Operation::v3(Procedure::Read, "Read").with(Turn::ByData(Direction::Read));

impl ForObject for Args {
    fn object(&self) -> &FileHandle {
        &self.file
    }
}

pub(super) async fn handle(
    request: &Request<'_>,
    file: &CalledObject<'_>,
    args: Args,
) -> Result<Data, Failed> {
    let (offset, count) = within_largest_file(args.offset, args.count);
    let _room = request.connection.outbox.room(count, 0).await;
    let mut reply = Buffer::with_capacity(FRONT_BYTES + count + padding(count));
    reply.append(&[0; FRONT_BYTES]);
    reply.mark();
    reply.grow(count);
    let error = match file.share.read_permitted(file.call, &file.node, offset, reply) {
        Ok(read) => return Ok(data(file, args.offset, read)),
        // Boxed, so that the futures of other calls need no room for it.
        Err(reply) => match Box::pin(read(file, offset, reply)).await {
            Ok(read) => return Ok(data(file, args.offset, read)),
            Err(error) => error,
        },
    };
    // RFC 1813 3.3.6: NFS3ERR_INVAL for an object that is not a regular file.
    let status = match status::of(error) {
        Status::IsDir => Status::Inval,
        status => status,
    };
    Err(Box::pin(file.failed(status)).await)
}

async fn read(
    file: &CalledObject<'_>,
    offset: u64,
    reply: Buffer,
) -> share::Result<ReadWithAttributes<Buffer>> {
    file.share.read_with_attributes(file.call, &file.node, offset, reply).await
}

fn data(file: &CalledObject<'_>, offset: u64, read: ReadWithAttributes<Buffer>) -> Data {
    let ReadWithAttributes { into: mut reply, count, attributes } = read;
    reply.truncate(FRONT_BYTES + count);
    reply.append(&[0; 3][..padding(count)]);
    let end = offset.saturating_add(count as u64);
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    let eof = end >= attributes.size;
    Data { head: Head { file_attributes: Some(file.told(&attributes)), count, eof }, reply }
}

/// The part of a read that can have data: at most [`TRANSFER_BYTES_MAX`], and nothing beyond the largest file.
fn within_largest_file(offset: u64, count: u32) -> (u64, usize) {
    let offset = offset.min(FILE_BYTES_MAX);
    let count = u64::from(count.min(TRANSFER_BYTES_MAX)).min(FILE_BYTES_MAX - offset);
    (offset, usize::try_from(count).unwrap_or(0))
}

impl Data {
    /// The complete reply.
    pub(super) fn into_reply(self, request: &Request<'_>) -> Buffer {
        let Self { head, mut reply } = self;
        let mut front = Vec::with_capacity(FRONT_BYTES);
        let mut writer = Writer::new(&mut front);
        let header = Reply { xid: request.call.xid, body: ReplyBody::accepted(AcceptStatus::Success) };
        header.encode(&mut writer);
        head.encode(&mut writer);
        reply[..FRONT_BYTES].copy_from_slice(&front);
        mark(reply)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_are_cut_to_what_can_have_data() {
        let most = TRANSFER_BYTES_MAX as usize;
        assert_eq!(within_largest_file(5, 7), (5, 7));
        assert_eq!(within_largest_file(5, u32::MAX), (5, most));
        assert_eq!(within_largest_file(u64::MAX, 7), (FILE_BYTES_MAX, 0));
        assert_eq!(within_largest_file(FILE_BYTES_MAX - 3, 7), (FILE_BYTES_MAX - 3, 3));
    }
}
