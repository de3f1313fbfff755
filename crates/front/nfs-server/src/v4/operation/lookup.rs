//! LOOKUP, RFC 8881 18.13.

use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::lookup::Args;
use nfs_wire::v4::status::Status;
use share::Case;
use storage::Want;

use super::directory;
use crate::object::Object;
use crate::operation::Operation;
use crate::v4::compound::Compound;
use crate::v4::place::Place;
use crate::v4::pseudo_fs;
use crate::{snapshots, status};

pub(super) const OPERATION: Operation<Number> = Operation::v4(Number::Lookup, "Lookup");

pub(super) async fn handle(c: &mut Compound<'_>, args: Args<'_>) -> Result<(), Status> {
    let name = directory::existing(args.name)?;
    let found = match c.place()? {
        Place::Root => pseudo_fs::lookup(c, name).await?,
        Place::Object(dir) => Place::Object(find(dir, name).await?),
        Place::Absent(_) => return Err(Status::Moved),
    };
    c.set_place(found);
    Ok(())
}

/// The object with that name in a directory.
///
/// # Errors
/// [`Status::NotDir`], [`Status::SymLink`], [`Status::NoEnt`], [`Status::Access`].
pub(super) async fn find(dir: &Object, name: &[u8]) -> Result<Object, Status> {
    directory::check(dir)?;
    if let Some(object) = snapshots::look_up(dir, name).await.map_err(status::v4)? {
        return Ok(object);
    }
    let found = dir.share.lookup(&dir.call, &dir.node, name, Case::Sensitive, Want::empty()).await;
    Ok(dir.beside(found.map_err(|error| directory::not_found(error, name))?.node))
}
