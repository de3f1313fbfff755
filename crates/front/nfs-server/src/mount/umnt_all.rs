//! UMNTALL, RFC 1813 5.2.4: a client reports that it no longer uses any export.

use nfs_wire::mount::Procedure;

use crate::call::Request;
use crate::operation::Operation;

pub(super) const OPERATION: Operation<Procedure> = Operation::mount_of_no_share(Procedure::UmntAll);

pub(super) fn handle(request: &Request<'_>) {
    request.connection.server.mounts.forget(request.connection.client, None);
}
