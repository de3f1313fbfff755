//! NFS version 3: from a procedure to its handler, and nothing else.

mod access;
mod commit;
mod create;
mod fsinfo;
mod fsstat;
mod getattr;
mod link;
mod listing;
mod lookup;
mod mkdir;
mod mknod;
mod new_object;
mod pathconf;
mod read;
mod readdir;
mod readdirplus;
mod readlink;
mod remove;
mod rename;
mod rmdir;
mod setattr;
mod symlink;
mod write;

use net::Buffer;
use nfs_wire::rpc::AcceptStatus;
use nfs_wire::v3::status::Status;
use nfs_wire::v3::{Procedure, write as write_wire};
use nfs_wire::xdr::{Encode, Failure, Reader};
use share::{Api, Measure, Outcome};

use crate::rpc_dispatch::{NotRun, Request, decode};
use crate::status;

pub(crate) async fn dispatch(request: &Request<'_>, arguments: Reader<'_>) -> Result<Buffer, NotRun> {
    let procedure =
        Procedure::try_from(request.call.procedure).map_err(|_| AcceptStatus::ProcedureUnavailable)?;
    let Some(api) = api(procedure) else { return Ok(request.success(&())) };
    let call = Counted { request, measure: Request::measure(api) };
    Ok(match procedure {
        Procedure::Null => request.success(&()),
        Procedure::GetAttr => call.end(&getattr::handle(request, decode(arguments)?).await),
        Procedure::SetAttr => call.end(&setattr::handle(request, decode(arguments)?).await),
        Procedure::Lookup => call.end(&lookup::handle(request, decode(arguments)?).await),
        Procedure::Access => call.end(&access::handle(request, decode(arguments)?).await),
        Procedure::ReadLink => call.end(&readlink::handle(request, decode(arguments)?).await),
        Procedure::Read => call.end_read(read::handle(request, decode(arguments)?).await),
        Procedure::Write => call.end_write(&write::handle(request, decode(arguments)?).await),
        Procedure::Create => call.end(&create::handle(request, decode(arguments)?).await),
        Procedure::MkDir => call.end(&mkdir::handle(request, decode(arguments)?).await),
        Procedure::SymLink => call.end(&symlink::handle(request, decode(arguments)?).await),
        Procedure::MkNod => call.end(&mknod::handle(request, decode(arguments)?).await),
        Procedure::Remove => call.end(&remove::handle(request, decode(arguments)?).await),
        Procedure::RmDir => call.end(&rmdir::handle(request, decode(arguments)?).await),
        Procedure::Rename => call.end(&rename::handle(request, decode(arguments)?).await),
        Procedure::Link => call.end(&link::handle(request, decode(arguments)?).await),
        Procedure::ReadDir => call.end(&readdir::handle(request, decode(arguments)?).await),
        Procedure::ReadDirPlus => call.end(&readdirplus::handle(request, decode(arguments)?).await),
        Procedure::FsStat => call.end(&fsstat::handle(request, decode(arguments)?).await),
        Procedure::FsInfo => call.end(&fsinfo::handle(request, decode(arguments)?).await),
        Procedure::PathConf => call.end(&pathconf::handle(request, decode(arguments)?).await),
        Procedure::Commit => call.end(&commit::handle(request, decode(arguments)?).await),
    })
}

/// A call that is counted when it ends.
struct Counted<'r, 'a> {
    request: &'r Request<'a>,
    measure: Measure,
}

impl Counted<'_, '_> {
    /// The reply of a procedure.
    fn end<T: Encode, B: Encode>(&self, result: &Result<T, Failure<Status, B>>) -> Buffer {
        self.request.count(&self.measure, 0, outcome(result));
        self.request.success(result)
    }

    fn end_write(&self, result: &write_wire::Res) -> Buffer {
        let bytes = result.as_ref().map_or(0, |ok| u64::from(ok.count));
        self.request.connection.traffic.writes.add(bytes);
        self.request.count(&self.measure, bytes, outcome(result));
        self.request.success(result)
    }

    fn end_read(&self, result: Result<read::Data, read::Failed>) -> Buffer {
        match result {
            Ok(data) => {
                self.request.connection.traffic.reads.add(u64::from(data.head.count));
                self.request.count(&self.measure, u64::from(data.head.count), Outcome::Done);
                data.into_reply(self.request)
            }
            Err(failure) => self.end(&Err::<(), _>(failure)),
        }
    }
}

/// How a call has ended.
fn outcome<T, B>(result: &Result<T, Failure<Status, B>>) -> Outcome {
    result.as_ref().map_or_else(|failure| status::outcome(failure.status), |_| Outcome::Done)
}

/// What a call of this number is counted as.
pub(crate) fn api_of(procedure: u32) -> Option<Api> {
    Procedure::try_from(procedure).ok().and_then(api)
}

/// The name under which a procedure is counted; NULL is not.
fn api(procedure: Procedure) -> Option<Api> {
    Some(match procedure {
        Procedure::Null => return None,
        Procedure::GetAttr => Api::GetAttr,
        Procedure::SetAttr => Api::SetAttr,
        Procedure::Lookup => Api::Lookup,
        Procedure::Access => Api::Access,
        Procedure::ReadLink => Api::ReadLink,
        Procedure::Read => Api::Read,
        Procedure::Write => Api::Write,
        Procedure::Create => Api::Create,
        Procedure::MkDir => Api::MkDir,
        Procedure::SymLink => Api::SymLink,
        Procedure::MkNod => Api::MkNod,
        Procedure::Remove => Api::Remove,
        Procedure::RmDir => Api::RmDir,
        Procedure::Rename => Api::Rename,
        Procedure::Link => Api::Link,
        Procedure::ReadDir => Api::ReadDir,
        Procedure::ReadDirPlus => Api::ReadDirPlus,
        Procedure::FsStat => Api::FsStat,
        Procedure::FsInfo => Api::FsInfo,
        Procedure::PathConf => Api::PathConf,
        Procedure::Commit => Api::Commit,
    })
}
