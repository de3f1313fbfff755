//! READ_PLUS, RFC 7862 15.10: what READ returns, without the holes.

use nfs_proto::v4::open_state::ShareAccess;
use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::read_plus::{Args, Content, ResOk};
use nfs_wire::v4::status::Status;
use share::{ByteRange, Direction, Turn};
use storage::Want;

use super::data::{check_regular, within_largest_file};
use crate::operation::Operation;
use crate::status;
use crate::v4::compound::Compound;

/// The most data parts of one result. All bytes after the last part are returned as data, zeros or not.
const DATA_PARTS_MAX: usize = 16;
/// The size of such a result without its data: the number of parts, and each part's kind, offset, length and padding.
const PARTS_BYTES: usize = 4 + (2 * DATA_PARTS_MAX + 1) * (4 + 8 + 8);

pub(super) const OPERATION: Operation<Number> =
    Operation::v4(Number::ReadPlus, "ReadPlus").with(Turn::ByData(Direction::Read));

/// Reads into `data`; the result contains the parts that are not holes. Holes are reported only within the requested
/// range, so nothing is said about bytes outside the range that the client may have locked (15.10.3).
pub(super) async fn handle<'d>(
    c: &mut Compound<'_>,
    args: Args,
    data: &'d mut Vec<u8>,
) -> Result<ResOk<'d>, Status> {
    let object = c.object()?;
    check_regular(&object.node)?;
    let file = c.file(args.stateid, ShareAccess::READ)?;
    let room = c.room().saturating_sub(PARTS_BYTES);
    let (offset, count) = within_largest_file(args.offset, args.count, room);
    let (share, call) = (&object.share, &object.call);
    c.take_room(count).await;
    let (read, count) = share.read(call, &file, offset, vec![0; count]).await.map_err(status::v4)?;
    *data = read;
    data.truncate(count);
    // The ranges are queried after the read. A range that is a hole by then may be returned as one. Where the store
    // reports nothing, the range is data.
    let told = share.data_ranges(call, &file, offset, count as u64, DATA_PARTS_MAX).await;
    let (ranges, more) = told.unwrap_or((Vec::new(), true));
    let size = share.attributes(call, &object.node, Want::empty()).await.map_err(status::v4)?.size;
    let eof = args.offset.saturating_add(count as u64) >= size;
    c.moved(count as u64);
    Ok(ResOk { eof, contents: parts(offset, data, &ranges, more) })
}

/// Splits the bytes read into data and holes. `more`: the bytes after the last of the ranges are data, as far as is
/// known.
fn parts<'d>(offset: u64, data: &'d [u8], ranges: &[ByteRange], more: bool) -> Vec<Content<'d>> {
    let length = data.len() as u64;
    let within = |at: u64| at.saturating_sub(offset).min(length);
    let mut parts = Vec::new();
    let mut at = 0;
    let hole = |at: u64, end: u64| {
        (at < end).then_some(Content::Hole { offset: offset.saturating_add(at), length: end - at })
    };
    let last = ranges.len().saturating_sub(1);
    for (index, range) in ranges.iter().enumerate() {
        let start = within(range.offset());
        let end = within(range.offset().saturating_add(range.length()));
        let end = if more && index == last { length } else { end };
        parts.extend(hole(at, start));
        parts.extend(data_part(offset, data, start, end));
        at = end.max(at);
    }
    if more && ranges.is_empty() {
        parts.extend(data_part(offset, data, 0, length));
    } else {
        parts.extend(hole(at, length));
    }
    parts
}

fn data_part(offset: u64, data: &[u8], start: u64, end: u64) -> Option<Content<'_>> {
    let (from, to) = (usize::try_from(start).ok()?, usize::try_from(end).ok()?);
    let data = data.get(from..to).filter(|data| !data.is_empty())?;
    Some(Content::Data { offset: offset.saturating_add(start), data })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(offset: u64, length: u64) -> ByteRange {
        ByteRange::new(offset, length).unwrap()
    }

    fn hole(offset: u64, length: u64) -> Content<'static> {
        Content::Hole { offset, length }
    }

    fn data(offset: u64, data: &[u8]) -> Content<'_> {
        Content::Data { offset, data }
    }

    #[test]
    fn parts_follow_each_other() {
        let read = b"0123456789";
        assert_eq!(parts(100, read, &[], false), [hole(100, 10)]);
        assert_eq!(parts(100, read, &[], true), [data(100, read)]);
        assert_eq!(parts(100, read, &[range(100, 10)], false), [data(100, read)]);
        let two = [range(102, 2), range(106, 1)];
        let told = parts(100, read, &two, false);
        assert_eq!(told, [hole(100, 2), data(102, b"23"), hole(104, 2), data(106, b"6"), hole(107, 3)]);
        let told = parts(100, read, &two, true);
        assert_eq!(told, [hole(100, 2), data(102, b"23"), hole(104, 2), data(106, b"6789")]);
        // The store also reports ranges beside the requested one.
        assert_eq!(parts(100, read, &[range(90, 40)], false), [data(100, read)]);
        assert!(parts(100, b"", &[range(100, 5)], false).is_empty());
    }
}
