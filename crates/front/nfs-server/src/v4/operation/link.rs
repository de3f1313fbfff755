//! LINK, RFC 8881 18.9.

use std::sync::Arc;

use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::link::{Args, ResOk};
use nfs_wire::v4::status::Status;
use share::{Case, Kind};

use super::directory;
use crate::operation::Operation;
use crate::snapshots;
use crate::v4::compound::Compound;

pub(super) const OPERATION: Operation<Number> = Operation {
    changes: true,
    result_bytes: 64,
    ..Operation::v4(Number::Link, "Link").of_kind(Kind::Create)
};

pub(super) async fn handle(c: &Compound<'_>, args: Args<'_>) -> Result<ResOk, Status> {
    let (file, dir) = (c.saved_object_to_change()?, c.object_to_change()?);
    directory::check(dir)?;
    if !Arc::ptr_eq(&file.share, &dir.share) {
        return Err(Status::XDev);
    }
    let name = args.new_name.checked()?;
    if snapshots::is_folder(dir, name) {
        return Err(Status::Exist);
    }
    let linked = dir.share.link(&dir.call, &file.node, &dir.node, name, Case::Sensitive, None).await;
    Ok(ResOk { change: directory::change(&linked.map_err(directory::refused)?) })
}
