//! MOUNT: export list, root filehandles (RFC 1813 appendix I).

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;

use net::Buffer;
use nfs_proto::export::Network;
use nfs_wire::mount::{DirPath, ExportEntry, List, MntOk, MntRes, MountEntry, Name, Procedure};
use nfs_wire::rpc::{AcceptStatus, flavor};
use nfs_wire::v3::status::Status;
use nfs_wire::xdr::{Failure, Reader};
use parking_lot::Mutex;
use share::{Api, Case, Protocol, Share, Walk};
use storage::{FileKind, Want};

use crate::config::Exports;
use crate::object::Object;
use crate::rpc_dispatch::{NotRun, Request, decode};
use crate::status;

/// Mounts that are remembered for DUMP; with more the oldest are forgotten.
const MOUNTS_MAX: usize = 4096;

pub(crate) async fn dispatch(request: &Request<'_>, arguments: Reader<'_>) -> Result<Buffer, NotRun> {
    let server = &request.connection.server;
    let client = request.connection.client;
    let procedure =
        Procedure::try_from(request.call.procedure).map_err(|_| AcceptStatus::ProcedureUnavailable)?;
    Ok(match procedure {
        Procedure::Null => request.success(&()),
        Procedure::Mnt => {
            let measure = Request::measure(Api::Mount);
            let result = mnt(request, decode(arguments)?).await;
            request.count(&measure, 0, status::mount_outcome(&result));
            request.success(&result)
        }
        Procedure::Dump => {
            decode::<()>(arguments)?;
            let mounts: Vec<_> =
                server.mounts.all().into_iter().map(|m| (m.client.to_string(), m.path)).collect();
            request.success(&dump_list(&mounts))
        }
        Procedure::Umnt => {
            let DirPath(path) = decode(arguments)?;
            server.mounts.forget(client, Some(path));
            request.success(&())
        }
        Procedure::UmntAll => {
            decode::<()>(arguments)?;
            server.mounts.forget(client, None);
            request.success(&())
        }
        Procedure::Export => {
            decode::<()>(arguments)?;
            request.success(&ExportList::of(&server.exports).wire())
        }
    })
}

/// MNT: the filehandle of an export `/NAME`, or of a directory below it. RFC 1813 5.2.1.
async fn mnt(request: &Request<'_>, DirPath(path): DirPath<'_>) -> MntRes {
    let refused = |status| Failure { status: status::of_mount(status), body: () };
    let server = &request.connection.server;
    let directory = find(request, path).await.map_err(refused)?;
    let file_handle = directory.file_handle_of(server, &directory.node).map_err(refused)?;
    server.mounts.remember(Mounted {
        client: request.connection.client,
        path: String::from_utf8_lossy(path).into_owned(),
    });
    Ok(MntOk { file_handle, auth_flavors: vec![flavor::AUTH_SYS] })
}

/// The directory that a path of MNT leads to.
async fn find(request: &Request<'_>, path: &[u8]) -> Result<Object, Status> {
    let connection = request.connection;
    let mut parts = path.split(|byte| *byte == b'/').filter(|part| !matches!(*part, b"" | b"."));
    let name = parts.next().ok_or(Status::NoEnt)?;
    let exports = &connection.server.exports;
    let share = exports.by_name(name).ok_or(Status::NoEnt)?;
    let rule = exports.rules_of(&share).rule_for(connection.client).ok_or(Status::Acces)?;
    request.share.get_or_init(|| Arc::clone(&share));
    let below: Vec<_> = parts.map(<[u8]>::to_vec).collect();
    let caller = connection.callers.caller(
        Protocol::Nfs3,
        share.id(),
        rule,
        &request.call.credential,
        request.stated.as_ref(),
    );
    let walked = share.walk(&caller, below, Case::Sensitive, Want::empty()).await;
    match walked.map_err(status::of)? {
        Walk::Found(found) if found.attributes.kind == FileKind::Directory => {
            Ok(Object::new(share, caller, found.node, rule))
        }
        Walk::Found(_) => Err(Status::NotDir),
        Walk::Missing { .. } => Err(Status::NoEnt),
    }
}

/// What a client said that it mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mounted {
    /// The client.
    pub client: IpAddr,
    /// The path that it asked for.
    pub path: String,
}

/// The mounts that clients told of and did not take back.
#[derive(Debug, Default)]
pub(crate) struct MountTable(Mutex<VecDeque<Mounted>>);

impl MountTable {
    pub(crate) fn all(&self) -> Vec<Mounted> {
        self.0.lock().iter().cloned().collect()
    }

    fn remember(&self, mounted: Mounted) {
        let mut mounts = self.0.lock();
        if !mounts.contains(&mounted) {
            if mounts.len() >= MOUNTS_MAX {
                mounts.pop_front();
            }
            mounts.push_back(mounted);
        }
    }

    /// Forgets the mounts of a share that is served no more.
    pub(crate) fn forget_share(&self, name: &str) {
        let leads_there = |path: &str| path.split('/').find(|part| !matches!(*part, "" | ".")) == Some(name);
        self.0.lock().retain(|mounted| !leads_there(&mounted.path));
    }

    /// Forgets a client's mount of a path, or all of its mounts.
    fn forget(&self, client: IpAddr, path: Option<&[u8]>) {
        let gone = |mounted: &Mounted| {
            mounted.client == client && path.is_none_or(|path| mounted.path == String::from_utf8_lossy(path))
        };
        self.0.lock().retain(|mounted| !gone(mounted));
    }
}

fn dump_list(mounts: &[(String, String)]) -> List<MountEntry<'_>> {
    let entries = mounts.iter().map(|(client, path)| MountEntry {
        host_name: Name(client.as_bytes()),
        directory: DirPath(path.as_bytes()),
    });
    List(entries.collect())
}

/// EXPORT's list, in owned strings: the wire borrows from them.
struct ExportList(Vec<(String, Vec<String>)>);

impl ExportList {
    /// An export that everybody may mount names nobody.
    fn of(exports: &Exports) -> Self {
        let entry = |share: &Arc<Share>| {
            let networks: Vec<_> = exports.rules_of(share).rules.iter().map(|rule| rule.network).collect();
            let everybody = networks.contains(&Network::Any);
            let groups = networks.iter().filter(|_| !everybody).map(ToString::to_string);
            (format!("/{}", share.name()), groups.collect())
        };
        Self(exports.in_order().iter().map(entry).collect())
    }

    fn wire(&self) -> List<ExportEntry<'_>> {
        List(
            self.0
                .iter()
                .map(|(path, groups)| ExportEntry {
                    directory: DirPath(path.as_bytes()),
                    groups: List(groups.iter().map(|group| Name(group.as_bytes())).collect()),
                })
                .collect(),
        )
    }
}
