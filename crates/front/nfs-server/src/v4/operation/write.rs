//! WRITE, RFC 8881 18.32: the data is written directly from the receive buffer.

use nfs_proto::v4::open_state::ShareAccess;
use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::{StableHow, Verifier};
use nfs_wire::v4::write::{Args, ResOk};
use share::{Direction, Turn};
use storage::Stability;

use super::data::check_regular;
use crate::attributes::FILE_BYTES_MAX;
use crate::operation::Operation;
use crate::status;
use crate::v4::compound::Compound;

pub(super) const OPERATION: Operation<Number> = Operation {
    changes: true,
    result_bytes: 48,
    ..Operation::v4(Number::Write, "Write").with(Turn::ByData(Direction::Write))
};

pub(super) async fn handle<'a>(c: &mut Compound<'a>, args: Args<'a>) -> Result<ResOk, Status> {
    let object = c.object_to_change()?;
    check_regular(&object.node)?;
    let file = c.file(args.stateid, ShareAccess::WRITE)?;
    let end = args.offset.checked_add(args.data.len() as u64);
    if end.is_none_or(|end| end > FILE_BYTES_MAX) {
        return Err(Status::FBig);
    }
    let (data, stability) = (c.bytes(args.data), stability(args.stable));
    let written = object.share.write(&object.call, &file, args.offset, data, stability).await;
    let written = written.map_err(status::v4)?;
    c.moved(written.count as u64);
    Ok(ResOk {
        count: u32::try_from(written.count).unwrap_or(u32::MAX),
        committed: committed(written.stability),
        verifier: Verifier(c.server().write_verifier),
    })
}

fn stability(stable: StableHow) -> Stability {
    match stable {
        StableHow::Unstable => Stability::Unstable,
        StableHow::DataSync => Stability::Data,
        StableHow::FileSync => Stability::File,
    }
}

fn committed(stability: Stability) -> StableHow {
    match stability {
        Stability::Unstable => StableHow::Unstable,
        Stability::Data => StableHow::DataSync,
        Stability::File => StableHow::FileSync,
    }
}
