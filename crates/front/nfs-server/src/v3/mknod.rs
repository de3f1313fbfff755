//! MKNOD, RFC 1813 3.3.11.

use nfs_wire::v3::Procedure;
use nfs_wire::v3::attr::SetAttributes;
use nfs_wire::v3::mknod::{Args, Res, What};
use nfs_wire::v3::status::Status;
use nfs_wire::v3::types::{FileHandle, SpecData};
use share::{Created, Kind};
use storage::FileKind;

use super::for_object::ForObject;
use super::new_object::{made, make, new_object};
use crate::attributes;
use crate::call::Request;
use crate::object::CalledObject;
use crate::operation::Operation;

pub(super) const OPERATION: Operation<Procedure> = Operation {
    changes: true,
    is_kept: true,
    ..Operation::v3(Procedure::MkNod, "MkNod").of_kind(Kind::Create)
};

impl ForObject for Args<'_> {
    fn object(&self) -> &FileHandle {
        &self.place.dir
    }
}

pub(super) async fn handle(request: &Request<'_>, dir: &CalledObject<'_>, args: Args<'_>) -> Res {
    match node(dir, &args).await {
        Ok(created) => Ok(made(request, dir, &created)),
        Err(status) => Err(dir.failed_change(status).await),
    }
}

async fn node(dir: &CalledObject<'_>, args: &Args<'_>) -> Result<Created, Status> {
    let (kind, set, device) = parts(&args.what)?;
    let mut new = new_object(dir, kind, set)?;
    new.device = attributes::device(device);
    make(dir, args.place.name, new).await
}

/// RFC 1813 3.3.11: NFS3ERR_BADTYPE for objects that other procedures create.
fn parts(what: &What) -> Result<(FileKind, &SetAttributes, SpecData), Status> {
    match what {
        What::CharacterDevice(set, device) => Ok((FileKind::CharDevice, set, *device)),
        What::BlockDevice(set, device) => Ok((FileKind::BlockDevice, set, *device)),
        What::Socket(set) => Ok((FileKind::Socket, set, SpecData::default())),
        What::Fifo(set) => Ok((FileKind::Fifo, set, SpecData::default())),
        What::Other(_) => Err(Status::BadType),
    }
}
