//! UMNT, RFC 1813 5.2.3: a client reports that it no longer uses an export.

use nfs_wire::mount::{DirPath, Procedure};

use crate::call::Request;
use crate::operation::Operation;

pub(super) const OPERATION: Operation<Procedure> = Operation::mount_of_no_share(Procedure::Umnt);

pub(super) fn handle(request: &Request<'_>, DirPath(path): DirPath<'_>) {
    request.connection.server.mounts.forget(request.connection.client, Some(path));
}
