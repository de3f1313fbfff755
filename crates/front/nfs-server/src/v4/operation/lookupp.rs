//! LOOKUPP, RFC 8881 18.14: the parent of a share's root is the pseudo file system.

use std::sync::Arc;

use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::status::Status;
use share::Case;
use storage::Want;

use super::directory;
use crate::operation::{Callers, Operation};
use crate::status;
use crate::v4::compound::Compound;
use crate::v4::place::Place;

pub(super) const OPERATION: Operation<Number> =
    Operation { callers: Callers::Mounting, ..Operation::v4(Number::LookupP, "Lookup") };

pub(super) async fn handle(c: &mut Compound<'_>) -> Result<(), Status> {
    let parent = parent(c).await?;
    c.set_place(parent);
    Ok(())
}

/// The parent of the current directory.
///
/// # Errors
/// [`Status::NoEnt`] for the root; [`Status::NotDir`], [`Status::SymLink`].
pub(super) async fn parent(c: &Compound<'_>) -> Result<Place, Status> {
    let dir = match c.place()? {
        Place::Object(dir) => dir,
        Place::Root => return Err(Status::NoEnt),
        Place::Absent(_) => return Err(Status::Moved),
    };
    directory::check(dir)?;
    if dir.is_folder {
        return Ok(Place::Object(dir.beside(Arc::clone(&dir.node))));
    }
    if dir.node.id() == dir.share.root().id() {
        return Ok(Place::Root);
    }
    let found = dir.share.lookup(&dir.call, &dir.node, b"..", Case::Sensitive, Want::empty()).await;
    Ok(Place::Object(dir.beside(found.map_err(status::v4)?.node)))
}
