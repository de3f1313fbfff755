//! DUMP, RFC 1813 5.2.2: the mounts of all clients.

use nfs_wire::mount::{DirPath, List, MountEntry, Name, Procedure};
use nfs_wire::xdr::{Encode, Writer};

use crate::call::Request;
use crate::operation::Operation;

pub(super) const OPERATION: Operation<Procedure> = Operation::mount_of_no_share(Procedure::Dump);

/// DUMP's list in owned strings, from which the wire type borrows.
pub(super) struct MountList(Vec<(String, String)>);

pub(super) fn handle(request: &Request<'_>) -> MountList {
    let mounts = request.connection.server.mounts.all();
    MountList(mounts.into_iter().map(|mounted| (mounted.client.to_string(), mounted.path)).collect())
}

impl Encode for MountList {
    fn encode(&self, writer: &mut Writer<'_>) {
        let entries = self.0.iter().map(|(client, path)| MountEntry {
            host_name: Name(client.as_bytes()),
            directory: DirPath(path.as_bytes()),
        });
        List(entries.collect()).encode(writer);
    }
}
