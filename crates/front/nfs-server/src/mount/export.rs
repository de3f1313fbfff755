//! EXPORT, RFC 1813 5.2.5: the exports, and who may mount them.

use std::sync::Arc;

use nfs_wire::mount::{DirPath, ExportEntry, List, Name, Procedure};
use nfs_wire::xdr::{Encode, Writer};
use share::{Network, Protocols, Share, Terms};

use crate::call::Request;
use crate::operation::Operation;
use crate::server::ServerState;

pub(super) const OPERATION: Operation<Procedure> = Operation::mount_of_no_share(Procedure::Export);

/// EXPORT's list in owned strings, from which the wire type borrows.
pub(super) struct ExportList(Vec<(String, Vec<String>)>);

impl ExportList {
    /// The shares that any client may mount, with the clients that may. A share that every client may mount has an
    /// empty list.
    fn of(server: &ServerState) -> Self {
        let entry = |share: &Arc<Share>| {
            let rules = share.rules();
            let of_nfs = rules.clients.iter().filter(|rule| rule.protocols.contains(Protocols::NFS));
            let networks: Vec<_> = of_nfs.map(|rule| &rule.network).collect();
            let everybody = networks.contains(&&Network::Any);
            let groups = networks.iter().filter(|_| !everybody).map(ToString::to_string);
            (format!("/{}", share.name()), groups.collect())
        };
        let is_exported = |share: &&Arc<Share>| {
            let is_listed = !share.terms().contains(Terms::HIDDEN) && server.can_serve(share);
            is_listed && share.rules().protocols.contains(Protocols::NFS)
        };
        Self(server.exports.in_order().iter().filter(is_exported).map(entry).collect())
    }
}

pub(super) fn handle(request: &Request<'_>) -> ExportList {
    ExportList::of(&request.connection.server)
}

impl Encode for ExportList {
    fn encode(&self, writer: &mut Writer<'_>) {
        let entries = self.0.iter().map(|(path, groups)| ExportEntry {
            directory: DirPath(path.as_bytes()),
            groups: List(groups.iter().map(|group| Name(group.as_bytes())).collect()),
        });
        List(entries.collect()).encode(writer);
    }
}
