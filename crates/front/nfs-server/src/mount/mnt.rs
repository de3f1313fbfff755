//! MNT, RFC 1813 5.2.1: the filehandle of an export `/NAME`, or of a directory below it.

use nfs_wire::mount::{DirPath, MntOk, MntRes, Procedure};
use nfs_wire::v3::status::Status;
use nfs_wire::xdr::Failure;
use share::{Case, Kind, Turn, Walk};
use storage::{FileKind, Want};

use super::mounted::Mounted;
use crate::call::Request;
use crate::counted::Counted;
use crate::object::CalledObject;
use crate::operation::{Callers, Operation};
use crate::standing::Standing;
use crate::{snapshots, status};

pub(super) const OPERATION: Operation<Procedure> = Operation {
    callers: Callers::Mounting,
    ..Operation::mount(Procedure::Mnt, "Mount").with(Turn::Charged).of_kind(Kind::Mount)
};

pub(super) async fn handle(
    request: &Request<'_>,
    counted: &Counted<'_>,
    DirPath(path): DirPath<'_>,
) -> MntRes {
    let refused = |status| Failure { status: status::of_mount(status), body: () };
    let server = &request.connection.server;
    let directory = find(request, counted, path).await.map_err(refused)?;
    let file_handle = directory.file_handle_of(&server.file_handles, &directory.node).map_err(refused)?;
    server.mounts.remember(Mounted {
        client: request.connection.client,
        path: String::from_utf8_lossy(path).into_owned(),
    });
    let channel = request.connection.channel();
    Ok(MntOk { file_handle, auth_flavors: server.admitted_by(&directory.share, channel).numbers() })
}

/// The directory that a path of MNT leads to.
async fn find<'c>(
    request: &Request<'_>,
    counted: &'c Counted<'_>,
    path: &[u8],
) -> Result<CalledObject<'c>, Status> {
    let connection = request.connection;
    let mut parts = path.split(|byte| *byte == b'/').filter(|part| !matches!(*part, b"" | b"."));
    let name = parts.next().ok_or(Status::NoEnt)?;
    let exports = &connection.server.exports;
    // MOUNT has no status that asks for a retry (RFC 1813 5.1.5), but the client may retry after this one.
    let missing = || if exports.is_awaited(name) { Status::JukeBox } else { Status::NoEnt };
    let share = exports.by_name(name).ok_or_else(missing)?;
    let (caller, standing) = request.caller(&share).await;
    let below: Vec<_> = parts.map(<[u8]>::to_vec).collect();
    let call = counted.on(&share, caller);
    // Other calls wait for budget. A mount is not held back.
    call.needs_no_turn();
    // RFC 2623 2.7: clients mount with AUTH_NONE or AUTH_SYS, and learn here with what they must come.
    let may_walk = standing.is_member() || standing == Standing::TooWeak;
    if standing.is_refused() || !may_walk && !below.is_empty() {
        return Err(Status::Acces);
    }
    let mut below = below;
    let folder = below.iter().position(|name| name == snapshots::NAME).unwrap_or(below.len());
    let behind = below.split_off(folder);
    let walked = share.walk(call, below, Case::Sensitive, Want::empty()).await;
    let Walk::Found(found) = walked.map_err(status::of)? else { return Err(Status::NoEnt) };
    let above = CalledObject::new(share, call, found.node, standing);
    let directory = Box::pin(descend(above, &behind)).await.map_err(status::of)?;
    if directory.node.kind() == FileKind::Directory { Ok(directory) } else { Err(Status::NotDir) }
}

/// The object that a path leads to from a directory, whose first name may be that of the folder of snapshots.
async fn descend<'c>(mut at: CalledObject<'c>, path: &[Vec<u8>]) -> share::Result<CalledObject<'c>> {
    for name in path {
        at = match snapshots::look_up(&at, name).await? {
            Some(object) => object,
            None => {
                let found = at.share.lookup(at.call, &at.node, name, Case::Sensitive, Want::empty()).await?;
                at.beside(found.node)
            }
        };
    }
    Ok(at)
}
