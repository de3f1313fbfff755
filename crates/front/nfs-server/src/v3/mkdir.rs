//! MKDIR, RFC 1813 3.3.9.

use nfs_wire::v3::Procedure;
use nfs_wire::v3::mkdir::{Args, Res};
use nfs_wire::v3::types::FileHandle;
use share::Kind;
use storage::FileKind;

use super::for_object::ForObject;
use super::new_object::{made, make, new_object};
use crate::call::Request;
use crate::object::CalledObject;
use crate::operation::Operation;

pub(super) const OPERATION: Operation<Procedure> = Operation {
    changes: true,
    is_kept: true,
    ..Operation::v3(Procedure::MkDir, "MkDir").of_kind(Kind::Create)
};

impl ForObject for Args<'_> {
    fn object(&self) -> &FileHandle {
        &self.place.dir
    }
}

pub(super) async fn handle(request: &Request<'_>, dir: &CalledObject<'_>, args: Args<'_>) -> Res {
    let created = match new_object(dir, FileKind::Directory, &args.attributes) {
        Ok(new) => make(dir, args.place.name, new).await,
        Err(status) => Err(status),
    };
    match created {
        Ok(created) => Ok(made(request, dir, &created)),
        Err(status) => Err(dir.failed_change(status).await),
    }
}
