//! LOCKU, RFC 8881 18.12.

use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::locku::{Args, ResOk};
use nfs_wire::v4::status::Status;
use share::Turn;

use super::data::check_regular;
use super::lock::range;
use crate::operation::{Callers, Operation};
use crate::status;
use crate::v4::compound::Compound;
use crate::v4::files::{file_of, refused};

pub(super) const OPERATION: Operation<Number> = Operation {
    callers: Callers::Anybody,
    result_bytes: 48,
    ..Operation::v4(Number::LockU, "Unlock").with(Turn::Charged)
};

pub(super) fn handle(c: &mut Compound<'_>, args: Args) -> Result<ResOk, Status> {
    let object = c.object()?;
    check_regular(&object.node)?;
    let range = range(args.offset, args.length)?;
    let sent = c.stateid(args.lock_stateid)?;
    let files = &c.client()?.files;
    let found = files.with(|holdings| {
        let (lock, open) = holdings.find_lock(sent, file_of(object))?;
        Ok((lock.owner, open.any().cloned()))
    });
    let (owner, held) = found.map_err(refused)?;
    let held = held.ok_or(Status::BadStateId)?;
    held.share.unlock_as(&held.open, owner, range).map_err(status::v4)?;
    let lock_stateid = files.with(|holdings| holdings.changed(sent.other)).map_err(refused)?;
    c.set_stateid(Some(lock_stateid));
    Ok(ResOk { lock_stateid })
}
