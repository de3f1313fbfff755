//! SYMLINK, RFC 1813 3.3.10.

use nfs_wire::v3::Procedure;
use nfs_wire::v3::status::Status;
use nfs_wire::v3::symlink::{Args, Res};
use nfs_wire::v3::types::FileHandle;
use share::{Created, Kind};
use storage::FileKind;

use super::for_object::ForObject;
use super::new_object::{made, make, new_object};
use crate::call::Request;
use crate::object::CalledObject;
use crate::operation::Operation;

pub(super) const OPERATION: Operation<Procedure> = Operation {
    changes: true,
    is_kept: true,
    ..Operation::v3(Procedure::SymLink, "SymLink").of_kind(Kind::Create)
};

impl ForObject for Args<'_> {
    fn object(&self) -> &FileHandle {
        &self.place.dir
    }
}

pub(super) async fn handle(request: &Request<'_>, dir: &CalledObject<'_>, args: Args<'_>) -> Res {
    match link(dir, &args).await {
        Ok(created) => Ok(made(request, dir, &created)),
        Err(status) => Err(dir.failed_change(status).await),
    }
}

async fn link(dir: &CalledObject<'_>, args: &Args<'_>) -> Result<Created, Status> {
    let target = args.data.within_limit()?;
    // POSIX allows neither an empty link text nor one with a NUL.
    if target.is_empty() || target.contains(&0) {
        return Err(Status::Inval);
    }
    let mut new = new_object(dir, FileKind::Symlink, &args.attributes)?;
    new.target = target.to_vec();
    make(dir, args.place.name, new).await
}
