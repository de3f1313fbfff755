//! From a stateid to what data is read and written through.

use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::Stateid;
use share::{Access, File};
use storage::FileKind;

use super::compound::Compound;
use crate::object::Object;

/// What a client reads or writes an object through that sends this stateid ([`Compound::stateid`]).
///
/// # Errors
/// [`Status::BadStateId`] for one that names nothing of this client's; [`Status::OpenMode`].
pub(super) fn of(
    c: &Compound<'_>,
    object: &Object,
    stateid: Stateid,
    access: Access,
) -> Result<File, Status> {
    let _ = (c, access);
    match stateid {
        Stateid::ANONYMOUS | Stateid::READ_BYPASS => Ok(object.file()),
        _ => Err(Status::BadStateId),
    }
}

/// Refuses what has no data.
///
/// # Errors
/// [`Status::WrongType`] (RFC 7862 section 15).
pub(super) fn check_regular(object: &Object) -> Result<(), Status> {
    if object.node.kind() == FileKind::Regular { Ok(()) } else { Err(Status::WrongType) }
}
