//! ACCESS, RFC 8881 18.1, and the rights of RFC 8276 8.5.

use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::access::{Access, Args, ResOk};
use nfs_wire::v4::status::Status;
use share::Access as May;
use storage::{FileKind, Want};

use crate::operation::{Callers, Operation};
use crate::status;
use crate::v4::compound::Compound;
use crate::v4::place::Place;

const CHANGES: Access = Access::MODIFY.union(Access::EXTEND).union(Access::DELETE).union(Access::XATTR_WRITE);
const XATTRS: Access = Access::XATTR_READ.union(Access::XATTR_WRITE).union(Access::XATTR_LIST);

pub(super) const OPERATION: Operation<Number> =
    Operation { callers: Callers::Mounting, ..Operation::v4(Number::Access, "Access") };

pub(super) async fn handle(c: &Compound<'_>, args: Args) -> Result<ResOk, Status> {
    let (known, rights) = match c.place()? {
        Place::Root => (known_of(FileKind::Directory), Access::READ | Access::LOOKUP),
        Place::Absent(_) => return Err(Status::Moved),
        Place::Object(object) => {
            let found =
                object.share.found(&object.call, &object.node, Want::empty()).await.map_err(status::v4)?;
            let kind = found.attributes.kind;
            let mut rights = rights(object.share.maximal_access(&object.call.caller, &found), kind);
            if !object.standing.is_member() {
                rights = Access::empty();
            } else if object.is_read_only() {
                rights &= !CHANGES;
            }
            (known_of(kind), rights)
        }
    };
    let known = if c.minor_version >= 2 { known } else { known & !XATTRS };
    let supported = known & args.access;
    Ok(ResOk { supported, access: supported & rights })
}

/// The rights that exist for an object of this kind.
fn known_of(kind: FileKind) -> Access {
    let known = Access::READ | Access::MODIFY | Access::EXTEND;
    match kind {
        FileKind::Directory => known | Access::LOOKUP | Access::DELETE | XATTRS,
        FileKind::Regular => known | Access::EXECUTE | XATTRS,
        _ => known | Access::EXECUTE,
    }
}

/// The rights of a caller on an object of this kind.
fn rights(may: May, kind: FileKind) -> Access {
    let is_dir = kind == FileKind::Directory;
    let search = may.contains(May::EXECUTE);
    let write = may.contains(May::WRITE_DATA) && (search || !is_dir);
    let mut rights = Access::empty();
    rights.set(Access::READ, may.contains(May::READ_DATA));
    rights.set(Access::MODIFY | Access::EXTEND, write);
    rights.set(if is_dir { Access::LOOKUP } else { Access::EXECUTE }, search);
    rights.set(Access::DELETE, is_dir && may.contains(May::DELETE_CHILD));
    rights.set(Access::XATTR_READ | Access::XATTR_LIST, may.contains(May::READ_EA));
    rights.set(Access::XATTR_WRITE, may.contains(May::WRITE_EA));
    rights
}
