//! RENAME, RFC 8881 18.26.

use std::sync::Arc;

use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::rename::{Args, ResOk};
use nfs_wire::v4::status::Status;
use share::{Case, Kind, Location, RenameHow};
use storage::Replace;

use super::directory;
use crate::operation::Operation;
use crate::snapshots;
use crate::v4::compound::Compound;

pub(super) const OPERATION: Operation<Number> = Operation {
    changes: true,
    result_bytes: 64,
    ..Operation::v4(Number::Rename, "Rename").of_kind(Kind::Rename)
};

pub(super) async fn handle(c: &Compound<'_>, args: Args<'_>) -> Result<ResOk, Status> {
    let (from, to) = (c.saved_object_to_change()?, c.object_to_change()?);
    directory::check(from)?;
    directory::check(to)?;
    if !Arc::ptr_eq(&from.share, &to.share) {
        return Err(Status::XDev);
    }
    let (old_name, new_name) = (directory::existing(args.old_name)?, args.new_name.checked()?);
    if snapshots::is_folder(to, new_name) {
        return Err(Status::Exist);
    }
    let old = Location { parent: Arc::clone(&from.node), name: old_name.to_vec() };
    let new = Location { parent: Arc::clone(&to.node), name: new_name.to_vec() };
    let how = RenameHow { replace: Replace::Yes, case: Case::Sensitive, opened: None };
    // The call of the saved object is that of an earlier operation.
    let renamed = from.share.rename(&to.call, old, new, how).await;
    let (source, target) = renamed.map_err(|error| directory::not_found(error, old_name))?;
    Ok(ResOk { source_change: directory::change(&source), target_change: directory::change(&target) })
}
