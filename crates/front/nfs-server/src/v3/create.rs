//! CREATE, RFC 1813 3.3.8: the three ways to create a file.

use std::sync::Arc;

use nfs_wire::v3::Procedure;
use nfs_wire::v3::attr::{SetAttributes, WccData};
use nfs_wire::v3::create::{Args, How, Res};
use nfs_wire::v3::status::Status;
use nfs_wire::v3::types::{CreateVerifier, CreatedOk, FileHandle, Name};
use share::{Case, File, Found, Kind};
use storage::{FileKind, SetTime, Want};

use super::for_object::ForObject;
use super::new_object::{made, make, new_object};
use crate::attributes::to_set;
use crate::call::Request;
use crate::exclusive::Mark;
use crate::object::CalledObject;
use crate::operation::Operation;
use crate::{name, status};

pub(super) const OPERATION: Operation<Procedure> = Operation {
    changes: true,
    is_kept: true,
    ..Operation::v3(Procedure::Create, "Create").of_kind(Kind::Create)
};

impl ForObject for Args<'_> {
    fn object(&self) -> &FileHandle {
        &self.place.dir
    }
}

pub(super) async fn handle(request: &Request<'_>, dir: &CalledObject<'_>, args: Args<'_>) -> Res {
    let name = args.place.name;
    let created = match &args.how {
        How::Unchecked(attributes) => unchecked(request, dir, name, attributes).await,
        How::Guarded(attributes) => guarded(request, dir, name, attributes).await,
        How::Exclusive(verifier) => exclusive(request, dir, name, *verifier).await,
    };
    match created {
        Ok(created) => Ok(created),
        Err(status) => Err(dir.failed_change(status).await),
    }
}

async fn guarded(
    request: &Request<'_>,
    dir: &CalledObject<'_>,
    name: Name<'_>,
    attributes: &SetAttributes,
) -> Result<CreatedOk, Status> {
    let created = make(dir, name, new_object(dir, FileKind::Regular, attributes)?).await?;
    Ok(made(request, dir, &created))
}

/// Creates the file, or takes the existing one. In that case only the size is set, as clients expect from O_TRUNC.
async fn unchecked(
    request: &Request<'_>,
    dir: &CalledObject<'_>,
    name: Name<'_>,
    attributes: &SetAttributes,
) -> Result<CreatedOk, Status> {
    let refused = match guarded(request, dir, name, attributes).await {
        // A caller may open an existing file although the directory is not writable.
        Err(status @ (Status::Exist | Status::Acces | Status::RoFs)) => status,
        answer => return answer,
    };
    let Some(mut found) = existing(dir, name).await? else { return Err(refused) };
    if found.attributes.kind != FileKind::Regular {
        return Err(Status::Exist);
    }
    if let Some(size) = attributes.size {
        let set = to_set(&SetAttributes { size: Some(size), ..SetAttributes::default() })?;
        let file = File::Stateless(Arc::clone(&found.node));
        let changed = dir.share.set_attributes(dir.call, &file, &set, None).await;
        found.attributes = changed.map_err(status::of)?.after;
    }
    taken(request, dir, &found).await
}

/// Creates the file, marked with the verifier, or finds the file that an earlier transmission of this call has created.
async fn exclusive(
    request: &Request<'_>,
    dir: &CalledObject<'_>,
    name: Name<'_>,
    verifier: CreateVerifier,
) -> Result<CreatedOk, Status> {
    let mark = Mark::of(verifier);
    let closed = SetAttributes { mode: Some(0), ..SetAttributes::default() }; // until the client's SETATTR
    let mut new = new_object(dir, FileKind::Regular, &closed)?;
    new.set.atime = Some(SetTime::To(mark.atime));
    new.set.mtime = Some(SetTime::To(mark.mtime));
    let refused = match make(dir, name, new).await {
        Ok(created) => return Ok(made(request, dir, &created)),
        Err(Status::Exist) => Status::Exist,
        Err(status) => return Err(status),
    };
    match existing(dir, name).await? {
        Some(found) if mark.is_on(&found.attributes) => taken(request, dir, &found).await,
        _ => Err(refused),
    }
}

/// The object of that name, if there is one.
async fn existing(dir: &CalledObject<'_>, name: Name<'_>) -> Result<Option<Found>, Status> {
    let name = name::to_make(name)?;
    match dir.share.lookup(dir.call, &dir.node, name, Case::Sensitive, Want::empty()).await {
        Ok(found) => Ok(Some(found)),
        Err(error) => match status::of(error) {
            Status::NoEnt => Ok(None),
            status => Err(status),
        },
    }
}

/// The reply to the client about a file that already existed.
async fn taken(request: &Request<'_>, dir: &CalledObject<'_>, found: &Found) -> Result<CreatedOk, Status> {
    Ok(CreatedOk {
        object: Some(dir.file_handle_of(&request.connection.server.file_handles, &found.node)?),
        object_attributes: Some(dir.told(&found.attributes)),
        dir_wcc: WccData { before: None, after: dir.attributes().await },
    })
}
