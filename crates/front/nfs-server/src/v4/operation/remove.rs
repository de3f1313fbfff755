//! REMOVE, RFC 8881 18.25: files and directories.

use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::remove::{Args, ResOk};
use nfs_wire::v4::status::Status;
use share::Kind;

use super::directory;
use crate::operation::Operation;
use crate::v4::compound::Compound;

pub(super) const OPERATION: Operation<Number> = Operation {
    changes: true,
    result_bytes: 64,
    ..Operation::v4(Number::Remove, "Remove").of_kind(Kind::Delete)
};

pub(super) async fn handle(c: &Compound<'_>, args: Args<'_>) -> Result<ResOk, Status> {
    let dir = c.object_to_change()?;
    directory::check(dir)?;
    let name = directory::existing(args.target)?;
    let remove = |is_dir| dir.share.remove(&dir.call, &dir.node, name, is_dir);
    // Most objects are files. An object that has changed its kind meanwhile is not the one that the client saw.
    let removed = match remove(false).await {
        Err(share::Error::Storage(storage::Error::IsDirectory)) => remove(true).await,
        removed => removed,
    };
    let change = removed.map_err(|error| directory::not_found(error, name))?;
    Ok(ResOk { change: directory::change(&change) })
}
